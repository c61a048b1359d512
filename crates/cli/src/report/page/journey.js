// One block followed from its source to its destination, by replaying every slot.

/** The slots of a set, in order. */
function* slotsOf(runs) {
  for (const [base, count, stride = 1, outer = 1, apart = 0] of runs) {
    for (let i = 0; i < outer; i += 1) {
      for (let j = 0; j < count; j += 1) yield base + i * apart + j * stride;
    }
  }
}

/** The layout of a rank before the first step: the receiver of the block in each slot, or -1. */
function layoutOf(schedule, rank) {
  const { start } = schedule.play;
  const own = start.length === schedule.ranks;
  const [which, moved] = schedule.classOf(rank);
  const runs = start[own ? rank : which];
  const out = [];
  for (let i = 0; i < runs.length; i += 2) {
    for (let j = 0; j < runs[i + 1]; j += 1) {
      if (runs[i] < 0) out.push(-1);
      else if (own) out.push(runs[i] + j);
      else out.push(schedule.radix.rank(schedule.radix.coordinates(runs[i] + j).map((x, u) => x + moved[u])));
    }
  }
  return out;
}

/**
 * Where the block of `source` for `destination` is carried: each message that has it, in order, and
 * whether it arrives. In an all-gather the block of a rank is for all.
 */
function journey(schedule, operation, source, destination) {
  const { sets, steps } = schedule.play;
  const gathers = operation === 'allgather';
  // The slots that hold the block, by rank: of most ranks none, which then need no looking at.
  const held = Array.from({ length: schedule.ranks }, () => new Set());
  layoutOf(schedule, source).forEach((to, slot) => {
    if (to === (gathers ? source : destination)) held[source].add(slot);
  });
  const put = ([rank, slot, has]) => (has ? held[rank].add(slot) : held[rank].delete(slot));
  const legs = [];
  for (let step = 0; step < steps.length; step += 1) {
    const { copies } = steps[step];
    for (let rank = 0; copies && rank < schedule.ranks; rank += 1) {
      if (held[rank].size === 0) continue;
      const list = copies[copies.length === schedule.ranks ? rank : schedule.classOf(rank)[0]];
      const moved = [];
      for (let i = 0; i < list.length; i += 2) {
        const to = [...slotsOf(sets[list[i + 1]])];
        [...slotsOf(sets[list[i]])].forEach((slot, j) => moved.push([rank, to[j], held[rank].has(slot)]));
      }
      moved.forEach(put);
    }
    const landing = [];
    for (const message of schedule.messages(step)) {
      if (held[message.from].size === 0 && held[message.to].size === 0) continue;
      const landed = [...slotsOf(sets[message.landed])];
      let carries = false;
      [...slotsOf(sets[message.sent])].forEach((slot, i) => {
        const has = held[message.from].has(slot);
        carries ||= has;
        landing.push([message.to, landed[i], has]);
      });
      if (carries) legs.push({ step, message });
    }
    landing.forEach(put);
  }
  const arrives = gathers ? held.every((slots) => slots.size > 0) : held[destination].size > 0;
  return { legs, arrives };
}
