// A machine on a canvas: ranks, links by load, messages on their routes.

/** The most shared links that are labelled at once. */
const LABELS = 24;

class Drawing {
  constructor(canvas, schedule) {
    this.canvas = canvas;
    this.paper = canvas.getContext('2d');
    this.schedule = schedule;
    this.layout = layoutFor(schedule);
    this.recolour();
    this.resize();
  }

  /** Fits the canvas to the page's width, and the machine to the canvas. */
  resize() {
    const width = this.canvas.parentElement.clientWidth || 640;
    const [left, top, right, bottom] = this.layout.bounds();
    const tallest = Math.min(640, Math.max(320, window.innerHeight * 0.78));
    const height = Math.max(180, Math.min(tallest, (width * (bottom - top)) / (right - left)));
    const sharp = Math.min(2, window.devicePixelRatio || 1);
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * sharp);
    this.canvas.height = Math.round(height * sharp);
    [this.width, this.height, this.sharp] = [width, height, sharp];
    this.unit = Math.min(width / (right - left), height / (bottom - top), 90);
    this.shift = [
      width / 2 - (this.unit * (left + right)) / 2,
      height / 2 - (this.unit * (top + bottom)) / 2,
    ];
    this.kept.clear();
    this.radius = Math.max(1.6, Math.min(13, this.unit * 0.2));
  }

  pixel([x, y, depth]) {
    return [x * this.unit + this.shift[0], y * this.unit + this.shift[1], depth];
  }

  /** A point of a link, beside the middle line, so that both directions stay apart. */
  on(link, t) {
    const [x, y, depth] = this.pixel(this.layout.along(link, t));
    if (!this.schedule.grid) return [x, y, depth];
    const [near, far] = this.layout.broken(link) ? (t < 0.5 ? [0, 0.49] : [0.51, 1]) : [Math.max(0, t - 0.1), Math.min(1, t + 0.1)];
    const [a, b] = [this.pixel(this.layout.along(link, near)), this.pixel(this.layout.along(link, far))];
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    const gap = Math.max(1.2, Math.min(4, this.unit * 0.075));
    return [x - ((b[1] - a[1]) / length) * gap, y + ((b[0] - a[0]) / length) * gap, depth];
  }

  /** Distant parts are fainter. */
  haze(depth) {
    if (!this.layout.turns) return 1;
    return Math.max(0.35, Math.min(1, 0.72 - depth / (2 * Math.max(...this.layout.sides))));
  }

  clear() {
    this.paper.setTransform(this.sharp, 0, 0, this.sharp, 0, 0);
    this.paper.clearRect(0, 0, this.width, this.height);
  }

  /** Reads the current colours: light, dark or print. */
  recolour() {
    this.kept = new Map();
    this.ink = Object.fromEntries(
      ['ink', 'idle', 'node', 'node-edge', 'conflict', 'on-conflict', 'follow', 'message', 'box',
        'load-0', 'load-1', 'load-2', 'load-3', 'load-4'].map((name) => [name, colour(name)]));
  }

  /** The colour of a load between 0 and 1. */
  shade(load) {
    return this.ink[`load-${Math.min(4, Math.floor(load * 5))}`];
  }

  stroke(link, style, width, dash = []) {
    const { paper } = this;
    paper.strokeStyle = style;
    paper.lineWidth = width;
    paper.setLineDash(dash);
    paper.lineCap = dash.length > 0 ? 'butt' : 'round';
    for (const points of this.layout.lines(link)) {
      paper.beginPath();
      points.forEach((t, i) => {
        const [x, y, depth] = this.on(link, t);
        if (i === 0) {
          paper.globalAlpha *= this.haze(depth);
          paper.moveTo(x, y);
        } else paper.lineTo(x, y);
      });
      paper.stroke();
      paper.globalAlpha = this.alpha ?? 1;
    }
    paper.setLineDash([]);
  }

  /** Draws static parts once per key and caches the last few. */
  still(key, draw) {
    const all = [key, this.layout.yaw, this.layout.pitch].join();
    if (!this.kept.has(all)) {
      const canvas = document.createElement('canvas');
      [canvas.width, canvas.height] = [this.canvas.width, this.canvas.height];
      const shown = this.paper;
      this.paper = canvas.getContext('2d');
      this.paper.setTransform(this.sharp, 0, 0, this.sharp, 0, 0);
      draw();
      this.paper = shown;
      if (this.kept.size > 2) this.kept.clear();
      this.kept.set(all, canvas);
    }
    this.paper.drawImage(this.kept.get(all), 0, 0, this.width, this.height);
  }

  /** The machine with its links by load; `most` is a load of 1. Shared links are dashed. */
  machine(loads, most, { faint = false, shared = false } = {}) {
    const { paper } = this;
    for (const [x, y, width, height, name] of this.layout.boxes ?? []) {
      const [left, top] = this.pixel([x, y, 0]);
      paper.strokeStyle = this.ink['node-edge'];
      paper.fillStyle = this.ink.box;
      paper.lineWidth = 1;
      paper.beginPath();
      paper.roundRect(left, top, width * this.unit, height * this.unit, 8);
      paper.fill();
      paper.stroke();
      paper.fillStyle = this.ink.ink;
      paper.font = '12px system-ui, sans-serif';
      paper.textAlign = 'left';
      paper.textBaseline = 'bottom';
      paper.fillText(name, left + 2, top - 2);
    }
    this.alpha = 1;
    for (const link of this.layout.links) {
      if (!loads.has(link)) this.stroke(link, this.ink.idle, 1);
    }
    this.alpha = faint ? 0.3 : 1;
    paper.globalAlpha = this.alpha;
    const order = [...loads].sort((a, b) => a[1].bytes - b[1].bytes);
    const thick = Math.max(1.2, Math.min(4.5, this.unit * 0.07));
    for (const [link, load] of order) {
      const share = most > 0 ? load.bytes / most : 0;
      const conflict = shared && load.messages > 1;
      if (conflict) this.stroke(link, this.ink.conflict, thick + 2, [5, 4]);
      else this.stroke(link, this.shade(share), 0.8 + thick * share);
    }
    this.alpha = 1;
    paper.globalAlpha = 1;
  }

  /** The ranks, with the followed ones marked. */
  ranks(marked = new Map()) {
    const { paper, radius } = this;
    const places = this.layout.nodes.map((at, rank) => [...this.pixel(this.layout.place(at)), rank]);
    places.sort((a, b) => b[2] - a[2]);
    const names = radius >= 8;
    for (const [x, y, depth, rank] of places) {
      const mark = marked.get(rank);
      paper.globalAlpha = mark ? 1 : this.haze(depth);
      paper.fillStyle = mark ? this.ink.follow : this.ink.node;
      paper.strokeStyle = mark ? this.ink.ink : this.ink['node-edge'];
      paper.lineWidth = mark ? 2 : 1;
      paper.beginPath();
      if (mark) paper.rect(x - radius - 1.5, y - radius - 1.5, 2 * radius + 3, 2 * radius + 3);
      else paper.arc(x, y, radius, 0, 2 * Math.PI);
      // A rank hides everything behind it.
      paper.globalAlpha = 1;
      paper.fill();
      paper.globalAlpha = mark ? 1 : this.haze(depth);
      paper.stroke();
      if (names || mark) {
        paper.fillStyle = mark ? this.ink['on-conflict'] : this.ink.ink;
        paper.font = `${Math.max(8, Math.min(11, radius))}px system-ui, sans-serif`;
        paper.textAlign = 'center';
        paper.textBaseline = 'middle';
        if (names) paper.fillText(String(this.schedule.rankName(rank)), x, y + 0.5);
        if (mark && mark !== true) this.label(mark, x, y - radius - 10, this.ink.follow);
      }
    }
    paper.globalAlpha = 1;
    this.places = places;
  }

  label(text, x, y, back) {
    const { paper } = this;
    paper.font = 'bold 11px system-ui, sans-serif';
    const width = paper.measureText(text).width + 8;
    const left = Math.max(0, Math.min(this.width - width, x - width / 2));
    paper.fillStyle = back;
    paper.beginPath();
    paper.roundRect(left, y - 8, width, 16, 4);
    paper.fill();
    paper.fillStyle = this.ink['on-conflict'];
    paper.textAlign = 'center';
    paper.textBaseline = 'middle';
    paper.fillText(text, left + width / 2, y + 0.5);
  }

  /** Labels the shared links of a step, or an even sample of them, with their messages. */
  conflicts(shared) {
    const every = Math.ceil(shared.length / LABELS);
    for (const [link, load] of shared.filter((_, i) => i % every === 0).reverse()) {
      const [x, y] = this.on(link, this.layout.broken(link) ? 0.3 : 0.5);
      this.label(`×${load.messages}`, x, y, this.ink.conflict);
    }
  }

  /** Draws a message's whole route, of this step or another. */
  way(message, now) {
    for (const link of this.linksOf(message)) this.stroke(link, this.ink.follow, now ? 4 : 2, now ? [] : [2, 4]);
  }

  linksOf(message) {
    return message.links ?? [message.from * this.schedule.ranks + message.to];
  }

  /** A message after the part `t` of its route: an arrow head, its area by its bytes. */
  message(message, t, most, followed) {
    const { paper } = this;
    const links = this.linksOf(message);
    const passed = Math.min(t * links.length, links.length - 1e-6);
    const link = links[Math.floor(passed)];
    const part = passed - Math.floor(passed);
    const [x, y, depth] = this.on(link, part);
    const back = part > 0.5 ? part - 0.02 : part;
    const [a, b] = [this.on(link, back), this.on(link, back + 0.02)];
    const size = (followed ? 1.5 : 1) * (2.5 + Math.min(5, this.unit * 0.12) * Math.sqrt(message.bytes / most));
    paper.save();
    paper.globalAlpha *= this.haze(depth);
    paper.translate(x, y);
    paper.rotate(Math.atan2(b[1] - a[1], b[0] - a[0]));
    paper.beginPath();
    paper.moveTo(size, 0);
    paper.lineTo(-size * 0.8, size * 0.75);
    paper.lineTo(-size * 0.8, -size * 0.75);
    paper.closePath();
    paper.fillStyle = followed ? this.ink.follow : this.ink.message;
    paper.fill();
    paper.strokeStyle = this.ink.node;
    paper.lineWidth = 0.8;
    paper.stroke();
    paper.restore();
  }

  /** The bytes of each pair of ranks as a square: senders down, receivers across. */
  square(totals, most) {
    const { paper, schedule: { ranks } } = this;
    const margin = 34;
    const side = Math.min(this.width, this.height) - margin - 8;
    const cell = side / ranks;
    const [left, top] = [(this.width - side + margin) / 2, margin];
    for (const [pair, total] of totals) {
      const [from, to] = [Math.floor(pair / ranks), pair % ranks];
      const share = total.bytes / most;
      // The area of a mark shows the load, without its colour.
      const size = Math.max(1, cell * (0.35 + 0.6 * Math.sqrt(share)));
      paper.fillStyle = this.shade(share);
      paper.fillRect(left + (to + 0.5) * cell - size / 2, top + (from + 0.5) * cell - size / 2, size, size);
    }
    paper.strokeStyle = this.ink['node-edge'];
    paper.lineWidth = 1;
    paper.strokeRect(left, top, side, side);
    paper.fillStyle = this.ink.ink;
    paper.font = '11px system-ui, sans-serif';
    paper.textBaseline = 'middle';
    const every = Math.ceil(18 / cell);
    for (let rank = 0; rank < ranks; rank += every) {
      paper.textAlign = 'center';
      paper.fillText(String(rank), left + (rank + 0.5) * cell, top - 8);
      paper.textAlign = 'right';
      paper.fillText(String(rank), left - 5, top + (rank + 0.5) * cell);
    }
    paper.textAlign = 'center';
    paper.fillText('to rank', left + side / 2, top - 23);
    paper.save();
    paper.translate(left - 28, top + side / 2);
    paper.rotate(-Math.PI / 2);
    paper.fillText('from rank', 0, 0);
    paper.restore();
  }

  /** The rank near a point of the canvas, if any. */
  rankAt(x, y) {
    let [found, nearest] = [undefined, Math.max(10, this.radius + 4)];
    for (const [a, b, , rank] of this.places ?? []) {
      const distance = Math.hypot(a - x, b - y);
      if (distance < nearest) [found, nearest] = [rank, distance];
    }
    return found;
  }
}
