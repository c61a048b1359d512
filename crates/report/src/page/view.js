// A drawing that one can point at, turn and cut: by pointer, by touch and by keyboard.

/** Radians for each pixel of a drag, and for each press of a key or button. */
const DRAG = 0.008;
const TURN = Math.PI / 24;

const TURNS = {
  ArrowLeft: [-1, 0, 'Turn left', 'M12,3 v10 L4,8 Z'],
  ArrowRight: [1, 0, 'Turn right', 'M4,3 v10 L12,8 Z'],
  ArrowUp: [0, -1, 'Turn up', 'M3,12 h10 L8,4 Z'],
  ArrowDown: [0, 1, 'Turn down', 'M3,4 h10 L8,12 Z'],
};

class View {
  /** `describe` says what a rank does, `select` follows a rank or none, `paint` draws. */
  constructor({ describe, select, paint }) {
    Object.assign(this, { describe, select, paint });
    this.canvas = html('canvas', { tabindex: 0, role: 'application', 'aria-roledescription': 'drawing' });
    this.tip = html('div', { class: 'tip', role: 'status', hidden: true });
    this.ring = html('div', { class: 'pointed', hidden: true });
    this.plane = html('select', { class: 'plane', onchange: () => this.cut(this.plane.value) });
    this.tools = html('div', { class: 'controls', role: 'group', 'aria-label': 'View', hidden: true },
      html('label', {}, 'Plane ', this.plane),
      ...[[-1, 'Plane before', '‹'], [1, 'Next plane', '›']].map(([by, name, text]) => html('button', { type: 'button', class: 'page', 'aria-label': name, title: `${name} (Page ${by < 0 ? 'Up' : 'Down'} in the drawing)`, onclick: () => this.leaf(by) }, text)),
      ...Object.values(TURNS).map(([yaw, pitch, name, d]) => html('button', { type: 'button', class: 'turn', 'aria-label': name, title: `${name} (Shift and arrow keys in the drawing)`, onclick: () => this.turn(yaw * TURN, pitch * TURN) },
        svg('svg', { viewBox: '0 0 16 16', class: 'icon', 'aria-hidden': true }, svg('path', { d })))));
    // For scripts, such as tests, that look at the drawing.
    this.canvas.view = this;
    this.figure = html('figure', { class: 'canvas' }, this.canvas, this.ring, this.tip);
    this.element = html('div', { class: 'view' }, this.figure, this.tools);
    this.canvas.addEventListener('pointerdown', (event) => this.press(event));
    // A pressed drawing leaves the keys to the player.
    this.canvas.addEventListener('mousedown', (event) => { event.preventDefault(); document.activeElement.blur(); });
    this.canvas.addEventListener('pointermove', (event) => this.hover(event));
    this.canvas.addEventListener('pointerleave', () => this.point());
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    this.canvas.addEventListener('focus', () => { if (this.canvas.matches(':focus-visible')) this.point(this.at ?? this.first()); });
    this.canvas.addEventListener('blur', () => this.point());
    new ResizeObserver(() => { if (this.drawing) { this.drawing.resize(); this.repaint(); } }).observe(this.figure);
  }

  /** Buttons that save the drawing. */
  takes(parts) {
    const drawn = () => new Blob([this.drawing.asSvg()], { type: 'image/svg+xml' });
    return takeDrawing(drawn, () => onCard(this.canvas), parts);
  }

  /** Shows a schedule's machine, from the direction and in the plane of the one before. */
  show(schedule, label) {
    const before = this.drawing?.layout;
    this.drawing = new Drawing(this.canvas, schedule);
    const { layout } = this.drawing;
    this.at = undefined;
    this.point();
    if (before?.deep && layout.deep) [layout.yaw, layout.pitch] = [before.yaw, before.pitch];
    this.tools.hidden = !layout.deep;
    if (layout.deep) {
      const planes = layout.long.map((u) => html('optgroup', { label: `dimension ${u}` },
        ...Array.from({ length: layout.sides[u] }, (_, at) => html('option', { value: `${u}:${at}` }, `${u} at ${at}`))));
      this.plane.replaceChildren(html('option', { value: '' }, 'all, in space'), ...planes);
      // All nodes in space hide each other, so it opens on one plane.
      const { u, at } = before?.deep && before.sides.join() === layout.sides.join() ? before.plane ?? {} : { u: layout.long[0], at: 0 };
      this.plane.value = u === undefined ? '' : `${u}:${at}`;
    }
    const keys = `Arrow keys move between ranks, Enter selects one${layout.deep ? ', Shift and arrow keys turn, Page Up and Page Down show other planes' : ''}.`;
    this.canvas.setAttribute('aria-label', `${label}. ${keys}`);
    this.cut(layout.deep ? this.plane.value : '');
  }

  /** Shows one plane across a dimension, or all. */
  cut(value) {
    const { layout } = this.drawing;
    const [u, at] = value.split(':').map(Number);
    layout.plane = value === '' ? undefined : { u, at };
    this.canvas.classList.toggle('turns', Boolean(layout.turns));
    this.tools.querySelectorAll('.turn').forEach((button) => { button.disabled = !layout.turns; });
    this.drawing.resize();
    this.repaint();
  }

  /** Shows the next plane, or the one before. */
  leaf(by) {
    this.plane.selectedIndex = modulo(this.plane.selectedIndex + by, this.plane.options.length);
    this.cut(this.plane.value);
  }

  repaint() {
    this.paint();
    if (this.at !== undefined && !this.ring.hidden) this.point(this.drawing.shown(this.at) ? this.at : undefined);
  }

  turn(yaw, pitch) {
    const { layout } = this.drawing;
    if (!layout.turns) return;
    layout.yaw += yaw;
    layout.pitch = Math.max(-1.5, Math.min(1.5, layout.pitch + pitch));
    this.repaint();
  }

  /** A press selects a rank; a drag turns a drawing in space. */
  press(event) {
    const begin = [event.offsetX, event.offsetY];
    let dragged = false;
    let [x, y] = [event.clientX, event.clientY];
    const move = (next) => {
      if (Math.hypot(next.clientX - event.clientX, next.clientY - event.clientY) > 4) dragged = true;
      if (dragged) this.turn((next.clientX - x) * DRAG, (next.clientY - y) * DRAG);
      [x, y] = [next.clientX, next.clientY];
    };
    const ended = new AbortController();
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.addEventListener('pointermove', move, { signal: ended.signal });
    this.canvas.addEventListener('pointercancel', () => ended.abort(), { signal: ended.signal });
    this.canvas.addEventListener('pointerup', () => {
      ended.abort();
      if (!dragged) this.select(this.drawing.rankAt(...begin));
    }, { signal: ended.signal });
  }

  hover(event) {
    if (event.buttons !== 0) {
      this.point();
      return;
    }
    const [x, y] = [event.offsetX, event.offsetY];
    const rank = this.drawing.rankAt(x, y);
    if (rank !== undefined) this.point(rank);
    else {
      this.point();
      const link = this.drawing.linkAt(x, y);
      if (link !== undefined) this.tell(`link ${this.drawing.network.linkName(link)}`, x, y);
    }
  }

  /** Marks a rank and tells what it does, or marks none. */
  point(rank) {
    this.tip.hidden = rank === undefined;
    this.ring.hidden = rank === undefined;
    if (rank === undefined) return;
    this.at = rank;
    const [x, y] = this.drawing.places[rank];
    const side = 2 * this.drawing.radius + 8;
    Object.assign(this.ring.style, { left: `${x - side / 2}px`, top: `${y - side / 2}px`, width: `${side}px`, height: `${side}px` });
    this.tell(`${this.drawing.schedule.place(rank)} ${this.describe(rank)}`, x, y);
  }

  /** Shows a text beside a point, inside the drawing. */
  tell(text, x, y) {
    this.tip.hidden = false;
    if (this.tip.textContent !== text) this.tip.textContent = text;
    const { width, height } = this.drawing;
    const far = this.drawing.radius + 10;
    this.tip.style.left = `${Math.max(0, Math.min(width - this.tip.offsetWidth, x - this.tip.offsetWidth / 2))}px`;
    this.tip.style.top = `${y + far + this.tip.offsetHeight > height ? y - far - this.tip.offsetHeight : y + far}px`;
  }

  /** The first rank that is shown. */
  first() {
    return this.drawing.places.findIndex((_, rank) => this.drawing.shown(rank));
  }

  /** The nearest shown rank in a direction. */
  beside(dx, dy) {
    const [x, y] = this.drawing.places[this.at];
    let [found, least] = [this.at, Infinity];
    this.drawing.places.forEach(([a, b], rank) => {
      const [along, across] = [(a - x) * dx + (b - y) * dy, Math.abs((a - x) * dy + (b - y) * dx)];
      const cost = along + 2.5 * across;
      if (along > 0.5 && across <= 2 * along && cost < least && this.drawing.shown(rank)) [found, least] = [rank, cost];
    });
    return found;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const turn = TURNS[event.key];
    const pages = { PageUp: -1, PageDown: 1 }[event.key];
    if (turn && event.shiftKey) this.turn(turn[0] * TURN, turn[1] * TURN);
    else if (turn) this.point(this.at === undefined ? this.first() : this.beside(turn[0], turn[1]));
    else if (pages && !this.tools.hidden) {
      this.leaf(pages);
    } else if (event.key === 'Enter' && this.at !== undefined) this.select(this.at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
