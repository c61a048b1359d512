// The bytes on every link over the whole schedule.

class Heat {
  constructor(section, schedule) {
    this.canvas = html('canvas', { role: 'img' });
    this.text = html('p', { class: 'fact' });
    this.scale = html('div');
    this.list = html('div');
    section.append(
      html('h2', {}, 'Link heat'),
      html('p', { class: 'hint' }, 'Bytes on every link over the whole schedule chosen above.'),
      html('div', { class: 'stage' },
        html('div', { class: 'screen' }, html('figure', { class: 'canvas' }, this.canvas)),
        html('div', { class: 'side' }, this.text, this.scale, this.list)));
    this.show(schedule);
    new ResizeObserver(() => { this.fit(); this.paint(); }).observe(this.canvas.parentElement);
  }

  show(schedule) {
    this.schedule = schedule;
    this.drawing = new Drawing(this.canvas, schedule);
    this.totals = schedule.totals();
    this.most = largest([...this.totals.values()].map((total) => total.bytes));
    this.fit();
    this.describe();
    this.paint();
  }

  /** Pairs of ranks are a square. */
  fit() {
    if (!this.schedule.grid) this.drawing.layout.box = [0, 0, 1, 1];
    this.drawing.resize();
  }

  describe() {
    const { schedule, totals, most } = this;
    const all = [...totals.values()].map((total) => total.bytes);
    const links = schedule.grid ? this.drawing.layout.links.length : totals.size;
    const mean = links > 0 ? sum(all) / links : 0;
    const kind = schedule.grid ? 'link' : 'pair of ranks';
    const idle = links - totals.size;
    this.canvas.setAttribute('aria-label', `Bytes of every link of ${schedule.play.machine} under ${schedule.name}`);
    this.text.textContent = `${schedule.name}: the busiest ${kind} carries ${bytes(most)}, ${mean > 0 ? (most / mean).toFixed(2) : 0} times the mean of ${bytes(Math.round(mean))}${schedule.grid ? `; ${idle === 0 ? 'every link is used' : `${many(idle, 'link')} of ${links} idle`}` : ''}.`;
    this.scale.replaceChildren(this.histogram(all, most));
    const worst = [...totals].sort((a, b) => b[1].bytes - a[1].bytes || a[0] - b[0]).slice(0, 5);
    const name = (link) => schedule.grid ? schedule.linkName(link) : `${Math.floor(link / schedule.ranks)}→${link % schedule.ranks}`;
    this.list.replaceChildren(html('h3', {}, schedule.grid ? 'Busiest links' : 'Busiest pairs'),
      html('ul', {}, ...worst.map(([link, total]) => html('li', {}, html('strong', {}, name(link)), ` ${bytes(total.bytes)} in ${many(total.steps, 'step')}, ${many(total.messages, 'message')}`))));
  }

  /** A histogram of link loads, in the colours of the drawing. */
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
      svg('svg', { viewBox: '0 0 284 104', role: 'img', 'aria-label': 'Links by load' }, ...bars),
      html('figcaption', {}, 'used links by their share of the busiest one\u2019s bytes'));
  }

  paint() {
    this.drawing.clear();
    if (!this.schedule.grid) {
      this.drawing.square(this.totals, this.most);
      return;
    }
    this.drawing.machine(this.totals, this.most);
    this.drawing.ranks();
  }
}
