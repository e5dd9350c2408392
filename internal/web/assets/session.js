// The page of a session: loads chunks of the transcript as they come into view, and
// keeps one selection in the transcript, the inspector and the address.
const picture = document.getElementById('picture');
export const session = {
  path: location.pathname,
  id: picture.dataset.session,
  request: Number(picture.dataset.request),
  requests: Number(picture.dataset.requests),
  see: picture.dataset.see,
  head: Number(picture.dataset.head),
  branch: picture.dataset.branch || '', // a branch that is not current
};

// address returns the address of a part of the session at the moment that is shown.
export function address(part, params = {}) {
  const query = new URLSearchParams(params);
  if (session.request) query.set('request', session.request);
  if (session.branch) query.set('branch', session.branch);
  if (session.see === 'model') query.set('see', 'model');
  return `${session.path}/${part}?${query}`;
}

const loading = new Map();

// html returns a part of the session's page in HTML. It throws an error if the server does not
// respond or responds with an error.
export async function html(part, params, options) {
  const response = await fetch(address(part, params), { headers: { 'HX-Request': 'true' }, ...options });
  const to = response.headers.get('HX-Redirect');
  if (to) location.assign(to); // the login form
  const text = await response.text();
  if (!response.ok) throw new Error(`status ${response.status}`);
  return text;
}

// load fills a chunk and returns a promise of it.
export function load(chunk) {
  if (loading.has(chunk)) return loading.get(chunk);
  if (chunk.childElementCount) return Promise.resolve(chunk);
  const loaded = html('messages', { chunk: chunk.dataset.chunk })
    .then((text) => fill(chunk, text), () => failed(chunk))
    .then(() => chunk)
    .finally(() => loading.delete(chunk));
  loading.set(chunk, loaded);
  return loaded;
}

const filling = []; // chunks and the rows that they do not have yet, the oldest first

// fill adds rows to a chunk, some in each frame, so that no frame is late while a person
// scrolls. The chunk is drawn meanwhile although it is not in view yet: its rows would all be
// laid out in one frame otherwise, when it comes into view.
async function fill(chunk, text) {
  const template = document.createElement('template');
  template.innerHTML = text;
  chunk.style.contentVisibility = 'visible';
  await new Promise((filled) => {
    filling.push({ chunk, rows: template.content, filled });
    if (filling.length === 1) fillSome();
  });
  chunk.style.contentVisibility = '';
  chunk.style.minHeight = '';
}

// fillSome adds rows for some milliseconds, and continues in the next frame. There are none in
// a hidden tab or for chunks that are no longer on the page, so that they are filled at once.
function fillSome() {
  const until = performance.now() + 5;
  while (filling.length) {
    const { chunk, rows, filled } = filling[0];
    while (rows.firstElementChild) {
      const seen = !document.hidden && chunk.isConnected;
      if (seen && performance.now() > until) { requestAnimationFrame(fillSome); return; }
      chunk.append(rows.firstElementChild);
      if (seen) chunk.lastElementChild.getBoundingClientRect(); // lays it out
    }
    filling.shift();
    filled();
  }
}

// failed shows in place of a chunk that it was not loaded, with a button that tries again.
function failed(chunk) {
  const p = document.createElement('p');
  p.className = 'notice';
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Try again';
  button.addEventListener('click', () => { chunk.replaceChildren(); load(chunk); });
  p.append('These messages were not loaded. ', button);
  chunk.replaceChildren(p);
}

const transcript = document.getElementById('transcript');

const near = new IntersectionObserver((entries) => {
  for (const e of entries) if (e.isIntersecting) { near.unobserve(e.target); load(e.target); }
}, { rootMargin: '2000px 0px' });

// watch prepares the chunks of a transcript that the server has rendered.
export function watch() {
  for (const chunk of transcript.querySelectorAll('.chunk')) {
    const height = `${chunk.dataset.height}px`;
    chunk.style.containIntrinsicHeight = `auto ${height}`; // until it is drawn
    if (chunk.childElementCount) continue;
    chunk.style.minHeight = height;
    near.observe(chunk);
  }
}

// rowOf returns the row of a record, loading its chunk if necessary; null if the
// transcript does not have it.
export async function rowOf(seq) {
  const found = document.getElementById('m' + seq);
  if (found) return found;
  let number;
  try {
    number = Number(await html('chunk', { at: seq }));
  } catch {
    return null;
  }
  const chunk = transcript.querySelector(`.chunk[data-chunk="${number}"]`);
  if (!chunk) return null;
  await load(chunk);
  return document.getElementById('m' + seq);
}

export let selected = null; // "12" or "12.0", or null

// mark shows the selection in the transcript.
function mark(row) {
  for (const old of document.querySelectorAll('.selected')) old.classList.remove('selected');
  if (!row) return;
  row.classList.add('selected');
  const details = row.classList.contains('marker') && row.querySelector(':scope > details');
  if (details) details.open = true;
  const part = row.querySelector(`.part[data-at="${CSS.escape(selected)}"]`);
  if (part) part.classList.add('selected');
}

// select makes a message, a block or a reduction the selection: "12" or "12.0". The
// transcript scrolls to it, the inspector shows it, and the address names it. Others
// learn of it by the event "furl:selected".
export async function select(at, { push = true, scroll = true, focus = false } = {}) {
  selected = at;
  if (push) {
    const url = new URL(location);
    if (url.searchParams.get('at') !== at) {
      url.searchParams.set('at', at);
      history.pushState(null, '', url);
    }
  }
  document.dispatchEvent(new CustomEvent('furl:selected', { detail: at }));
  htmx.ajax('GET', address('inspect', { at }), { target: '#inspector' }).catch(() => {}); // live.js says that it failed
  const row = await rowOf(at.split('.')[0]);
  if (selected !== at) return; // another one meanwhile
  mark(row);
  if (row && scroll) bring(target(row));
  if (row && focus) { row.tabIndex = -1; row.focus({ preventScroll: true }); }
}

// target is what scrolls into view: the row, or the selected part if it is far below.
function target(row) {
  const part = row.querySelector('.part.selected');
  const far = part && part.getBoundingClientRect().top - row.getBoundingClientRect().top > 160;
  return far ? part : row;
}

// deselect ends the selection. The address names none then, and on a narrow screen the sheet
// of the inspector closes.
export function deselect({ push = true } = {}) {
  if (!selected) return;
  selected = null;
  if (push) {
    const url = new URL(location);
    url.searchParams.delete('at');
    history.pushState(null, '', url);
  }
  mark(null);
  inspector.replaceChildren(document.querySelector('#unselected .empty').cloneNode(true));
  document.dispatchEvent(new CustomEvent('furl:selected', { detail: null }));
}

const inspector = document.getElementById('inspector');
inspector.addEventListener('click', (e) => {
  if (!e.target.closest('[data-deselect]')) return;
  deselect();
  transcript.focus({ preventScroll: true });
});

// visible returns the upper and the lower end of what is not covered: the picture is on top,
// and on a narrow screen the inspector is a sheet at the bottom.
function visible() {
  const stuck = (element) => (getComputedStyle(element).position === 'sticky' ? (parseFloat(getComputedStyle(element).top) || 0) + element.offsetHeight : 0);
  const top = Math.max(stuck(picture), stuck(above));
  const sheet = getComputedStyle(inspector);
  const covered = sheet.position === 'fixed' && sheet.display !== 'none';
  return { top: top + 8, bottom: covered ? inspector.getBoundingClientRect().top : innerHeight };
}

const above = document.querySelector('.above');

// The modes and the actions stay below the picture, whose height depends on its legend. The
// inspector and what gets the focus stay below both.
const covers = new ResizeObserver(() => {
  const { style } = document.documentElement;
  style.setProperty('--stuck', `${(parseFloat(getComputedStyle(picture).top) || 0) + picture.offsetHeight}px`);
  style.setProperty('--covered', `${visible().top - 8}px`);
});
for (const element of [picture, above, document.documentElement]) covers.observe(element);

let bringing = null; // what bring keeps in view
let letGo = null; // the timer that ends it

// hold keeps something in its place, instead of the browser, which would keep what is on top of
// the window: until nothing has moved for three seconds, and until the ribbon is drawn, whose
// legend takes room. On a slow machine that takes longer.
function hold(what) {
  bringing = what;
  document.documentElement.style.overflowAnchor = 'none';
  const most = performance.now() + 20000;
  const later = () => {
    const drawn = 'request' in document.getElementById('ribbon').dataset;
    if (drawn || performance.now() > most) release();
    else letGo = setTimeout(later, 1000);
  };
  what.wait = () => {
    clearTimeout(letGo);
    letGo = setTimeout(later, 3000);
  };
  what.wait();
}

// bring scrolls an element into view, unless it is there. Messages around it load and take
// their real heights meanwhile, so it keeps the element in its place until they have, or
// until the person scrolls.
export function bring(element) {
  const { top, bottom } = visible();
  const box = element.getBoundingClientRect();
  const least = element.matches('.marker') ? 240 : 40; // an open marker shows why it hides
  const there = box.top >= top && Math.min(box.bottom, box.top + least) <= bottom;
  if (!there) scrollBy(0, box.top - top);
  hold({ element, at: there ? box.top : top });
}

// settle puts what bring keeps in view back into its place, after heights have changed.
function settle() {
  if (!bringing) return;
  if (!bringing.element.isConnected) { release(); return; }
  const off = bringing.end ? document.documentElement.scrollHeight - innerHeight - scrollY : distance();
  if (Math.abs(off) > 1) {
    bringing.wait();
    scrollBy(0, off);
  }
}

const heights = new ResizeObserver(settle);
for (const element of [transcript, picture, inspector]) heights.observe(element);

// distance returns how far the element has moved away from its place.
function distance() {
  const { top, bottom } = visible(); // the legend and the sheet may have opened
  if (bringing.at < top || bringing.at + 40 > bottom) bringing.at = top;
  return bringing.element.getBoundingClientRect().top - bringing.at;
}

// release lets go of what bring keeps in view.
export function release() {
  bringing = null;
  clearTimeout(letGo);
  document.documentElement.style.overflowAnchor = '';
}
for (const name of ['wheel', 'touchstart', 'pointerdown', 'keydown']) addEventListener(name, release, { passive: true, capture: true });

transcript.addEventListener('click', (e) => {
  const link = e.target.closest('[data-inspect]');
  const anchor = e.target.closest('.anchor');
  const part = e.target.closest('.part[data-at]');
  const row = e.target.closest('.row[data-seq]');
  if (link || anchor) e.preventDefault();
  if (link) select(link.dataset.inspect);
  else if (anchor) select(row.dataset.seq, { scroll: false });
  else if (part && !getSelection().toString()) select(part.dataset.at, { scroll: false });
});

// Folded parts are loaded when they are opened.
transcript.addEventListener('toggle', async (e) => {
  const at = e.target.dataset.part;
  if (!e.target.open || !at || e.target.dataset.loaded) return;
  e.target.dataset.loaded = 'true';
  const body = e.target.querySelector('.body');
  try {
    body.innerHTML = await html('part', { at });
  } catch {
    delete e.target.dataset.loaded; // opening it again tries again
    body.textContent = 'This was not loaded. Close and open it to try again.';
  }
}, true);

let moving = null; // the AbortController of the latest moveTo

// moveTo shows the session as the model saw it at a request, or now if the request is 0.
// Others learn of it by the event "furl:moment". replace changes the current entry of the
// history instead of adding one. After wait milliseconds without another moveTo, the
// transcript follows.
export async function moveTo(request, { push = true, replace = false, wait = 0 } = {}) {
  if (request === session.request) return;
  if (session.branch) { // requests are those of the current branch
    location.assign(`${session.path}?request=${request || 'now'}`);
    return;
  }
  session.request = request;
  near.disconnect(); // the chunks on the page are those of another moment
  if (push) {
    const url = new URL(location);
    if (request) url.searchParams.set('request', request);
    else url.searchParams.delete('request');
    history[replace ? 'replaceState' : 'pushState'](null, '', url);
  }
  document.dispatchEvent(new CustomEvent('furl:moment', { detail: request }));
  moving?.abort();
  const { signal } = moving = new AbortController();
  if (wait) await new Promise((done) => setTimeout(done, wait));
  if (signal.aborted) return;
  try {
    replaceParts(await html('transcript', selected ? { at: selected } : {}, { signal }));
  } catch {
    if (!signal.aborted) document.dispatchEvent(new CustomEvent('furl:failed', { detail: 'This moment was not loaded, so the transcript is of another one. Try again.' }));
  }
}

// again loads the transcript of the moment that is shown again, because other rows are in it.
export async function again({ end }) {
  replaceParts(await html('transcript', selected ? { at: selected } : {}), end ? undefined : scrollY);
  if (end) toEnd();
}

// replaceParts puts the elements of a response in the place of those with the same ids. What
// is selected stays where it is on the screen; if nothing is, the page scrolls to y.
function replaceParts(text, y = Infinity) {
  const row = () => selected && document.getElementById('m' + selected.split('.')[0]);
  const before = row()?.getBoundingClientRect().top;
  near.disconnect();
  for (const part of new DOMParser().parseFromString(text, 'text/html').body.children) {
    document.getElementById(part.id)?.replaceChildren(...part.childNodes);
  }
  watch();
  const after = row();
  mark(after);
  if (after && before !== undefined) scrollBy(0, after.getBoundingClientRect().top - before);
  else if (after) bring(after);
  else scrollTo(0, Math.min(y, document.body.scrollHeight));
  document.dispatchEvent(new CustomEvent('furl:transcript'));
}

addEventListener('popstate', () => {
  const query = new URL(location).searchParams;
  moveTo(Number(query.get('request')) || 0, { push: false });
  const at = query.get('at');
  if (!at) deselect({ push: false });
  else if (at !== selected) select(at, { push: false });
});

// start shows the selection of the address, or else the newest messages.
function start() {
  watch();
  const at = new URL(location).searchParams.get('at');
  if (at) {
    select(at, { push: false });
    rowOf(at.split('.')[0]).then((row) => row?.querySelector(':scope > details.opens')?.setAttribute('open', '')); // a reduction says what it hides
  } else if (transcript.lastElementChild) toEnd();
}

// toEnd shows the newest messages.
export function toEnd() {
  scrollTo(0, document.body.scrollHeight);
  hold({ element: transcript, end: true });
}
start();
