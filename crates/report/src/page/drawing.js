// A machine: nodes, links by load, messages on their routes.

/** The points of a curved link. */
const CURVE = [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1];

/** The most shared links that are labelled at once. */
const LABELS = 24;

/** The least radius of a rank with a name. */
const NAME = 7.5;

/** The most followed messages whose ends are labelled. */
const NAMED = 6;

/** The most ranks in space that are all named, and messages that are not drawn pale. */
const CROWD = 64;

/** The most messages across a network with switches that are not drawn pale. */
const CROSSING = 24;

/** The strength of what is not followed, and of lines that cross often. */
const FAINT = 0.13;
const CROWDED = 0.5;

const COLOURS = ['ink', 'soft', 'card', 'idle', 'node', 'node-edge', 'conflict', 'on-conflict', 'follow', 'message', 'box', 'failed',
  'on-way', 'on-way-light', ...[0, 1, 2, 3, 4].map((i) => `load-${i}`), ...Array.from({ length: HUES }, (_, i) => `way-${i}`)];

class Drawing {
  constructor(canvas, schedule) {
    this.canvas = canvas;
    this.schedule = schedule;
    this.network = schedule.network;
    this.layout = layoutFor(this.network);
    this.recolour();
    this.resize();
  }

  /** Fits the canvas to the page's width. */
  resize() {
    const width = this.canvas.parentElement.clientWidth || 640;
    const [left, top, right, bottom] = this.layout.bounds();
    const tallest = Math.min(760, Math.max(320, window.innerHeight * 0.8));
    const wanted = this.square ? width : this.layout.turns ? width * 0.9 : (width * (bottom - top)) / (right - left);
    const height = Math.max(180, Math.min(tallest, wanted));
    const sharp = Math.min(2, window.devicePixelRatio || 1);
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * sharp);
    this.canvas.height = Math.round(height * sharp);
    [this.width, this.height, this.sharp] = [width, height, sharp];
    this.pen = new CanvasPen(this.canvas, width, height, sharp);
    this.kept.clear();
    this.fit();
  }

  /** Fits the machine to the canvas, from the current direction. */
  fit() {
    const { width, height, network: { sizes }, layout } = this;
    const [left, top, right, bottom] = layout.bounds();
    this.unit = Math.min(width / (right - left), height / (bottom - top), sizes ? 190 : 90);
    this.shift = [
      width / 2 - (this.unit * (left + right)) / 2,
      height / 2 - (this.unit * (top + bottom)) / 2,
    ];
    this.columns = sizes ? Math.ceil(Math.sqrt(largest(sizes))) : 1;
    this.half = layout.box * this.unit;
    const part = layout.turns ? 0.12 : 0.23;
    this.radius = sizes ? Math.max(1.2, Math.min(13, (0.72 * this.half) / this.columns)) : Math.max(1.6, Math.min(13, this.unit * part));
    // On a grid, messages pass beside the nodes on their way.
    this.gap = this.network.grid ? Math.min(this.unit * (sizes ? 0.38 : 0.3), (sizes ? this.half : this.radius) + 2)
      : Math.max(1.5, Math.min(2.2, this.unit * 0.06));
    this.deepest = layout.deep ? Math.hypot(...layout.long.map((u) => layout.sides[u])) / 2 : 1;
    this.spots = undefined;
    this.vertices = Array.from({ length: this.network.vertices }, (_, v) => this.pixel(layout.vertex(v)));
  }

  pixel([x, y, depth]) {
    return [x * this.unit + this.shift[0], y * this.unit + this.shift[1], depth];
  }

  /** By rank, its position on the canvas and its depth. */
  get places() {
    if (!this.spots) {
      const { network, columns, vertices } = this;
      const pitch = (2 * this.half) / columns;
      this.spots = network.nodeOf.map((node, rank) => {
        const [x, y, depth] = vertices[node];
        if (!network.sizes) return [x, y, depth];
        const [slot, size] = [network.slotOf[rank], network.sizes[node]];
        const rows = Math.ceil(size / columns);
        return [x + ((slot % columns) - (Math.min(columns, size) - 1) / 2) * pitch, y + (Math.floor(slot / columns) - (rows - 1) / 2) * pitch, depth];
      });
    }
    return this.spots;
  }

  /** The direction and the plane from which the machine is seen. */
  get seen() {
    const { yaw, pitch, plane } = this.layout;
    return [yaw, pitch, plane?.u, plane?.at].join();
  }

  /** The hue of a message at its sender. */
  hueOf({ from, to, links }) {
    if (links?.length > 0) return this.network.hue(links[0]);
    return this.network.sizes && this.network.nodeOf[from] === this.network.nodeOf[to] ? 2 : 0;
  }

  shown(rank) {
    return this.layout.shown(this.network.nodeOf[rank]);
  }

  /** Whether boxes hold ranks with names. */
  get boxed() {
    return Boolean(this.network.sizes) && this.radius >= NAME;
  }

  /** The distance of messages from the middle line of a link; a curved link passes the nodes on one side. */
  gapOf(link) {
    return this.layout.bent(link) && !this.layout.ring ? Math.min(this.gap, this.unit * 0.07) : this.gap;
  }

  /** A point of a link; `gap` pixels to the right of its direction, so that both directions stay apart. */
  on(link, t, gap) {
    const { layout, network } = this;
    if (layout.straight(link)) {
      const [a, b] = [this.vertices[network.from[link]], this.vertices[network.to[link]]];
      const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
      return [a[0] + t * (b[0] - a[0]) - ((b[1] - a[1]) / length) * gap, a[1] + t * (b[1] - a[1]) + ((b[0] - a[0]) / length) * gap, a[2] + t * (b[2] - a[2])];
    }
    const [x, y, depth] = this.pixel(layout.along(link, t));
    const span = layout.spans(link).find(([, end]) => t <= end) ?? [0, 1];
    const [a, b] = [Math.max(span[0], t - 0.1), Math.min(span[1], t + 0.1)].map((near) => this.pixel(layout.along(link, near)));
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    return [x - ((b[1] - a[1]) / length) * gap, y + ((b[0] - a[0]) / length) * gap, depth];
  }

  /** The drawn polylines of a link, from its start to its end. */
  polylines(link, gap) {
    return this.layout.spans(link).map(([from, to]) =>
      (this.layout.bent(link) ? CURVE : [0, 1]).map((part) => this.on(link, from + part * (to - from), gap)));
  }

  /** Distant parts are fainter. */
  haze(depth) {
    return this.layout.turns ? Math.max(0.3, Math.min(1, 0.7 - (0.55 * depth) / this.deepest)) : 1;
  }

  /** The same for many lines at once, in a few degrees. */
  degree(depth) {
    return Math.round(this.haze(depth) * 5) / 5;
  }

  /** Reads the current colours: light, dark or print. */
  recolour() {
    this.kept = new Map();
    this.ink = Object.fromEntries(COLOURS.map((name) => [name, colour(name)]));
  }

  /** A colour mixed with the background, so that lines over each other do not darken. */
  tint(name, part) {
    const [from, to] = [this.ink.card, name].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
    return `rgb(${from.map((x, i) => Math.round(x + part * (to[i] - x))).join(',')})`;
  }

  /** The colour of a load between 0 and 1. */
  shade(load) {
    return this.ink[`load-${Math.min(4, Math.floor(load * 5))}`];
  }

  /** Draws static parts once per key and caches the last few. */
  still(key, draw) {
    const { pen } = this;
    if (pen instanceof SvgPen) {
      draw();
      return;
    }
    const all = [key, this.seen].join();
    if (!this.kept.has(all)) {
      const canvas = document.createElement('canvas');
      [canvas.width, canvas.height] = [this.canvas.width, this.canvas.height];
      this.pen = new CanvasPen(canvas, this.width, this.height, this.sharp);
      draw();
      this.pen = pen;
      if (this.kept.size > 2) this.kept.clear();
      this.kept.set(all, canvas);
    }
    pen.paper.drawImage(this.kept.get(all), 0, 0, this.width, this.height);
  }

  /** Draws a picture, and keeps how to draw it again. */
  show(picture) {
    this.picture = picture;
    if (this.layout.turns) this.fit();
    this.pen.clear();
    picture();
  }

  /** The picture last drawn, as the text of an SVG file. */
  asSvg() {
    const pen = this.pen;
    this.pen = new SvgPen(document.createElement('canvas'), this.width, this.height, this.ink.card);
    this.picture();
    const text = this.pen.written();
    this.pen = pen;
    return text;
  }

  /** The boxes of nodes with several ranks, the switches, and all links, thin and pale. */
  frame() {
    const { network, layout, pen, ink } = this;
    // Both directions have one line, but stubs around a side may be of one only.
    const single = network.links.filter((link) => {
      const back = network.back(link);
      return !(back < link && layout.spans(back).length > 0);
    });
    const lines = grouped(single.flatMap((link) => this.polylines(link, 0)), (points) => this.degree(points[0][2]));
    for (const group of lines) pen.lines(group, { stroke: this.tint(ink.idle, this.degree(group[0][0][2])) });
    this.faults();
    for (let vertex = network.nodes; vertex < network.vertices; vertex += 1) {
      const [x, y] = this.vertices[vertex];
      const side = Math.max(3, Math.min(9, this.unit * 0.2));
      pen.box(x - side, y - side * 0.8, 2 * side, 1.6 * side, 2, { fill: ink.box, stroke: ink['node-edge'] });
    }
    if (!network.sizes) return;
    for (let node = 0; node < network.nodes; node += 1) {
      if (!layout.shown(node)) continue;
      const [x, y] = this.vertices[node];
      pen.box(x - this.half, y - this.half, 2 * this.half, 2 * this.half, Math.min(8, this.half * 0.2), { fill: ink.box, stroke: ink['node-edge'] });
      if (!network.joined && this.half > 40) pen.text(`node ${node}`, x - this.half + 2, y - this.half - 8, { size: 11, fill: ink.soft, align: 'start' });
    }
  }

  /** Failed links dashed and crossed, missing nodes dashed. */
  faults() {
    const { layout, pen, ink, radius } = this;
    const cross = ([x, y], size) => pen.lines([[[x - size, y - size], [x + size, y + size]], [[x - size, y + size], [x + size, y - size]]], { stroke: ink.failed, width: 2 });
    for (const ends of layout.failed()) {
      const [a, b] = ends.map((end) => this.pixel(end));
      pen.lines([[a, b]], { stroke: ink.failed, width: 1.5, dash: [3, 4] });
      cross([(a[0] + b[0]) / 2, (a[1] + b[1]) / 2], Math.min(5, radius * 0.6));
    }
    for (const at of layout.missing()) {
      const place = this.pixel(layout.place(at));
      pen.circle(place[0], place[1], radius, { stroke: ink.failed, width: 1.5, dash: [3, 3], fill: ink.card });
      cross(place, radius * 0.5);
    }
  }

  /** Where links around twisted sides lead: the nodes' numbers, or in space one link of each side. */
  twists() {
    const { network, layout, pen, ink } = this;
    const { shifts = [] } = network.shape;
    const twisted = network.links.filter((link) => layout.broken(link) && shifts[network.along(link)[0]] > 0);
    const { from, to } = network;
    if (layout.turns) {
      const examples = twisted.filter((link) => network.along(link)[1] > 0 && network.places[from[link]].every((x, v) => v === network.along(link)[0] || x === 0));
      const curves = examples.map((link) => {
        const [a, d] = [this.vertices[from[link]], this.vertices[to[link]]];
        const [b, c] = [0.499, 0.501].map((t) => this.pixel(layout.along(link, t)));
        return Array.from({ length: 17 }, (_, i) => bezier(a, beyond(a, b, 2), beyond(d, c, 2), d, i / 16));
      });
      pen.lines(curves, { stroke: ink.follow, width: 1.5, dash: [5, 4] });
      examples.forEach((link, i) => this.label(`${network.name(from[link])} → ${network.name(to[link])}`, ...curves[i][5 + 4 * i], ink.follow));
      return;
    }
    for (const link of twisted.filter((one) => layout.shown(from[one]) && layout.plane?.u !== network.along(one)[0])) {
      const [x, y] = this.pixel(layout.along(link, 0.49));
      const [a, b] = this.vertices[from[link]];
      const far = Math.hypot(x - a, y - b) || 1;
      const leaves = layout.plane && network.places[to[link]][layout.plane.u] !== layout.plane.at;
      pen.text(leaves ? network.name(to[link]) : String(to[link]), x + ((x - a) / far) * 6, y + ((y - b) / far) * 6, { size: 9, fill: ink.follow });
    }
  }

  /** Links by load, both directions apart; `most` is a load of 1. */
  loads(loads, most) {
    const thick = Math.max(1.2, Math.min(4.5, this.unit * 0.07));
    const gap = Math.max(1.2, Math.min(4, this.unit * 0.075));
    const lines = [...loads].flatMap(([link, load]) => {
      const share = most > 0 ? load.bytes / most : 0;
      return this.polylines(link, gap).map((points) => ({ points, share, degree: this.degree(points[0][2]) }));
    });
    lines.sort((a, b) => a.share - b.share);
    for (const group of grouped(lines, ({ share, degree }) => [Math.round(20 * share), degree].join())) {
      const { share, degree } = group[0];
      this.pen.lines(group.map(({ points }) => points), { stroke: this.tint(this.shade(share), degree), width: 0.8 + thick * share });
    }
  }

  /** The ranks: `hues` by rank, `marked` ranks with a label or true, and those that are faint or outlined. */
  ranks({ hues = new Map(), marked = new Map(), faint = new Set(), outlined = new Set() } = {}) {
    const { pen, radius, ink, layout } = this;
    const all = this.places.map((place, rank) => [...place, rank]).filter(([, , , rank]) => this.shown(rank));
    if (layout.turns) all.sort((a, b) => b[2] - a[2]);
    const names = radius >= NAME && (!layout.turns || all.length <= CROWD);
    for (const [x, y, depth, rank] of all) {
      const mark = marked.get(rank);
      const hue = hues.get(rank);
      const part = mark ? 1 : faint.has(rank) ? 0.3 : this.haze(depth);
      const fill = mark ? ink.follow : this.tint(hue === undefined ? ink.node : ink[`way-${hue}`], part);
      const stroke = mark || outlined.has(rank) ? ink.ink : hue === undefined ? this.tint(ink['node-edge'], part) : undefined;
      const width = mark || outlined.has(rank) ? 2 : 1;
      if (mark) pen.box(x - radius - 1.5, y - radius - 1.5, 2 * radius + 3, 2 * radius + 3, 2, { fill, stroke, width });
      else pen.circle(x, y, radius, { fill, stroke, width });
      const text = String(this.schedule.rankName(rank));
      const on = mark ? ink['on-conflict'] : faint.has(rank) ? ink.soft : hue === undefined ? ink.ink : ink[hue % 2 ? 'on-way-light' : 'on-way'];
      if (names) pen.text(text, x, y + 0.5, { size: Math.max(7.5, Math.min(11, radius * (text.length > 2 ? 0.85 : 1))), fill: on });
    }
    for (const [rank, mark] of marked) {
      const [x, y] = this.places[rank];
      if (this.shown(rank) && mark !== true) this.label(mark, x, y - radius - 11, ink.follow);
    }
  }

  /** The ranks at the corners of a grid in space, without those in front and behind. */
  corners() {
    const { network, layout } = this;
    const isCorner = (at) => layout.long.every((u) => at[u] === 0 || at[u] === layout.sides[u] - 1);
    const all = network.nodeOf.flatMap((node, rank) => (network.slotOf[rank] === 0 && isCorner(network.places[node]) ? [rank] : []));
    all.sort((a, b) => this.places[a][2] - this.places[b][2]);
    return all.slice(1, -1);
  }

  /** Names of the corners in space, and of the ends of twisted links. */
  labels() {
    if (this.layout.turns && this.places.length > CROWD) {
      for (const rank of this.corners()) {
        const [x, y] = this.places[rank];
        this.label(String(this.schedule.rankName(rank)), x, y - this.radius - 10, this.ink.card, this.ink.ink);
      }
    }
    this.twists();
  }

  label(text, x, y, back, fill = this.ink['on-conflict']) {
    const { pen } = this;
    const style = { size: 11, bold: true, fill };
    const width = pen.textWidth(text, style) + 8;
    const left = Math.max(1, Math.min(this.width - width - 1, x - width / 2));
    const top = Math.max(1, Math.min(this.height - 17, y - 8));
    pen.box(left, top, width, 16, 4, { fill: back });
    pen.text(text, left + width / 2, top + 8.5, style);
  }

  /** Marks the shared links of a step, and labels an even sample of them. */
  conflicts(shared) {
    const { ink, pen, layout } = this;
    const width = Math.max(1.5, Math.min(4.5, this.unit * (layout.turns ? 0.035 : 0.07)));
    const lines = shared.flatMap(([link]) => this.polylines(link, this.gapOf(link)));
    for (const group of grouped(lines, (points) => this.degree(points[0][2]))) {
      pen.lines(group, { stroke: this.tint(ink.conflict, this.degree(group[0][0][2])), width, dash: [4, 3] });
    }
    const seen = shared.filter(([link]) => layout.spans(link).length > 0);
    const every = Math.ceil(seen.length / LABELS);
    for (const [link, load] of seen.filter((_, i) => i % every === 0).reverse()) {
      const [from, to] = layout.spans(link)[0];
      const [x, y] = this.on(link, (from + to) / 2, this.gapOf(link));
      this.label(`×${load.messages}`, x, y, ink.conflict);
    }
  }

  /** A message's route on the canvas: pieces of one hue, each a polyline. */
  trace(message) {
    const { network, layout, places, radius } = this;
    const [a, b] = [places[message.from], places[message.to]];
    const [shownFrom, shownTo] = [this.shown(message.from), this.shown(message.to)];
    const pieces = [];
    let last;
    const add = (point, hue) => {
      if (last && last.hue === hue) last.points.push(point);
      else {
        const joint = last?.points[last.points.length - 1];
        last = { hue, points: joint ? [joint, point] : [point] };
        pieces.push(last);
      }
    };
    const cut = () => { last = undefined; };
    if (!message.links || message.links.length === 0) {
      if (!shownFrom || !shownTo) return [];
      return [{ hue: this.hueOf(message), points: arc(a, b, radius, network.sizes ? undefined : [this.width / 2, this.height / 2]) }];
    }
    const { links } = message;
    if (shownFrom) add(a, network.hue(links[0]));
    links.forEach((link, i) => {
      const hue = network.hue(link);
      const spans = layout.spans(link);
      if (spans.length === 0) cut();
      for (const [from, to] of spans) {
        if (from > 0) cut();
        const lane = this.lane(link, from, to);
        const turn = i > 0 && from === 0 && last && !layout.bent(link) && !layout.bent(links[i - 1]) && this.corner(last.points, lane);
        if (turn) last.points.push(turn);
        lane.forEach((point) => add(point, hue));
        if (to < 1) cut();
      }
      if (i === links.length - 1 && shownTo) add(toward(last?.points[last.points.length - 1] ?? b, b, radius + 0.5), hue);
    });
    // A line begins at the edge of its rank.
    if (shownFrom && pieces.length > 0) {
      const { points } = pieces[0];
      points[0] = toward(points[1], a, Math.min(radius, Math.hypot(points[1][0] - a[0], points[1][1] - a[1])));
    }
    return pieces.filter((piece) => piece.points.length > 1);
  }

  /** The part of a link that a message takes beside its middle line, away from the vertices at its ends. */
  lane(link, from, to) {
    const [a, b] = [this.pixel(this.layout.along(link, from)), this.pixel(this.layout.along(link, to))];
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]) / (to - from) || 1;
    const away = Math.min(0.3, (this.network.grid ? 0.3 * this.unit : 12) / length);
    const [first, end] = [from > 0 ? from : away, to < 1 ? to : 1 - away];
    const parts = this.layout.bent(link) && from === 0 && to === 1 ? CURVE : [0, 1];
    return parts.map((part) => this.on(link, first + part * (end - first), this.gapOf(link)));
  }

  /** Where the end of a line and the begin of the next cross, if that is near both. */
  corner(points, next) {
    if (!this.network.grid || points.length < 2) return undefined;
    const [[ax, ay], [bx, by, depth]] = points.slice(-2);
    const [[cx, cy], [dx, dy]] = next;
    const cross = (bx - ax) * (dy - cy) - (by - ay) * (dx - cx);
    if (Math.abs(cross) < 1e-3) return undefined;
    const t = ((cx - ax) * (dy - cy) - (cy - ay) * (dx - cx)) / cross;
    const [x, y] = [ax + t * (bx - ax), ay + t * (by - ay)];
    return Math.max(Math.hypot(x - bx, y - by), Math.hypot(x - cx, y - cy)) < this.unit * 0.75 ? [x, y, depth] : undefined;
  }

  /** The routes of a step's messages, and what each rank's hue is. */
  traces(messages) {
    const key = [this.unit, ...this.shift, this.seen].join();
    if (this.traced?.messages !== messages || this.traced.key !== key) {
      const hues = new Map();
      for (const message of messages) {
        const { from } = message;
        const hue = this.hueOf(message);
        hues.set(from, hues.has(from) && hues.get(from) !== hue ? undefined : hue);
      }
      const all = new Map(messages.map((message) => [message, this.trace(message)]));
      this.traced = { messages, key, hues, all };
    }
    return this.traced;
  }

  /** Lines of messages, by hue and width. */
  routes(list, most, { strength = 1, wide = 1, colour: given, cap } = {}) {
    const lines = list.flatMap(([message, pieces]) => {
      const width = wide * (1 + Math.round(4 * Math.sqrt(message.bytes / (most || 1)) * Math.min(1, this.unit / 40)) / 4);
      return pieces.map(({ hue, points }) => ({ hue, points, width, degree: this.degree(points[0][2] ?? 0) }));
    });
    for (const group of grouped(lines, ({ hue, width, degree }) => [hue, width, degree].join())) {
      const { hue, width, degree } = group[0];
      this.pen.lines(group.map(({ points }) => points), { stroke: this.tint(given ?? this.ink[`way-${hue}`], strength * degree), width, cap });
    }
  }

  /** Arrow heads after the part `t` of their routes, for all or by message; their areas by their bytes. */
  heads(list, t, most, { strength = 1, wide = 1, colour: given } = {}) {
    const heads = list.flatMap(([message, pieces]) => {
      const head = headAt(pieces, typeof t === 'function' ? t(message) : t);
      if (!head) return [];
      const [x, y, dx, dy, hue, depth] = head;
      const size = wide * Math.min(1.5 + Math.min(5, this.unit * 0.11) * Math.sqrt(message.bytes / (most || 1)), this.network.sizes ? Math.max(1.5, 0.6 * this.radius) : Infinity);
      const [back, side] = [size * 1.5, size * 0.8];
      return [{ hue, degree: this.degree(depth), points: [[x, y], [x - dx * back - dy * side, y - dy * back + dx * side], [x - dx * back + dy * side, y - dy * back - dx * side]] }];
    });
    for (const group of grouped(heads, ({ hue, degree }) => [hue, degree].join())) {
      const { hue, degree } = group[0];
      this.pen.lines(group.map(({ points }) => points), { fill: this.tint(given ?? this.ink[`way-${hue}`], strength * degree), stroke: this.ink.card, width: 0.7, closed: true });
    }
  }

  /**
   * A step: its messages with their heads after the part `time` of their routes. `follow` has the
   * marked ranks, the followed messages of this step, and the legs of a block in all steps. Without
   * it, the messages of one rank stand out.
   */
  step({ number, messages, shared, time, follow }) {
    const most = largest(messages.map((message) => message.bytes));
    const { all, hues } = this.traces(messages);
    const crowded = this.layout.turns || messages.length > (this.network.grid ? CROWD : CROSSING);
    const example = follow ? undefined : messages.find(({ from }) => this.shown(from))?.from;
    const chosen = follow?.now ?? new Set(messages.filter(({ from }) => from === example));
    const now = [...chosen].map((message) => [message, all.get(message) ?? this.trace(message)]);
    const rest = [...all].filter(([message]) => !chosen.has(message));
    const ring = follow?.legs ? new Set() : this.ring(messages, follow ? [...follow.marked.keys()][0] : example);
    const [onRing, off] = [rest.filter(([{ from }]) => ring.has(from)), rest.filter(([{ from }]) => !ring.has(from))];
    const colour = follow?.legs ? this.ink.follow : undefined;
    const strength = follow ? FAINT : crowded ? CROWDED : 1;
    const faint = follow && new Set(this.places.map((_, rank) => rank).filter((rank) => !ring.has(rank) && !follow.ends.has(rank)));
    const ranks = { hues, marked: follow?.marked, faint, outlined: follow ? undefined : new Set([example, ...ring]) };
    const below = () => this.routes(off, most, { strength });
    const above = () => {
      this.routes(onRing, most, { wide: follow ? 1 : 1.4 });
      if (shared.length > 0) this.conflicts(shared);
      if (follow?.legs) this.routes(follow.legs.map((message) => [message, this.trace(message)]), most, { strength: 0.45, colour });
      this.routes(now, most, { wide: 3, colour: this.ink.card, cap: 'butt' });
      this.routes(now, most, { wide: 2, colour });
    };
    this.still([number, shared.length > 0, Boolean(follow), ...(follow?.marked.keys() ?? [])], () => {
      this.frame();
      if (this.boxed || this.layout.turns) below();
      // In a box of several named ranks, lines pass behind them.
      if (this.boxed) above();
      this.ranks(ranks);
      if (!this.boxed && !this.layout.turns) below();
      if (!this.boxed) above();
      this.labels();
    });
    this.heads(off, time, most, { strength });
    this.heads(onRing, time, most);
    this.heads(now, time, most, { wide: 1.4, colour });
    if (follow && now.length <= NAMED) {
      for (const [message] of now) {
        const other = follow.marked.has(message.from) ? message.to : message.from;
        const [x, y] = this.places[other];
        if (!follow.marked.has(other) && this.shown(other)) this.label(String(this.schedule.rankName(other)), x, y - this.radius - 11, this.ink.ink);
      }
    }
  }

  /** The ranks of the ring of messages through a rank, if it is a small part of the machine. */
  ring(messages, rank) {
    const next = new Map();
    for (const { from, to } of messages) next.set(from, next.has(from) ? undefined : to);
    const ring = new Set();
    let at = rank;
    for (; at !== undefined && !ring.has(at); at = next.get(at)) ring.add(at);
    return at === rank && 4 * ring.size <= messages.length ? ring : new Set();
  }

  /** Bytes between pairs of ranks or nodes as a square: senders down, receivers across. */
  matrix(totals, count, most, noun) {
    const { pen, ink } = this;
    const margin = 36;
    const side = Math.min(this.width, this.height) - margin - 8;
    const cell = side / count;
    const [left, top] = [(this.width - side + margin) / 2, margin];
    const text = { size: 11, fill: ink.ink };
    for (const [pair, total] of totals) {
      const [from, to] = [Math.floor(pair / count), pair % count];
      const share = total.bytes / most;
      // The area of a mark shows the load, without its colour.
      const size = Math.max(1, cell * (0.35 + 0.6 * Math.sqrt(share)));
      pen.box(left + (to + 0.5) * cell - size / 2, top + (from + 0.5) * cell - size / 2, size, size, 0, { fill: this.shade(share) });
    }
    pen.box(left, top, side, side, 0, { stroke: ink['node-edge'] });
    const every = Math.ceil(18 / cell);
    for (let i = 0; i < count; i += every) {
      pen.text(String(i), left + (i + 0.5) * cell, top - 8, text);
      pen.text(String(i), left - 5, top + (i + 0.5) * cell, { ...text, align: 'end' });
    }
    pen.text(`to ${noun}`, left + side / 2, top - 24, text);
    pen.text(`from ${noun}`, left - 29, top + side / 2, { ...text, turn: -Math.PI / 2 });
  }

  /** The shown rank near a point of the canvas, if any. */
  rankAt(x, y) {
    let [found, nearest] = [undefined, Math.max(this.network.sizes ? 3 : 10, this.radius + 3)];
    this.places.forEach(([a, b, depth], rank) => {
      const distance = Math.hypot(a - x, b - y) + (this.layout.turns ? 0.1 * depth : 0);
      if (distance < nearest && this.shown(rank)) [found, nearest] = [rank, distance];
    });
    return found;
  }

  /** The link near a point of the canvas, if any. */
  linkAt(x, y) {
    let [found, nearest] = [undefined, this.gap + 5];
    for (const link of this.network.links) {
      for (const points of this.polylines(link, this.gapOf(link))) {
        for (let i = 1; i < points.length; i += 1) {
          const distance = fromLine([x, y], points[i - 1], points[i]);
          if (distance < nearest) [found, nearest] = [link, distance];
        }
      }
    }
    return found;
  }
}

/** Items in groups of one key each. */
function grouped(items, keyOf) {
  const groups = new Map();
  for (const [i, item] of items.entries()) {
    const key = keyOf(item, i);
    if (groups.has(key)) groups.get(key).push(item);
    else groups.set(key, [item]);
  }
  return [...groups.values()];
}

/** The point on the way from `b` to `a` at a distance from `b`. */
function toward(a, b, distance) {
  const length = Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
  return [b[0] + ((a[0] - b[0]) / length) * distance, b[1] + ((a[1] - b[1]) / length) * distance, b[2]];
}

/** The point beyond `b`, as many times as far from `a`. */
function beyond(a, b, times) {
  return [a[0] + times * (b[0] - a[0]), a[1] + times * (b[1] - a[1])];
}

function bezier(a, b, c, d, t) {
  const s = 1 - t;
  return [0, 1].map((u) => s ** 3 * a[u] + 3 * s * s * t * b[u] + 3 * s * t * t * c[u] + t ** 3 * d[u]);
}

/** Points on a line bent to the right of its direction, and toward a middle, between two circles. */
function arc(a, b, radius, middle) {
  const [x, y] = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  const far = Math.hypot(b[0] - a[0], b[1] - a[1]);
  const pull = middle ? 0.25 * Math.min(1, far / (2 * Math.hypot(a[0] - middle[0], a[1] - middle[1]) || 1)) : 0;
  const control = [x - 0.12 * (b[1] - a[1]), y + 0.12 * (b[0] - a[0])];
  if (middle) [0, 1].forEach((u) => { control[u] += pull * (middle[u] - control[u]); });
  const [begin, end] = [toward(control, a, radius), toward(control, b, radius + 0.5)];
  return Array.from({ length: 9 }, (_, i) => {
    const t = i / 8;
    return [0, 1].map((u) => (1 - t) ** 2 * begin[u] + 2 * t * (1 - t) * control[u] + t ** 2 * end[u]);
  });
}

/** The point after the part `t` of some polylines: x, y, direction, hue and depth. */
function headAt(pieces, t) {
  const lengths = pieces.map(({ points }) => sum(points.slice(1).map((point, i) => Math.hypot(point[0] - points[i][0], point[1] - points[i][1]))));
  let left = Math.min(1, t) * sum(lengths);
  for (let p = 0; p < pieces.length; p += 1) {
    const { hue, points } = pieces[p];
    if (left > lengths[p] + 1e-6 && p + 1 < pieces.length) {
      left -= lengths[p];
      continue;
    }
    for (let i = 1; i < points.length; i += 1) {
      const [[x, y, depth = 0], [x2, y2]] = [points[i - 1], points[i]];
      const length = Math.hypot(x2 - x, y2 - y);
      if (length > 0 && (left <= length + 1e-6 || i + 1 === points.length)) {
        const part = Math.min(1, left / length);
        return [x + part * (x2 - x), y + part * (y2 - y), (x2 - x) / length, (y2 - y) / length, hue, depth];
      }
      left -= length;
    }
  }
  return undefined;
}

/** The distance of a point from a line between two others. */
function fromLine([x, y], [ax, ay], [bx, by]) {
  const square = (bx - ax) ** 2 + (by - ay) ** 2 || 1;
  const t = Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / square));
  return Math.hypot(ax + t * (bx - ax) - x, ay + t * (by - ay) - y);
}
