// The curve: the size of the context at each request, with window, trigger and target,
// cache breaks and reductions. A click or a drag goes to a request, [ and ] step.
import { session, moveTo } from './session.js';
import { on } from './keys.js';
import { color, onRestyle } from './texture.js';
import * as tip from './tip.js';

const host = document.getElementById('curve');
const scrubber = document.getElementById('scrubber');
const make = (tag, className) => {
  const el = document.createElement(tag);
  el.className = className;
  host.append(el);
  return el;
};
const canvas = make('canvas', '');
const cursor = make('div', 'cursor');
const pointed = make('div', 'cursor pointed');
const labels = make('div', 'labels');
canvas.setAttribute('aria-hidden', 'true');
labels.setAttribute('aria-hidden', 'true');
pointed.hidden = true;
host.tabIndex = 0;
for (const [k, v] of Object.entries({ role: 'slider', 'aria-label': 'Request', 'aria-valuemin': 1 })) host.setAttribute(k, v);

let data = null; // of the server; see curve.go
let zoomed = false; // to scale of the sizes, not of the window
let now = 0;     // the size of the current state, 0 if unknown

async function load() {
  const response = await fetch(`${session.path}/requests`);
  if (!response.ok) throw new Error(`requests: status ${response.status}`);
  data = await response.json();
  for (const list of ['size', 'without', 'time']) data[list] ??= [];
  data.at = [];
  for (let i = 0, t = data.start; i < data.size.length; i++) data.at.push(t += data.time[i]);
  data.by = new Map(); // reductions by their request; the next request is one after the last
  for (const r of data.reductions) {
    const n = r.request || data.size.length + 1;
    data.by.set(n, [...(data.by.get(n) || []), r]);
  }
  session.requests = data.size.length;
  host.hidden = data.size.length === 0;
  draw();
  place();
}

const total = () => data.size.length;
// Requests are columns; the last column is now.
const columnOf = (n) => (n || total() + 1) - .5;
const xOf = (n) => columnOf(n) / (total() + 1) * host.clientWidth;
const requestAt = (x) => {
  const n = Math.max(1, Math.min(total() + 1, Math.ceil(x / host.clientWidth * (total() + 1))));
  return n > total() ? 0 : n;
};

const top = 12; // pixels for the signs of reductions
const bottom = 5; // and of cache breaks

// ceiling is the largest size that the curve shows.
function ceiling() {
  let size = 0;
  let without = 0;
  let window = 0;
  for (let i = 0; i < total(); i++) {
    size = Math.max(size, data.size[i]);
    without = Math.max(without, data.size[i] + data.without[i]);
    window = Math.max(window, data.window[i]);
  }
  const most = Math.max(size, zoomed ? 0 : window, now, 1);
  return { most: Math.max(most, Math.min(without, 1.6 * most)) * 1.04, without };
}

function draw() {
  const ratio = devicePixelRatio || 1;
  const width = host.clientWidth;
  const height = host.clientHeight;
  if (!width || !data || !total()) return;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const g = canvas.getContext('2d');
  g.scale(ratio, ratio);
  const { most, without } = ceiling();
  const y = (n) => top + (height - top - bottom) * (1 - Math.min(n, most) / most);
  const n = total();
  const c = { accent: color('accent'), soft: color('soft'), faint: color('faint'), warn: color('warn'), summary: color('summary') };

  const path = (f, from = 0, to = n) => {
    for (let i = from; i < to; i++) g.lineTo(xOf(i + 1), y(f(i)));
    if (to === n) g.lineTo(width, y(f(n)));
  };
  const size = (i) => (i < n ? data.size[i] : now || data.size[n - 1]);
  const full = (i) => (i < n ? data.size[i] + data.without[i] : size(n) + data.without[n - 1]);

  // What reductions hide.
  if (data.without.some((w) => w > 0)) {
    g.beginPath();
    g.moveTo(0, y(full(0)));
    path(full);
    for (let i = n; i >= 0; i--) g.lineTo(i === n ? width : xOf(i + 1), y(size(i)));
    g.lineTo(0, y(size(0)));
    g.globalAlpha = .1;
    g.fillStyle = c.summary;
    g.fill();
    g.globalAlpha = 1;
    g.beginPath();
    g.moveTo(0, y(full(0)));
    path(full);
    g.lineWidth = 1;
    g.strokeStyle = c.soft;
    g.stroke();
  }
  // The size.
  g.beginPath();
  g.moveTo(0, y(size(0)));
  path(size);
  g.lineTo(width, height - bottom);
  g.lineTo(0, height - bottom);
  g.globalAlpha = .16;
  g.fillStyle = c.accent;
  g.fill();
  g.globalAlpha = 1;
  g.beginPath();
  g.moveTo(0, y(size(0)));
  path(size);
  g.lineWidth = 1.6;
  g.lineJoin = 'round';
  g.strokeStyle = c.accent;
  g.stroke();

  // Limits, which may differ from request to request.
  const limit = (list, stroke, dash) => {
    g.setLineDash(dash);
    g.lineWidth = 1;
    g.strokeStyle = stroke;
    g.beginPath();
    for (let i = 0; i < n; i++) {
      if (!list[i] || list[i] > most) continue;
      const level = Math.round(y(list[i])) + .5;
      const x0 = i / (n + 1) * width;
      if (i === 0 || list[i - 1] !== list[i]) g.moveTo(x0, level);
      if (i === n - 1 || list[i + 1] !== list[i]) g.lineTo(i === n - 1 ? width : (i + 1) / (n + 1) * width, level);
    }
    g.stroke();
    g.setLineDash([]);
  };
  limit(data.window, c.soft, []);
  limit(data.trigger, c.warn, [5, 4]);
  limit(data.target, c.soft, [1.5, 3]);

  // Cache breaks below, reductions above.
  g.lineWidth = 1.5;
  for (let i = 0; i < n; i++) {
    if (!data.break[i]) continue;
    g.strokeStyle = data.breaks[data.break[i]] === 'planned' ? c.summary : c.warn;
    g.beginPath();
    g.moveTo(xOf(i + 1), height);
    g.lineTo(xOf(i + 1), height - 5);
    g.stroke();
  }
  for (const [request, list] of data.by) {
    const x = xOf(request > n ? 0 : request);
    g.fillStyle = c.summary;
    g.strokeStyle = c.summary;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(x - 4, 2);
    g.lineTo(x + 4, 2);
    g.lineTo(x, 9);
    g.closePath();
    if (list.every((r) => r.undone)) g.stroke();
    else g.fill();
  }
  write(y, most, without);
}

// write labels the lines at the right end, where they do not overlap.
function write(y, most, without) {
  labels.replaceChildren();
  const last = total() - 1;
  const taken = [];
  for (const [word, size] of [['window', data.window[last]], ['trigger', data.trigger[last]], ['target', data.target[last]]]) {
    if (!size || size > most) continue;
    const at = Math.max(0, y(size) - 13);
    if (taken.some((t) => Math.abs(t - at) < 12)) continue;
    taken.push(at);
    const el = document.createElement('span');
    el.className = word;
    el.textContent = word;
    el.style.top = `${at}px`;
    labels.append(el);
  }
  if (without > most) {
    const el = document.createElement('span');
    el.className = 'without';
    el.textContent = `↑ ${tip.count(without)} without reductions`;
    labels.append(el);
  }
}

// place puts the cursor to the moment that is shown.
function place() {
  if (!data || !total()) return;
  const n = session.request;
  cursor.style.left = `${xOf(n)}px`;
  host.setAttribute('aria-valuemax', total() + 1);
  host.setAttribute('aria-valuenow', n || total() + 1);
  host.setAttribute('aria-valuetext', n ? `request ${tip.count(n)} of ${tip.count(total())}, ${tip.tokens(data.size[n - 1])}` : 'now');
  scrubber.querySelector('.place').textContent = `${n ? tip.count(n) : 'now'} / ${tip.count(total())}`;
  link('earlier', n === 1 ? null : (n || total() + 1) - 1);
  link('later', n ? n + 1 : null);
  link('now', n ? 0 : null);
}

// link makes a link of the scrubber go to a request, 0 for now; null: nowhere.
function link(id, request) {
  const a = document.getElementById(id);
  if (request === null) return a.removeAttribute('href');
  const url = new URL(location);
  if (request && request <= total()) url.searchParams.set('request', request);
  else url.searchParams.delete('request');
  a.href = url;
}

const why = {
  planned: 'furl changed the prompt', client: 'the client changed its history', model: 'another model', preamble: 'instructions or tools have changed',
  expired: 'it had expired', unexpected: 'no known reason',
};

const dollars = (hundredths) => (hundredths < 100 ? `$${(hundredths / 1e4).toFixed(4)}` : `$${(hundredths / 1e4).toFixed(2)}`);

function tell(n) {
  const x = xOf(n);
  pointed.style.left = `${x}px`;
  pointed.hidden = false;
  const lines = [];
  if (!n) {
    lines.push(tip.line('now', 'what'));
    if (now) lines.push(tip.line(`${tip.tokens(now)}`));
  } else {
    const i = n - 1;
    const at = new Date(data.at[i] * 1000);
    lines.push(tip.line(`request ${tip.count(n)} · ${data.estimated[i] ? 'about ' : ''}${tip.tokens(data.size[i])}${data.window[i] ? `, ${tip.share(data.size[i], data.window[i])} of the window` : ''}`, 'what'));
    if (data.without[i] > 0) lines.push(tip.line(`${tip.tokens(data.size[i] + data.without[i])} without reductions`));
    const parts = [['read', data.read[i]], ['written', data.write[i]], ['fresh', data.input[i]], ['output', data.output[i]]].filter(([, v]) => v);
    if (parts.length) lines.push(tip.line(parts.map(([word, v]) => `${tip.count(v)} ${word}`).join(' · ')));
    if (data.cost[i] > 0) lines.push(tip.line(dollars(data.cost[i])));
    if (data.break[i]) lines.push(tip.line(`prompt cache not used: ${why[data.breaks[data.break[i]]] || data.breaks[data.break[i]]}`, 'broken'));
    // Swedish writes times as the rest of the page does: 2026-01-22 16:36:58.
    if (data.at[i] > 0) lines.push(tip.line(at.toLocaleString('sv'), 'when'));
  }
  for (const r of (data.by.get(n || total() + 1) || []).slice(0, 4)) lines.push(tip.line(`▼ ${r.line}${r.undone ? ' (undone)' : ''}`, 'by'));
  const box = host.getBoundingClientRect();
  tip.show(box.left + x, box.top, box.bottom, ...lines);
}

function hush() {
  pointed.hidden = true;
  tip.hide();
}

const under = (e) => requestAt(e.clientX - host.getBoundingClientRect().left);

let dragging = false;
let moved = false; // the drag has an entry in the history
function drag(e) {
  const n = under(e);
  tell(n);
  if (n === session.request) return;
  moveTo(n, { replace: moved, wait: 120 });
  moved = true;
}
host.addEventListener('pointerdown', (e) => {
  if (e.button || !data || !total()) return;
  dragging = true;
  moved = false;
  host.setPointerCapture(e.pointerId);
  drag(e);
});
host.addEventListener('pointermove', (e) => {
  if (!data || !total()) return;
  if (dragging) drag(e);
  else if (e.pointerType !== 'touch') tell(under(e));
});
for (const end of ['pointerup', 'pointercancel']) host.addEventListener(end, () => { dragging = false; });
host.addEventListener('pointerleave', () => { if (!dragging) hush(); });
host.addEventListener('blur', hush);

// step goes n requests on. After the last one is now.
function step(n) {
  if (!data || !total()) return;
  const at = (session.request || total() + 1) + n;
  const to = Math.max(1, Math.min(total() + 1, at));
  moveTo(to > total() ? 0 : to, { wait: 60 });
}
on['['] = () => step(-1);
on[']'] = () => step(1);

host.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };
  if (!(e.key in steps)) return;
  e.preventDefault();
  e.stopPropagation();
  step(steps[e.key]);
  tell(session.request);
});

scrubber.addEventListener('click', (e) => {
  const a = e.target.closest('a[href]');
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  if (a.id === 'now') moveTo(0);
  else step(a.id === 'earlier' ? -1 : 1);
});

document.addEventListener('furl:moment', place);
document.addEventListener('furl:changed', load);
document.addEventListener('furl:zoom', (e) => { zoomed = e.detail; draw(); });
document.addEventListener('furl:size', (e) => { now = e.detail; draw(); });
onRestyle(draw);
new ResizeObserver(() => { draw(); place(); }).observe(host);
load();
