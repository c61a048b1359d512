// The bytes that each rank has for each other, where blocks differ.

function demandHeat(section, { demand }) {
  if (demand === undefined) {
    section.hidden = true;
    return;
  }
  const { rows, ranks_each: each } = demand;
  const [side, most] = [rows.length, largest(rows.flat())];
  const [margin, cell] = [36, 440 / side];
  const name = (i) => (each === 1 ? String(i) : `${i * each} to ${(i + 1) * each - 1}`);
  const marks = rows.flatMap((row, from) => row.map((load, to) => {
    if (load === 0) return '';
    // The area of a mark shows the load, without its colour.
    const size = Math.max(1, cell * (0.35 + 0.6 * Math.sqrt(load / most)));
    const [x, y] = [to, from].map((at) => margin + (at + 0.5) * cell - size / 2);
    return svg('rect', { x, y, width: size, height: size, class: `fill-load-${Math.min(4, Math.floor((5 * load) / most))}` },
      svg('title', {}, `${name(from)} → ${name(to)}: ${bytes(load)}`));
  }));
  const every = Math.ceil(18 / cell);
  const numbers = rows.flatMap((_, i) => (i % every > 0 ? [] : [
    svg('text', { x: margin + (i + 0.5) * cell, y: margin - 6, 'text-anchor': 'middle' }, String(i * each)),
    svg('text', { x: margin - 5, y: margin + (i + 0.5) * cell + 4, 'text-anchor': 'end' }, String(i * each))]));
  const used = rows.flat().filter((load) => load > 0);
  const pairs = each === 1 ? 'pair of ranks' : `pair of ${each} consecutive ranks`;
  section.append(html('h2', {}, 'Demand'),
    html('p', { class: 'hint' }, 'Bytes that ranks have for others: senders down, receivers across. Point at a mark for its bytes.'),
    html('p', { class: 'fact' }, used.length === 0 ? 'No rank has bytes for another.'
      : `The largest ${pairs} has ${bytes(most)}, ${(most * used.length / sum(used)).toFixed(2)} times the mean of those with bytes.`),
    html('figure', {}, svg('svg', { viewBox: `0 0 ${margin + 448} ${margin + 448}`, style: 'max-width: 34rem', role: 'img', 'aria-label': `Demand matrix of ${demand.name} blocks` },
      svg('rect', { x: margin, y: margin, width: 440, height: 440, class: 'frame' }), ...numbers, ...marks)));
}
