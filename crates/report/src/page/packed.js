// Lists of numbers that the program wrote as text (packed.rs).

/** Lists whose lengths are multiples of `width`. */
function unpacked(text, width) {
  let [at, zeros] = [0, 0];
  const digit = () => {
    const code = text.charCodeAt(at);
    at += 1;
    return code - 35 - (code > 60 ? 1 : 0) - (code > 92 ? 1 : 0);
  };
  const whole = (first) => (first < 48 ? first : first + 32 * whole(digit()));
  const next = () => {
    if (zeros === 0) {
      const first = digit();
      if (first < 80) {
        const twice = whole(first);
        return twice % 2 ? (twice + 1) / 2 : -twice / 2;
      }
      zeros = first - 78;
    }
    zeros -= 1;
    return 0;
  };
  const before = Array(width).fill(0);
  const lists = [];
  while (at < text.length || zeros > 0) {
    lists.push(Array.from({ length: next() * width }, (_, i) => {
      before[i % width] += next();
      return before[i % width];
    }));
  }
  return lists;
}

/** Unpacks the numbers of a schedule in place. */
function unpack(play) {
  [play.sets, play.start] = [unpacked(play.sets, 5), unpacked(play.start, 2)];
  [[play.bytes], [play.seconds]] = [unpacked(play.bytes, 1), unpacked(play.seconds, 1)];
  play.seconds = play.seconds.map((i) => play.terms[i]);
  for (const step of play.steps) {
    step.sends = unpacked(step.sends, 4);
    if (step.copies) step.copies = unpacked(step.copies, 2);
  }
  for (const times of play.times) {
    [times.starts] = unpacked(times.starts, 1);
    [times.names, times.words, times.steps] = [unpacked(times.names, 4), unpacked(times.words, 1), unpacked(times.steps, 1)];
  }
}
