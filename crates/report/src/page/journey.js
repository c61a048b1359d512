// One block followed from its source to its destination, by replaying every slot.

/** The slots of a set, in order. */
function* slotsOf(runs) {
  for (let at = 0; at < runs.length; at += 5) {
    const [base, count, stride, outer, apart] = runs.slice(at, at + 5);
    for (let i = 0; i < outer; i += 1) {
      for (let j = 0; j < count; j += 1) yield base + i * apart + j * stride;
    }
  }
}

/** The layout of a rank before the first step: the receiver of the block in each slot, or -1. */
function layoutOf(schedule, rank) {
  const { start } = schedule.play;
  const own = schedule.radix.coordinates(rank);
  const which = start.length === 1 ? 0 : start.length === schedule.radix.ranks ? rank : schedule.classOf(rank)[0];
  const runs = start[which];
  const out = [];
  for (let i = 0; i < runs.length; i += 2) {
    for (let j = 0; j < runs[i + 1]; j += 1) {
      if (runs[i] < 0) out.push(-1);
      else out.push(schedule.radix.rank(schedule.radix.coordinates(runs[i] + j).map((x, u) => x + own[u])));
    }
  }
  return out;
}

/**
 * The messages that carry the block of `source` for `destination`, in order, and whether it
 * arrives. In an all-gather, the block of a rank is for all ranks.
 */
function journey(schedule, operation, source, destination) {
  const { sets, steps } = schedule.play;
  const gathers = operation === 'allgather';
  // The slots that hold the block, by rank; most ranks have none and are skipped.
  const held = new Map();
  const put = ([rank, slot, has]) => {
    const own = held.get(rank) ?? new Set();
    if (has) own.add(slot);
    else own.delete(slot);
    if (own.size > 0) held.set(rank, own);
    else held.delete(rank);
  };
  layoutOf(schedule, source).forEach((to, slot) => put([source, slot, to === (gathers ? source : destination)]));
  const legs = [];
  for (let step = 0; step < steps.length; step += 1) {
    const { copies } = steps[step];
    for (const [rank, own] of copies ? [...held] : []) {
      const list = copies[copies.length === schedule.radix.ranks ? rank : schedule.classOf(rank)[0]];
      const moved = [];
      for (let i = 0; i < list.length; i += 2) {
        const to = [...slotsOf(sets[list[i + 1]])];
        [...slotsOf(sets[list[i]])].forEach((slot, j) => moved.push([rank, to[j], own.has(slot)]));
      }
      moved.forEach(put);
    }
    const touching = new Map();
    for (const rank of held.keys()) {
      for (const message of schedule.exchanged(rank, step)) {
        touching.set([message.from, message.to, message.sent, message.landed].join(), message);
      }
    }
    const landing = [];
    for (const message of touching.values()) {
      const landed = [...slotsOf(sets[message.landed])];
      let carries = false;
      [...slotsOf(sets[message.sent])].forEach((slot, i) => {
        const has = held.get(message.from)?.has(slot) ?? false;
        carries ||= has;
        landing.push([message.to, landed[i], has]);
      });
      if (carries) legs.push({ step, from: message.from, to: message.to, message: schedule.drawn(message) });
    }
    landing.forEach(put);
  }
  const arrives = gathers ? held.size === schedule.radix.ranks : held.has(destination);
  return { legs, arrives };
}
