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
  return `${significant(value * 1e6)} us`;
}

/** A size of blocks, to the byte. */
function exactly(value) {
  const text = bytes(value);
  return text.includes('.') ? `${value} B` : text;
}

/** A time of an axis: a round number. */
function round(value) {
  return seconds(value).replace(/\.0+ /, ' ');
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
