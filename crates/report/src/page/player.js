// The schedule player.

/** Seconds of a step at speed 1, and of the pause after it. */
const STEP_SECONDS = 1.6;
const REST_SECONDS = 0.25;

/** The position of messages on their routes while paused: at the end. */
const STILL = 1;

/** Bars of the time line; if there are more steps, several share a bar. */
const BARS = 240;

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

class Player {
  constructor(section, data, schedules) {
    this.section = section;
    this.data = data;
    this.schedules = schedules;
    this.still = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.speed = 1;
    this.follow = undefined;
    this.build();
    this.choose(data.first);
  }

  build() {
    const { data } = this;
    const options = this.schedules.map((schedule, i) => html('option', { value: i }, schedule.name));
    this.select = html('select', { id: 'algorithm', onchange: () => this.choose(Number(this.select.value)) }, ...options);
    this.view = new View({
      describe: (rank) => this.describeRank(rank),
      select: (rank) => (rank === undefined ? this.unfollow() : this.followRank(rank)),
      paint: () => this.paint(),
    });
    this.legend = html('div');
    this.note = html('p', { class: 'note', hidden: true });
    this.fact = html('p', { id: 'step', class: 'fact', 'aria-live': 'polite' });
    const button = (id, label, text, act) =>
      html('button', { type: 'button', id, 'aria-label': label, title: label, onclick: act }, text);
    this.toggle = button('play', 'Play (space)', icon('play'), () => this.playing ? this.pause() : this.play());
    this.phase = html('select', { id: 'phase', 'aria-label': 'Phase', onchange: () => this.show(Number(this.phase.value)) });
    const speeds = SPEEDS.map((speed) => html('option', { value: speed, selected: speed === 1 }, `${speed}×`));
    this.quickness = html('select', { id: 'speed', 'aria-label': 'Speed', onchange: () => { this.speed = Number(this.quickness.value); } }, ...speeds);
    this.line = html('div', { class: 'timeline' });
    this.terms = html('div');
    this.conflictList = html('div', { id: 'conflicts' });
    this.followed = html('div', { id: 'followed' });
    const rank = (id) => html('input', { id, type: 'number', min: 0, value: '', inputmode: 'numeric' });
    [this.source, this.target] = [rank('source'), rank('target')];
    const gathers = data.operation === 'allgather';
    const form = html('form', { class: 'follow', onsubmit: (event) => { event.preventDefault(); this.followAsked(); } },
      html('label', {}, gathers ? 'Block of rank ' : 'From rank ', this.source),
      gathers ? undefined : html('label', {}, ' to rank ', this.target),
      html('button', { type: 'submit', id: 'follow' }, 'Follow'),
      html('button', { type: 'button', id: 'unfollow', onclick: () => this.unfollow() }, 'Clear'));
    this.section.append(
      html('h2', {}, 'Watch'),
      html('label', { class: 'choose' }, 'Schedule ', this.select),
      this.note,
      html('div', { class: 'stage' },
        html('div', { class: 'screen' },
          this.view.element,
          html('div', { class: 'controls', role: 'group', 'aria-label': 'Player' },
            button('first', 'First step (Home)', icon('first'), () => this.show(0)),
            button('back', 'Step back (left arrow)', icon('back'), () => this.show(this.step - 1)),
            this.toggle,
            button('next', 'Step on (right arrow)', icon('next'), () => this.show(this.step + 1)),
            button('last', 'Last step (End)', icon('last'), () => this.show(Infinity)),
            html('label', {}, 'Speed ', this.quickness),
            html('label', {}, 'Phase ', this.phase)),
          this.fact,
          this.line,
          this.terms),
        html('div', { class: 'side' },
          this.legend,
          html('h3', {}, 'Shared links'), this.conflictList,
          html('h3', {}, gathers ? 'Follow a rank or its block' : 'Follow a rank or a block'),
          html('p', { class: 'hint' }, gathers
            ? 'Select a rank in the drawing to list its messages, or enter one to follow its block.'
            : 'Select a rank in the drawing to list its messages, or enter the two ranks of a block.'),
          form, this.followed,
          html('p', { class: 'hint keys' }, 'Keys: space plays, ← → step, [ ] phases, + − speed, Home, End, Esc stops following.'))));
    document.addEventListener('keydown', (event) => this.key(event));
  }

  /** Shows another schedule, from its first step. */
  choose(which) {
    this.pause();
    this.which = which;
    this.step = undefined;
    this.select.value = String(which);
    this.schedule = this.schedules[which];
    this.view.show(this.schedule, `${this.schedule.play.machine} under ${this.schedule.name}`);
    this.legend.replaceChildren(drawingLegend(this.schedule.network));
    this.note.textContent = partNote(this.schedule, this.data);
    this.note.hidden = this.note.textContent === '';
    const phases = this.schedule.phases();
    this.phases = phases;
    const label = ({ first, last, hops }) =>
      `${first === last ? `step ${first}` : `steps ${first} to ${last}`}${this.schedule.routed && hops ? `, up to ${many(hops, 'hop')}` : ''}`;
    this.phase.replaceChildren(...phases.map((phase) => html('option', { value: phase.first }, label(phase))));
    this.unfollow();
    this.drawTimeline();
    this.show(0);
    this.onchoose?.(which);
  }

  drawTimeline() {
    const { seconds: times } = this.schedule.play;
    const each = Math.max(1, Math.ceil(times.length / BARS));
    const bars = [];
    for (let i = 0; i < times.length; i += each) {
      const group = times.slice(i, i + each);
      bars.push({ first: i, terms: TERMS.map((_, term) => sum(group.map((step) => step[term]))) });
    }
    const most = largest(bars.map((bar) => sum(bar.terms)));
    const [width, height] = [720, 96];
    const wide = width / bars.length;
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height + 14}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': 'Time of every step' });
    bars.forEach(({ first, terms }, i) => {
      let y = height;
      const steps = Math.min(first + each, times.length);
      const shared = sum(this.schedule.contended.slice(first, steps));
      const bar = svg('g', { class: 'step-bar', onclick: () => this.show(first) },
        svg('title', {}, `${each === 1 ? `step ${first}` : `steps ${first} to ${steps - 1}`}: ${seconds(sum(terms))}${shared ? `, ${many(shared, 'shared link')}` : ''}`),
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
    const text = `Time of each step, ${seconds(total)} in all: ${shares.join(', ')}.${each > 1 ? ` A bar is ${each} steps.` : ''}${this.schedule.contended.some(Boolean) ? ' A triangle marks steps with shared links.' : ''}`;
    this.terms.replaceChildren(termLegend(totals), html('p', { class: 'hint' }, text));
  }

  show(step) {
    this.step = Math.max(0, Math.min(this.schedule.steps - 1, step));
    this.time = this.playing ? 0 : STILL;
    this.describe();
    this.paint();
  }

  /** Describes the step. */
  describe() {
    const { schedule, step } = this;
    if (schedule.steps === 0) {
      this.fact.textContent = 'Nothing moves.';
      return;
    }
    const messages = schedule.messages(step);
    const shared = schedule.conflicts(step);
    const parts = [many(messages.length, 'message')];
    if (messages.length > 0) parts.push(`the largest ${bytes(largest(messages.map((m) => m.bytes)))}`);
    if (schedule.routed && messages.length > 0) {
      parts.push(`the longest route ${many(largest(messages.map((m) => m.links.length)), 'hop')}`);
      parts.push(shared.length > 0 ? `${many(shared.length, 'link')} shared` : 'no link shared');
    }
    if (schedule.play.steps[step].copies) parts.push('blocks rearranged before');
    const time = sum(schedule.play.seconds[step]);
    this.fact.textContent = `Step ${step} (${step + 1} of ${schedule.steps}), ${seconds(time)}: ${parts.join(', ')}.`;
    this.cursor?.setAttribute('x', this.barOf(step));
    const phase = this.phases.findLast((one) => one.first <= step);
    this.phase.value = String(phase?.first ?? 0);
    this.describeConflicts(shared);
    this.describeFollowed();
  }

  describeConflicts(shared) {
    const { schedule, step } = this;
    if (shared.length === 0) {
      const others = schedule.contended.filter(Boolean).length;
      const text = !schedule.routed ? 'Each pair of ranks has its own link.'
        : others ? `None in this step; ${many(others, 'step')} of ${schedule.steps} have some.` : 'None in any step.';
      this.conflictList.replaceChildren(html('p', {}, text));
      return;
    }
    const items = shared.slice(0, 5).map(([link, load]) => {
      const on = schedule.messages(step).filter((message) => message.links.includes(link));
      const listed = on.slice(0, 4).map((m) => `${schedule.rankName(m.from)}→${m.toName}`).join(', ');
      const more = on.length > 4 ? ` and ${on.length - 4} more` : '';
      return html('li', {}, html('strong', {}, `${schedule.linkName(link)} ×${load.messages}`), ` ${bytes(load.bytes)}: ${listed}${more}`);
    });
    const more = shared.length > 5 ? html('p', { class: 'hint' }, `and ${many(shared.length - 5, 'more link')}`) : undefined;
    this.conflictList.replaceChildren(html('ul', {}, ...items), ...(more ? [more] : []));
  }

  followAsked() {
    const gathers = this.data.operation === 'allgather';
    const read = (input) => (input.value === '' ? NaN : Number(input.value));
    const [from, to] = [read(this.source), gathers ? read(this.source) : read(this.target)];
    const fits = (rank) => Number.isInteger(rank) && rank >= 0 && rank < this.schedule.radix.ranks;
    if (this.schedule.play.slots === 0) {
      this.followed.replaceChildren(html('p', {}, 'The slots of this schedule are too many for a page; select a rank.'));
    } else if (!fits(from) || !fits(to)) {
      this.followed.replaceChildren(html('p', {}, `A rank is a number from 0 to ${this.schedule.radix.ranks - 1}.`));
    } else {
      this.follow = { from, to, ...journey(this.schedule, this.data.operation, from, to) };
      this.describeFollowed();
      if (this.follow.legs.length > 0) this.show(this.follow.legs[0].step);
      else this.paint();
    }
  }

  followRank(rank) {
    this.follow = { rank };
    this.source.value = String(this.schedule.rankName(rank));
    this.describeFollowed();
    this.paint();
  }

  unfollow() {
    this.follow = undefined;
    this.followed.replaceChildren();
    if (this.step !== undefined) this.paint();
  }

  /** What a rank sends and receives in the step. */
  describeRank(rank) {
    const { schedule, step } = this;
    if (schedule.steps === 0) return 'sends nothing.';
    const messages = schedule.messages(step);
    const list = (items, name) => (items.length === 0 ? 'nothing' : items.slice(0, 4).map((m) => `${bytes(m.bytes)} ${name(m)}`).join(', '));
    const sent = list(messages.filter((m) => m.from === rank), (m) => `to ${m.toName}`);
    const got = list(messages.filter((m) => m.to === rank), (m) => `from ${schedule.rankName(m.from)}`);
    return `sends ${sent} and receives ${got} in this step.`;
  }

  describeFollowed() {
    const { schedule, follow, step } = this;
    if (!follow) return;
    if (follow.rank !== undefined) {
      this.followed.replaceChildren(html('p', {}, html('strong', {}, schedule.place(follow.rank)), ` ${this.describeRank(follow.rank)}`));
      return;
    }
    const legs = follow.legs.map((leg) => html('li', { class: leg.step === step ? 'now' : '' },
      html('button', { type: 'button', onclick: () => this.show(leg.step) }, `step ${leg.step}`),
      ` ${leg.from}→${leg.to}${leg.message.links ? `, ${many(leg.message.links.length, 'hop')}` : ''}, in a message of ${bytes(leg.message.bytes)}`));
    const gathers = this.data.operation === 'allgather';
    const whole = gathers ? `The block of rank ${follow.from}` : `The block of rank ${follow.from} for rank ${follow.to}`;
    const end = follow.arrives ? (gathers ? 'reaches all ranks' : 'arrives') : 'does not arrive';
    this.followed.replaceChildren(
      html('p', { class: follow.arrives ? 'arrives' : 'lost' }, `${whole} ${follow.legs.length === 0 ? 'stays where it is' : `travels in ${many(legs.length, 'message')} and ${end}`}.`),
      html('ol', { class: 'journey' }, ...legs.slice(0, 40)));
  }

  /** What the drawing marks: ranks, the followed messages of the step, and all legs of a block. */
  followedNow() {
    const { follow, schedule, step } = this;
    if (!follow) return undefined;
    const messages = schedule.messages(step);
    if (follow.rank !== undefined) {
      const now = new Set(messages.filter((m) => m.from === follow.rank || m.to === follow.rank));
      return { marked: new Map([[follow.rank, true]]), now, ends: endsOf(now) };
    }
    const marked = new Map([[schedule.placeOf(follow.from), 'from']]);
    if (follow.to !== follow.from) marked.set(schedule.placeOf(follow.to), 'to');
    const now = new Set(follow.legs.filter((leg) => leg.step === step).map(({ message }) =>
      messages.find((m) => m.from === message.from && m.to === message.to && m.sent === message.sent)));
    const legs = follow.legs.map((leg) => leg.message);
    return { marked, now, legs, ends: endsOf(legs) };
  }

  paint() {
    const { schedule, step } = this;
    if (step === undefined) return;
    if (schedule.steps === 0) {
      this.view.drawing.show(() => { this.view.drawing.frame(); this.view.drawing.ranks(); });
      return;
    }
    const conflicts = schedule.conflicts(step);
    // Shared links flash slowly. With reduced motion they stay dashed.
    const shared = this.still || !this.playing || this.time % 0.5 < 0.36 ? conflicts : [];
    const picture = { number: step, messages: schedule.messages(step), shared, time: this.still ? STILL : this.time, follow: this.followedNow() };
    this.view.drawing.show(() => this.view.drawing.step(picture));
  }

  play() {
    if (this.step >= this.schedule.steps - 1) this.step = 0;
    this.playing = true;
    this.time = 0;
    this.toggle.replaceChildren(icon('pause'));
    this.toggle.setAttribute('aria-label', 'Pause (space)');
    this.describe();
    let before;
    const frame = (now) => {
      if (!this.playing) return;
      this.time += ((now - (before ?? now)) / 1000 / STEP_SECONDS) * this.speed;
      before = now;
      if (this.time >= 1 + REST_SECONDS / STEP_SECONDS) {
        if (this.step + 1 >= this.schedule.steps) {
          this.pause();
          return;
        }
        this.step += 1;
        this.time = 0;
        this.describe();
      }
      this.paint();
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  pause() {
    this.playing = false;
    this.toggle.replaceChildren(icon('play'));
    this.toggle.setAttribute('aria-label', 'Play (space)');
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, select, button, a, .chart')) return;
    const phase = (by) => {
      const at = this.phases.findLastIndex((one) => one.first <= this.step);
      this.show(this.phases[Math.max(0, Math.min(this.phases.length - 1, at + by))]?.first ?? 0);
    };
    const faster = (by) => {
      const at = Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(this.speed) + by));
      this.speed = SPEEDS[at];
      this.quickness.value = String(this.speed);
    };
    const acts = {
      ' ': () => (this.playing ? this.pause() : this.play()),
      ArrowRight: () => this.show(this.step + 1),
      ArrowLeft: () => this.show(this.step - 1),
      Home: () => this.show(0),
      End: () => this.show(Infinity),
      '[': () => phase(-1),
      ']': () => phase(1),
      '+': () => faster(1),
      '=': () => faster(1),
      '-': () => faster(-1),
      Escape: () => this.unfollow(),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }
}

/** The ranks at the ends of messages. */
function endsOf(messages) {
  return new Set([...messages].flatMap(({ from, to }) => [from, to]));
}

/** The note on a drawing that is not the whole machine. */
function partNote(schedule, data) {
  const { part, machine, shape } = schedule.play;
  if (part === 'smaller') {
    return `${data.topology} is too large to draw. The drawing and its times are of ${machine}, a smaller machine of the same kind, under the same algorithm. The ranking, the block sizes and the Pareto front are those of ${data.topology}.`;
  }
  if (part === 'period') {
    return `${data.topology} is too large to draw. The drawing shows one period, ${shape.window.join('x')}, of a pattern that repeats across the machine: a message that leaves on one side enters at the other. Loads, shared links and times are those of the whole machine.`;
  }
  return '';
}
