// One schedule on its machine: the drawing, the time of each step, and its ranks over time.

/** Bars of the time line; if there are more steps, several share a bar. */
const BARS = 240;

class Stage {
  /** `number` is 0 for the first of several schedules that play in step. */
  constructor(player, number) {
    Object.assign(this, { player, number, data: player.data });
    const id = (name) => (number === 0 ? name : `${name}-${number + 1}`);
    const options = player.schedules.map((schedule, i) => html('option', { value: i }, schedule.name));
    this.select = html('select', { id: id('algorithm'), onchange: () => player.choose(Number(this.select.value), number) }, ...options);
    this.view = new View({
      describe: (rank) => this.describeRank(rank),
      select: (rank) => (rank === undefined ? player.unfollow() : player.followRank(rank, this)),
      paint: () => this.paint(),
    });
    this.note = html('p', { class: 'note', hidden: true });
    this.fact = html('p', { id: id('step'), class: 'fact', 'aria-live': 'polite' });
    this.line = html('div', { class: 'timeline' });
    this.terms = html('div');
    this.ranks = new Timeline({ pick: (moment) => player.showMoment(moment), change: () => player.moved(this.ranks) });
    const parts = () => [this.schedule.play.machine, this.schedule.play.algorithm, this.position()];
    this.element = html('div', { class: 'screen' },
      html('label', { class: 'choose' }, number === 0 ? 'Schedule ' : 'Beside it ', this.select),
      this.note,
      this.view.element,
      html('div', { class: 'under' }, this.fact, this.view.takes(parts)),
      this.line, this.terms,
      this.ranks.element);
    this.ranks.element.querySelector('.controls').append(takeDrawing(undefined, () => onCard(this.ranks.canvas), () => [...parts(), 'ranks']));
  }

  /** Shows a schedule. */
  choose(which) {
    this.which = which;
    this.step = undefined;
    this.select.value = String(which);
    this.schedule = this.player.schedules[which];
    this.follow = undefined;
    this.view.show(this.schedule, `${this.schedule.play.machine} under ${this.schedule.name}`);
    this.note.textContent = [notDrawn(this.data, which), partNote(this.schedule, this.data)].filter(Boolean).join(' ');
    this.note.hidden = this.note.textContent === '';
    this.drawTimeline();
    this.ranks.show(this.schedule);
  }

  /** What is shown, for names of files. */
  position() {
    return this.moment === undefined ? `step ${this.step}` : `at ${seconds(this.moment)}`;
  }

  /** The times of the chosen model. */
  get times() {
    return this.ranks.times;
  }

  /** Shows a step with its messages after the part `part` of their routes. */
  show(step, part) {
    this.moment = undefined;
    this.step = Math.max(0, Math.min(this.schedule.steps - 1, step));
    this.part = part;
    this.describe();
    this.paint();
  }

  /** Shows the machine at a moment. */
  showMoment(moment) {
    this.moment = Math.min(moment, this.times.seconds);
    this.now = this.times.at(this.moment);
    [this.step] = this.now.steps;
    this.describe();
    this.paint();
  }

  drawTimeline() {
    const { schedule } = this;
    const { seconds: times } = schedule.play;
    const each = Math.max(1, Math.ceil(times.length / BARS));
    const bars = [];
    for (let i = 0; i < times.length; i += each) {
      const group = times.slice(i, i + each);
      bars.push({ first: i, terms: TERMS.map((_, term) => sum(group.map((step) => step[term]))) });
    }
    const most = largest(bars.map((bar) => sum(bar.terms)));
    const [width, height] = [720, 72];
    const wide = width / bars.length;
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height + 14}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': 'Time of each step' });
    bars.forEach(({ first, terms }, i) => {
      let y = height;
      const steps = Math.min(first + each, times.length);
      const shared = sum(schedule.contended.slice(first, steps));
      const bar = svg('g', { class: 'step-bar', onclick: () => this.player.show(first) },
        svg('title', {}, `${each === 1 ? schedule.stepName(first) : `steps ${first} to ${steps - 1}`}: ${seconds(sum(terms))}${shared ? `, ${many(shared, 'shared link')}` : ''}`),
        svg('rect', { x: i * wide, y: 0, width: wide, height: height + 14, class: 'hit' }));
      terms.forEach((term, t) => {
        const tall = most > 0 ? (height * term) / most : 0;
        y -= tall;
        if (tall > 0) bar.append(svg('rect', { x: i * wide + wide * 0.06, y, width: wide * 0.88, height: tall, fill: `url(#term-${t})`, class: wide > 6 ? 'bar' : '' }));
      });
      if (shared) bar.append(svg('path', { d: `M${(i + 0.5) * wide},${height + 3} l4,8 h-8 Z`, class: 'fill-conflict' }));
      picture.append(bar);
    });
    this.cursor = svg('rect', { y: 0, width: wide, height: height + 13, class: 'cursor' });
    picture.append(this.cursor);
    this.barOf = (step) => Math.floor(step / each) * wide;
    this.line.replaceChildren(picture);
    const totals = TERMS.map((_, t) => sum(times.map((step) => step[t])));
    const total = sum(totals);
    const shares = TERMS.flatMap((term, t) => (totals[t] > 0 ? [`${term} ${seconds(totals[t])} (${((100 * totals[t]) / total).toFixed(1)} %)`] : []));
    const text = `Time of each step by the steps model, ${seconds(total)} in all: ${shares.join(', ')}.${each > 1 ? ` A bar is ${each} steps.` : ''}${schedule.contended.some(Boolean) ? ' A triangle marks steps with shared links.' : ''}`;
    this.terms.replaceChildren(termLegend(totals), html('p', { class: 'hint' }, text));
  }

  /** Describes the step or the moment. */
  describe() {
    const { schedule, step } = this;
    if (schedule.steps === 0) {
      this.fact.textContent = 'Nothing moves.';
      return;
    }
    this.cursor.setAttribute('x', this.barOf(step));
    this.ranks.mark(step, this.moment);
    const shared = this.shared();
    const links = () => (schedule.routed ? [shared.length > 0 ? `${many(shared.length, 'link')} shared` : 'no link shared'] : []);
    if (this.moment !== undefined && this.moment >= this.times.seconds) {
      this.fact.textContent = `Done at ${seconds(this.moment)}.`;
      return;
    }
    if (this.moment !== undefined) {
      const { messages, steps } = this.now;
      const where = steps.length === 1 ? schedule.stepName(step) : `ranks are in steps ${steps[0]} to ${steps[steps.length - 1]}`;
      this.fact.textContent = `At ${seconds(this.moment)}, ${where}: ${[`${many(messages.length, 'message')} on the way`, ...(messages.length > 0 ? links() : [])].join(', ')}.`;
      return;
    }
    const messages = schedule.messages(step);
    const parts = messages.length > 0 ? [many(messages.length, 'message'), `the largest ${bytes(largest(messages.map((m) => m.bytes)))}`] : [];
    if (schedule.routed && messages.length > 0) parts.push(`the longest route ${many(largest(messages.map((m) => m.links.length)), 'hop')}`, ...links());
    if (schedule.play.steps[step].copies) parts.push(messages.length > 0 ? 'blocks rearranged before' : 'blocks rearranged');
    const time = sum(schedule.play.seconds[step]);
    this.fact.textContent = `${schedule.stepName(step, true)}, ${seconds(time)}${parts.length > 0 ? `: ${parts.join(', ')}` : ''}.`;
  }

  /** The links that several messages share in the step or at the moment, the most contended first. */
  shared() {
    if (this.moment === undefined) return this.schedule.conflicts(this.step);
    if (!this.schedule.routed) return [];
    this.now.shared ??= sharedOf(added(this.now.messages, ({ links }) => links));
    return this.now.shared;
  }

  /** The messages of the step, or those on their way. */
  messages() {
    return this.moment === undefined ? this.schedule.messages(this.step) : this.now.messages;
  }

  /** What a rank sends and receives in the step, or at the moment. */
  describeRank(rank) {
    const { schedule } = this;
    if (schedule.steps === 0) return 'sends nothing.';
    const messages = this.messages();
    const list = (items, name) => (items.length === 0 ? 'nothing' : items.slice(0, 4).map((m) => `${bytes(m.bytes)} ${name(m)}`).join(', '));
    const sent = list(messages.filter((m) => m.from === rank), (m) => `to ${m.toName}`);
    const got = list(messages.filter((m) => m.to === rank), (m) => `from ${schedule.rankName(m.from)}`);
    return `sends ${sent} and receives ${got} ${this.moment === undefined ? 'in this step' : 'at this moment'}.`;
  }

  /** What the drawing marks: ranks, the followed messages that are shown, and all legs of a block. */
  followed() {
    const { follow, schedule } = this;
    if (!follow) return undefined;
    const messages = this.messages();
    if (follow.rank !== undefined) {
      const now = new Set(messages.filter((m) => m.from === follow.rank || m.to === follow.rank));
      return { marked: new Map([[follow.rank, true]]), now, ends: endsOf(now) };
    }
    const marked = new Map([[schedule.placeOf(follow.from), 'from']]);
    if (follow.to !== follow.from) marked.set(schedule.placeOf(follow.to), 'to');
    const steps = this.moment === undefined ? [this.step] : this.now.steps;
    const now = new Set(follow.legs.filter((leg) => steps.includes(leg.step)).map(({ message }) =>
      messages.find((m) => m.from === message.from && m.to === message.to && m.sent === message.sent)).filter(Boolean));
    const legs = follow.legs.map((leg) => leg.message);
    return { marked, now, legs, ends: endsOf(legs) };
  }

  paint() {
    const { schedule, step, view: { drawing }, player } = this;
    if (step === undefined) return;
    if (schedule.steps === 0) {
      drawing.show(() => { drawing.frame(); drawing.ranks(); });
      return;
    }
    const conflicts = this.shared();
    // Shared links flash slowly. With reduced motion they stay dashed.
    const shared = player.still || !player.playing || player.phaseOfFlash() ? conflicts : [];
    const time = this.moment !== undefined ? (message) => this.now.parts.get(message) : player.still ? STILL : this.part;
    const number = this.moment === undefined ? step : `at ${this.now.messages.map((m) => `${m.from} ${m.sent} ${m.to}`)}`;
    const picture = { number, messages: this.messages(), shared, time, follow: this.followed() };
    drawing.show(() => drawing.step(picture));
  }
}

/** The ranks at the ends of messages. */
function endsOf(messages) {
  return new Set([...messages].flatMap(({ from, to }) => [from, to]));
}

/** The note on a page whose subject is not drawn. */
function notDrawn(data, which) {
  const { algorithm, play } = data.asked ?? data.ranking[0];
  const reason = data.unplayed.find(([name]) => name === algorithm)?.[1];
  return play === undefined && reason && which === data.first ? `${algorithm} is not drawn: ${reason}. This is ${data.plays[which].algorithm}.` : '';
}

/** The note on a drawing that is not the whole machine. */
function partNote(schedule, data) {
  const { part, machine, shape, algorithm, setting, drawn_setting: drawn } = schedule.play;
  if (part === 'smaller') {
    const under = drawn === undefined ? 'the same algorithm and setting' : `the same algorithm with the setting ${drawn}, as ${setting} does not apply there`;
    return `${data.topology} under ${algorithm} is too large for a page. The drawing and its times are of ${machine}, a smaller machine of the same kind, under ${under}. The times of ${algorithm} in the ranking, the block sizes and the Pareto front are those of ${data.topology}.`;
  }
  if (part === 'period') {
    return `${data.topology} is too large to draw. The drawing shows one period, ${shape.window.join('x')}, of a pattern that repeats across the machine: a message that leaves on one side enters at the other. Loads, shared links and times are those of the whole machine.`;
  }
  return '';
}
