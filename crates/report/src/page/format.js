// Formats numbers and names.

/** Four significant digits, without a tail of zeros. */
function significant(value) {
  if (value === 0) return '0';
  const digits = Math.min(9, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toFixed(digits);
}

function seconds(value) {
  if (value >= 1) return `${significant(value)} s`;
  if (value >= 1e-3) return `${significant(value * 1e3)} ms`;
  if (value >= 1e-6 || value <= 0) return `${significant(value * 1e6)} us`;
  return `${significant(value * 1e9)} ns`;
}

/** A number of bytes per second. */
function rate(value) {
  const [unit, name] = [[1e12, 'TB/s'], [1e9, 'GB/s'], [1e6, 'MB/s'], [1e3, 'kB/s']].find(([least]) => value > 0.99999 * least) ?? [1, 'B/s'];
  return `${significant(value / unit)} ${name}`;
}

/** `3.2 %` of a part between 0 and 1. */
function percent(part) {
  return `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;
}

/** A size of blocks, to the byte. */
function exactly(value) {
  const text = bytes(value);
  return text.includes('.') ? `${value} B` : text;
}

/** A time of an axis: a round number, without the errors of powers of ten. */
function round(value) {
  return seconds(Number(value.toPrecision(12))).replace(/\.0+ /, ' ');
}

function bytes(value) {
  for (const [unit, name] of [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]) {
    if (value >= unit) {
      const scaled = value / unit;
      return `${Number.isInteger(scaled) ? scaled : scaled.toPrecision(3)} ${name}`;
    }
  }
  return `${value} B`;
}

function blocks(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(3);
}

/** `1 message`, `2 messages`. */
function many(count, noun) {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

/** An algorithm with its setting. */
function named(algorithm, setting) {
  return setting === '-' ? algorithm : `${algorithm} (${setting})`;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** The largest of a list of any length, at least 0. */
function largest(values) {
  return values.reduce((most, value) => Math.max(most, value), 0);
}

/** A setting, each of whose parameters tells its meaning under the pointer; `words` are those of all algorithms. */
function settingOf(words, algorithm, setting) {
  const pairs = setting === '-' ? [] : setting.split(' ').map((pair) => [pair, pair.split('=')]);
  const values = new Map(pairs.map(([, pair]) => pair));
  return html('span', { class: 'setting' }, ...pairs.flatMap(([text, [key]]) => {
    const meaning = meaningOf(words, algorithm, key, values);
    return [' ', meaning === undefined ? text : html('span', { class: 'parameter', title: meaning }, text)];
  }));
}

/** `radix = 2 to the number of ranks`, as `topocoll algorithms` gives it; a parameter may be of an algorithm that another names. */
function meaningOf(words, algorithm, key, values) {
  const [by, own] = key.split('.');
  const meaning = own === undefined ? words[algorithm]?.[key] : words[values.get(by)]?.[own];
  return meaning && `${own ?? key} = ${meaning}`;
}
