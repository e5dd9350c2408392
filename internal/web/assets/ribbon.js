// The ribbon: the prompt as one strip, to scale of tokens. Hovering says what a run is, a
// click selects it, and the arrow keys go from run to run.
import { session, select, selected, address } from './session.js';
import { on } from './keys.js';
import { unpack, layout, at, position, items, between, paint, stacking } from './strip.js';
import { textures, swatch, onRestyle } from './texture.js';
import * as tip from './tip.js';

const host = document.getElementById('ribbon');
const legend = document.getElementById('legend');
const make = (tag, className, parent) => {
  const el = document.createElement(tag);
  el.className = className;
  parent.append(el);
  return el;
};
const strip = make('div', 'strip', host);
const canvas = make('canvas', '', strip);
const selection = make('div', 'frame selection', strip);
const pointed = make('div', 'frame pointed', strip);
const trigger = make('div', 'limit trigger', strip);
const target = make('div', 'limit target', strip);
const axis = make('div', 'axis', host);
const table = make('div', 'unseen', host);
strip.tabIndex = 0;
for (const [k, v] of Object.entries({ role: 'slider', 'aria-label': 'Parts of the context', 'aria-valuemin': 0 })) strip.setAttribute(k, v);
canvas.setAttribute('aria-hidden', 'true');
selection.hidden = pointed.hidden = true;

const nouns = { call: 'calls', result: 'results', summary: 'summaries', placeholder: 'placeholders' };
const noun = (kind) => nouns[kind] || kind;

let shown = null;  // the picture, see unpack
let place = null;  // its layout
let drawn = null;  // the items on the canvas, which may be on their way
let set = null;    // the textures
let focus = null;  // the class that a person looks at in the legend: a kind, "hidden" or null
let cursor = -1;   // the run of the keyboard
let zoomed = false; // there is no free space
let buffer = null;
let image = null;

const still = matchMedia('(prefers-reduced-motion: reduce)');

// pictures are those that were loaded, by their requests.
const pictures = new Map();
let loading = null;

async function fetchPicture(request, signal) {
  if (pictures.has(request)) return pictures.get(request);
  const response = await fetch(`${session.path}/picture${request ? `?request=${request}` : ''}`, { signal });
  if (!response.ok) throw new Error(`picture of request ${request}: status ${response.status}`);
  const p = unpack(await response.json());
  pictures.set(request, p);
  if (pictures.size > 24) pictures.delete(pictures.keys().next().value);
  return p;
}

// load shows the picture of the moment of the page.
export async function load() {
  loading?.abort();
  const { signal } = loading = new AbortController();
  const request = session.request;
  try {
    const p = await fetchPicture(request, signal);
    if (signal.aborted) return;
    show(p);
    // The neighbors are likely to be next.
    for (const next of request ? [request - 1, request + 1] : [session.requests]) {
      if (next > 0 && next <= session.requests && !signal.aborted) await fetchPicture(next, signal).catch(() => {}); // it loads when it is shown
    }
  } catch (e) {
    if (!signal.aborted) throw e;
  }
}

function show(p) {
  shown = p;
  cursor = -1;
  change();
  if (!pointed.hidden) { pointed.hidden = true; tip.hide(); }
  if (!p.request) document.dispatchEvent(new CustomEvent('furl:size', { detail: p.size }));
  host.dataset.request = p.request;
}

// change goes from what is drawn to the picture.
function change() {
  const before = drawn;
  place = layout(shown, strip.clientWidth, zoomed);
  const final = items(shown, place);
  if (before && !still.matches && document.visibilityState === 'visible') morph(before, final);
  else draw(final);
  limits();
  describe();
  mark();
}

// morph draws the way from one picture to the next.
let frame = 0;
const duration = 250;
function morph(from, final) {
  cancelAnimationFrame(frame);
  const step = between(from, final);
  const start = performance.now();
  const next = (now) => {
    const t = Math.min(1, Math.max(0, (now - start) / duration));
    if (t === 1) return draw(final);
    draw(step(t < .5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2));
    frame = requestAnimationFrame(next);
  };
  frame = requestAnimationFrame(next);
}

// draw draws items, by default those of the picture.
export function draw(list = items(shown, place)) {
  cancelAnimationFrame(frame);
  drawn = list;
  const ratio = devicePixelRatio || 1;
  const width = Math.max(1, Math.round(strip.clientWidth * ratio));
  const height = Math.max(1, Math.round(strip.clientHeight * ratio));
  if (!set || set.height !== height || set.ratio !== ratio) {
    set = textures(shown.kinds, height, ratio, focus === null ? undefined : (kind, hidden) => focus !== (hidden ? 'hidden' : kind));
    set.ratio = ratio;
  }
  if (canvas.width !== width || canvas.height !== height || !image) {
    canvas.width = width;
    canvas.height = height;
    image = new ImageData(width, height);
  }
  buffer = paint(image, list, set, ratio, buffer);
  canvas.getContext('2d').putImageData(image, 0, 0);
}

function redraw() {
  if (!shown) return;
  set = null;
  place = layout(shown, strip.clientWidth, zoomed);
  draw();
  limits();
  describe();
  mark();
}

// limits marks the window, the trigger and the target, and says their sizes below. Labels
// end at what they name; they move left if another one is there, and the least important
// are left out if there is no room.
function limits() {
  const labels = [];
  const add = (className, tokens, text) => labels.push({ className, x: position(shown, place, tokens), text });
  if (shown.window && !zoomed) add('window', shown.window, `window ${tip.count(shown.window)}`);
  add('used', shown.size, `${tip.tokens(shown.size)}${shown.window ? ` (${tip.share(shown.size, shown.window)})` : ''}`);
  for (const [el, tokens, word] of [[trigger, shown.trigger, 'trigger'], [target, shown.target, 'target']]) {
    el.hidden = !tokens || tokens > place.whole;
    if (el.hidden) continue;
    el.style.left = `${position(shown, place, tokens)}px`;
    add(word, tokens, `${word} ${tip.count(tokens)}`);
  }
  axis.replaceChildren();
  const taken = [];
  for (const l of labels) {
    const el = make('span', l.className, axis);
    el.textContent = l.text;
    const w = el.offsetWidth;
    let left = Math.max(0, Math.min(place.width, l.x + (l.className === 'window' ? 0 : 3)) - w);
    for (const [from, to] of taken) if (left < to + 12 && left + w > from - 12) left = from - 12 - w;
    if (left < 0 || left + w < l.x - 130 || taken.some(([from, to]) => left < to + 12 && left + w > from - 12)) { el.remove(); continue; }
    taken.push([left, left + w]);
    el.style.left = `${left}px`;
  }
}

// describe writes the legend and the table.
function describe() {
  const sums = new Float64Array(2 * shown.kinds.length);
  for (let i = 0; i < shown.n; i++) sums[shown.cls[i]] += shown.tokens[i];
  const list = document.createElement('ul');
  const add = (name, cls, text, title, word = noun(name)) => {
    const li = make('li', '', list);
    const button = make('button', 'quiet', li);
    button.type = 'button';
    button.dataset.focus = name;
    button.title = title;
    button.setAttribute('aria-pressed', String(focus === name));
    button.append(swatch(shown.kinds, cls, 14, 11));
    make('span', 'name', button).textContent = word;
    make('span', 'amount', button).textContent = text;
  };
  shown.kinds.forEach((kind, k) => {
    const n = sums[2 * k];
    if (n) add(kind, 2 * k, `${tip.count(n)} ${tip.share(n, shown.size)}`, `${tip.tokens(n)} of ${noun(kind)}, ${tip.share(n, shown.size)} of the prompt. Click to highlight.`);
  });
  if (shown.hidden) {
    const scale = place.ratio > 1.05 ? ` ${ratioText(place.ratio)}` : '';
    const most = sums.reduce((best, v, c) => (c & 1 && v > sums[best] ? c : best), 1);
    const parts = [reduced() && `${tip.tokens(reduced())} hidden by reductions`, shown.dropped && `${tip.tokens(shown.dropped)} of earlier thinking, which the provider drops`].filter(Boolean);
    const amount = reduced() && shown.dropped ? `${tip.count(reduced())}, dropped thinking ${tip.count(shown.dropped)}` : tip.count(shown.hidden);
    add('hidden', most, `${amount}${scale}`, `The model does not see ${parts.join(' and ')}${scale ? `; drawn at ${ratioText(place.ratio)}` : ''}. Click to highlight.`, reduced() ? 'hidden' : 'dropped thinking');
  }
  legend.querySelector('ul')?.remove();
  legend.append(list);
  strip.setAttribute('aria-valuemax', shown.n);
  if (cursor < 0) { strip.setAttribute('aria-valuenow', 0); strip.setAttribute('aria-valuetext', summary()); }
  const t = document.createElement('table');
  make('caption', '', t).textContent = summary();
  const head = make('tr', '', make('thead', '', t));
  for (const h of ['Kind', 'Tokens', 'Share', 'Hidden tokens']) { const th = make('th', '', head); th.scope = 'col'; th.textContent = h; }
  const body = make('tbody', '', t);
  shown.kinds.forEach((kind, k) => {
    if (!sums[2 * k] && !sums[2 * k + 1]) return;
    const tr = make('tr', '', body);
    const th = make('th', '', tr);
    th.scope = 'row';
    th.textContent = noun(kind);
    for (const text of [tip.count(sums[2 * k]), tip.share(sums[2 * k], shown.size), tip.count(sums[2 * k + 1])]) make('td', '', tr).textContent = text;
  });
  table.replaceChildren(t);
}

const ratioText = (r) => `scale 1:${r < 10 ? r.toFixed(1).replace(/\.0$/, '') : Math.round(r)}`;

// reduced is the size of what reductions hide, without what the provider drops.
const reduced = () => shown.hidden - shown.dropped;

const summary = () => `${tip.count(shown.size)}${shown.window ? ` of ${tip.count(shown.window)}` : ''} tokens in ${shown.request ? `request ${tip.count(shown.request)}` : 'the next request'}, ${tip.tokens(reduced())} hidden`;

legend.addEventListener('click', (e) => {
  const button = e.target.closest('[data-focus]');
  if (!button) return;
  focus = focus === button.dataset.focus ? null : button.dataset.focus;
  for (const b of legend.querySelectorAll('[data-focus]')) b.setAttribute('aria-pressed', String(b.dataset.focus === focus));
  set = null;
  draw();
});

// On a narrow screen the legend is folded.
const narrow = matchMedia('(max-width: 860px)');
const fold = () => { legend.open = !narrow.matches; };
narrow.addEventListener('change', fold);
fold();

// handle is what a run selects: its block, or the reduction whose text it is; null for
// instructions and tools.
function handle(i) {
  if (shown.record[i]) return `${shown.record[i]}.${shown.block[i]}`;
  return shown.by[i] ? String(shown.by[i]) : null;
}

function kindAt(i) { return shown.kinds[shown.cls[i] >> 1]; }
const isHidden = (i) => (shown.cls[i] & 1) === 1;

// words says what a run is, without what the server knows.
function words(i) {
  const size = tip.tokens(shown.tokens[i]);
  if (!isHidden(i)) return `${kindAt(i)} · ${size}`;
  return `${kindAt(i)} · ${size}, ${shown.by[i] ? `hidden by reduction ${shown.by[i]}` : 'dropped by the provider'}`;
}

// peeks are the descriptions of the server, by their addresses.
const peeks = new Map();
async function peek(key) {
  const url = address('peek', { at: key });
  if (!peeks.has(url)) {
    if (peeks.size > 500) peeks.clear();
    peeks.set(url, fetch(url, { headers: { 'HX-Request': 'true' } }).then((r) => (r.ok ? r.text() : '')));
  }
  return new DOMParser().parseFromString(await peeks.get(url), 'text/html').body;
}

function frameRuns(el, first, last) {
  const least = 4;
  const x0 = place.x[first];
  const x1 = place.x[last + 1];
  const w = Math.max(least, x1 - x0);
  el.style.left = `${Math.max(0, Math.min(place.width - w, (x0 + x1 - w) / 2))}px`;
  el.style.width = `${w}px`;
  el.hidden = false;
}

// pick returns the run at a point of the strip. Where several share a pixel, each class has
// its part of the height.
function pick(x, y) {
  const ratio = set.ratio;
  const column = Math.floor(x * ratio);
  const classes = 2 * shown.kinds.length;
  let sum = 0;
  let cls = -1;
  for (const c of stacking(classes)) {
    const s = buffer[column * classes + c];
    if (!s) continue;
    cls = c;
    if ((sum += s) * strip.clientHeight > y) break;
  }
  const first = at(place, column / ratio);
  if (first < 0) return at(place, x);
  let best = -1;
  let most = 0;
  for (let i = first; i < shown.n && place.x[i] < (column + 1) / ratio; i++) {
    const overlap = Math.min(place.x[i + 1], (column + 1) / ratio) - Math.max(place.x[i], column / ratio);
    if (shown.cls[i] === cls && overlap >= most) { best = i; most = overlap; }
  }
  return best < 0 ? first : best;
}

let told = null; // the key of the tooltip
let timer = 0;

function tell(i) {
  frameRuns(pointed, i, i);
  const key = handle(i);
  const box = strip.getBoundingClientRect();
  const x = box.left + (place.x[i] + place.x[i + 1]) / 2;
  const head = tip.line(words(i), 'what');
  head.prepend(swatch(shown.kinds, shown.cls[i], 14, 11));
  told = `${session.request}/${i}`;
  const now = told;
  tip.show(x, box.top, box.bottom, head);
  clearTimeout(timer);
  if (!key) return;
  timer = setTimeout(async () => {
    const more = await peek(key);
    if (told === now) tip.show(x, box.top, box.bottom, head, ...more.children);
  }, 60);
}

function hush() {
  told = null;
  clearTimeout(timer);
  pointed.hidden = true;
  tip.hide();
}

strip.addEventListener('pointermove', (e) => {
  if (!shown || e.pointerType === 'touch') return;
  const box = strip.getBoundingClientRect();
  const i = pick(e.clientX - box.left, e.clientY - box.top);
  strip.classList.toggle('over', i >= 0 && handle(i) !== null);
  if (i >= 0) return tell(i);
  hush();
  if (shown.window > shown.size) tip.show(e.clientX, box.top, box.bottom, tip.line(`free · ${tip.tokens(shown.window - shown.size)}`, 'what'));
});
strip.addEventListener('pointerleave', hush);
strip.addEventListener('click', (e) => {
  if (!shown) return;
  const box = strip.getBoundingClientRect();
  const i = pick(e.clientX - box.left, e.clientY - box.top);
  if (i < 0) return;
  cursor = i;
  valueOf(i);
  if (handle(i)) select(handle(i));
  else tell(i);
});

// The keys of the strip: the selection follows when they rest.
let resting = 0;
function go(i) {
  cursor = Math.max(0, Math.min(shown.n - 1, i));
  valueOf(cursor);
  tell(cursor);
  clearTimeout(resting);
  const key = handle(cursor);
  if (key) resting = setTimeout(() => select(key), 150);
}

// open selects a run, and unfolds it in the transcript.
async function open(key) {
  await select(key, { focus: true });
  const folded = document.querySelector('.part.selected details, details.row.selected');
  if (folded) folded.open = true;
}

function valueOf(i) {
  strip.setAttribute('aria-valuenow', i + 1);
  strip.setAttribute('aria-valuetext', words(i));
}

strip.addEventListener('keydown', (e) => {
  if (!shown || !shown.n || e.ctrlKey || e.metaKey || e.altKey) return;
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
  const from = cursor >= 0 ? cursor : indexOf(selected);
  if (e.key in steps) go(from < 0 ? (steps[e.key] > 0 ? 0 : shown.n - 1) : from + steps[e.key]);
  else if (e.key === 'Home') go(0);
  else if (e.key === 'End') go(shown.n - 1);
  else if (e.key === 'Escape') return hush();
  else if (e.key === 'Enter' && cursor >= 0 && handle(cursor)) {
    clearTimeout(resting);
    open(handle(cursor));
  } else return;
  e.preventDefault();
  e.stopPropagation();
});
strip.addEventListener('blur', hush);

// indexOf returns the first run of a selection, -1 if it has none.
function indexOf(key) {
  if (!key || !shown) return -1;
  const [record, block] = key.split('.').map(Number);
  for (let i = 0; i < shown.n; i++) {
    if (shown.record[i] === record && (block === undefined || shown.block[i] === block)) return i;
    if (block === undefined && shown.record[i] === 0 && shown.by[i] === record) return i;
  }
  return -1;
}

// mark outlines the selection.
function mark() {
  const first = indexOf(selected);
  if (first < 0) { selection.hidden = true; return; }
  const [, block] = selected.split('.');
  let last = first;
  const same = (i) => (shown.record[first] ? shown.record[i] === shown.record[first] && (block === undefined || shown.block[i] === shown.block[first]) : shown.by[i] === shown.by[first] && !shown.record[i]);
  while (last + 1 < shown.n && same(last + 1)) last++;
  frameRuns(selection, first, last);
  if (cursor < first || cursor > last) cursor = first;
}

document.addEventListener('furl:selected', () => { if (shown) mark(); });
document.addEventListener('furl:moment', load);
document.addEventListener('furl:changed', () => {
  pictures.clear(); // after a rewind, requests have other numbers
  peeks.clear();
  if (!session.request) follow();
});

// follow shows the newest picture. Changes while it loads do not cancel it, so that the ribbon
// keeps up with a busy session on a slow machine.
let following = false;
let stale = false;
async function follow() {
  stale = true;
  if (following) return;
  following = true;
  try {
    while (stale && !session.request) {
      stale = false;
      pictures.clear();
      await load();
    }
  } finally {
    following = false;
  }
}
onRestyle(redraw);
new ResizeObserver(() => { if (shown && (place.width !== strip.clientWidth || set?.ratio !== devicePixelRatio)) redraw(); }).observe(strip);

const button = document.getElementById('zoom');
function zoom() {
  zoomed = !zoomed;
  button.setAttribute('aria-pressed', String(zoomed));
  if (shown) change();
  document.dispatchEvent(new CustomEvent('furl:zoom', { detail: zoomed }));
}
button.addEventListener('click', zoom);
on.z = zoom;

// What is fixed on top has another height on each screen.
load();
