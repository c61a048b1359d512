// Positions of ranks and links, in units of the distance between neighbours.

/** The length of a wrapping link beyond the last rank. */
const STUB = 0.5;

/** A grid: one long side as a ring, two as a plane, three in space, more as planes of planes. */
class GridLayout {
  constructor(schedule) {
    this.schedule = schedule;
    this.window = schedule.window;
    this.sides = this.window.sides;
    this.long = this.sides.flatMap((side, u) => (side > 1 ? [u] : []));
    this.turns = this.long.length === 3;
    this.ring = this.long.length === 1;
    this.yaw = -0.5;
    this.pitch = 0.4;
    this.nodes = Array.from({ length: schedule.ranks }, (_, rank) => schedule.coordinates(rank));
    const { next } = schedule.shape;
    this.links = next ? next.flatMap((to, link) => (to === null ? [] : [link]))
      : this.nodes.flatMap((at, rank) => this.sides.flatMap((side, u) =>
        [1, -1].filter((way) => side > 1 && (this.wraps(u) || (at[u] + way >= 0 && at[u] + way < side)))
          .map((way) => 2 * (rank * this.sides.length + u) + (way < 0 ? 1 : 0))));
    // Beyond three long sides, each dimension runs along x or y, in groups of the faster ones.
    this.pitches = [];
    const extent = [1, 1];
    [...this.long].reverse().forEach((u, i) => {
      this.pitches[u] = extent[i % 2];
      extent[i % 2] *= this.sides[u] + (i > 1 ? 0.6 : 0.4);
    });
  }

  /** Whether a side wraps; a period of a machine always does. */
  wraps(u) {
    return this.schedule.shape.wrap[u];
  }

  /** The position of coordinates, which may be fractional: x, y and depth. */
  place(at) {
    const [a, b, c] = this.long.map((u) => at[u]);
    const side = (i) => this.sides[this.long[i]];
    if (this.long.length === 0) return [0, 0, 0];
    if (this.ring) {
      const whole = this.wraps(this.long[0]) ? side(0) : side(0) + 0.5;
      const angle = (2 * Math.PI * a) / whole - Math.PI / 2;
      const radius = Math.max(1, whole / (2 * Math.PI));
      return [radius * Math.cos(angle), radius * Math.sin(angle), 0];
    }
    if (this.long.length === 2) return [b, a, 0];
    if (this.turns) return this.turned([c - (side(2) - 1) / 2, b - (side(1) - 1) / 2, a - (side(0) - 1) / 2]);
    const sums = [0, 0];
    [...this.long].reverse().forEach((u, i) => { sums[i % 2] += at[u] * this.pitches[u]; });
    return [...sums, 0];
  }

  turned([x, y, z]) {
    const [sin, cos] = [Math.sin(this.yaw), Math.cos(this.yaw)];
    [x, z] = [x * cos + z * sin, z * cos - x * sin];
    const [up, flat] = [Math.sin(this.pitch), Math.cos(this.pitch)];
    return [x, y * flat + z * up, z * flat - y * up];
  }

  /** The ends of a link, by its source's coordinates, its dimension and direction. */
  ends(link) {
    const dimensions = this.sides.length;
    const u = Math.floor((link % (2 * dimensions)) / 2);
    return [this.nodes[Math.floor(link / (2 * dimensions))], u, link % 2 === 0 ? 1 : -1];
  }

  /** Whether a link leaves on one side of the drawing and enters on the other. */
  broken(link) {
    const [at, u, way] = this.ends(link);
    return !this.ring && (at[u] + way < 0 || at[u] + way >= this.sides[u]);
  }

  /** The position on a link after the part `t` of it. */
  along(link, t) {
    const [from, u, way] = this.ends(link);
    let at = [...from];
    const outer = !this.ring && !this.turns && this.pitches[u] > 1 ? this.pitches[u] : 1;
    if (this.broken(link)) {
      const end = modulo(from[u] + way, this.sides[u]);
      const reach = (2 * STUB) / outer;
      // Around a twisted side, it enters at a shifted position.
      const { next } = this.schedule.shape;
      if (next && t >= 0.5) at = [...this.nodes[next[link]]];
      at[u] = t < 0.5 ? from[u] + way * t * reach : end - way * (1 - t) * reach;
      return this.place(at);
    }
    at[u] = from[u] + way * t;
    const place = this.place(at);
    // Links across other ranks bend around them.
    const across = (this.long.length - this.long.indexOf(u)) % 2;
    if (outer > 1) place[across] += 0.32 * Math.sin(Math.PI * t);
    return place;
  }

  /** The points of a link's polyline. */
  lines(link) {
    if (this.broken(link)) return [[0, 0.25, 0.499], [0.501, 0.75, 1]];
    return [this.ring || this.pitches[this.ends(link)[1]] > 1 ? [0, 0.2, 0.4, 0.6, 0.8, 1] : [0, 1]];
  }

  bounds() {
    if (this.ring) {
      const radius = Math.max(1, (this.sides[this.long[0]] + 0.5) / (2 * Math.PI)) + 0.5;
      return [-radius, -radius, radius, radius];
    }
    const margin = this.long.some((u) => this.wraps(u)) ? STUB + 0.15 : 0.45;
    if (this.turns) {
      const radius = Math.hypot(...this.long.map((u) => this.sides[u] - 1 + 2 * margin)) / 2;
      return [-radius * 0.88, -radius * 0.74, radius * 0.88, radius * 0.74];
    }
    const places = this.nodes.map((at) => this.place(at));
    const [xs, ys] = [places.map((p) => p[0]), places.map((p) => p[1])];
    return [Math.min(...xs) - margin, Math.min(...ys) - margin, Math.max(...xs) + margin, Math.max(...ys) + margin];
  }
}

/** Fully connected ranks: on a circle, or within the nodes of a cluster. */
class PairLayout {
  constructor(schedule) {
    this.schedule = schedule;
    const { shape, ranks } = schedule;
    this.links = [];
    this.boxes = [];
    this.ranks = ranks;
    if (shape.kind === 'cluster') this.cluster(shape.sizes);
    else this.circle(ranks);
  }

  circle(ranks) {
    const radius = Math.max(1, ranks / (2 * Math.PI));
    this.nodes = Array.from({ length: ranks }, (_, rank) => {
      const angle = (2 * Math.PI * rank) / ranks - Math.PI / 2;
      return [radius * Math.cos(angle), radius * Math.sin(angle), 0];
    });
    this.box = [-radius - 0.6, -radius - 0.6, radius + 0.6, radius + 0.6];
    this.middle = [0, 0];
  }

  cluster(sizes) {
    const columns = Math.ceil(Math.sqrt(Math.max(...sizes)));
    const across = Math.ceil(Math.sqrt(sizes.length * 1.4));
    const pitch = columns + 1.6;
    this.nodes = [];
    sizes.forEach((size, node) => {
      const [x, y] = [(node % across) * pitch, Math.floor(node / across) * pitch];
      const rows = Math.ceil(size / columns);
      for (let i = 0; i < size; i += 1) {
        const inRow = Math.min(columns, size - Math.floor(i / columns) * columns);
        this.nodes.push([x + (i % columns) + (columns - inRow) / 2, y + Math.floor(i / columns) + (columns - rows) / 2, 0]);
      }
      this.boxes.push([x - 0.55, y - 0.55, columns + 0.1, columns + 0.1, `node ${node}`]);
    });
    const rows = Math.ceil(sizes.length / across);
    this.box = [-0.9, -1.1, Math.min(across, sizes.length) * pitch - 1.7, rows * pitch - 1.7];
    this.middle = undefined;
  }

  place(at) {
    return at;
  }

  broken() {
    return false;
  }

  /** The position between two ranks, on a line bent to the right of the direction of travel. */
  along(pair, t) {
    const [a, b] = [this.nodes[Math.floor(pair / this.ranks)], this.nodes[pair % this.ranks]];
    const middle = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    // Short lines bend only slightly towards the middle.
    const toward = this.middle ? 0.2 * Math.min(1, Math.hypot(b[0] - a[0], b[1] - a[1]) / this.box[2]) : 0;
    const bend = 0.1;
    const control = [
      middle[0] * (1 - toward) - (b[1] - a[1]) * bend,
      middle[1] * (1 - toward) + (b[0] - a[0]) * bend,
    ];
    const at = (i) => (1 - t) ** 2 * a[i] + 2 * t * (1 - t) * control[i] + t ** 2 * b[i];
    return [at(0), at(1), 0];
  }

  lines() {
    return [[0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1]];
  }

  bounds() {
    return this.box;
  }
}

function layoutFor(schedule) {
  return schedule.grid ? new GridLayout(schedule) : new PairLayout(schedule);
}
