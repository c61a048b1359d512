// The head of the page, the ranking and the notes.

/** A time, at least if it is a floor. */
function timeOf(entry) {
  return `${entry.exact ? '' : '≥ '}${seconds(sum(entry.seconds))}`;
}

/** The time without barriers. */
function freeOf(entry) {
  return entry.deadlock ? 'deadlock' : entry.free === undefined ? '' : seconds(entry.free);
}

/** The time by which a choice is ranked: the larger of those in step and without barriers. */
function rankedTime(entry) {
  return entry.deadlock ? Infinity : Math.max(sum(entry.seconds), entry.free ?? 0);
}

/** `1.84×`, of two times. */
function times(value) {
  return `${value < 10 ? value.toFixed(2) : Math.round(value).toLocaleString('en')}×`;
}

/** The algorithm bandwidth of a time, at most if it is a floor. */
function bandwidthOf(data, time, exact = true) {
  return data.rank_bytes !== undefined && time > 0 && time < Infinity ? `${exact ? '' : '≤ '}${rate(data.rank_bytes[0] / time)}` : '';
}

/** The share of a time in which the limiting resource is busy. */
function shareOf(data, time) {
  return time > 0 && time < Infinity ? percent(data.bound.transmission / time) : '';
}

const BANDWIDTH = 'Algorithm bandwidth of a rank: ranks × block / time, as nccl-tests defines it';
const CHARGED = 'charged volume: blocks over the busiest link or port, summed over steps; a link that several messages share is charged with all of them';
const REARRANGEMENT = 'rearrangement: blocks that a rank copies in its own memory, before, between or after steps';

/** `1.80× faster than Open MPI 4.1's default`, of a time in step. */
function gainOf({ title, asked }, time) {
  const gain = asked.time_seconds / time;
  return gain < 0.99995 ? `${times(1 / gain)} slower than ${title}\u2019s default` : `${times(gain)} faster than ${title}\u2019s default`;
}

function head(place, data) {
  const best = data.ranking[0];
  const entry = data.asked ?? best;
  const isBest = entry === best || (entry.algorithm === best.algorithm && entry.setting === best.setting);
  const tile = (name, value, more) => html('div', { class: 'tile' }, html('dt', {}, name), html('dd', {}, value), html('p', {}, more));
  const operation = data.operation === 'alltoall' ? 'All-to-all' : 'All-gather';
  const strong = (text) => html('strong', {}, text);
  const than = rankedTime(entry) / rankedTime(best);
  const both = (of) => (freeOf(of) === '' ? [strong(timeOf(of))] : [strong(timeOf(of)), ' in step, ', strong(freeOf(of)), ' free-running']);
  const undecided = ['Undecided: ', strong(best.algorithm), ' takes ', ...both(best), `; ${many(data.undecided, 'choice')} may be faster.`];
  const asked = data.asked === undefined ? data.undecided > 0 ? undecided : ['The fastest is ', strong(best.algorithm), ': ', ...both(best), '.']
    : ['You asked for ', strong(entry.algorithm), ': ', ...both(entry), ', ',
      ...(isBest ? [strong('the fastest'), '.'] : [strong(`${times(than)} the time of the fastest`), `, ${named(best.algorithm, best.setting)} with `, ...both(best), '.'])];
  const simulated = data.model === undefined ? []
    : [html('p', { class: 'lead' }, entry.simulated === undefined ? `It is not simulated by the ${data.model.name} model; the notes say why.`
      : `By the ${data.model.name} model it takes ${seconds(entry.simulated)}${data.model.endpoint ? `, with ${data.model.endpoint}` : ''}.`)];
  const [own, bus] = (data.rank_bytes ?? []).map((bytes) => rate(bytes / rankedTime(entry)));
  const { library } = data;
  const gains = library === undefined ? [] : [html('p', { class: 'lead library' },
    `In step it is ${gainOf(library, sum(entry.seconds))}, ${library.asked.algorithm}, which takes ${seconds(library.asked.time_seconds)}. `,
    library.asked.force === '' ? 'No other of its algorithms is faster.'
      : `Its fastest, ${library.asked.best_algorithm}, takes ${seconds(library.asked.best_seconds)}; to force it: ${library.asked.force}.`)];
  const values = new Map(entry.setting.split(' ').map((pair) => pair.split('=')));
  const meanings = [...values.keys()].map((key) => meaningOf(data.settings, entry.algorithm, key, values)).filter(Boolean);
  const terms = [...meanings, CHARGED, ...(data.ranking.some((one) => one.seconds[3] > 0) ? [REARRANGEMENT] : [])];
  place.append(
    html('p', { class: 'brand' }, `topocoll ${data.version}`),
    html('h1', {}, `${operation} on ${data.machine}`),
    html('p', { class: 'lead' }, [
      ...(data.machine === data.topology || data.machine.startsWith(`${data.topology} of `) ? [] : [data.topology]),
      many(data.ranks, 'rank'), ...data.particulars, data.node_ports === undefined ? many(data.ports, 'port') : `${many(data.ports, 'port')} a rank and ${data.node_ports} a node`, `blocks of ${data.demand?.name ?? bytes(data.block_bytes)}`, `timing ${data.timing[0][1]}`].join('; ')),
    html('p', { class: 'hero' }, ...asked),
    ...simulated,
    ...gains,
    html('dl', { class: 'tiles' },
      tile(data.asked === undefined ? 'fastest' : 'you asked for', entry.algorithm, entry.setting === '-' ? 'no parameters' : settingOf(data.settings, entry.algorithm, entry.setting)),
      tile('predicted time', timeOf(entry), `by the steps model; at least ${seconds(data.bound.seconds)}`),
      ...(entry.deadlock || own === undefined ? [] : [tile('bandwidth of a rank', own, `${shareOf(data, rankedTime(entry))} of ${data.bound.allowed}; bus bandwidth ${bus}`)]),
      tile('of the lower bound', times(entry.ratio), 'no schedule is faster than 1×'),
      tile('steps', String(entry.steps), `at least ${data.bound.steps}`),
      tile('charged volume', `${blocks(entry.link_blocks)} blocks`, `at least ${blocks(data.bound.blocks)}`)),
    html('ul', { class: 'meanings' }, ...terms.map((text) => html('li', {}, text))),
    html('p', { class: 'reason' }, `${data.reason}.`));
}

/** Rows shown at first. */
const SHOWN = 12;

function ranking(section, data, player) {
  const table = html('table', { class: 'ranking' });
  const { library } = data;
  const same = (entry) => data.asked?.algorithm === entry.algorithm && data.asked?.setting === entry.setting;
  const entries = data.ranking.map((entry, i) => ({ ...entry, place: i + 1, asked: same(entry) }));
  // The schedule asked for has a row, wherever it ranks.
  if (data.asked && !entries.some((entry) => entry.asked)) entries.push({ ...data.asked, asked: true });
  const hidden = entries.filter((entry, i) => i >= SHOWN && !entry.asked);
  const best = rankedTime(data.ranking[0]);
  const told = { bandwidth: `${BANDWIDTH}; and its share of ${data.bound.allowed}`, 'charged volume': CHARGED, gain: library && `Time of ${library.title}\u2019s default over the time in step` };
  /** Bars have the scale of the rows that are shown. */
  const fill = (all) => {
    const shown = all ? entries : entries.filter((entry) => !hidden.includes(entry));
    const scale = Math.max(largest(shown.map((entry) => sum(entry.seconds))), data.bound.seconds) || 1;
    const bar = (entry) => {
      let x = 0;
      const parts = entry.seconds.map((term, t) => {
        const wide = (200 * term) / scale;
        x += wide;
        return wide > 0 ? svg('rect', { x: x - wide, y: 2, width: wide, height: 14, fill: `url(#term-${t})`, class: 'bar' }) : '';
      });
      const limit = (200 * data.bound.seconds) / scale;
      return svg('svg', { viewBox: '0 0 202 18', class: 'times', 'aria-hidden': true, preserveAspectRatio: 'none' }, ...parts,
        svg('line', { x1: limit, x2: limit, y1: 0, y2: 18, class: 'limit' }));
    };
    const number = (text) => html('td', { class: 'number' }, text);
    const rates = (time, exact) => html('td', { class: 'number' }, bandwidthOf(data, time, exact), html('span', { class: 'setting' }, ` ${shareOf(data, time)}`));
    const gain = (time) => (library ? [number(times(library.asked.time_seconds / time))] : []);
    const cells = (count) => Array.from({ length: count }, () => html('td', {}));
    const baseline = ({ title, asked: { algorithm, time_seconds: time } }) => html('tr', { class: 'library' }, number(''),
      html('td', {}, algorithm, html('span', { class: 'badge' }, `${title} default`)), number(seconds(time)),
      ...(data.free_model ? cells(1) : []), rates(time), ...gain(time), number(times(time / best)), html('td', { class: 'wide' }),
      number(times(time / data.bound.seconds)), ...(data.model ? cells(1) : []), ...cells(4));
    const row = (entry) => html('tr', { class: entry.asked ? 'asked' : '' },
      number(entry.place === undefined ? '' : String(entry.place)),
      html('td', {}, entry.algorithm, entry.asked ? html('span', { class: 'badge' }, 'asked for') : undefined, settingOf(data.settings, entry.algorithm, entry.setting)),
      number(timeOf(entry)),
      ...(data.free_model ? [number(freeOf(entry))] : []),
      rates(rankedTime(entry), entry.exact),
      ...gain(sum(entry.seconds)),
      number(entry.deadlock ? '' : times(rankedTime(entry) / best)),
      html('td', { class: 'wide' }, bar(entry)),
      number(times(entry.ratio)),
      ...(data.model ? [number(entry.simulated === undefined ? '' : seconds(entry.simulated))] : []),
      number(String(entry.steps)),
      number(blocks(entry.link_blocks)),
      number(entry.sharing === 0 ? '?' : String(entry.sharing)),
      html('td', {}, entry.play === undefined ? '' : html('button', { type: 'button', class: 'watch', 'aria-label': `Watch ${named(entry.algorithm, entry.setting)}`, onclick: () => { player.choose(entry.play, 0); player.section.scrollIntoView(); } }, 'watch')));
    const names = ['', 'algorithm', ...(data.free_model ? ['in step', 'free-running'] : ['time']), 'bandwidth', ...(library ? ['gain'] : []), '× fastest', 'where the time goes', '× bound', ...(data.model ? [`${data.model.name} model`] : []), 'steps', 'charged volume', 'link contention', ''];
    const classes = names.map((name, i) => (name === 'where the time goes' ? 'wide' : i > 1 && name !== '' ? 'number' : ''));
    table.replaceChildren(
      html('thead', {}, html('tr', {}, ...names.map((name, i) => html('th', { scope: 'col', class: classes[i], title: told[name] }, name, name === 'bandwidth' ? html('span', { class: 'setting' }, ` of the ${data.bound.limit}`) : undefined)))),
      html('tbody', {}, ...shown.map(row), ...(library ? [baseline(library)] : [])));
  };
  fill(false);
  const shares = TERMS.map((_, t) => sum(data.ranking.map((entry) => entry.seconds[t])));
  const more = hidden.length > 0 ? html('button', { type: 'button', class: 'more', onclick: () => { fill(true); more.remove(); } }, `Show ${many(hidden.length, 'more setting')}`) : undefined;
  section.append(html('h2', {}, 'Ranking'),
    html('p', { class: 'hint' }, data.free_model ? `Every algorithm that applies, by the larger of its times in step and without barriers, by the ${data.free_model} model where it was simulated. The vertical line is the lower bound of times in step.`
      : 'Every algorithm that applies, by predicted time. The vertical line is the lower bound.'),
    termLegend(shares),
    html('div', { class: 'scroll' }, table),
    html('p', {}, more ?? '', ' ', takeButton('Copy table', 'Copy the ranking as text', () => copy(tableText(table)))),
    data.more > 0 ? html('p', { class: 'hint' }, `and ${many(data.more, 'more setting')} that trade steps for volume: topocoll select --all shows them`) : '',
    settingsList(data.settings),
    boundsTable(data));
}

/** The parameters of all algorithms of the page, for those who do not point. */
function settingsList(words) {
  const rows = Object.entries(words).flatMap(([algorithm, own]) => Object.entries(own).map(([key, meaning]) =>
    [html('dt', {}, `${algorithm}: ${key}`), html('dd', {}, meaning)]));
  return rows.length === 0 ? '' : html('details', { class: 'settings' }, html('summary', {}, `Settings (${rows.length})`), html('dl', { class: 'pairs' }, ...rows.flat()));
}

function boundsTable(data) {
  if (data.bounds.length === 0) return '';
  const measures = { steps: 'steps', blocks: 'volume', link_blocks: 'charged volume', hops: 'hops' };
  const row = (bound) => html('tr', {},
    html('td', {}, measures[bound.measure]), html('td', { class: 'number' }, blocks(bound.value)),
    html('td', {}, bound.theorem), html('td', {}, bound.condition || 'every schedule'));
  const table = html('table', {},
    html('thead', {}, html('tr', {}, ...['bounds', 'at least', 'by', 'holds for'].map((name) => html('th', { scope: 'col' }, name)))),
    html('tbody', {}, ...data.bounds.map(row)));
  return html('details', {},
    html('summary', {}, `Lower bounds (${data.bounds.length})`),
    html('div', { class: 'scroll' }, table),
    takeButton('Copy table', 'Copy the lower bounds as text', () => copy(tableText(table))));
}

function notes(section, data) {
  const pairs = (rows) => html('dl', { class: 'pairs' }, ...rows.flatMap(([name, value]) => [html('dt', {}, name), html('dd', {}, value)]));
  const part = (title, rows) => (rows.length === 0 ? '' : html('details', {}, html('summary', {}, `${title} (${rows.length})`), pairs(rows)));
  section.append(html('h2', {}, 'Notes'),
    html('p', {}, 'Times are those of the steps model: T = startup × steps + time of a byte × bytes over the busiest links + propagation × hops + rearrangement × bytes copied and packed + barrier × (steps − 1). A shared link is charged with its whole load.'),
    data.model ? html('p', {}, `The ${data.model.name} model: ${data.model.summary}. No barriers; ${data.model.endpoint ?? 'endpoints without limits'}. Accuracy: ${data.model.accuracy}.`) : '',
    data.library ? html('p', {}, `The defaults of ${data.library.title}: ${data.library.rules}. Their times are in step. ${data.library.notes}`) : '',
    pairs(data.timing),
    part('Sources of the machine\u2019s values', data.sources),
    part('Algorithms that do not apply', data.rejected),
    part('Algorithms that apply but cannot be played', data.unplayed),
    part('Schedules that are not simulated', data.plays.flatMap((play) => (play.untimed === undefined ? [] : [[named(play.algorithm, play.setting), play.untimed]]))),
    html('p', {}, 'Made by ', html('code', {}, data.command), `, topocoll ${data.version}. The page works offline.`));
}
