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
    this.network = new Network(play.shape);
    this.grid = this.network.grid;
    this.ranks = this.network.ranks;
    // On a grid of single ranks, messages without a route take the machine's own.
    this.implied = this.shape.kind === 'grid' && !this.shape.sizes;
    this.steps = play.steps.length;
    this.seen = new Map();
  }

  /** By step, the number of steps up to it in which a message moves. */
  get ordinals() {
    let count = 0;
    this.counted ??= this.play.steps.map(({ sends }) => {
      count += sends.some((list) => list.length > 0) ? 1 : 0;
      return count;
    });
    return this.counted;
  }

  /** The number of steps in which a message moves. */
  get moving() {
    return this.ordinals[this.steps - 1] ?? 0;
  }

  /** What a step is called: a step counts if a message moves in it. */
  stepName(step, long = false) {
    const [before, now] = [this.ordinals[step - 1] ?? 0, this.ordinals[step]];
    if (now > before) return long ? `Step ${step} (${now} of ${this.moving})` : `step ${step}`;
    const rest = !this.play.steps[step].copies ? 'pause' : 'rearrangement';
    const place = now === 0 ? 'opening' : now === this.moving ? 'closing' : 'intermediate';
    const after = long && now > 0 ? `, after ${now} of ${this.moving} steps` : '';
    return `${long ? place[0].toUpperCase() + place.slice(1) : place} ${rest}${after}`;
  }

  /** The times by each model. */
  get timelines() {
    this.timed ??= this.play.times.map((times) => new Times(this, times));
    return this.timed;
  }

  get name() {
    return named(this.play.algorithm, this.play.setting);
  }

  /** Whether messages take numbered links, which they may share. */
  get routed() {
    return this.network.joined;
  }

  /** The name of a drawn rank: on a part of a machine, its number on the whole machine. */
  rankName(rank) {
    return this.implied ? this.grid.rank(this.network.places[rank]) : rank;
  }

  /** A rank with the coordinates or the name of its node. */
  place(rank) {
    const { network } = this;
    const [name, node] = [`rank ${this.rankName(rank)}`, network.nodeOf[rank]];
    if (this.grid) return this.grid.sides.length > 1 ? `${name} ${network.name(node)}` : name;
    if (this.shape.sizes) return `${name} on node ${network.name(node)}`;
    return network.name(node) === String(rank) ? name : `${name} on ${network.name(node)}`;
  }

  linkName(link) {
    return this.network.linkName(link);
  }

  /** The drawn rank that is or represents a rank of the machine. */
  placeOf(rank) {
    return this.implied ? this.network.window.rank(this.grid.coordinates(rank)) : rank;
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
    if (!this.routed) return { ...message, to, toName: to };
    const way = this.implied && route === 0 ? this.nearest(from, to) : this.play.routes[route];
    const [links, end] = this.network.walk(this.network.nodeOf[from], way);
    return { ...message, to: this.implied ? end : to, toName: to, links };
  }

  /**
   * The machine's own route: dimension by dimension, the shorter direction. At half a ring it is up,
   * or if ties are balanced, up from even coordinates.
   */
  nearest(from, to) {
    const [a, b] = [this.network.places[from], this.grid.coordinates(to)];
    return a.flatMap((x, u) => {
      const side = this.grid.sides[u];
      const forward = modulo(b[u] - x, side);
      const up = 2 * forward < side || (2 * forward === side && !(this.shape.balanced && x % 2 === 1));
      const hops = !this.shape.wrap[u] ? b[u] - x : up ? forward : forward - side;
      return hops === 0 ? [] : [u, hops];
    });
  }

  /** By link: messages and bytes of a step. */
  loads(step) {
    if (this.loaded?.step === step) return this.loaded.loads;
    this.loaded = { step, loads: added(this.messages(step), ({ links }) => links) };
    return this.loaded.loads;
  }

  /** By step, the number of shared links. */
  get contended() {
    if (this.routed) this.totals();
    else this.shared ??= this.play.steps.map(() => 0);
    return this.shared;
  }

  /** By link, or by pair of nodes: messages, bytes and the steps in which it is used, over all steps. */
  totals() {
    if (this.all) return this.all;
    [this.all, this.shared] = [new Map(), []];
    for (let step = 0; step < this.steps; step += 1) {
      let shared = 0;
      for (const [link, load] of this.routed ? this.loads(step) : this.pairs(step)) {
        const total = this.all.get(link) ?? { messages: 0, bytes: 0, steps: 0 };
        total.messages += load.messages;
        total.bytes += load.bytes;
        total.steps += 1;
        this.all.set(link, total);
        shared += this.routed && load.messages > 1 ? 1 : 0;
      }
      this.shared.push(shared);
    }
    return this.all;
  }

  /** By pair of nodes: messages and bytes of a step. */
  pairs(step) {
    const { nodes, nodeOf } = this.network;
    return added(this.messages(step), (message) => [nodeOf[message.from] * nodes + nodeOf[message.to]]);
  }

  /** The links of a step that several messages share, the most contended first. */
  conflicts(step) {
    if (!this.routed) return [];
    if (this.worst?.step !== step) this.worst = { step, shared: sharedOf(this.loads(step)) };
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

/** By key: the number and the bytes of messages. */
function added(messages, keys) {
  const loads = new Map();
  for (const message of messages) {
    for (const key of keys(message)) {
      const load = loads.get(key) ?? { messages: 0, bytes: 0 };
      load.messages += 1;
      load.bytes += message.bytes;
      loads.set(key, load);
    }
  }
  return loads;
}

/** The links that several messages share, by their loads, the most contended first. */
function sharedOf(loads) {
  const shared = [...loads].filter(([, load]) => load.messages > 1);
  return shared.sort((a, b) => b[1].messages - a[1].messages || b[1].bytes - a[1].bytes || a[0] - b[0]);
}
