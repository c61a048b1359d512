// Elements. Text is always a text node, so the browser never parses it as markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true && !name.startsWith('aria-')) node.setAttribute(name, '');
    else if (value !== false && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== undefined));
  return node;
}

/** An HTML element. */
function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Icons of the player's buttons. */
const ICONS = {
  first: 'M2,2 h2 v12 h-2 Z M14,2 v12 L5,8 Z',
  back: 'M12,2 v12 L3,8 Z',
  play: 'M4,2 v12 L14,8 Z',
  pause: 'M3,2 h4 v12 h-4 Z M9,2 h4 v12 h-4 Z',
  next: 'M4,2 v12 L13,8 Z',
  last: 'M12,2 h2 v12 h-2 Z M2,2 v12 L11,8 Z',
};

function icon(name) {
  return svg('svg', { viewBox: '0 0 16 16', class: 'icon', 'aria-hidden': true }, svg('path', { d: ICONS[name] }));
}

/** A current colour of the style sheet: light, dark or print. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The terms of a step's time; each has a colour and a pattern. */
const TERMS = ['startup', 'transmission', 'propagation', 'rearrangement', 'barrier'];

/** Fills `term-0` to `term-4`, distinct by pattern as well as by colour. */
function addPatterns(place) {
  const marks = [
    [],
    [svg('path', { d: 'M-2,2 L2,-2 M0,8 L8,0 M6,10 L10,6', class: 'mark' })],
    [svg('circle', { cx: 2, cy: 2, r: 1.2, class: 'dot' }), svg('circle', { cx: 6, cy: 6, r: 1.2, class: 'dot' })],
    [svg('path', { d: 'M0,0 L8,8 M8,0 L0,8', class: 'mark' })],
    [svg('path', { d: 'M0,2 H8 M0,6 H8', class: 'mark' })],
  ];
  place.append(svg('defs', {}, ...marks.map((lines, i) =>
    svg('pattern', { id: `term-${i}`, width: 8, height: 8, patternUnits: 'userSpaceOnUse' },
      svg('rect', { width: 8, height: 8, class: `term-${i}` }), ...lines))));
}

/** The legend of the terms that are not 0. */
function termLegend(shares) {
  const items = TERMS.map((term, i) => shares[i] > 0 && html('li', { title: term === 'rearrangement' ? REARRANGEMENT : undefined },
    svg('svg', { width: 16, height: 12, 'aria-hidden': true },
      svg('rect', { width: 16, height: 12, fill: `url(#term-${i})`, class: 'bar' })), ` ${term}`));
  return html('ul', { class: 'legend' }, ...items.filter(Boolean));
}
