// The network of a machine: nodes, switches and numbered links.

/** Hues of links: two for each dimension, the second for the downward direction. */
const HUES = 8;

class Network {
  constructor(shape) {
    this.shape = shape;
    [this.from, this.to] = [[], []];
    if (shape.sides) {
      this.grid = new Radix(shape.sides);
      this.window = new Radix(shape.window ?? shape.sides);
      this.nodes = shape.places?.length ?? this.window.ranks;
      this.vertices = this.nodes;
      this.places = Array.from({ length: this.nodes }, (_, node) => this.window.coordinates(shape.places?.[node] ?? node));
      for (let node = 0; node < this.nodes; node += 1) this.joinAlongSides(node);
    } else {
      this.nodes = shape.nodes;
      this.vertices = shape.places?.length ?? shape.nodes;
      for (let vertex = 0; vertex < this.vertices && shape.first; vertex += 1) {
        for (let link = shape.first[vertex]; link < shape.first[vertex + 1]; link += 1) this.join(link, vertex, shape.to[link]);
      }
    }
    this.hold(shape.sizes, shape.order);
  }

  join(link, from, to) {
    this.from[link] = from;
    this.to[link] = to;
  }

  joinAlongSides(node) {
    const { shape: { wrap, next }, window } = this;
    window.sides.forEach((side, u) => [1, -1].forEach((sign) => {
      const link = this.leaving(node, u, sign);
      if (next) {
        if (next[link] !== null) this.join(link, node, next[link]);
        return;
      }
      const at = [...this.places[node]];
      at[u] += sign;
      if (side > 1 && (wrap[u] || (at[u] >= 0 && at[u] < side))) this.join(link, node, window.rank(at));
    }));
  }

  /** Places the ranks on the nodes: one on each if there are no sizes. */
  hold(sizes, order) {
    this.sizes = sizes;
    this.nodeOf = [];
    this.slotOf = [];
    let place = 0;
    for (let node = 0; node < this.nodes; node += 1) {
      for (let slot = 0; slot < (sizes?.[node] ?? 1); slot += 1, place += 1) {
        const rank = order?.[place] ?? place;
        this.nodeOf[rank] = node;
        this.slotOf[rank] = slot;
      }
    }
    this.ranks = this.nodeOf.length;
  }

  /** Whether links have numbers. */
  get joined() {
    return this.from.length > 0;
  }

  /** The numbers of all links. */
  get links() {
    this.listed ??= Object.keys(this.from).map(Number);
    return this.listed;
  }

  /** The link that leaves a vertex along a dimension, up or down; on a graph, at a port. */
  leaving(vertex, u, sign) {
    return this.grid ? 2 * (vertex * this.window.sides.length + u) + (sign < 0 ? 1 : 0) : this.shape.first[vertex] + u;
  }

  /** The dimension and the sign of a link on a grid. */
  along(link) {
    const dimensions = this.window.sides.length;
    return [Math.floor((link % (2 * dimensions)) / 2), link % 2 === 0 ? 1 : -1];
  }

  /** The links of a route from a node, and the vertex at its end. */
  walk(at, way) {
    const links = [];
    for (let i = 0; i < way.length; i += 2) {
      for (let hop = 0; hop < Math.abs(way[i + 1]); hop += 1) {
        const link = this.leaving(at, way[i], way[i + 1]);
        links.push(link);
        at = this.to[link];
      }
    }
    return [links, at];
  }

  /** The link in the other direction, if there is one. */
  back(link) {
    if (this.grid) {
      const [u, sign] = this.along(link);
      const back = this.leaving(this.to[link], u, -sign);
      return this.to[back] === this.from[link] ? back : undefined;
    }
    const { first, to } = this.shape;
    for (let back = first[this.to[link]]; back < first[this.to[link] + 1]; back += 1) if (to[back] === this.from[link]) return back;
    return undefined;
  }

  /** The hue of a link: by dimension and direction, by going up or down, or by class. */
  hue(link) {
    if (this.grid) {
      const [u, sign] = this.along(link);
      return (2 * u + (sign < 0 ? 1 : 0)) % HUES;
    }
    const { levels, class: classes } = this.shape;
    if (levels.length > 0) return levels[this.to[link]] > levels[this.from[link]] ? 0 : 2;
    return (2 * classes[link]) % HUES;
  }

  /** The hues in use, each with a name. */
  hues() {
    if (this.grid) {
      return this.window.sides.flatMap((side, u) => (side > 1 && 2 * u < HUES
        ? [[2 * u, `+ dimension ${u}`], [2 * u + 1, `− dimension ${u}`]] : []));
    }
    if (!this.joined) return this.sizes ? [[0, 'between nodes'], [2, 'inside a node']] : [[0, 'to another rank']];
    if (this.shape.levels.length > 0) return [[0, 'up'], [2, 'down']];
    return this.shape.classes.slice(0, HUES / 2).map((name, i) => [2 * i, name]);
  }

  /** The name of a vertex: its coordinates on a grid, as the program gives it. */
  name(vertex) {
    return this.grid ? `(${this.places[vertex].join(',')})` : this.shape.names?.[vertex] ?? String(vertex);
  }

  /** The name of a link, as the program gives it. */
  linkName(link) {
    const [from, to] = [this.from[link], this.to[link]];
    if (this.grid) {
      const [u, sign] = this.along(link);
      return `${this.name(from)}${sign > 0 ? '+' : '-'}${u}`;
    }
    const { first, to: ends } = this.shape;
    const parallel = [];
    for (let other = first[from]; other < first[from + 1]; other += 1) if (ends[other] === to) parallel.push(other);
    return `${this.name(from)} -> ${this.name(to)}${parallel.length > 1 ? ` #${parallel.indexOf(link)}` : ''}`;
  }
}
