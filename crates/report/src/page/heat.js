// The bytes on every link, or between every pair of nodes, over the whole schedule.

class Heat {
  constructor(section, schedule) {
    this.view = new View({ describe: (rank) => this.describeRank(rank), select: () => {}, paint: () => this.paint() });
    this.text = html('p', { class: 'fact' });
    this.scale = html('div');
    this.list = html('div');
    this.stage = html('div', { class: 'stage' },
      html('div', { class: 'screen' }, this.view.element),
      html('div', { class: 'side' }, this.scale, this.list));
    section.append(
      html('h2', {}, 'Link heat'),
      html('p', { class: 'hint' }, 'Bytes on every link over the whole schedule chosen above.'),
      this.text, this.stage);
    this.show(schedule);
  }

  show(schedule) {
    this.schedule = schedule;
    const { network } = schedule;
    // A node and itself are no pair.
    const isPair = ([key]) => schedule.routed || Math.floor(key / network.nodes) !== key % network.nodes;
    this.totals = new Map([...schedule.totals()].filter(isPair));
    const loads = [...this.totals.values()].map((total) => total.bytes);
    this.most = largest(loads);
    this.count = schedule.routed ? network.links.length : network.nodes * (network.nodes - 1);
    this.noun = schedule.routed ? 'link' : network.sizes ? 'pair of nodes' : 'pair of ranks';
    this.idle = this.count - loads.length;
    this.even = this.idle === 0 && loads.every((load) => load === this.most);
    this.describe(loads);
    // A drawing of equal loads tells nothing.
    this.stage.hidden = this.even || loads.length === 0;
    this.view.show(schedule, `Bytes of every ${this.noun} of ${schedule.play.machine} under ${schedule.name}`);
  }

  describe(loads) {
    const { schedule, totals, most, count, noun, idle } = this;
    const mean = count > 0 ? sum(loads) / count : 0;
    this.text.textContent = loads.length === 0 ? `${schedule.name} uses no ${noun}.`
      : this.even ? `${schedule.name}: every ${noun} carries ${bytes(most)}.`
        : `${schedule.name}: the busiest ${noun} carries ${bytes(most)}, ${(most / mean).toFixed(2)} times the mean of ${bytes(Math.round(mean))}; ${idle === 0 ? `every ${noun} is used` : `${idle.toLocaleString('en')} of ${count.toLocaleString('en')} idle`}.`;
    this.scale.replaceChildren(this.histogram(loads, most));
    const worst = [...totals].sort((a, b) => b[1].bytes - a[1].bytes || a[0] - b[0]).slice(0, 5);
    const { nodes } = schedule.network;
    const name = (link) => (schedule.routed ? schedule.linkName(link) : `${Math.floor(link / nodes)}→${link % nodes}`);
    this.list.replaceChildren(html('h3', {}, schedule.routed ? 'Busiest links' : 'Busiest pairs'),
      html('ul', {}, ...worst.map(([link, total]) => html('li', {}, html('strong', {}, name(link)), ` ${bytes(total.bytes)} in ${many(total.steps, 'step')}, ${many(total.messages, 'message')}`))));
  }

  /** The bytes on the links of a rank's node. */
  describeRank(rank) {
    const { network, routed } = this.schedule;
    const node = network.nodeOf[rank];
    if (!routed) return '';
    const own = network.links.filter((link) => network.from[link] === node);
    return `: ${own.map((link) => `${network.linkName(link)} ${bytes(this.totals.get(link)?.bytes ?? 0)}`).slice(0, 8).join(', ')}`;
  }

  /** A histogram of loads, in the colours of the drawing. */
  histogram(all, most) {
    const counts = [0, 0, 0, 0, 0];
    all.forEach((load) => { counts[Math.min(4, Math.floor((5 * load) / (most || 1)))] += 1; });
    const tallest = largest(counts) || 1;
    const bars = counts.map((count, i) => {
      const tall = (60 * count) / tallest;
      return svg('g', {},
        svg('rect', { x: 4 + i * 56, y: 76 - tall, width: 48, height: Math.max(tall, count > 0 ? 1 : 0), class: `fill-load-${i}` }),
        svg('text', { x: 28 + i * 56, y: 71 - tall, 'text-anchor': 'middle' }, String(count)),
        svg('line', { x1: 4 + i * 56, x2: 52 + i * 56, y1: 80, y2: 80, 'stroke-width': 1 + i, class: `line-load-${i}` }),
        svg('text', { x: 28 + i * 56, y: 97, 'text-anchor': 'middle' }, i === 0 ? 'to 20 %' : `${20 * (i + 1)} %`));
    });
    return html('figure', { class: 'histogram' },
      svg('svg', { viewBox: '0 0 284 104', role: 'img', 'aria-label': `Each used ${this.noun} by its load` }, ...bars),
      html('figcaption', {}, `each used ${this.noun} by its share of the busiest one\u2019s bytes`));
  }

  paint() {
    const { drawing } = this.view;
    const { network, routed } = this.schedule;
    if (drawing.square !== !routed) {
      drawing.square = !routed;
      drawing.resize();
    }
    drawing.show(() => {
      if (!routed) {
        drawing.matrix(this.totals, network.nodes, this.most, network.sizes ? 'node' : 'rank');
        return;
      }
      drawing.frame();
      drawing.loads(this.totals, this.most);
      drawing.ranks();
      drawing.labels();
    });
  }
}
