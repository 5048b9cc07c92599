// SPDX-License-Identifier: BSD-2-Clause
// The script of report_page.html. All text of others reaches the page by textContent.
const data = JSON.parse(at('data').textContent);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** An element with a class and a text. */
function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

// --- numbers in words ------------------------------------------------------------------------------------------------

/** Whole numbers beyond 2^53 come as text. */
const whole = value =>
    typeof value === 'string' ? BigInt(value).toLocaleString('en-US') : value.toLocaleString('en-US');

/** "850 ns", "12.3 µs", with so many digits. */
function duration(ns, digits = 4) {
  const value = Number(ns), size = Math.abs(value);
  const [unit, name] = size < 1e3 ? [1, 'ns'] : size < 1e6 ? [1e3, 'µs'] : size < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
  if (unit === 1) return `${Math.round(value)} ns`;
  const shown = value / unit, before = Math.floor(Math.log10(Math.max(1, Math.abs(shown)))) + 1;
  return `${shown.toFixed(Math.max(0, digits - before))} ${name}`;
}

/** A time since the beginning, as fine as a step of the axis is; `most`: the largest on it. */
function moment(ns, step = 1000, most = Math.abs(ns)) {
  const [unit, name] = most < 1e6 ? [1e3, 'µs'] : most < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
  return `${(ns / unit).toFixed(Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9))))} ${name}`;
}

/** "2026-11-29 09:31:07.123456", as the clock of whoever looks has it. */
function wallTime(ns) {
  const big = BigInt(ns), date = new Date(Number(big / 1000000n));
  const two = n => String(n).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:` +
      `${two(date.getMinutes())}:${two(date.getSeconds())}.${String(big % 1000000000n).padStart(9, '0').slice(0, 6)}`;
}

const shownAs = (measure, value) => measure.kind === 'duration' ? duration(value) : whole(value);

/** Steps of an axis that people count in. */
function niceStep(range, most) {
  const rough = range / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find(n => n * power >= rough);
}

// --- what there is ---------------------------------------------------------------------------------------------------

const probes = new Map((data.probes ?? []).map(probe => [probe.number, probe]));
const probeName = n => probes.get(n)?.name ?? `probe ${n}`;
const threads =
    (data.threads ?? []).map(([pid, tid, comm, count, sum, longest]) => ({pid, tid, comm, count, sum, longest}));
const threadName = thread => thread.pid === 0 ?
    thread.comm :
    `${thread.comm} ${thread.tid === thread.pid ? thread.pid : `${thread.pid}/${thread.tid}`}`;

/** The spans and hits that are shown by themselves, in the order of time. */
const spans = (() => {
  const from =
      data.spans ?? {all: 0, begins: [], durations: [], threads: [], probes: [], values: [], rows: [], texts: []};
  const begins = new Float64Array(from.begins.length);
  for (let i = 0, time = 0; i < begins.length; ++i) begins[i] = time += from.begins[i];
  return {
    all: from.all,
    count: begins.length,
    begins,
    durations: Float64Array.from(from.durations),
    threads: from.threads,
    probes: from.probes,
    values: from.values,
    rows: from.rows,
    texts: from.texts
  };
})();

const valuesOf = n => spans.values[n] < 0 ? '(values folded)' : spans.texts[spans.values[n]];

function describeSpan(n) {
  const took = spans.durations[n] > 0 ? `, ${duration(spans.durations[n])}` : '';
  const values = valuesOf(n);
  return `${probeName(spans.probes[n])}: ${threadName(threads[spans.threads[n]])}, at ${moment(spans.begins[n])}${
             took}` +
      (values ? `\n    ${values}` : '');
}

/** The number of the first span that begins at `time` or later. */
function firstFrom(time) {
  let low = 0, high = spans.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans.begins[middle] < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/** The bucket of a number, as log2_buckets() has it, with the place within the bucket behind the point. */
function bucketOf(value, subBits) {
  if (value < 0) return -bucketOf(-value, subBits);
  const parts = 2 ** subBits;
  if (value < parts) return value;
  const beyond = Math.floor(Math.log2(value)) - subBits;
  return beyond * parts + value / 2 ** beyond;
}

// --- the question and the ledger -------------------------------------------------------------------------------------

function tile(into, value, name, bad) {
  const element = make('div', bad ? 'tile bad' : 'tile');
  element.append(make('b', '', value), make('span', '', name));
  into.append(element);
}

function note(text) { at('notes').append(make('li', '', text)); }

function showQuestion() {
  document.title = data.title + ' - report';
  at('title').textContent = data.title;
  for (const [what, asked] of data.question) at('question').append(make('dt', '', what), make('dd', '', asked));
  const began = data.began ?? data.slices?.began, length = data.length ?? data.slices?.length;
  if (began !== undefined)
    at('question').append(make('dt', '', 'time'), make('dd', '', `${wallTime(began)}, for ${duration(length)}`));
}

function showLedger() {
  const ledger = data.ledger;
  tile(at('tiles'), whole(ledger.hits), 'hits');
  tile(at('tiles'), whole(ledger.events), data.table ? 'hits in the table' : 'events');
  tile(at('tiles'), whole(ledger.lost), 'lost', ledger.lost > 0);
  const counts = ledger.counts.map(([name, role, value, words]) => [value, name.replaceAll('_', ' '), role, words]);
  const some = counts.filter(([value]) => value > 0), none = counts.filter(([value]) => value === 0);
  if (some.length > 0)
    at('reasons').append(
        makeTable({columns: [count('hits'), {name: 'what became of them'}, {name: ''}, {name: ''}], rows: some}));
  if (none.length > 0) note(`0 hits: ${none.map(([, name]) => name).join(', ')}.`);
  if (ledger.sample > 1)
    note(`One in ${whole(ledger.sample)} hits was looked at: each event stands for ${whole(ledger.sample)}.`);
  if (ledger.missed > 0) note(`${whole(ledger.missed)} hits were missed by the kernel, which ran no program for them.`);
  for (const [name, reason] of ledger.sites) note(`A site of ${name} is left out: ${reason}`);
  if (ledger.skipped > ledger.sites.length)
    note(`${whole(ledger.skipped - ledger.sites.length)} more sites are left out.`);
  if (ledger.cut) note(`The recording ends before its end: ${ledger.cut}. Hits and losses are not known then.`);
}

/** Says what the page does not have one by one. */
function showFolded() {
  if (spans.all > 0) {
    const folded = spans.all - spans.count;
    note(`${whole(spans.count)} of ${whole(spans.all)} events are shown one by one.`);
    if (folded > 0) {
      note(`${whole(folded)} are folded: counts, sums, percentiles and heat maps have all of them, ` +
           'the time line has the longest of each thread and stretch of time.');
    }
    if (data.spans.without_values > 0) note(`The values of ${whole(data.spans.without_values)} of them are folded.`);
  }
  if (data.probes_folded > 0) note(`${whole(data.probes_folded)} more probes are folded.`);
  if (data.threads_folded > 0)
    note(`${whole(data.threads_folded)} events are of threads beyond the first ${
        whole(threads.length - 1)}, which are one.`);
  if (data.values_folded > 0) note(`${whole(data.values_folded)} values of further names are not counted by value.`);
  const stacks = data.stacks;
  if (stacks?.folded > 0) note(`${whole(stacks.folded)} frames of the flame graph, its narrowest, are folded.`);
  if (stacks?.left_out > 0)
    note(`The stacks of ${whole(stacks.left_out)} events found no room, and are not in the flame graph.`);
  if (stacks?.not_drawn > 0) note(`${whole(stacks.not_drawn)} stacks with sums below 0 are not in the flame graph.`);
  if (data.table?.more > 0) note(`${whole(data.table.more)} more rows of the table are folded.`);
}

// --- tables ----------------------------------------------------------------------------------------------------------

const shownTables = [];  // which search looks through

function textOf(column, cell) {
  if (cell === null || cell === undefined) return '';
  return column.show ? column.show(cell) : column.number ? whole(cell) : cell;
}

function rowOf(columns, cells, pick) {
  const row = make('tr', pick ? 'picks' : '');
  columns.forEach((column, i) => {
    const text = textOf(column, cells[i]);
    row.append(make('td', column.number ? 'number' : text.length <= 32 ? 'short' : 'text', text));
  });
  if (pick) {
    row.addEventListener('click', () => {
      for (const other of row.parentElement.children) other.classList.toggle('picked', other === row);
      pick();
    });
  }
  return row;
}

/**
 * A table that is sorted by a click on a column's name. Cells are texts, or numbers with `show` of their column. `pick`
 * is called with the number of a row that is clicked.
 */
function makeTable({columns, rows, most = 20, pick}) {
  const box = make('div', 'scroll'), table = make('table'), body = make('tbody'), more = make('button');
  const state = {rows, order: rows.map((_, n) => n), most, by: -1, down: true, wanted: null};
  const head = make('tr');
  const show = () => {
    const order = state.wanted ?
        state.order.filter(n => rows[n].some((cell, i) => !columns[i].number && state.wanted.test(cell))) :
        state.order;
    body.replaceChildren(...order.slice(0, state.most).map(n => rowOf(columns, rows[n], pick && (() => pick(n)))));
    more.hidden = order.length <= state.most;
    more.textContent = `show ${whole(Math.min(order.length - state.most, 500))} more of ${whole(order.length)}`;
  };
  columns.forEach((column, i) => {
    const name = make('th', column.number ? 'number' : '', column.name);
    name.addEventListener('click', () => {
      state.down = state.by === i ? !state.down : Boolean(column.number);
      state.by = i;
      const sign = state.down ? -1 : 1, key = n => column.number ? Number(rows[n][i] ?? -Infinity) : rows[n][i];
      state.order.sort((a, b) => key(a) < key(b) ? -sign : key(a) > key(b) ? sign : a - b);
      show();
    });
    head.append(name);
  });
  more.addEventListener('click', () => {
    state.most += 500;
    show();
  });
  const thead = make('thead');
  thead.append(head);
  table.append(thead, body);
  box.append(table, more);
  box.search = wanted => {
    state.wanted = wanted;
    show();
  };
  show();
  shownTables.push(box);
  return box;
}

function addTable(title, table, hint) {
  const section = make('section'), head = make('div', 'head');
  head.append(make('h2', '', title));
  if (hint) head.append(make('span', 'hint', hint));
  section.append(head, makeTable(table));
  at('tables').append(section);
}

const count = name => ({name, number: true});
const time = name => ({name, number: true, show: value => duration(value)});
const percentiles = ['p50', 'p90', 'p99', 'p99.9'];

function showProbes() {
  if (probes.size === 0) return;
  const all = [...probes.values()], lasting = all.some(probe => probe.count > 0);
  const times = ['sum', 'min', ...percentiles, 'max'];
  addTable(
      'Probes', {
        columns: [
          {name: 'probe'}, count('events'), ...(lasting ? times.map(name => time(name === 'sum' ? 'total' : name)) : [])
        ],
        rows: all.map(probe => [probe.name, probe.events, ...(lasting ? times.map(name => probe[name]) : [])]),
        pick: lasting ? n => chooseMeasure(histograms.findIndex(each => each.probe === all[n])) : undefined,
      },
      lasting ? 'click a row: its histogram' : '');
}

function showThreads() {
  if (threads.length === 0) return;
  const lasting = threads.some(thread => thread.longest > 0);
  addTable('Threads', {
    columns: [
      {name: 'command'}, {name: 'pid'}, {name: 'tid'}, count('events'), ...(lasting ? [time('total'), time('max')] : [])
    ],
    rows: threads.map(t => [t.comm, t.pid ? String(t.pid) : '', t.tid ? String(t.tid) : '', t.count, t.sum, t.longest])
              .sort((a, b) => b[3] - a[3]),
  });
}

function showTops() {
  const lasting = threads.some(thread => thread.longest > 0), events = spans.all;
  for (const top of data.tops ?? []) {
    const others = top.others > 0 ? `${whole(top.others)} events have other values, which are folded` : '';
    addTable(
        top.name, {
          columns: [
            {name: 'value'}, count('events'), {name: 'share', number: true, show: value => share(value, events)},
            ...(lasting ? [time('total')] : [])
          ],
          rows: top.rows.map(([text, n, sum]) => [text, n, n, sum]),
          most: 10,
        },
        others);
  }
}

function showLongest() {
  const most = 100, least = Math.max(1, spans.durations.slice().sort().at(-most) ?? 1);
  const longest = [];
  for (let n = 0; n < spans.count; ++n)
    if (spans.durations[n] >= least) longest.push(n);
  longest.sort((a, b) => spans.durations[b] - spans.durations[a] || a - b);
  longest.splice(most);
  if (longest.length === 0) return;
  addTable(
      'Longest', {
        columns: [
          {name: 'took', number: true, show: value => duration(value)},
          {name: 'at', number: true, show: value => moment(value)}, {name: 'probe'}, {name: 'thread'}, {name: 'values'}
        ],
        rows: longest.map(
            n =>
                [spans.durations[n], spans.begins[n], probeName(spans.probes[n]), threadName(threads[spans.threads[n]]),
                 valuesOf(n)]),
        pick: row => lookAt(longest[row]),
      },
      spans.count < spans.all ? 'of the events that are shown one by one; click a row: its place on the time line' :
                                'click a row: its place on the time line');
}

function showRows() {
  const table = data.table;
  if (!table || (table.keys === 0 && table.histograms?.length > 0)) return;
  const rows = table.rows.map(row => {
    const cells = row.slice(0, table.keys);
    for (let i = table.keys; i < row.length; i += 2) cells.push({text: row[i], order: row[i + 1]});
    return cells;
  });
  const columns =
      table.columns.map((name, i) => i < table.keys ? {name} : {name, number: true, show: cell => cell.text});
  rows.forEach(row => row.forEach(cell => {
    if (typeof cell === 'object') cell.valueOf = () => Number(cell.order);
  }));
  const picks = table.histograms?.length > 0;
  addTable(
      'Rows', {
        columns,
        rows,
        most: 50,
        pick: picks ? n => chooseMeasure(histograms.findIndex(each => each.row === n)) : undefined
      },
      picks ? 'click a row: its histogram' : '');
}

// --- histograms ------------------------------------------------------------------------------------------------------

/** All that has bars: durations, probes, values, rows of a table. */
const histograms = (() => {
  const all = [];
  for (const measure of data.measures ?? [])
    if (measure.bars) all.push({...measure, title: measure.name});
  if (probes.size > 1)
    for (const probe of probes.values())
      if (probe.bars) all.push({...probe, kind: 'duration', title: `duration of ${probe.name}`, probe});
  if (probes.size === 1 && all.length > 0 && all[0].kind === 'duration') all[0].probe = [...probes.values()][0];
  (data.table?.histograms ?? []).forEach((row, n) => {
    const keys = data.table.rows[n].slice(0, data.table.keys).join(', ');
    all.push({
      ...row,
      linear: data.table.linear,
      kind: data.table.is_duration ? 'duration' : 'value',
      title: `${data.table.value}${keys ? ` of ${keys}` : ''}`,
      row: n
    });
  });
  return all;
})();
/** The durations; else the number that most events have. */
const first = all => all.find(each => each.kind === 'duration') ??
    all.reduce((most, each) => !most || each.count > most.count ? each : most, undefined);
let measure = first(histograms);

function chooseMeasure(n) {
  if (n < 0) return;
  measure = histograms[n];
  at('measure').value = n;
  showHistogram();
}

/** Where values are: by their logarithm, or one range behind another where some are negative or broken. */
function scaleOf(bars) {
  const low = bar => Number(bar[0]),
        high = bar => Number(bar[1]) + (Number.isInteger(low(bar)) && bar.length === 3 || bar[0] === bar[1] ? 1 : 0);
  const byLog = !measure.linear &&
      bars.every(bar => low(bar) >= 0 && (low(bar) === 0 || low(bar) >= 1) && Number.isFinite(high(bar)));
  const place = value => value < 1 ? value - 1 : Math.log2(value);
  if (!byLog) return {byLog, from: 0, to: bars.length, begin: n => n, end: n => n + 1};
  return {
    byLog,
    place,
    from: place(low(bars[0])),
    to: place(high(bars[bars.length - 1])),
    begin: n => place(low(bars[n])),
    end: n => place(high(bars[n]))
  };
}

let drawnBars = [];

function showHistogram() {
  if (!measure) return;
  const into = at('numbers');
  into.replaceChildren();
  tile(into, whole(measure.count), measure.kind === 'duration' ? 'calls, spans' : 'values');
  for (const name of ['min', ...percentiles, 'max', 'sum'])
    if (measure[name] !== undefined)
      tile(into, shownAs(measure, measure[name]), name === 'sum' && measure.kind === 'duration' ? 'total' : name);
  at('bound').textContent =
      measure.p50 !== undefined ? 'percentiles are at most 1/16 above the true ones; all other numbers are exact' : '';
  drawHistogram();
}

const rangeText = bar => (measure.kind === 'duration' && !measure.linear ? null : bar[3]) ??
    (measure.kind === 'duration' ? `${duration(bar[0])} to ${duration(Number(bar[1]) + 1)}` :
         bar[0] === bar[1] ? whole(bar[0]) :
                             `${whole(bar[0])} to ${whole(bar[1])}`);

function drawHistogram() {
  if (!measure) return;
  const bars = measure.bars, height = 190, foot = 20, top = 22, left = 58;
  const pen = penOf(at('histogram'), height), width = at('histogram').clientWidth;
  drawnBars = [];
  if (bars.length === 0) return;
  const scale = scaleOf(bars), most = Math.max(...bars.map(bar => bar[2]));
  const x = value => left + (width - left - 8) * (value - scale.from) / Math.max(1e-9, scale.to - scale.from);
  drawCounts(pen, {left, width, top, bottom: height - foot, most});
  pen.fillStyle = css('--bar');
  bars.forEach((bar, n) => {
    const begin = x(scale.begin(n)), end = x(scale.end(n)), tall = Math.max(1, (height - foot - top) * bar[2] / most);
    pen.fillRect(begin, height - foot - tall, Math.max(1, end - begin - (end - begin > 3 ? 1 : 0)), tall);
    drawnBars.push({begin, end, bar, n});
  });
  if (scale.byLog)
    drawValues(pen, scale, x, height - foot, width);
  else
    drawRanges(pen, bars, x, height - foot);
  if (scale.byLog) drawPercentiles(pen, x, scale, top, height - foot, width);
}

function drawCounts(pen, {left, width, top, bottom, most}) {
  const step = Math.max(1, niceStep(most, 4.5));
  pen.textAlign = 'right';
  for (let value = 0; value <= most; value += step) {
    const y = Math.round(bottom - (bottom - top) * value / most) + 0.5;
    pen.strokeStyle = css('--line');
    pen.beginPath();
    pen.moveTo(left, y);
    pen.lineTo(width - 8, y);
    pen.stroke();
    pen.fillStyle = css('--faint');
    pen.fillText(whole(value), left - 6, y);
  }
}

/** An axis by powers of 10, with 2 and 5 between them where there is room. */
function drawValues(pen, scale, x, y, width) {
  pen.fillStyle = css('--faint');
  pen.textAlign = 'center';
  const decades = (scale.to - scale.from) / Math.log2(10),
        between = decades < 1 ? [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9] :
      decades < 3             ? [1, 2, 5] :
                                [1];
  let free = -Infinity;
  for (let power = 0; power < 20; ++power) {
    for (const n of between) {
      const value = n * 10 ** power, at = x(scale.place(value));
      if (!Number.isInteger(value) || scale.place(value) < scale.from || scale.place(value) > scale.to) continue;
      const text = measure.kind === 'duration' ? duration(value, n === 1.5 ? 2 : 1) : whole(value),
            half = pen.measureText(text).width / 2;
      if (at - half < free || at + half > width) continue;
      pen.fillRect(at, y, 1, 4);
      pen.fillText(text, at, y + 12);
      free = at + half + 8;
    }
  }
}

function drawRanges(pen, bars, x, y) {
  pen.fillStyle = css('--faint');
  pen.textAlign = 'center';
  let free = -Infinity;
  bars.forEach((bar, n) => {
    const at = x(n + 0.5), half = pen.measureText(rangeText(bar)).width / 2;
    if (at - half < Math.max(free, 0)) return;
    pen.fillText(rangeText(bar), at, y + 12);
    free = at + half + 10;
  });
}

function drawPercentiles(pen, x, scale, top, bottom, width) {
  let free = width;
  pen.textAlign = 'left';
  pen.strokeStyle = pen.fillStyle = css('--accent');
  for (const name of [...percentiles].reverse()) {
    if (measure[name] === undefined) continue;
    const at = Math.min(width - 9, Math.round(x(scale.place(Number(measure[name])))) + 0.5);
    pen.beginPath();
    pen.moveTo(at, top - 6);
    pen.lineTo(at, bottom);
    pen.stroke();
    const wide = pen.measureText(name).width, begin = Math.min(at - wide / 2, free - wide);
    if (begin >= 0) pen.fillText(name, begin, top - 14);
    free = begin - 8;
  }
}

function overHistogram(event) {
  const x = event.offsetX, box = drawnBars.find(each => x >= each.begin && x < Math.max(each.end, each.begin + 2));
  if (!box) return showTip(event, '');
  let upTo = 0;
  for (let n = 0; n <= box.n; ++n) upTo += measure.bars[n][2];
  showTip(
      event,
      `${rangeText(box.bar)}: ${whole(box.bar[2])} (${share(box.bar[2], measure.count)})\nup to here ${
          share(upTo, measure.count)}`);
}

// --- the stretch of time that heat map and time line show ------------------------------------------------------------

const length = Math.max(1, data.length ?? data.slices?.length ?? 1);
let shown = {from: 0, to: length};

function showTime(from, to) {
  const least = Math.min(length, 100), wide = Math.min(length, Math.max(least, to - from));
  const begin = Math.max(0, Math.min(length - wide, (from + to - wide) / 2));
  shown = {from: begin, to: begin + wide};
  at('reset').disabled = wide >= length;
  drawHeat();
  drawLine();
}

function zoomBy(factor, middle = (shown.from + shown.to) / 2) {
  showTime(middle - (middle - shown.from) * factor, middle + (shown.to - middle) * factor);
}

function lookAt(span) {
  const begin = spans.begins[span], took = spans.durations[span], around = Math.max(took * 0.6, 2000);
  chosen = span;
  revealThread(spans.threads[span]);
  showTime(begin - around, begin + took + around);
  at('line').scrollIntoView({block: 'center'});
}

/** What both pictures have of the axis of time. */
function drawTimes(pen, left, width, y) {
  const range = shown.to - shown.from, step = niceStep(range, (width - left) / 110);
  const x = time => left + (width - left) * (time - shown.from) / range;
  pen.fillStyle = css('--faint');
  for (let n = Math.ceil(shown.from / step); n * step <= shown.to; ++n) {
    const text = moment(n * step, step, shown.to), half = pen.measureText(text).width / 2, at = x(n * step);
    pen.fillRect(at, y, 1, 4);
    pen.textAlign = 'center';
    pen.fillText(text, Math.min(Math.max(at, left + half), width - half), y + 12);
  }
  return x;
}

/** Drags of the mouse zoom, clicks call `click`. */
function listen(canvas, left, click, over) {
  let pressed = null;
  const timeOf = event =>
      shown.from + (shown.to - shown.from) * Math.max(0, event.offsetX - left) / (canvas.clientWidth - left);
  canvas.addEventListener('mousedown', event => {
    pressed = {x: event.offsetX, time: timeOf(event)};
  });
  canvas.addEventListener('mouseup', event => {
    const from = pressed;
    pressed = null;
    if (from && Math.abs(event.offsetX - from.x) > 4) {
      const times = [from.time, timeOf(event)].sort((a, b) => a - b);
      showTime(...times);
    } else if (from) {
      click(event);
    }
  });
  canvas.addEventListener('mousemove', event => {
    over(event);
    if (!pressed || Math.abs(event.offsetX - pressed.x) <= 4) return;
    canvas === at('heat') ? drawHeat() : drawLine();
    const pen = canvas.getContext('2d');
    pen.globalAlpha = 0.2;
    pen.fillStyle = css('--accent');
    pen.fillRect(Math.min(pressed.x, event.offsetX), 0, Math.abs(event.offsetX - pressed.x), canvas.clientHeight);
    pen.globalAlpha = 1;
  });
  canvas.addEventListener('mouseleave', event => {
    pressed = null;
    showTip(event, '');
  });
  canvas.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    zoomBy(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, timeOf(event));
  }, {passive: false});
}

// --- heat maps -------------------------------------------------------------------------------------------------------

const heatLeft = 96;

/** Heat maps: columns with their beginning, end and counts by row, and what rows are. */
const heats = (() => {
  const all = [];
  for (const {name, kind, count, heat, ranges, rows} of data.measures ?? []) {
    if (!heat) continue;
    const columns = heat.columns.map(([from, ...cells]) => ({from, to: from + heat.step, cells}));
    all.push({
      name,
      kind,
      count,
      column: spans.rows[rows],
      step: heat.step,
      columns,
      ranges: new Map((ranges ?? []).map(([key, low, high]) => [key, {low, high}]))
    });
  }
  if (data.slices) {
    const {columns, keys, bars, value} = data.slices;
    const kind = data.slices.is_duration ? 'duration' : 'value';
    all.push({
      name: value,
      kind,
      slices: true,
      step: length / Math.max(1, columns.length),
      columns: columns.map(([from, to, ...cells]) => ({from, to, cells})),
      ranges: new Map(keys.map((key, n) => [key, {low: bars[n][0], high: bars[n][1], text: bars[n][3]}]))
    });
  }
  for (const each of all) prepareHeat(each);
  return all;
})();
const telling = heats.filter(each => each.kind !== 'probe' && (each.slices || each.count >= spans.all / 2));
let heat = first(telling) ?? heats[heats.length - 1], heatCells = [], picked = null;

/** Gives rows their places, from the lowest on. */
function prepareHeat(each) {
  const totals = new Map();
  for (const {cells} of each.columns)
    for (let i = 0; i < cells.length; i += 2) totals.set(cells[i], (totals.get(cells[i]) ?? 0) + cells[i + 1]);
  const keys = [...totals.keys()].sort((a, b) => a - b);
  if (each.kind === 'probe') {
    const most = 40, named = keys.filter(key => key !== -1).sort((a, b) => totals.get(a) - totals.get(b));
    each.rows = named.length < keys.length || named.length > most ? ['others', ...named.slice(-most)] : named;
  } else {
    const first = keys[0], last = keys[keys.length - 1];
    each.rows = last - first < 400 ? Array.from({length: last - first + 1}, (_, n) => first + n) : keys;
  }
  each.place = new Map(each.rows.map((key, n) => [key, n]));
  each.rowHeight = each.kind === 'probe' ? 18 : Math.max(4, Math.min(12, Math.floor(300 / each.rows.length)));
}

function rowText(each, key) {
  if (each.kind === 'probe') return key === 'others' ? 'other probes' : probeName(key);
  const range = each.ranges.get(key);
  if (!range) return '';
  if (each.kind === 'duration') return `${duration(range.low)} to ${duration(Number(range.high) + 1)}`;
  return range.text ?? (range.low === range.high ? whole(range.low) : `${whole(range.low)} to ${whole(range.high)}`);
}

/** Puts columns together that would be narrower than people can see. */
function groupHeat(each, width) {
  const range = shown.to - shown.from, steps = Math.max(1, Math.ceil(range / each.step / (width / 4)));
  const groups = new Map(), base = each.columns[0]?.from ?? 0;
  for (const column of each.columns) {
    const number = Math.floor(Math.round((column.from - base) / each.step) / steps),
          from = base + number * steps * each.step;
    if (from + steps * each.step <= shown.from || from >= shown.to) continue;
    if (!groups.has(number)) groups.set(number, {from, to: from + steps * each.step, cells: new Map()});
    const group = groups.get(number);
    if (each.slices) {
      group.from = Math.min(group.from, column.from);
      group.to = Math.max(group.to, column.to);
    }
    for (let i = 0; i < column.cells.length; i += 2) {
      const key = each.kind === 'probe' && !each.place.has(column.cells[i]) ? 'others' : column.cells[i];
      group.cells.set(key, (group.cells.get(key) ?? 0) + column.cells[i + 1]);
    }
  }
  return [...groups.values()];
}

function mixer() {
  const parse = name => {
    const hex = css(name).slice(1);
    return [0, 2, 4].map(i => parseInt(hex.length === 3 ? hex[i / 2] + hex[i / 2] : hex.slice(i, i + 2), 16));
  };
  const stops = ['--cold', '--warm', '--hot'].map(parse);
  return part => {
    const at = Math.min(1.999, Math.max(0, part) * 2), n = Math.floor(at), rest = at - n;
    return `rgb(${stops[n].map((from, i) => Math.round(from + (stops[n + 1][i] - from) * rest)).join(' ')})`;
  };
}

function drawHeat() {
  if (!heat) return;
  const canvas = at('heat'), {rowHeight, rows} = heat, bottom = 4 + rows.length * rowHeight;
  const pen = penOf(canvas, bottom + 22), width = canvas.clientWidth;
  const x = drawTimes(pen, heatLeft, width, bottom);
  const groups = groupHeat(heat, width - heatLeft), mix = mixer();
  let most = 1;
  for (const {cells} of groups)
    for (const value of cells.values()) most = Math.max(most, value);
  heatCells = [];
  pen.save();
  pen.beginPath();
  pen.rect(heatLeft, 0, width - heatLeft, bottom);
  pen.clip();
  for (const group of groups) {
    const begin = Math.floor(x(group.from)), end = Math.max(begin + 1, Math.floor(x(group.to)));
    for (const [key, value] of group.cells) {
      const y = bottom - (heat.place.get(key) + 1) * rowHeight;
      pen.fillStyle = mix(Math.log1p(value) / Math.log1p(most));
      pen.fillRect(begin, y, end - begin, rowHeight - (rowHeight > 6 ? 1 : 0));
      heatCells.push({begin, end, y, group, key, value});
    }
  }
  drawKept(pen, x, bottom, width);
  pen.restore();
  drawRowNames(pen, bottom);
  if (picked?.heat === heat) outline(pen, x, bottom);
  drawHeatLegend(mix, most);
}

/** Where cells are wide, the events that are kept, each at its own time and size. */
function drawKept(pen, x, bottom, width) {
  const wide = (width - heatLeft) * heat.step / (shown.to - shown.from), first = heat.rows[0];
  if (wide < 24 || heat.slices) return;
  pen.fillStyle = css('--dot');
  const end = firstFrom(shown.to);
  for (let n = firstFrom(shown.from); n < end; ++n) {
    const probe = spans.probes[n], lasts = spans.durations[n] > 0;
    const row = heat.kind === 'probe' ? heat.place.get(heat.place.has(probe) ? probe : 'others') + 0.5 :
        heat.kind === 'duration'      ? (lasts ? bucketOf(spans.durations[n], 2) - first : NaN) :
        heat.column[n] === null       ? NaN :
                                        heat.column[n] - first + 0.5;
    if (row >= 0) pen.fillRect(x(spans.begins[n]) - 1, bottom - row * heat.rowHeight - 1, 3, 3);
  }
}

function outline(pen, x, bottom) {
  pen.strokeStyle = css('--accent');
  pen.lineWidth = 2;
  pen.strokeRect(
      x(picked.from), bottom - (heat.place.get(picked.key) + 1) * heat.rowHeight,
      Math.max(3, x(picked.to) - x(picked.from)), heat.rowHeight);
  pen.lineWidth = 1;
}

function drawRowNames(pen, bottom) {
  pen.fillStyle = css('--faint');
  pen.textAlign = 'right';
  if (!heat.slices && heat.kind !== 'probe') return drawPowers(pen, bottom);
  let free = Infinity;
  heat.rows.forEach((key, n) => {
    const y = bottom - (n + 0.5) * heat.rowHeight, low = heat.ranges.get(key)?.low;
    const text = heat.kind === 'duration' && low !== undefined ? duration(low, 3) : rowText(heat, key);
    if (y > free || text === '') return;
    pen.fillText(fit(pen, text, heatLeft - 10), heatLeft - 6, y);
    free = y - 15;
  });
}

/** An axis of values, by powers of 10 and where there is room by 2 and 5 times them. */
function drawPowers(pen, bottom) {
  const first = heat.rows[0], last = heat.rows[heat.rows.length - 1];
  const place = value => value < 0 ? 1 - bucketOf(-value, 2) : bucketOf(value, 2);
  const taken = [];
  const show = value => {
    const y = bottom - (place(value) - first) * heat.rowHeight;
    if (place(value) < first || place(value) > last + 1 || taken.some(other => Math.abs(other - y) < 15)) return;
    pen.fillText(
        heat.kind === 'duration' ? duration(value, 1) : whole(value), heatLeft - 6,
        Math.min(Math.max(y, 6), bottom - 6));
    pen.fillRect(heatLeft - 4, y, 4, 1);
    taken.push(y);
  };
  const powers = Array.from({length: 20}, (_, n) => 10 ** n);
  if (first <= 0) show(0);
  for (const times of [1, 5, 2])
    for (const sign of [1, -1])
      for (const power of powers) show(sign * times * power);
}

function fit(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let kept = text.length;
  while (kept > 1 && pen.measureText('\u2026' + text.slice(text.length - kept)).width > width) --kept;
  return '\u2026' + text.slice(text.length - kept);
}

function drawHeatLegend(mix, most) {
  const bar = make('span', 'ramp'), unit = heat.slices ? 'hits' : 'events';
  bar.style.background = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(mix).join(',')})`;
  const when = heat.kind === 'duration' && !heat.slices ? '; by when they began' : '';
  const text = make('span', '', `${whole(most)} ${unit} in a cell, by the logarithm${when}`);
  at('heat-legend').replaceChildren(make('span', '', '1'), bar, text);
}

/** The kept events of a cell, the longest first. */
function eventsBehind({group, key}) {
  const found = [], end = firstFrom(group.to);
  for (let n = firstFrom(group.from); n < end; ++n) {
    const probe = spans.probes[n];
    const is = heat.kind === 'probe' ? probe === key || (key === 'others' && !heat.place.has(probe)) :
        heat.kind === 'duration'     ? Math.floor(bucketOf(spans.durations[n], 2)) === key :
                                       heat.column[n] === key;
    if (is) found.push(n);
  }
  return found.sort((a, b) => spans.durations[b] - spans.durations[a] || a - b);
}

const cellUnder = event => heatCells.find(
    cell => event.offsetX >= Math.max(cell.begin, heatLeft) && event.offsetX < cell.end && event.offsetY >= cell.y &&
        event.offsetY < cell.y + heat.rowHeight);

function cellText(cell) {
  const step = cell.group.to - cell.group.from;
  return `${rowText(heat, cell.key)}, ${moment(cell.group.from, step / 10, cell.group.to)} to ${
      moment(
          cell.group.to,
          step / 10)}: ${whole(cell.value)} ${heat.slices ? 'hit' : 'event'}${cell.value === 1 ? '' : 's'}`;
}

function overHeat(event) {
  const cell = cellUnder(event);
  if (!cell) return showTip(event, '');
  const behind = spans.count > 0 ? eventsBehind(cell) : [];
  const lines = behind.slice(0, 6).map(describeSpan);
  if (behind.length > 6) lines.push(`and ${whole(behind.length - 6)} more`);
  showTip(event, [cellText(cell), ...lines].join('\n'));
}

function clickHeat(event) {
  const cell = cellUnder(event);
  if (!cell) return;
  picked = {heat, key: cell.key, from: cell.group.from, to: cell.group.to};
  const behind = spans.count > 0 ? eventsBehind(cell) : [];
  const into = at('behind');
  into.hidden = behind.length === 0;
  const known = `${cellText(cell)}, ${whole(behind.length)} of them shown one by one`;
  into.replaceChildren(make('p', 'faint', known), eventTable(behind));
  const wide = cell.group.to - cell.group.from;
  showTime(cell.group.from - wide * 4, cell.group.to + wide * 4);
}

function eventTable(numbers) {
  const table = makeTable({
    columns: [
      {name: 'took', number: true, show: value => value > 0 ? duration(value) : ''},
      {name: 'at', number: true, show: value => moment(value)}, {name: 'probe'}, {name: 'thread'}, {name: 'values'}
    ],
    rows: numbers.map(
        n =>
            [spans.durations[n], spans.begins[n], probeName(spans.probes[n]), threadName(threads[spans.threads[n]]),
             valuesOf(n)]),
    most: 8,
    pick: row => lookAt(numbers[row]),
  });
  shownTables.pop();  // it is replaced by the next one
  return table;
}

// --- the time line ---------------------------------------------------------------------------------------------------

const lineLeft = 168, laneHeight = 12, mostLanes = 8;
const colours =
    ['#5b8fd0', '#d9944a', '#62ab73', '#c46a74', '#8f7cc4', '#9a7f67', '#cf84b4', '#8c9196', '#b0aa4a', '#50aeb6'];
let shownThreads = 24, chosen = -1, wantedSpans = null, boxes = [];

/** Spans by thread, each in the first lane that is free when it begins: those that lie within others are below them. */
const lines = (() => {
  const byThread = threads.map((thread, number) => ({thread, number, spans: [], lanes: [], ends: []}));
  for (let n = 0; n < spans.count; ++n) {
    const line = byThread[spans.threads[n]], begin = spans.begins[n];
    let lane = line.ends.findIndex(end => end <= begin);
    if (lane < 0) lane = line.ends.length < mostLanes ? line.ends.length : mostLanes - 1;
    line.ends[lane] = Math.max(line.ends[lane] ?? 0, begin + Math.max(1, spans.durations[n]));
    line.spans.push(n);
    line.lanes.push(lane);
  }
  return byThread.filter(line => line.spans.length > 0).sort((a, b) => b.thread.count - a.thread.count);
})();

function revealThread(number) {
  const place = lines.findIndex(line => line.number === number);
  if (place >= shownThreads) shownThreads = place + 1;
}

const ranked = [...probes.values()].map(probe => probe.number);
const colourOf = new Map(ranked.map((number, n) => [number, colours[Math.min(n, colours.length - 1)]]));

function drawLine() {
  if (lines.length === 0) return;
  const visible = lines.slice(0, shownThreads), canvas = at('line');
  const height = visible.reduce((sum, line) => sum + line.ends.length * laneHeight + 6, 0);
  const pen = penOf(canvas, height + 22), width = canvas.clientWidth;
  const x = drawTimes(pen, lineLeft, width, height);
  boxes = [];
  let y = 2;
  for (const line of visible) {
    pen.fillStyle = css('--line');
    pen.fillRect(0, y + line.ends.length * laneHeight + 1, width, 1);
    pen.fillStyle = css('--text');
    pen.textAlign = 'left';
    pen.fillText(fit(pen, threadName(line.thread), lineLeft - 12), 0, y + laneHeight / 2);
    boxes.push({line, y});
    drawSpans(pen, line, y, x, width);
    y += line.ends.length * laneHeight + 6;
  }
  at('more-threads').hidden = lines.length <= shownThreads;
  at('more-threads').textContent =
      `show ${whole(Math.min(24, lines.length - shownThreads))} more of ${whole(lines.length)} threads`;
}

/** Spans wide enough to be seen one by one; of the others how much of each pixel they take. */
function drawSpans(pen, line, y, x, width) {
  const covered = line.ends.map(() => new Map());
  pen.save();
  pen.beginPath();
  pen.rect(lineLeft, y, width - lineLeft, line.ends.length * laneHeight);
  pen.clip();
  const perPixel = (width - lineLeft) / (shown.to - shown.from);
  for (let i = 0; i < line.spans.length; ++i) {
    const n = line.spans[i], begin = spans.begins[n], end = begin + spans.durations[n], lane = line.lanes[i];
    if (end < shown.from || begin > shown.to) continue;
    const left = x(begin), right = x(end), matches = !wantedSpans || wantedSpans[n] === 1;
    if (right - left >= 1.5 || n === chosen) {
      drawSpan(
          pen, n, Math.max(left, lineLeft - 1), Math.min(Math.max(right, left + 1), width + 1), y + lane * laneHeight,
          matches);
      continue;
    }
    const part = spans.durations[n] > 0 ? spans.durations[n] * perPixel : 1;  // a hit is all there
    const pixel = Math.floor(left), known = covered[lane].get(pixel);
    if (!known)
      covered[lane].set(pixel, {part, probe: spans.probes[n], matches});
    else if (matches || !known.matches) {
      known.part += part;
      known.probe = spans.probes[n];
      known.matches = matches;
    }
  }
  covered.forEach((pixels, lane) => {
    for (const [pixel, {part, probe, matches}] of pixels) {
      pen.globalAlpha = matches ? 0.3 + 0.7 * Math.min(1, part) : 0.08;
      pen.fillStyle = colourOf.get(probe) ?? colours[colours.length - 1];
      pen.fillRect(pixel, y + lane * laneHeight, 1, laneHeight - 1);
    }
  });
  pen.restore();
  pen.globalAlpha = 1;
}

function drawSpan(pen, n, left, right, y, matches) {
  pen.globalAlpha = matches ? 1 : 0.15;
  pen.fillStyle = colourOf.get(spans.probes[n]) ?? colours[colours.length - 1];
  const gap = right - left > 6 ? 0.5 : 0;  // so that neighbours can be told apart
  pen.fillRect(left, y, right - left - gap, laneHeight - 1);
  if (right - left > 40) drawSpanName(pen, n, Math.max(left, lineLeft), right, y);
  if (n === chosen) outlineSpan(pen, left, right, y);
}

function drawSpanName(pen, n, left, right, y) {
  const name = probeName(spans.probes[n]), letters = Math.floor((right - left - 6) / 6);
  pen.fillStyle = '#101418';
  pen.font = '10.5px system-ui, sans-serif';
  pen.fillText(
      name.length > letters ? name.slice(0, Math.max(1, letters - 1)) + '\u2026' : name, left + 3, y + laneHeight / 2);
  pen.font = '12px system-ui, sans-serif';
}

function outlineSpan(pen, left, right, y) {
  pen.strokeStyle = css('--text');
  pen.lineWidth = 1.5;
  pen.strokeRect(left + 0.5, y + 0.5, Math.max(2, right - left - 1), laneHeight - 2);
  pen.lineWidth = 1;
}

/** The span under the mouse, or the one that is nearest to it within 3 pixels; -1: there is none. */
function spanUnder(event) {
  const box = boxes.find(({line, y}) => event.offsetY >= y && event.offsetY < y + line.ends.length * laneHeight);
  const width = at('line').clientWidth - lineLeft, range = shown.to - shown.from;
  if (!box || event.offsetX < lineLeft) return -1;
  const time = shown.from + range * (event.offsetX - lineLeft) / width,
        lane = Math.floor((event.offsetY - box.y) / laneHeight);
  let best = -1, nearest = 3 * range / width;
  for (let i = 0; i < box.line.spans.length; ++i) {
    if (box.line.lanes[i] !== lane) continue;
    const n = box.line.spans[i], begin = spans.begins[n], end = begin + spans.durations[n];
    const away = time < begin ? begin - time : time > end ? time - end : 0;
    if (away < nearest || (away === 0 && nearest === 0)) {
      best = n;
      nearest = away;
    }
  }
  return best;
}

function overLine(event) {
  const n = spanUnder(event);
  showTip(event, n < 0 ? '' : describeSpan(n));
}

function clickLine(event) {
  const n = spanUnder(event);
  if (n < 0) return;
  chosen = n;
  const took = spans.durations[n];
  if (took > 0)
    showTime(spans.begins[n] - took * 0.1, spans.begins[n] + took * 1.1);
  else
    zoomBy(0.25, spans.begins[n]);
}

function showLine() {
  if (lines.length === 0) return;
  at('line-section').hidden = false;
  at('line-hint').textContent = spans.count < spans.all ?
      `${whole(spans.count)} of ${whole(spans.all)} events; click: zoom to one; drag: zoom into a stretch` :
      'click: zoom to one; drag: zoom into a stretch';
  ranked.slice(0, colours.length).forEach((number, n) => {
    const key = make('span', 'key');
    key.style.background = colours[n];
    const others = n === colours.length - 1 && ranked.length > colours.length;
    const entry = make('span');
    entry.append(key, others ? `${ranked.length - n} other probes` : probeName(number));
    at('line-legend').append(entry);
  });
}

// --- search, keys, themes --------------------------------------------------------------------------------------------

function search(text) {
  const wanted = finder(text);
  for (const table of shownTables) table.search(wanted);
  flame?.search(wanted);
  wantedSpans = wanted && new Uint8Array(spans.count);
  if (wanted) {
    const probeMatches = new Map(ranked.map(n => [n, wanted.test(probeName(n))])),
          textMatches = spans.texts.map(each => wanted.test(each));
    const threadMatches = threads.map(each => wanted.test(threadName(each)));
    for (let n = 0; n < spans.count; ++n)
      wantedSpans[n] = probeMatches.get(spans.probes[n]) || threadMatches[spans.threads[n]] ||
              (spans.values[n] >= 0 && textMatches[spans.values[n]]) ?
          1 :
          0;
  }
  drawLine();
}

function drawAll() {
  drawHistogram();
  drawHeat();
  drawLine();
  flame?.draw();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  drawAll();
}

function moveTime(key) {
  const wide = shown.to - shown.from, by = {ArrowLeft: -wide / 4, ArrowRight: wide / 4}[key];
  if (by)
    showTime(shown.from + by, shown.to + by);
  else
    zoomBy(key === 'ArrowUp' ? 0.5 : 2);
}

function pressed(event) {
  if (event.target === at('search')) {
    if (event.key === 'Escape') {
      at('search').value = '';
      search('');
      at('search').blur();
    }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === 'SELECT') return;
  const inFlame = event.target === at('graph'),
        inTime = !inFlame && (event.target === at('heat') || event.target === at('line'));
  if (event.key === '/') {
    event.preventDefault();
    at('search').focus();
  } else if (event.key === 't')
    at('theme').click();
  else if (event.key === 'Escape') {
    chosen = -1;
    picked = null;
    at('behind').hidden = true;
    flame?.zoom(flame.root);
    showTime(0, length);
  } else if (event.key === '+' || event.key === '-')
    zoomBy(event.key === '+' ? 0.5 : 2);
  else if (event.key === 'Enter' && inFlame)
    flame.zoom(flame.chosen);
  else if (event.key.startsWith('Arrow') && inFlame) {
    event.preventDefault();
    flame.move(event.key);
  } else if (event.key.startsWith('Arrow') && (inTime || event.key === 'ArrowLeft' || event.key === 'ArrowRight')) {
    event.preventDefault();
    moveTime(event.key);
  }
}

function addChoices(select, titles, choose) {
  titles.forEach((title, n) => {
    const option = make('option', '', title);
    option.value = n;
    select.append(option);
  });
  select.hidden = titles.length === 0;
  select.addEventListener('change', () => choose(Number(select.value)));
}

let flame = null;

function showAll() {
  showQuestion();
  showLedger();
  showFolded();
  showRows();
  showProbes();
  showLongest();
  showTops();
  showThreads();
  at('histogram-section').hidden = histograms.length === 0;
  at('heat-section').hidden = heats.length === 0;
  addChoices(at('measure'), histograms.map(each => each.title), chooseMeasure);
  addChoices(at('heated'), heats.map(each => each.name), n => {
    heat = heats[n];
    at('behind').hidden = true;
    drawHeat();
  });
  at('measure').value = histograms.indexOf(measure);
  at('heated').value = heats.indexOf(heat);
  showLine();
  if (data.stacks) {
    at('flame-section').hidden = false;
    flame = new FlameGraph(data.stacks, at('graph'), at('where'));
  }
  showHistogram();
  listen(at('heat'), heatLeft, clickHeat, overHeat);
  listen(at('line'), lineLeft, clickLine, overLine);
  at('histogram').addEventListener('mousemove', overHistogram);
  at('histogram').addEventListener('mouseleave', event => showTip(event, ''));
  at('search').addEventListener('input', event => search(event.target.value));
  at('reset').addEventListener('click', () => showTime(0, length));
  at('more-threads').addEventListener('click', () => {
    shownThreads += 24;
    drawLine();
  });
  at('theme').addEventListener(
      'click', () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
  document.addEventListener('keydown', pressed);
  window.addEventListener('resize', drawAll);
  setTheme(window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
}
showAll();
