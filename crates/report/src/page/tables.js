// The head of the page, the ranking and the notes.

function head(place, data) {
  const best = data.ranking[0];
  const tile = (name, value, more) => html('div', { class: 'tile' }, html('dt', {}, name), html('dd', {}, value), html('p', {}, more));
  const operation = data.operation === 'alltoall' ? 'All-to-all' : 'All-gather';
  const total = sum(best.seconds);
  place.append(
    html('p', { class: 'brand' }, `topocoll ${data.version}`),
    html('h1', {}, `${operation} on ${data.machine}`),
    html('p', { class: 'lead' }, `${data.machine === data.topology ? '' : `${data.topology}, `}${many(data.ranks, 'rank')}, ${many(data.ports, 'port')}, blocks of ${bytes(data.block_bytes)}, timing ${data.timing[0][1]}`),
    html('dl', { class: 'tiles' },
      tile('best', best.algorithm, best.setting === '-' ? 'no parameters' : best.setting),
      tile('predicted', `${best.exact ? '' : '≥ '}${seconds(total)}`, 'by the steps model'),
      tile('of the bound', `${best.ratio.toFixed(2)}×`, `lower bound ${seconds(data.bound.seconds)}`),
      tile('steps', String(best.steps), `at least ${data.bound.steps}`),
      tile('volume', `${blocks(best.link_blocks)} blocks`, `at least ${blocks(data.bound.blocks)}, over the busiest links`)),
    html('p', { class: 'reason' }, `${data.reason}.`));
}

/** Rows shown at first. */
const SHOWN = 12;

function ranking(section, data, player) {
  const slowest = largest(data.ranking.map((entry) => sum(entry.seconds)));
  const scale = Math.max(slowest, data.bound.seconds) || 1;
  const bar = (entry) => {
    let x = 0;
    const parts = entry.seconds.map((term, t) => {
      const wide = (200 * term) / scale;
      x += wide;
      return wide > 0 ? svg('rect', { x: x - wide, y: 2, width: wide, height: 14, fill: `url(#term-${t})`, class: 'bar' }) : '';
    });
    const limit = (200 * data.bound.seconds) / scale;
    return svg('svg', { viewBox: '0 0 202 18', class: 'times', 'aria-hidden': true, preserveAspectRatio: 'none' }, ...parts,
      svg('line', { x1: limit, x2: limit, y1: 0, y2: 18, class: 'limit' }));
  };
  const row = (entry, i) => html('tr', { class: i >= SHOWN ? 'later' : '' },
    html('td', { class: 'number' }, String(i + 1)),
    html('td', {}, entry.algorithm, html('span', { class: 'setting' }, entry.setting === '-' ? '' : ` ${entry.setting}`)),
    html('td', { class: 'wide' }, bar(entry)),
    html('td', { class: 'number' }, `${entry.exact ? '' : '≥ '}${seconds(sum(entry.seconds))}`),
    html('td', { class: 'number' }, entry.ratio.toFixed(2)),
    html('td', { class: 'number' }, String(entry.steps)),
    html('td', { class: 'number' }, blocks(entry.link_blocks)),
    html('td', { class: 'number' }, entry.sharing === 0 ? '?' : String(entry.sharing)),
    html('td', {}, entry.play === undefined ? '' : html('button', { type: 'button', class: 'watch', 'aria-label': `Watch ${named(entry.algorithm, entry.setting)}`, onclick: () => { player.choose(entry.play); location.hash = '#watch'; } }, 'watch')));
  const shares = TERMS.map((_, t) => sum(data.ranking.map((entry) => entry.seconds[t])));
  const names = ['', 'algorithm', 'where the time goes', 'time', '× bound', 'steps', 'link blocks', 'sharing', ''];
  const table = html('table', { class: 'ranking' },
    html('thead', {}, html('tr', {}, ...names.map((name, i) => html('th', { scope: 'col', class: i > 2 && i < 8 ? 'number' : '' }, name)))),
    html('tbody', {}, ...data.ranking.map(row)));
  const hidden = data.ranking.length - SHOWN;
  const more = hidden > 0 ? html('button', { type: 'button', class: 'more', onclick: () => { table.classList.add('all'); more.remove(); } }, `Show ${many(hidden, 'more setting')}`) : undefined;
  section.append(html('h2', {}, 'Ranking'),
    html('p', { class: 'hint' }, 'Every algorithm that applies, by predicted time. The vertical line is the lower bound.'),
    termLegend(shares),
    html('div', { class: 'scroll' }, table), more ?? '',
    data.more > 0 ? html('p', { class: 'hint' }, `and ${many(data.more, 'more setting')} that trade steps for volume: topocoll select --all shows them`) : '',
    boundsTable(data));
}

function boundsTable(data) {
  const measures = { steps: 'steps', blocks: 'blocks', link_blocks: 'link blocks', hops: 'hops' };
  const row = (bound) => html('tr', {},
    html('td', {}, measures[bound.measure]), html('td', { class: 'number' }, blocks(bound.value)),
    html('td', {}, bound.theorem), html('td', {}, bound.condition || 'every schedule'));
  return html('details', {},
    html('summary', {}, `Lower bounds (${data.bounds.length})`),
    html('div', { class: 'scroll' }, html('table', {},
      html('thead', {}, html('tr', {}, ...['bounds', 'at least', 'by', 'holds for'].map((name) => html('th', { scope: 'col' }, name)))),
      html('tbody', {}, ...data.bounds.map(row)))));
}

function notes(section, data) {
  const pairs = (rows) => html('dl', { class: 'pairs' }, ...rows.flatMap(([name, value]) => [html('dt', {}, name), html('dd', {}, value)]));
  const part = (title, rows) => (rows.length === 0 ? '' : html('details', {}, html('summary', {}, `${title} (${rows.length})`), pairs(rows)));
  section.append(html('h2', {}, 'Notes'),
    html('p', {}, 'Times are those of the steps model: T = startup × steps + time of a byte × bytes over the busiest links + propagation × hops + rearrangement × bytes copied and packed + barrier × (steps − 1). A shared link is charged with its whole load.'),
    pairs(data.timing),
    part('Sources of the machine\u2019s values', data.sources),
    part('Algorithms that do not apply', data.rejected),
    part('Algorithms that apply but cannot be played', data.unplayed),
    html('p', {}, 'Made by ', html('code', {}, data.command), `, topocoll ${data.version}. The page works offline.`));
}
