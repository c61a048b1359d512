// The player of schedules: one, or two side by side.

/** Seconds of a step at speed 1, and of the pause after it. */
const STEP_SECONDS = 1.6;
const REST_SECONDS = 0.25;

/** The position of messages on their routes while paused: at the end. */
const STILL = 1;

/** Digits of a moment. */
const DIGITS = 7;

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

class Player {
  constructor(section, data, schedules) {
    Object.assign(this, { section, data, schedules });
    this.still = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.speed = 1;
    this.time = STILL;
    this.stages = [new Stage(this, 0)];
    this.build();
    this.choose(data.first, 0);
  }

  build() {
    const { data } = this;
    const button = (id, label, text, act) =>
      html('button', { type: 'button', id, 'aria-label': label, title: label, onclick: act }, text);
    this.toggle = button('play', 'Play (space)', icon('play'), () => (this.playing ? this.pause() : this.play()));
    this.phase = html('select', { id: 'phase', 'aria-label': 'Phase', onchange: () => this.show(Number(this.phase.value)) });
    const speeds = SPEEDS.map((speed) => html('option', { value: speed, selected: speed === 1 }, `${speed}×`));
    this.quickness = html('select', { id: 'speed', 'aria-label': 'Speed', onchange: () => { this.speed = Number(this.quickness.value); } }, ...speeds);
    this.besideButton = html('button', { type: 'button', id: 'beside', 'aria-pressed': 'false', hidden: this.schedules.length < 2, onclick: () => this.putBeside(this.stages.length === 1 ? this.other() : undefined) }, 'Two side by side');
    this.said = html('p', { class: 'wrong', role: 'status', hidden: true });
    this.legend = html('div');
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
    this.screens = html('div', { class: 'screens' }, this.stages[0].element);
    this.section.append(
      html('h2', {}, 'Watch'), this.said,
      html('div', { class: 'controls', role: 'group', 'aria-label': 'Player' },
        button('first', 'First step (Home)', icon('first'), () => this.show(0)),
        button('back', 'Step back (left arrow)', icon('back'), () => this.show(this.step - 1)),
        this.toggle,
        button('next', 'Step on (right arrow)', icon('next'), () => this.show(this.step + 1)),
        button('last', 'Last step (End)', icon('last'), () => this.show(Infinity)),
        html('label', {}, 'Speed ', this.quickness),
        html('label', {}, 'Phase ', this.phase),
        this.besideButton,
        takeButton('Copy link', 'Copy a link to what is shown', () => { this.remember(); return copy(location.href); })),
      html('div', { class: 'stage' },
        this.screens,
        html('div', { class: 'side' },
          html('div', {}, this.legend, html('h3', {}, 'Shared links'), this.conflictList),
          html('div', {}, html('h3', {}, gathers ? 'Follow a rank or its block' : 'Follow a rank or a block'),
          html('p', { class: 'hint' }, gathers
            ? 'Select a rank in the drawing to list its messages, or enter one to follow its block.'
            : 'Select a rank in the drawing to list its messages, or enter the two ranks of a block.'),
          form, this.followed,
          html('p', { class: 'hint keys' }, 'Keys: space plays, ← → step, [ ] phases, + − speed, Home, End, Esc stops following.')))));
    document.addEventListener('keydown', (event) => this.key(event));
  }

  /** The schedule of the first stage, on which the controls act. */
  get schedule() {
    return this.stages[0].schedule;
  }

  /** The most steps of a shown schedule. */
  get steps() {
    return largest(this.stages.map((stage) => stage.schedule.steps));
  }

  /** The schedule that is put beside the shown one: the best, or else the next best. */
  other() {
    const { which } = this.stages[0];
    const ranked = this.data.ranking.map((entry) => entry.play).filter((play) => play !== undefined && play !== which);
    return ranked[0] ?? (which === 0 ? 1 : 0);
  }

  /** Shows another schedule on a stage, from its first step, or from the other's step. */
  choose(which, number) {
    this.pause();
    this.stages[number].choose(which);
    if (this.stages[0].times) this.useModel(this.stages[0].times.model);
    if (number === 0) {
      this.legend.replaceChildren(drawingLegend(this.schedule.network));
      const phases = this.schedule.phases();
      this.phases = phases;
      const label = ({ first, last, hops }) => {
        const steps = first === last ? this.schedule.stepName(first) : `steps ${first} to ${last}`;
        return `${steps}${this.schedule.routed && hops ? `, up to ${many(hops, 'hop')}` : ''}`;
      };
      this.phase.replaceChildren(...phases.map((phase) => html('option', { value: phase.first }, label(phase))));
      this.unfollow();
      this.onchoose?.(which);
    } else if (this.follow?.rank === undefined && this.follow) {
      this.followBlock(this.follow.from, this.follow.to);
    }
    this.scale();
    this.show(number === 0 ? 0 : this.step);
  }

  /** Shows a second schedule beside the first, or none. */
  putBeside(which) {
    this.pause();
    if (which === undefined) this.stages.splice(1).forEach((stage) => stage.element.remove());
    else if (this.stages.length === 1) {
      this.stages.push(new Stage(this, 1));
      this.screens.append(this.stages[1].element);
    }
    this.screens.parentElement.classList.toggle('two', this.stages.length > 1);
    this.besideButton.setAttribute('aria-pressed', this.stages.length > 1);
    if (which !== undefined) this.choose(which, 1);
    else this.scale();
    this.remember();
  }

  /** All timelines that show all steps have one scale. */
  scale() {
    const most = largest(this.stages.map((stage) => stage.times?.seconds ?? 0));
    for (const { ranks } of this.stages) {
      if (ranks.atLeast !== most) {
        ranks.atLeast = most;
        if (ranks.times) ranks.draw();
      }
    }
  }

  show(step) {
    this.moment = undefined;
    this.step = Math.max(0, Math.min(this.steps - 1, step));
    this.time = this.playing ? 0 : STILL;
    this.stages.forEach((stage) => stage.show(this.step, this.time));
    this.describe();
  }

  /** Shows all machines at a moment. */
  showMoment(moment) {
    if (!this.stages[0].times) return;
    // As many digits as its address has.
    this.moment = moment >= this.total ? this.total : Math.max(0, Number(moment.toPrecision(DIGITS)));
    this.stages.forEach((stage) => stage.showMoment(this.moment));
    this.step = this.stages[0].step;
    this.describe();
  }

  /** The time of the slowest shown schedule. */
  get total() {
    return largest(this.stages.map((stage) => stage.times.seconds));
  }

  /** All timelines are of one model, as far as they have it. */
  useModel(model) {
    for (const { ranks, schedule } of this.stages) {
      if (ranks.times && ranks.times.model !== model && schedule.timelines.some((times) => times.model === model)) ranks.use(model);
    }
  }

  /** After a change of the model or the span of a timeline. */
  moved({ times }) {
    this.useModel(times.model);
    this.scale();
    if (this.moment !== undefined) this.showMoment(this.moment);
    this.remember();
  }

  /** Describes the step beside the drawing. */
  describe() {
    const phase = this.phases.findLast((one) => one.first <= this.step);
    this.phase.value = String(phase?.first ?? 0);
    if (this.schedule.steps > 0) {
      this.describeConflicts(this.stages[0].shared());
      this.describeFollowed();
    }
    if (!this.playing) this.remember();
  }

  describeConflicts(shared) {
    const { schedule } = this;
    if (shared.length === 0) {
      const others = schedule.contended.filter(Boolean).length;
      const text = !schedule.routed ? 'Each pair of ranks has its own link.'
        : others ? `None ${this.moment === undefined ? 'in this step' : 'at this moment'}; ${many(others, 'step')} of ${schedule.moving} have some.` : 'None in any step.';
      this.conflictList.replaceChildren(html('p', {}, text));
      return;
    }
    const items = shared.slice(0, 5).map(([link, load]) => {
      const on = this.stages[0].messages().filter((message) => message.links.includes(link));
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
      this.followBlock(from, to);
      const [first] = this.follow.legs;
      if (first) this.show(first.step);
      else this.describeFollowed();
      this.repaint();
    }
  }

  /** Follows a block on all stages whose machines have its ranks. */
  followBlock(from, to) {
    for (const stage of this.stages) {
      const { schedule } = stage;
      const has = schedule.play.slots > 0 && Math.max(from, to) < schedule.radix.ranks;
      stage.follow = has ? { from, to, ...journey(schedule, this.data.operation, from, to) } : undefined;
    }
    this.follow = this.stages[0].follow;
  }

  followRank(rank, stage) {
    this.stages.forEach((each) => { each.follow = each === stage ? { rank } : undefined; });
    this.follow = stage.follow;
    this.describeFollowed(stage);
    this.repaint();
    this.remember();
  }

  unfollow() {
    this.stages.forEach((stage) => { stage.follow = undefined; });
    this.follow = undefined;
    this.followed.replaceChildren();
    this.repaint();
    if (this.step !== undefined) this.remember();
  }

  repaint() {
    this.stages.forEach((stage) => stage.paint());
  }

  describeFollowed(of = this.stages.find((stage) => stage.follow)) {
    const { follow } = this;
    if (!follow || !of) return;
    if (follow.rank !== undefined) {
      this.followed.replaceChildren(html('p', {}, html('strong', {}, of.schedule.place(follow.rank)), ` ${of.describeRank(follow.rank)}`));
      return;
    }
    const legs = follow.legs.map((leg) => html('li', { class: leg.step === of.step ? 'now' : '' },
      html('button', { type: 'button', onclick: () => this.show(leg.step) }, `step ${leg.step}`),
      ` ${leg.from}→${leg.to}${leg.message.links ? `, ${many(leg.message.links.length, 'hop')}` : ''}, in a message of ${bytes(leg.message.bytes)}`));
    const gathers = this.data.operation === 'allgather';
    const whole = gathers ? `The block of rank ${follow.from}` : `The block of rank ${follow.from} for rank ${follow.to}`;
    const end = follow.arrives ? (gathers ? 'reaches all ranks' : 'arrives') : 'does not arrive';
    this.followed.replaceChildren(
      html('p', { class: follow.arrives ? 'arrives' : 'lost' }, `${whole} ${follow.legs.length === 0 ? 'stays where it is' : `travels in ${many(legs.length, 'message')} and ${end}`}.`),
      html('ol', { class: 'journey' }, ...legs.slice(0, 40)));
  }

  /** Plays by steps, or from a moment on by time. */
  play() {
    const ends = this.moment === undefined ? this.step >= this.steps - 1 : this.moment >= this.total;
    this.playing = true;
    this.toggle.replaceChildren(icon('pause'));
    this.toggle.setAttribute('aria-label', 'Pause (space)');
    if (this.moment === undefined) this.show(ends ? 0 : this.step);
    else if (ends) this.showMoment(0);
    let before;
    const frame = (now) => {
      if (!this.playing) return;
      const passed = ((now - (before ?? now)) / 1000 / STEP_SECONDS) * this.speed;
      before = now;
      this.time += passed;
      if (this.moment !== undefined) {
        this.showMoment(this.moment + (passed * this.total) / Math.max(1, this.steps));
        if (this.moment >= this.total) this.pause();
      } else if (this.time >= 1 + REST_SECONDS / STEP_SECONDS) {
        if (this.step + 1 >= this.steps) this.pause();
        else this.show(this.step + 1);
      } else {
        this.stages.forEach((stage) => {
          stage.part = this.step < stage.schedule.steps ? Math.min(1, this.time) : STILL;
          stage.paint();
        });
      }
      if (this.playing) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** Whether flashing links are shown. */
  phaseOfFlash() {
    return this.time % 0.5 < 0.36;
  }

  pause() {
    const played = this.playing;
    this.playing = false;
    this.toggle.replaceChildren(icon('play'));
    this.toggle.setAttribute('aria-label', 'Play (space)');
    if (played) this.remember();
  }

  /** Writes what is shown into the address, without a step of the browser's history. */
  remember() {
    const [{ schedule, ranks, which }, beside] = this.stages;
    const state = new URLSearchParams();
    if (which !== this.data.first) state.set('schedule', schedule.name);
    if (beside) state.set('beside', beside.schedule.name);
    if (this.moment === undefined) state.set('step', this.step);
    else state.set('at', this.moment);
    if (ranks.times !== schedule.timelines.at(-1)) state.set('model', ranks.times.model);
    if (this.follow?.rank !== undefined && this.stages[0].follow) state.set('rank', schedule.rankName(this.follow.rank));
    else if (this.follow && this.follow.rank === undefined) {
      state.set('from', this.follow.from);
      if (this.data.operation !== 'allgather') state.set('to', this.follow.to);
    }
    history.replaceState(null, '', `#${state}`);
  }

  /** Shows what an address names, such as `#step=5&from=3&to=8`. */
  reopen(hash) {
    if (!hash.includes('=')) return;
    const state = new URLSearchParams(hash.slice(1));
    const wrong = [];
    const number = (name, most) => {
      if (!state.has(name)) return undefined;
      const value = Number(state.get(name));
      if (state.get(name).trim() !== '' && value >= 0 && value <= most) return value;
      wrong.push(`${name}=${state.get(name)} is not a number from 0 to ${most}`);
      return undefined;
    };
    const whole = (name, most) => {
      const value = number(name, most);
      if (value === undefined || Number.isInteger(value)) return value;
      wrong.push(`${name}=${state.get(name)} is not a whole number`);
      return undefined;
    };
    const named = (name) => {
      if (!state.has(name)) return undefined;
      const which = this.schedules.findIndex((schedule) => schedule.name === state.get(name));
      if (which < 0) wrong.push(`this page does not play ${state.get(name)}`);
      return which < 0 ? undefined : which;
    };
    this.choose(named('schedule') ?? this.data.first, 0);
    this.putBeside(named('beside'));
    const model = state.get('model');
    if (model !== null && this.schedule.timelines.some((times) => times.model === model)) this.useModel(model);
    else if (model !== null) wrong.push(`this page has no timeline by model=${model}`);
    const ranks = this.schedule.radix.ranks - 1;
    const [from, to, rank] = [whole('from', ranks), whole('to', ranks), whole('rank', ranks)];
    if (from !== undefined && (to !== undefined || this.data.operation === 'allgather')) {
      [this.source.value, this.target.value] = [from, to ?? ''];
      this.followAsked();
    } else if (rank !== undefined) this.followRank(this.schedule.placeOf(rank), this.stages[0]);
    const [step, at] = [whole('step', this.steps - 1), number('at', this.stages[0].times ? this.total : 0)];
    if (at !== undefined) this.showMoment(at);
    else if (step !== undefined) this.show(step);
    this.said.textContent = wrong.length > 0 ? `The address of this page: ${wrong.join('; ')}.` : '';
    this.said.hidden = wrong.length === 0;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, select, button, a, textarea, .chart')) return;
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
