// A schedule in the page: the messages of one rank of each class, translated to all others.

/** Ranks as coordinates, the last dimension fastest. */
class Radix {
  constructor(sides) {
    this.sides = sides;
    this.ranks = sides.reduce((product, side) => product * side, 1);
  }

  coordinates(rank) {
    const out = [];
    for (let u = this.sides.length - 1; u >= 0; u -= 1) {
      out[u] = rank % this.sides[u];
      rank = Math.floor(rank / this.sides[u]);
    }
    return out;
  }

  rank(coordinates) {
    return coordinates.reduce((rank, x, u) => rank * this.sides[u] + modulo(x, this.sides[u]), 0);
  }
}

function modulo(x, n) {
  return ((x % n) + n) % n;
}

class Schedule {
  constructor(play) {
    this.play = play;
    this.shape = play.shape;
    this.radix = new Radix(play.radix);
    this.periods = new Radix(play.periods);
    if (this.shape.kind === 'grid' || this.shape.kind === 'lattice') {
      this.grid = new Radix(this.shape.sides);
      this.window = new Radix(this.shape.window ?? this.shape.sides);
      this.ranks = this.shape.nodes?.length ?? this.window.ranks;
    } else {
      this.ranks = this.radix.ranks;
    }
    this.steps = play.steps.length;
    this.seen = new Map();
  }

  get name() {
    return named(this.play.algorithm, this.play.setting);
  }

  /** The position of a rank on a grid, which may have missing nodes. */
  coordinates(rank) {
    return this.window.coordinates(this.shape.nodes?.[rank] ?? rank);
  }

  /** The name of a drawn rank: on a part of a machine, its number on the whole machine. */
  rankName(rank) {
    return this.grid && !this.shape.nodes ? this.grid.rank(this.window.coordinates(rank)) : rank;
  }

  /** A rank with its coordinates, on grids of several sides. */
  place(rank) {
    const name = `rank ${this.rankName(rank)}`;
    const long = this.grid && this.grid.sides.length > 1;
    return long ? `${name} (${this.coordinates(rank).join(',')})` : name;
  }

  /** A link as the program names it: its source's coordinates, direction and dimension. */
  linkName(link) {
    const dimensions = this.grid.sides.length;
    const from = Math.floor(link / (2 * dimensions));
    const direction = link % 2 === 0 ? '+' : '-';
    return `(${this.coordinates(from).join(',')})${direction}${Math.floor((link % (2 * dimensions)) / 2)}`;
  }

  /** The drawn rank that is or represents a rank of the machine. */
  placeOf(rank) {
    return this.grid && !this.shape.nodes ? this.window.rank(this.grid.coordinates(rank)) : rank;
  }

  /** The class of a rank of the machine, and its translation from the class's first rank. */
  classOf(rank) {
    const own = this.radix.coordinates(rank);
    const first = own.map((x, u) => x % this.periods.sides[u]);
    return [this.periods.rank(first), own.map((x, u) => x - first[u])];
  }

  /** The messages of a step: from, to, bytes, slots sent and received, and on grids the route. */
  messages(step) {
    if (this.seen.has(step)) return this.seen.get(step);
    const out = [];
    const { sends } = this.play.steps[step];
    for (let rank = 0; rank < this.ranks; rank += 1) {
      const [which, moved] = this.classOf(this.rankName(rank));
      const list = sends[which];
      for (let i = 0; i < list.length; i += 4) {
        const peer = this.radix.coordinates(list[i]).map((x, u) => x + moved[u]);
        out.push(this.message(rank, peer, list[i + 1], list[i + 2], list[i + 3]));
      }
    }
    if (this.seen.size > 64) this.seen.clear();
    this.seen.set(step, out);
    return out;
  }

  /** The messages of any rank of the machine in a step, drawn or not. */
  exchanged(rank, step) {
    const { sends } = this.play.steps[step];
    const own = this.radix.coordinates(rank);
    const out = [];
    sends.forEach((list, which) => {
      const first = this.periods.coordinates(which);
      for (let i = 0; i < list.length; i += 4) {
        const shift = this.radix.coordinates(list[i]).map((x, u) => x - first[u]);
        const [sent, landed, route] = list.slice(i + 1, i + 4);
        const add = (from, to) => {
          if (this.classOf(from)[0] === which) out.push({ from, to, sent, landed, route });
        };
        add(rank, this.radix.rank(own.map((x, u) => x + shift[u])));
        add(this.radix.rank(own.map((x, u) => x - shift[u])), rank);
      }
    });
    return out;
  }

  /** A message between ranks of the machine, mapped to drawn ranks. */
  drawn({ from, to, sent, landed, route }) {
    const place = this.placeOf(from);
    const [at, own] = [this.rankName(place), from].map((rank) => this.radix.coordinates(rank));
    const peer = this.radix.coordinates(to).map((x, u) => x + at[u] - own[u]);
    return this.message(place, peer, sent, landed, route);
  }

  message(from, peer, sent, landed, route) {
    const message = { from, sent, landed, bytes: this.play.bytes[sent] };
    const to = this.radix.rank(peer);
    if (!this.grid) return { ...message, to, toName: to };
    if (this.shape.next) return { ...message, to, toName: to, links: this.linksOf(from, this.play.routes[route]) };
    const way = route > 0 ? this.play.routes[route] : this.nearest(from, to);
    const coordinates = this.window.coordinates(from);
    const links = [];
    for (let i = 0; i < way.length; i += 2) {
      const [u, hops] = [way[i], way[i + 1]];
      for (let hop = 0; hop < Math.abs(hops); hop += 1) {
        links.push(2 * (this.window.rank(coordinates) * coordinates.length + u) + (hops < 0 ? 1 : 0));
        coordinates[u] = modulo(coordinates[u] + Math.sign(hops), this.window.sides[u]);
      }
    }
    return { ...message, to: this.window.rank(coordinates), toName: to, links };
  }

  /** The links of a route on a machine with missing nodes, whose list gives their targets. */
  linksOf(from, way) {
    const links = [];
    let at = from;
    for (let i = 0; i < way.length; i += 2) {
      const [u, hops] = [way[i], way[i + 1]];
      for (let hop = 0; hop < Math.abs(hops); hop += 1) {
        links.push(2 * (at * this.grid.sides.length + u) + (hops < 0 ? 1 : 0));
        at = this.shape.next[links[links.length - 1]];
      }
    }
    return links;
  }

  /** The machine's own route: dimension by dimension, the shorter direction, up at half a ring. */
  nearest(from, to) {
    const [a, b] = [this.window.coordinates(from), this.grid.coordinates(to)];
    return a.flatMap((x, u) => {
      const side = this.grid.sides[u];
      const forward = modulo(b[u] - x, side);
      const hops = !this.shape.wrap[u] ? b[u] - x : 2 * forward <= side ? forward : forward - side;
      return hops === 0 ? [] : [u, hops];
    });
  }

  /** By link, on grids, or by pair of ranks: messages and bytes of a step. */
  loads(step) {
    if (this.loaded?.step === step) return this.loaded.loads;
    const loads = new Map();
    for (const message of this.messages(step)) {
      for (const link of message.links ?? [message.from * this.ranks + message.to]) {
        const load = loads.get(link) ?? { messages: 0, bytes: 0 };
        load.messages += 1;
        load.bytes += message.bytes;
        loads.set(link, load);
      }
    }
    this.loaded = { step, loads };
    return loads;
  }

  /** By link or pair: messages, bytes and the steps in which it is used, over all steps. */
  totals() {
    if (!this.all) {
      this.all = new Map();
      this.most = 0;
      this.contended = [];
      for (let step = 0; step < this.steps; step += 1) {
        let shared = 0;
        for (const [link, load] of this.loads(step)) {
          const total = this.all.get(link) ?? { messages: 0, bytes: 0, steps: 0 };
          total.messages += load.messages;
          total.bytes += load.bytes;
          total.steps += 1;
          this.all.set(link, total);
          this.most = Math.max(this.most, load.bytes);
          shared += this.grid && load.messages > 1 ? 1 : 0;
        }
        this.contended.push(shared);
      }
    }
    return this.all;
  }

  /** The links of a step that several messages share, the most contended first. */
  conflicts(step) {
    if (!this.grid) return [];
    if (this.worst?.step !== step) {
      const shared = [...this.loads(step)].filter(([, load]) => load.messages > 1);
      shared.sort((a, b) => b[1].messages - a[1].messages || b[1].bytes - a[1].bytes || a[0] - b[0]);
      this.worst = { step, shared };
    }
    return this.worst.shared;
  }

  /** Phases: runs of steps, split where blocks are rearranged or the longest route changes. */
  phases() {
    const longest = (step) => largest(this.messages(step).map((message) => message.links?.length ?? 1));
    const starts = [];
    let before;
    for (let step = 0; step < this.steps; step += 1) {
      const hops = longest(step);
      if (hops !== before || this.play.steps[step].copies) starts.push([step, hops]);
      before = hops;
    }
    const phases = starts.map(([first, hops], i) => ({ first, last: (starts[i + 1]?.[0] ?? this.steps) - 1, hops }));
    if (phases.length <= 24) return phases;
    const size = Math.ceil(this.steps / 16);
    const parts = [];
    for (let first = 0; first < this.steps; first += size) {
      parts.push({ first, last: Math.min(first + size, this.steps) - 1 });
    }
    return parts;
  }
}
