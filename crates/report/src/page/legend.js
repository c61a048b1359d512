// What the marks of a drawing mean.

/** The legend of a machine's drawing. */
function drawingLegend(network) {
  const swatch = (...draw) => svg('svg', { width: 34, height: 14, 'aria-hidden': true }, ...draw);
  const line = (name, attributes) => svg('line', { x1: 2, y1: 7, x2: 32, y2: 7, class: `line-${name}`, ...attributes });
  const arrow = (hue) => swatch(line(`way-${hue}`, { x2: 22, 'stroke-width': 2 }), svg('path', { d: 'M32,7 L21,2 L21,12 Z', class: `fill-way-${hue}` }));
  const item = (picture, text) => html('li', {}, picture, html('span', {}, text));
  const { shape } = network;
  const ways = network.hues().map(([hue, name]) => item(arrow(hue), name));
  const shifts = (shape.shifts ?? []).flatMap((shift, u) => {
    const longest = largest(shape.sides);
    const others = shape.sides.flatMap((side, v) => (side === longest ? [v] : [])).join(' and ');
    return shift > 0 ? [`Around dimension ${u} a link arrives ${shift} further along dimension ${others}.`] : [];
  });
  const cross = svg('path', { d: 'M13,3 l8,8 m0,-8 l-8,8', class: 'line-failed', 'stroke-width': 2 });
  const circle = (name) => svg('circle', { cx: 17, cy: 7, r: 6, class: name });
  const items = [
    ...(network.vertices > network.nodes ? [item(swatch(svg('rect', { x: 8, y: 2, width: 18, height: 10, rx: 2, class: 'shape' })), 'a switch')] : []),
    ...(shape.sizes ? [item(swatch(svg('rect', { x: 9, y: 0.5, width: 16, height: 13, rx: 3, class: 'shape' })), 'a node with its ranks')] : []),
    ...(network.joined ? [item(swatch(line('idle', { 'stroke-width': 1 })), 'a link'),
      item(swatch(line('conflict', { 'stroke-width': 4, 'stroke-dasharray': '5 4' })), 'a link that several messages share')] : []),
    ...(shape.failed?.length > 0 ? [item(swatch(line('failed', { 'stroke-dasharray': '3 4', 'stroke-width': 1.5 }), cross), 'a failed link')] : []),
    ...(shape.missing?.length > 0 ? [item(swatch(circle('shape-failed'), cross.cloneNode()), 'a missing node')] : []),
    ...(shifts.length > 0 ? [item(swatch(line('follow', { 'stroke-dasharray': '5 4', 'stroke-width': 1.5 })), shifts.join(' '))] : []),
    item(swatch(svg('rect', { x: 11, y: 1, width: 12, height: 12, class: 'fill-follow' })), 'the selected rank, or the followed block'),
  ];
  return html('div', {},
    html('h3', {}, 'Messages'),
    html('ul', { class: 'legend ways' }, ...ways),
    html('p', { class: 'hint' }, 'A rank has the colour of its message. Heads are larger for more bytes. Thick: the messages of one rank.'),
    html('ul', { class: 'legend key' }, ...items));
}
