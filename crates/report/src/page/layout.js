// Positions of vertices and links, in units of the distance between neighbours.

/** The length of a wrapping link beyond the last node. */
const STUB = 0.5;

/** The part of a link that is drawn where it leaves the shown plane. */
const OUT = 0.42;

/** Half the side of a box that holds the ranks of a node. */
const BOX = { grid: 0.3, full: 0.42, graph: 0.42 };

/** A grid: one long side as a ring, two as a plane, three in space, more as planes of planes. */
class GridLayout {
  constructor(network) {
    this.network = network;
    this.sides = network.window.sides;
    this.long = this.sides.flatMap((side, u) => (side > 1 ? [u] : []));
    this.deep = this.long.length === 3;
    this.ring = this.long.length === 1;
    this.yaw = -0.62;
    this.pitch = 0.46;
    this.plane = undefined;
    this.box = BOX.grid;
    this.wrapping = new Set(network.links.filter((link) => this.leaves(link)));
    // Beyond three long sides, each dimension runs along x or y, in groups of the faster ones.
    this.pitches = [];
    const extent = [1, 1];
    [...this.long].reverse().forEach((u, i) => {
      this.pitches[u] = extent[i % 2];
      extent[i % 2] *= this.sides[u] + (i > 1 ? 0.6 : 0.4);
    });
  }

  /** Whether it is seen from a direction that can change. */
  get turns() {
    return this.deep && !this.plane;
  }

  wraps(u) {
    return this.network.shape.wrap[u];
  }

  shown(vertex) {
    return !this.plane || this.network.places[vertex][this.plane.u] === this.plane.at;
  }

  vertex(v) {
    return this.place(this.network.places[v]);
  }

  /** The position of coordinates, which may be fractional: x, y and depth. */
  place(at) {
    if (this.long.length === 0) return [0, 0, 0];
    if (this.plane) {
      const [down, right] = this.long.filter((u) => u !== this.plane.u);
      const out = at[this.plane.u] - this.plane.at;
      return [at[right] + 0.6 * out, at[down] - 0.6 * out, 0];
    }
    const [a, b, c] = this.long.map((u) => at[u]);
    const side = (i) => this.sides[this.long[i]];
    if (this.ring) {
      const whole = this.wraps(this.long[0]) ? side(0) : side(0) + 0.5;
      const angle = (2 * Math.PI * a) / whole - Math.PI / 2;
      const radius = Math.max(1, whole / (2 * Math.PI));
      return [radius * Math.cos(angle), radius * Math.sin(angle), 0];
    }
    if (this.long.length === 2) return [b, a, 0];
    if (this.deep) return this.turned([c - (side(2) - 1) / 2, b - (side(1) - 1) / 2, a - (side(0) - 1) / 2]);
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

  /** Whether a link leaves on one side of the drawing and enters on the other. */
  broken(link) {
    return this.wrapping.has(link);
  }

  leaves(link) {
    const [u, sign] = this.network.along(link);
    const at = this.network.places[this.network.from[link]][u] + sign;
    return !this.ring && (at < 0 || at >= this.sides[u]);
  }

  /** The parts of a link that are drawn, from 0 to 1. */
  spans(link) {
    const [from, to] = [this.network.from[link], this.network.to[link]].map((v) => this.shown(v));
    if (!from && !to) return [];
    if (this.plane && this.network.along(link)[0] === this.plane.u) return from ? [[0, OUT]] : [[1 - OUT, 1]];
    if (this.broken(link)) return [...(from ? [[0, 0.499]] : []), ...(to ? [[0.501, 1]] : [])];
    return from && to ? [[0, 1]] : from ? [[0, 0.499]] : [[0.501, 1]];
  }

  /** The position on a link after the part `t` of it. */
  along(link, t) {
    const { network } = this;
    const [u, sign] = network.along(link);
    const [from, to] = [network.places[network.from[link]], network.places[network.to[link]]];
    if (this.plane?.u === u) return this.place((t < 0.5 ? from : to).map((x, v) => (v === u ? this.plane.at + sign * (t < 0.5 ? t : t - 1) : x)));
    let at = [...from];
    const outer = !this.ring && !this.deep && this.pitches[u] > 1 ? this.pitches[u] : 1;
    if (this.broken(link)) {
      const reach = (2 * STUB) / outer;
      // Around a twisted side, it enters at a shifted position.
      if (t >= 0.5) at = [...to];
      at[u] += t < 0.5 ? sign * t * reach : -sign * (1 - t) * reach;
      return this.place(at);
    }
    at[u] = from[u] + sign * t;
    const place = this.place(at);
    // Links across other nodes bend around them.
    const across = (this.long.length - this.long.indexOf(u)) % 2;
    if (outer > 1) place[across] += 0.4 * Math.sin(Math.PI * t) ** 0.5;
    return place;
  }

  /** Whether a link is drawn from end to end as a straight line. */
  straight(link) {
    if (this.wrapping.has(link) || this.bent(link)) return false;
    return !this.plane || (this.shown(this.network.from[link]) && this.shown(this.network.to[link]));
  }

  /** Whether a link is curved. */
  bent(link) {
    return this.ring || (!this.deep && this.pitches[this.network.along(link)[0]] > 1);
  }

  /** The least box around the drawing from the current direction. */
  bounds() {
    if (this.ring) {
      const radius = Math.max(1, (this.sides[this.long[0]] + 0.5) / (2 * Math.PI)) + 0.5;
      return [-radius, -radius, radius, radius];
    }
    if (this.plane) {
      const [down, right] = this.long.filter((u) => u !== this.plane.u);
      return [-0.75, -0.75, this.sides[right] - 0.25, this.sides[down] - 0.25];
    }
    const margin = (u) => (this.wraps(u) ? STUB : 0) + 0.35;
    if (this.deep) {
      let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
      for (let corner = 0; corner < 8; corner += 1) {
        const at = this.sides.map(() => 0);
        this.long.forEach((u, i) => { at[u] = corner & (1 << i) ? this.sides[u] - 1 + margin(u) : -margin(u); });
        const [x, y] = this.place(at);
        [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
      }
      return [left - 0.2, top - 0.2, right + 0.2, bottom + 0.2];
    }
    const all = this.long.length === 2 ? [margin(this.long[1]), margin(this.long[0])] : [STUB + 0.2, STUB + 0.2];
    return around(this.network.places.map((at) => this.place(at)), all);
  }

  /** Positions without a node. */
  missing() {
    return (this.network.shape.missing ?? []).map((place) => this.network.window.coordinates(place))
      .filter((at) => !this.plane || at[this.plane.u] === this.plane.at);
  }

  /** The ends of failed links between nodes: two positions, or two stubs around a side. */
  failed() {
    const { shape, window } = this.network;
    return (shape.failed ?? []).flatMap(([place, u]) => {
      const from = window.coordinates(place);
      if (this.plane && (u === this.plane.u || from[this.plane.u] !== this.plane.at)) return [];
      const step = (at, by) => at.map((x, v) => (v === u ? x + by : x));
      if (from[u] + 1 < this.sides[u]) return [[this.place(from), this.place(step(from, 1))]];
      const to = step(from, -from[u]);
      return [[this.place(from), this.place(step(from, STUB))], [this.place(to), this.place(step(to, -STUB))]];
    });
  }
}

/** Vertices at given positions, joined by straight links, or by none. */
class FlatLayout {
  constructor(network, places, box, curved = false) {
    [this.network, this.places, this.box, this.curved] = [network, places, box, curved];
  }

  shown() {
    return true;
  }

  vertex(v) {
    return [...this.places[v], 0];
  }

  broken() {
    return false;
  }

  spans() {
    return [[0, 1]];
  }

  straight() {
    return !this.curved;
  }

  bent() {
    return this.curved;
  }

  along(link, t) {
    const [a, b] = [this.places[this.network.from[link]], this.places[this.network.to[link]]];
    if (!this.curved) return [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), 0];
    // Links that pass over other vertices bend around them, both directions on one side.
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
    const side = a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]) ? 1 : -1;
    const bend = length > 1.2 ? (side * (0.2 + 0.05 * length) * 4 * t * (1 - t)) / length : 0;
    return [a[0] + t * (b[0] - a[0]) - bend * (b[1] - a[1]), a[1] + t * (b[1] - a[1]) + bend * (b[0] - a[0]), 0];
  }

  bounds() {
    const margin = this.network.sizes ? this.box + 0.2 : 0.6;
    const middles = !this.curved ? [] : this.network.links.map((link) => this.along(link, 0.5));
    return around([...this.places, ...middles], [margin, margin]);
  }

  missing() {
    return [];
  }

  failed() {
    return [];
  }
}

/** The least box around positions, with margins along x and y. */
function around(places, [across, down]) {
  const [xs, ys] = [places.map((p) => p[0]), places.map((p) => p[1])];
  return [Math.min(...xs) - across, Math.min(...ys) - down, Math.max(...xs) + across, Math.max(...ys) + down];
}

function circleOf(count) {
  const radius = Math.max(1, count / (2 * Math.PI));
  return Array.from({ length: count }, (_, i) => {
    const angle = (2 * Math.PI * i) / count - Math.PI / 2;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
}

function rowsOf(count) {
  const across = Math.ceil(Math.sqrt(count * 1.2));
  return Array.from({ length: count }, (_, i) => [i % across, 1.08 * Math.floor(i / across)]);
}

function layoutFor(network) {
  const { shape, nodes } = network;
  if (network.grid) return new GridLayout(network);
  if (shape.kind === 'graph') return new FlatLayout(network, shape.places, BOX.graph, shape.curved);
  return new FlatLayout(network, shape.sizes ? rowsOf(nodes) : circleOf(nodes), BOX.full);
}
