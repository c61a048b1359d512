// When each rank copies, sends and receives: the times of a schedule by one model, and their chart.

/** The most rows of a timeline; of more ranks, every n-th has a row. */
const ROWS = 256;

/** Choices of the number of steps that a timeline shows; the first is all. */
const SPANS = [Infinity, 64, 16, 4, 1];

/** The steps of a timeline are at least so wide at first. */
const WIDE = 24;

/** Differences of ranks below this part of their step are not drawn. */
const EVEN = 0.02;

/** The times of a schedule by one model, in seconds. */
class Times {
  constructor(schedule, written) {
    this.schedule = schedule;
    this.model = written.model;
    this.seconds = written.seconds;
    const { names, words, starts, unit } = written;
    const steps = written.steps.map((list) => list.flatMap((word) => words[word]));
    this.steps = steps.length;
    this.rows = largest(steps.map((list) => list.length));
    const cells = this.rows * this.steps;
    [this.begin, this.copied, this.posted, this.sent, this.received] = Array.from({ length: 5 }, () => new Float64Array(cells));
    const ends = new Float64Array(this.rows);
    for (let step = 0; step < this.steps; step += 1) {
      for (let row = 0; row < this.rows; row += 1) {
        const [copied, posted, sent, received] = names[steps[step][steps[step].length === 1 ? 0 : row]];
        const begin = starts.length > 0 ? starts[step] : ends[row];
        const cell = row * this.steps + step;
        [this.begin[cell], this.copied[cell], this.posted[cell]] = [begin * unit, (begin + copied) * unit, (begin + posted) * unit];
        [this.sent[cell], this.received[cell]] = [(begin + sent) * unit, (begin + received) * unit];
        ends[row] = begin + Math.max(sent, received);
      }
    }
    this.senders = new Map();
  }

  /** Whether all ranks do the same at the same time, or so nearly that no chart shows the difference. */
  get even() {
    if (this.equal === undefined) {
      const differ = (values, step, most) => {
        let [low, high] = [Infinity, -Infinity];
        for (let row = 0; row < this.rows; row += 1) {
          low = Math.min(low, values[row * this.steps + step]);
          high = Math.max(high, values[row * this.steps + step]);
        }
        return high - low > most;
      };
      this.equal = true;
      for (let step = 0; this.equal && step < this.steps; step += 1) {
        const [first, last] = this.span(step);
        const all = [this.begin, this.copied, this.posted, this.sent, this.received];
        this.equal = !all.some((values) => differ(values, step, EVEN * (last - first)));
      }
    }
    return this.equal;
  }

  /** The row of a drawn rank. */
  rowOf(rank) {
    if (this.rows === 1) return 0;
    return this.rows === this.schedule.ranks ? rank : this.schedule.classOf(this.schedule.rankName(rank))[0];
  }

  /** The step in which a row is at a time. */
  stepAt(row, time) {
    let [low, high] = [0, this.steps - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.begin[row * this.steps + middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** When the first rank begins a step, and when the last one ends it. */
  span(step) {
    let [first, last] = [Infinity, 0];
    for (let row = 0; row < this.rows; row += 1) {
      const cell = row * this.steps + step;
      first = Math.min(first, this.begin[cell]);
      last = Math.max(last, this.copied[cell], this.sent[cell], this.received[cell]);
    }
    return [first, last];
  }

  /** The messages of a step by sender. */
  from(step) {
    if (!this.senders.has(step)) {
      const all = new Map();
      for (const message of this.schedule.messages(step)) {
        if (!all.has(message.from)) all.set(message.from, []);
        all.get(message.from).push(message);
      }
      if (this.senders.size > 16) this.senders.clear();
      this.senders.set(step, all);
    }
    return this.senders.get(step);
  }

  /** The messages on their way at a time, the parts of their routes that they have passed, and the steps of all ranks. */
  at(time) {
    const [parts, steps] = [new Map(), new Set()];
    for (let rank = 0; rank < this.schedule.ranks; rank += 1) {
      const row = this.rowOf(rank);
      const step = this.stepAt(row, time);
      steps.add(step);
      const cell = row * this.steps + step;
      const [start, end] = [this.copied[cell], this.sent[cell]];
      if (time < start || time >= end) continue;
      for (const message of this.from(step).get(rank) ?? []) parts.set(message, (time - start) / (end - start));
    }
    return { parts, messages: [...parts.keys()], steps: [...steps].sort((a, b) => a - b) };
  }

  /** The average shares of the time in which a rank copies, sends, receives, and does none of them. */
  shares() {
    if (this.averages) return this.averages;
    const total = [0, 0, 0, 0];
    for (let row = 0; row < this.rows; row += 1) {
      let [busy, until] = [0, 0];
      const cover = (start, end) => {
        busy += Math.max(0, end - Math.max(start, until));
        until = Math.max(until, end);
      };
      for (let step = 0; step < this.steps; step += 1) {
        const cell = row * this.steps + step;
        total[0] += this.copied[cell] - this.begin[cell];
        total[1] += this.sent[cell] - this.copied[cell];
        total[2] += this.received[cell] - this.posted[cell];
        cover(this.begin[cell], this.sent[cell]);
        cover(this.posted[cell], this.received[cell]);
      }
      total[3] += Math.max(0, this.seconds - busy);
    }
    this.averages = total.map((part) => (this.seconds > 0 ? part / (this.rows * this.seconds) : 0));
    return this.averages;
  }
}

/** The states of a rank: each has a colour and a place in its row. */
const STATES = [['copy', 'copies'], ['send', 'sends'], ['receive', 'receives'], ['wait', 'waits']];

/** A chart of all ranks over time. */
class Timeline {
  /** `pick` shows a moment, in seconds; `change` is told of another model or span. */
  constructor({ pick, change }) {
    this.pick = pick;
    this.canvas = html('canvas', {});
    this.cursor = html('div', { class: 'moment', hidden: true });
    this.tip = html('div', { class: 'tip', hidden: true });
    this.chart = html('div', { class: 'gantt', tabindex: 0, role: 'slider', 'aria-label': 'Moment', 'aria-valuemin': 0 }, this.canvas, this.cursor, this.tip);
    this.model = html('select', { class: 'model', onchange: () => { this.use(this.model.value); change(); } });
    this.zoom = html('select', { class: 'span', onchange: () => { this.wanted = Number(this.zoom.value); this.draw(); change(); } });
    this.text = html('p', { class: 'hint' });
    const swatch = ([name, text]) => html('li', {}, svg('svg', { width: 16, height: 12, 'aria-hidden': true },
      svg('rect', { width: 16, height: 12, class: 'state-wait' }),
      svg('rect', { y: name === 'receive' ? 6 : 0, width: 16, height: { copy: 12, wait: 0 }[name] ?? 6, class: `state-${name}` })), ` ${text}`);
    this.element = html('div', { class: 'ranks' },
      html('div', { class: 'controls', role: 'group', 'aria-label': 'Timeline' },
        html('label', {}, 'Ranks over time, model ', this.model), html('label', {}, 'showing ', this.zoom)),
      this.chart,
      html('ul', { class: 'legend' }, ...STATES.map(swatch)), this.text);
    this.chart.addEventListener('pointerdown', (event) => this.press(event));
    this.chart.addEventListener('pointermove', (event) => this.hover(event));
    this.chart.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    this.chart.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => { if (this.times) this.draw(); }).observe(this.chart);
  }

  /** Shows a schedule's timelines, by the model of the one before if it has one. */
  show(schedule) {
    this.schedule = schedule;
    this.element.hidden = schedule.timelines.length === 0;
    this.times = undefined;
    if (this.element.hidden) return;
    const models = schedule.timelines.map((times) => times.model);
    const before = this.model.value;
    this.model.replaceChildren(...models.map((model) => html('option', { value: model }, model)));
    const { steps } = schedule;
    const spans = SPANS.filter((span) => span === Infinity || span < steps);
    this.zoom.replaceChildren(...spans.map((span) => html('option', { value: span }, span === Infinity ? 'all steps' : many(span, 'step'))));
    const room = (this.chart.clientWidth || 700) / WIDE;
    this.wanted = spans.find((span) => Math.min(span, steps) <= room) ?? spans[spans.length - 1];
    this.zoom.value = String(this.wanted);
    this.step = 0;
    // The model that the page was asked for comes last.
    this.use(models.includes(before) ? before : models[models.length - 1]);
  }

  use(model) {
    this.model.value = model;
    this.times = this.schedule.timelines.find((times) => times.model === model);
    const { times, schedule } = this;
    const shares = times.shares();
    const named = STATES.map(([, verb], i) => `${verb} ${(100 * shares[i]).toFixed(1)} %`);
    const of = model === 'steps' ? 'A barrier ends each step; shared links are charged in full.' : 'Each rank continues by itself; messages delay each other.';
    this.text.textContent = `${seconds(times.seconds)} by the ${model} model. ${of} On average a rank ${named.slice(0, 3).join(', ')} and ${named[3]} of the time.${times.even ? ` All ranks do ${times.rows === 1 ? '' : 'nearly '}the same at the same time.` : this.every() > 1 ? ` Every ${nth(this.every())} rank of ${schedule.ranks} is shown.` : ''}`;
    this.chart.setAttribute('aria-valuemax', times.seconds);
    this.draw();
  }

  /** Every how many ranks one has a row. The number is odd, so that the rows show several columns of a grid. */
  every() {
    if (this.times.even) return this.schedule.ranks;
    const every = Math.ceil(this.schedule.ranks / ROWS);
    return every === 1 || every % 2 === 1 ? every : every + 1;
  }

  /** The shown steps, and the seconds from the first one's beginning to the last one's end. */
  window() {
    const { times, schedule: { steps } } = this;
    const span = Math.min(this.wanted, steps);
    const first = Math.floor(this.step / span) * span;
    const last = Math.min(first + span, steps) - 1;
    const from = first === 0 ? 0 : times.span(first)[0];
    const to = this.wanted === Infinity ? Math.max(times.seconds, this.atLeast ?? 0) : times.span(last)[1];
    return { first, last, from, to: to > from ? to : from + 1e-12 };
  }

  draw() {
    const { times, schedule, canvas } = this;
    const width = this.chart.clientWidth || 700;
    const every = this.every();
    const ranks = Array.from({ length: Math.ceil(schedule.ranks / every) }, (_, i) => i * every);
    const tall = ranks.length === 1 ? 30 : Math.max(2, Math.min(16, Math.floor(300 / ranks.length)));
    this.plot = { left: 46, right: width - 8, top: 6, tall, height: tall * ranks.length, every };
    const { left, right, top, height } = this.plot;
    const sharp = Math.min(2, window.devicePixelRatio || 1);
    [canvas.width, canvas.height] = [Math.round(width * sharp), Math.round((top + height + 24) * sharp)];
    canvas.style.height = `${top + height + 24}px`;
    this.shown = this.window();
    const { first, last, from, to } = this.shown;
    const pen = new CanvasPen(canvas, width, top + height + 24, sharp);
    this.pen = pen;
    const at = (time) => left + ((right - left) * (Math.min(to, Math.max(from, time)) - from)) / (to - from);
    const ink = Object.fromEntries(STATES.map(([name]) => [name, colour(`state-${name}`)]));
    const { paper } = pen;
    const rect = (start, end, y, high, fill) => {
      if (end <= from || start >= to || end <= start) return;
      const [x, x2] = [at(start), at(end)];
      paper.fillStyle = fill;
      paper.fillRect(x, y, Math.max(0.4, x2 - x), high);
    };
    const gap = tall >= 6 ? 1 : 0;
    // Early messages are received before the rank begins their step.
    const [begin, end] = [Math.max(0, first - 1), Math.min(times.steps - 1, last + 1)];
    ranks.forEach((rank, i) => {
      const [row, y] = [times.rowOf(rank), top + i * tall];
      const cells = Array.from({ length: end - begin + 1 }, (_, j) => row * times.steps + begin + j);
      rect(from, Math.min(to, times.seconds), y, tall - gap, ink.wait);
      const half = (tall - gap) / 2;
      for (const cell of cells) rect(times.posted[cell], times.received[cell], y + half, half, ink.receive);
      for (const cell of cells) rect(times.copied[cell], times.sent[cell], y, half, ink.send);
      for (const cell of cells) rect(times.begin[cell], times.copied[cell], y, tall - gap, ink.copy);
    });
    // Boundaries of steps that all ranks begin together.
    paper.fillStyle = colour('card');
    if (times.model === 'steps' && (right - left) / (last - first + 1) > 8) {
      for (let step = first + 1; step <= last; step += 1) paper.fillRect(at(times.span(step)[0]) - 0.75, top, 1.5, height);
    }
    const label = { size: 10, fill: colour('soft') };
    const apart = Math.ceil(13 / tall);
    ranks.forEach((rank, i) => {
      if (i % apart === 0) pen.text(ranks.length === 1 ? 'all' : String(schedule.rankName(rank)), left - 5, top + i * tall + tall / 2, { ...label, align: 'end' });
    });
    const ticks = Math.max(2, Math.floor((right - left) / 130));
    for (let i = 0; i <= ticks; i += 1) {
      const time = from + ((to - from) * i) / ticks;
      pen.text(round(time), at(time), top + height + 13, { ...label, align: i === 0 ? 'start' : i === ticks ? 'end' : 'center' });
    }
    this.point();
  }

  /** Marks a step, or a moment. */
  mark(step, moment) {
    if (!this.times) return;
    [this.step, this.moment] = [step, moment];
    const { first, last } = this.shown ?? {};
    if (step < first || step > last) this.draw();
    else this.point();
  }

  point() {
    const { times, plot: { left, right, top, height }, shown: { from, to }, step, moment } = this;
    const at = (time) => left + ((right - left) * Math.max(0, Math.min(1, (time - from) / (to - from))));
    const [begin, end] = moment === undefined ? times.span(step) : [moment, moment];
    Object.assign(this.cursor.style, { top: `${top}px`, left: `${at(begin)}px`, width: `${Math.max(0, at(end) - at(begin))}px`, height: `${height}px` });
    this.cursor.hidden = false;
    this.chart.setAttribute('aria-valuenow', begin);
    this.chart.setAttribute('aria-valuetext', moment === undefined ? `${this.schedule.stepName(step)}, ${seconds(begin)} to ${seconds(end)}` : seconds(moment));
  }

  timeAt(event) {
    const { left, right } = this.plot;
    const { from, to } = this.shown;
    const x = event.clientX - this.chart.getBoundingClientRect().left;
    return Math.max(0, Math.min(this.times.seconds, from + ((to - from) * (x - left)) / (right - left)));
  }

  press(event) {
    const follow = (moved) => this.pick(this.timeAt(moved));
    follow(event);
    this.chart.setPointerCapture(event.pointerId);
    const ended = new AbortController();
    this.chart.addEventListener('pointermove', follow, { signal: ended.signal });
    ['pointerup', 'pointercancel'].forEach((name) => this.chart.addEventListener(name, () => ended.abort(), { signal: ended.signal }));
  }

  /** Tells what the rank under the pointer does. */
  hover(event) {
    const box = this.chart.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top - this.plot.top];
    const rank = Math.floor(y / this.plot.tall) * this.plot.every;
    const name = (of) => (this.times.even ? 'each rank' : this.schedule.place(of));
    this.tip.hidden = y < 0 || y >= this.plot.height;
    if (this.tip.hidden) return;
    const { times } = this;
    const [time, row] = [this.timeAt(event), times.rowOf(rank)];
    const step = times.stepAt(row, time);
    const cell = row * times.steps + step;
    const does = [
      time < times.copied[cell] ? 'copies' : undefined,
      time >= times.copied[cell] && time < times.sent[cell] ? 'sends' : undefined,
      time >= times.posted[cell] && time < times.received[cell] ? 'receives' : undefined,
    ].filter(Boolean);
    this.tip.textContent = `${seconds(time)}: ${name(rank)} ${does.length > 0 ? does.join(' and ') : 'waits'}, ${this.schedule.stepName(step)}`;
    this.tip.style.left = `${Math.max(0, Math.min(box.width - this.tip.offsetWidth, x + 12))}px`;
    this.tip.style.top = `${Math.max(0, y - this.tip.offsetHeight - 8)}px`;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { times, step } = this;
    const [begin, end] = times.span(step);
    const now = this.moment ?? begin;
    const by = Math.max((end - begin) / 20, times.seconds / 1e5);
    const to = { ArrowRight: now + by, ArrowUp: now + by, ArrowLeft: now - by, ArrowDown: now - by, Home: 0, End: times.seconds, PageUp: now + 10 * by, PageDown: now - 10 * by }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.pick(Math.max(0, Math.min(times.seconds, to)));
  }
}

/** `third`: the ordinal of a small odd number. */
function nth(number) {
  return { 3: 'third', 5: 'fifth', 7: 'seventh', 9: 'ninth' }[number] ?? `${number}th`;
}
