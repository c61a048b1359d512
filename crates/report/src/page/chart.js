// Charts with logarithmic axes: time over block size, charged volume over steps.

const CHART = { width: 860, height: 430, left: 84, right: 16, top: 34, bottom: 52 };

/** Marks of series, distinct by shape: paths around the origin, filled ones first. */
const MARKS = [
  'M-4,0 a4,4 0 1,0 8,0 a4,4 0 1,0 -8,0 Z',
  'M-4,-4 h8 v8 h-8 Z',
  'M0,-5.5 L5.5,0 L0,5.5 L-5.5,0 Z',
  'M0,-5 L5,4 H-5 Z',
  'M0,5 L5,-4 H-5 Z',
  'M-4,-4 L4,4 M4,-4 L-4,4',
];
const SERIES = 6;

/** A mark with the colour and shape of series `i`. */
function mark(i, x, y) {
  const open = Math.floor(i / SERIES) % 2 === 1 || i % MARKS.length === 5;
  return svg('path', { d: MARKS[i % MARKS.length], transform: `translate(${x},${y})`, class: `${open ? 'open' : 'full'} series-${(i + Math.floor(i / SERIES)) % SERIES}` });
}

/** A logarithmic axis: values to pixels, and its ticks. */
class Axis {
  constructor(from, to, pixels, base) {
    this.from = Math.log(from);
    this.to = Math.log(to > from ? to : from * base);
    this.pixels = pixels;
    this.base = base;
  }

  at(value) {
    const [a, b] = this.pixels;
    return a + ((b - a) * (Math.log(value) - this.from)) / (this.to - this.from);
  }

  /** Powers of the base, up to a number of them. */
  ticks(most) {
    const log = Math.log(this.base);
    const [first, last] = [Math.ceil(this.from / log - 1e-9), Math.floor(this.to / log + 1e-9)];
    const every = Math.max(1, Math.ceil((last - first + 1) / most));
    const out = [];
    for (let power = first; power <= last; power += every) out.push(this.base ** power);
    return out;
  }
}

/** Axes with ticks and names. */
function frame(x, y, names, show) {
  const { width, height, left, right, top, bottom } = CHART;
  const out = svg('g', {});
  for (const value of x.ticks(11)) {
    out.append(
      svg('line', { x1: x.at(value), x2: x.at(value), y1: top, y2: height - bottom, class: 'grid' }),
      svg('text', { x: x.at(value), y: height - bottom + 17, 'text-anchor': 'middle' }, show[0](value)));
  }
  for (const value of y.ticks(8)) {
    out.append(
      svg('line', { x1: left, x2: width - right, y1: y.at(value), y2: y.at(value), class: 'grid' }),
      svg('text', { x: left - 7, y: y.at(value) + 4, 'text-anchor': 'end' }, show[1](value)));
  }
  out.append(
    svg('rect', { x: left, y: top, width: width - left - right, height: height - top - bottom, class: 'frame' }),
    svg('text', { x: (left + width - right) / 2, y: height - 10, 'text-anchor': 'middle', class: 'name' }, names[0]),
    svg('text', { transform: `translate(15,${(top + height - bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle', class: 'name' }, names[1]));
  return out;
}

function chart(label, ...parts) {
  return svg('svg', { viewBox: `0 0 ${CHART.width} ${CHART.height}`, class: 'chart', tabindex: 0, role: 'img', 'aria-label': label }, ...parts);
}

/**
 * Lets one of several items be looked at: the nearest to the pointer by `distance` from its place in the chart, or the
 * next by the arrow keys. Returns a function that looks at the item of a number.
 */
function choice(picture, items, distance, look) {
  const { width, height } = CHART;
  let at = 0;
  const choose = (i) => {
    at = Math.max(0, Math.min(items.length - 1, i));
    look(at);
  };
  const nearest = (event) => {
    const box = picture.getBoundingClientRect();
    const place = [((event.clientX - box.left) / box.width) * width, ((event.clientY - box.top) / box.height) * height];
    const distances = items.map((item) => distance(item, ...place));
    choose(distances.indexOf(Math.min(...distances)));
  };
  picture.addEventListener('pointermove', nearest);
  picture.addEventListener('pointerdown', nearest);
  picture.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    choose(at + by);
  });
  return choose;
}

/** Predicted time over block size, with the values under the pointer beside it. */
function sweepChart(section, data) {
  if (data.sweep === undefined) {
    section.hidden = true;
    return;
  }
  const { sizes, bound, fastest } = data.sweep;
  const { library } = data;
  const own = library ? [{ algorithm: `${library.title} default`, floor: false, seconds: library.by_block.map((row) => row.time_seconds), settings: library.by_block.map((row) => row.algorithm) }] : [];
  const lines = [...data.sweep.lines, ...own];
  const { width, height, left, right, top, bottom } = CHART;
  const shown = lines.map((line, i) => ({ ...line, i, label: line.floor ? `${line.algorithm}, at least` : line.algorithm }));
  const values = lines.flatMap((line) => line.seconds).concat(bound).filter((value) => value > 0);
  if (values.length === 0) {
    section.append(html('h2', {}, 'Block size'), html('p', {}, 'With these timing values nothing takes any time.'));
    return;
  }
  const x = new Axis(sizes[0], sizes[sizes.length - 1], [left, width - right], 2);
  const y = new Axis(Math.min(...values) * 0.8, Math.max(...values) * 1.25, [height - bottom, top], 10);
  const path = (points) => points.map((value, i) => `${i === 0 ? 'M' : 'L'}${x.at(sizes[i]).toFixed(1)},${y.at(value).toFixed(1)}`).join(' ');
  const area = bound.every((value) => value > 0)
    ? [svg('path', { d: `${path(bound)} L${x.at(sizes[sizes.length - 1])},${height - bottom} L${x.at(sizes[0])},${height - bottom} Z`, class: 'below' }), svg('path', { d: path(bound), class: 'bound' })]
    : [];
  const curves = shown.filter((line) => line.seconds.every((value) => value > 0)).map((line) => svg('g', { 'data-series': line.i },
    svg('path', { d: path(line.seconds), class: `curve series-${(line.i + Math.floor(line.i / SERIES)) % SERIES}`, 'stroke-dasharray': line.floor ? '6 4' : line.i === data.sweep.lines.length ? '2 3' : undefined }),
    ...line.seconds.flatMap((value, i) => (i % 4 === line.i % 4 ? [mark(line.i, x.at(sizes[i]), y.at(value))] : []))));
  // Settings of one algorithm are one range of the band.
  const ranges = fastest.map((entry, i) => ({ ...entry, from: x.at(Math.max(entry.bytes, sizes[0])), to: i + 1 < fastest.length ? x.at(fastest[i + 1].bytes) : width - right }));
  const strip = grouped(ranges, ({ algorithm }, i) => ranges.slice(0, i).findLastIndex((other) => other.algorithm !== algorithm)).map((group, i) => {
    const [{ algorithm, from }, { to }] = [group[0], group[group.length - 1]];
    const number = shown.findIndex((line) => line.algorithm === algorithm);
    return svg('g', { class: 'winner' },
      svg('title', {}, group.map((entry) => `${named(algorithm, entry.setting)} from ${exactly(entry.bytes)}`).join('; ')),
      svg('rect', { x: from, y: 8, width: Math.max(0, to - from), height: 20, class: `strip series-${(number + Math.floor(number / SERIES)) % SERIES}` }),
      // The name of a short range is below its middle, downwards.
      algorithm.length * 6.4 + 8 <= to - from ? svg('text', { x: from + 5, y: 22, class: 'strip-name' }, algorithm)
        : svg('text', { transform: `translate(${(from + to) / 2 - 3},${top + 5}) rotate(90)`, class: 'strip-name beside' }, algorithm),
      i > 0 ? svg('line', { x1: from, x2: from, y1: 28, y2: height - bottom, class: 'crossing' }) : '');
  });
  const cursor = svg('line', { y1: top, y2: height - bottom, class: 'crosshair' });
  const table = html('table', {});
  const readout = html('div', { class: 'readout', 'aria-live': 'polite' }, html('div', { class: 'scroll' }, table));
  const look = (at) => {
    cursor.setAttribute('x1', x.at(sizes[at]));
    cursor.setAttribute('x2', x.at(sizes[at]));
    const part = sizes[at] / data.block_bytes;
    // A time that is only a floor is not above one that is known.
    const order = [...shown].sort((a, b) => a.floor - b.floor || a.seconds[at] - b.seconds[at]);
    const row = (line) => html('tr', { class: line.floor ? 'floor' : '' },
      html('td', {}, svg('svg', { width: 14, height: 14, viewBox: '-7 -7 14 14', 'aria-hidden': true }, mark(line.i, 0, 0)), ` ${line.label}`, settingOf(data.settings, line.algorithm, line.settings[at])),
      html('td', { class: 'number' }, `${line.floor ? '≥ ' : ''}${seconds(line.seconds[at])}`),
      html('td', { class: 'number' }, bandwidthOf(data, line.seconds[at] / part, !line.floor)),
      ...(library ? [html('td', { class: 'number' }, times(library.by_block[at].time_seconds / line.seconds[at]))] : []),
      html('td', { class: 'number' }, bound[at] > 0 ? times(line.seconds[at] / bound[at]) : ''));
    table.replaceChildren(
      html('caption', {}, `Blocks of ${bytes(sizes[at])}; lower bound ${seconds(bound[at])}`),
      html('thead', {}, html('tr', {}, ...['algorithm and best setting', 'time', 'bandwidth', ...(library ? ['gain'] : []), '× bound'].map((name, i) => html('th', { scope: 'col', class: i > 0 ? 'number' : '' }, name)))),
      html('tbody', {}, ...order.map(row)));
  };
  const picture = chart('Predicted time over block size', frame(x, y, ['block size', 'predicted time'], [bytes, round]), ...area, ...strip, ...curves, cursor);
  const choose = choice(picture, sizes, (size, px) => Math.abs(x.at(size) - px), look);
  const distances = sizes.map((size) => Math.abs(Math.log(size / data.block_bytes)));
  choose(distances.indexOf(Math.min(...distances)));
  const crossings = fastest.flatMap((entry, i) => [i > 0 ? '; ' : '', entry.algorithm, settingOf(data.settings, entry.algorithm, entry.setting), ` from ${exactly(entry.bytes)}`]);
  section.append(html('h2', {}, 'Block size'),
    html('p', { class: 'hint' }, 'The best setting of each algorithm at each size. Point at the chart, or use the arrow keys in it. The band above it names the fastest in each range of sizes. Grey: below the lower bound.'),
    html('figure', {}, picture),
    html('p', { class: 'takes' }, takeChart(picture, () => [data.topology, 'block size']), takeButton('Copy table', 'Copy the times at this block size as text', () => copy(tableText(table)))),
    readout,
    html('p', {}, html('strong', {}, 'Fastest: '), ...crossings, '.'));
}

/** Charged volume over steps: the Pareto front, and settings that it beats. */
function frontChart(section, data) {
  const { front, beaten, beaten_in_all: all, least } = data.front;
  const points = front.filter((point) => point.steps > 0 && point.link_blocks > 0);
  if (points.length === 0) {
    section.hidden = true;
    return;
  }
  const others = beaten.filter(([steps, volume]) => steps > 0 && volume > 0);
  const { width, height, left, right, top, bottom } = CHART;
  const xs = points.map((point) => point.steps).concat(others.map((other) => other[0]), data.bound.steps || []);
  const ys = points.map((point) => point.link_blocks).concat(others.map((other) => other[1]), data.bound.blocks || []);
  const x = new Axis(Math.min(...xs) / 1.2, Math.max(...xs) * 1.2, [left, width - right], 2);
  const y = new Axis(Math.min(...ys) / 1.3, Math.max(...ys) * 1.3, [height - bottom, top], xy(ys));
  const names = [...new Set(points.map((point) => point.algorithm))];
  const stairs = points.map((point, i) => `${i === 0 ? `M${x.at(point.steps)},${y.at(point.link_blocks)}` : `H${x.at(point.steps)} V${y.at(point.link_blocks)}`}`).join(' ');
  const known = least.filter(([steps, volume]) => steps > 0 && volume > 0);
  const curve = known.map(([steps, volume]) => `H${x.at(steps)} V${y.at(volume)}`).join(' ');
  const bounds = known.length === 0 ? [] : [
    svg('path', { d: `M${left},${top} ${curve} H${width - right} V${height - bottom} H${left} Z`, class: 'below' }),
    svg('path', { d: `M${x.at(known[0][0])},${top} ${curve} H${width - right}`, class: 'bound' }),
  ];
  const place = (point) => [x.at(point.steps), y.at(point.link_blocks)];
  const ring = svg('circle', { r: 9, class: 'ring', cx: -20, cy: -20 });
  const readout = html('p', { class: 'readout', 'aria-live': 'polite' });
  const look = (at) => {
    const point = points[at];
    const [cx, cy] = place(point);
    ring.setAttribute('cx', cx);
    ring.setAttribute('cy', cy);
    readout.replaceChildren(point.algorithm, settingOf(data.settings, point.algorithm, point.setting), `: ${many(point.steps, 'step')}, charged volume of ${blocks(point.link_blocks)} blocks, ${seconds(point.seconds)}.`);
  };
  const picture = chart('Charged volume over steps',
    frame(x, y, ['steps (startups)', 'charged volume, in blocks'], [String, (value) => value.toLocaleString('en')]),
    ...bounds,
    ...others.map(([steps, volume]) => svg('circle', { cx: x.at(steps), cy: y.at(volume), r: 1.8, class: 'beaten' })),
    svg('path', { d: stairs, class: 'stairs' }),
    ...points.map((point) => mark(names.indexOf(point.algorithm), ...place(point))), ring);
  const distance = (point, px, py) => Math.hypot(place(point)[0] - px, place(point)[1] - py);
  const choose = choice(picture, points, distance, look);
  choose(points.reduce((least, point, i) => (point.seconds < points[least].seconds ? i : least), 0));
  const legend = html('ul', { class: 'legend' }, ...names.map((name, i) =>
    html('li', {}, svg('svg', { width: 14, height: 14, viewBox: '-7 -7 14 14', 'aria-hidden': true }, mark(i, 0, 0)), ` ${name}`)));
  const rest = all > 0 ? ` The small dots are ${all.toLocaleString('en')} settings that one of these beats.` : '';
  section.append(html('h2', {}, 'Steps and charged volume'),
    html('p', { class: 'hint' }, `The Pareto front: no setting beats one of these in both.${rest} The dashed line is the trade-off bound: no schedule of as many steps has less charged volume.`),
    html('figure', {}, picture), html('p', { class: 'takes' }, takeChart(picture, () => [data.topology, 'steps and volume'])), legend, readout);
}

/** Powers of ten if they give several ticks, otherwise of two. */
function xy(values) {
  return Math.max(...values) / Math.min(...values) > 1000 ? 10 : 2;
}
