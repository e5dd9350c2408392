// New records of the session that is shown. A hidden tab disconnects, because browsers allow
// few connections to a host; when it is shown again, it continues where it was.
import { session, html, load, select, selected, toEnd, release, again } from './session.js';

const transcript = document.getElementById('transcript');
let source = null;
let last = session.head; // the newest record that this page has

// changed tells other parts of the page that the session has changed, at most twice per
// second.
let waiting = null;
export function changed() {
  waiting ??= setTimeout(async () => {
    waiting = null;
    try {
      const response = await fetch(`${session.path}/meter`, { headers: { 'HX-Request': 'true' } });
      if (response.ok) document.getElementById('meter').innerHTML = await response.text();
    } catch {
      // The next change loads it.
    }
    document.dispatchEvent(new CustomEvent('furl:changed'));
  }, 500);
}

// The time until the prompt cache expires counts down. Once it has, the meter is loaded again,
// because the price of the next message is another one.
function tick() {
  const next = document.querySelector('#meter [data-left]');
  if (!next) return;
  next.until ??= Date.now() + 1000 * Number(next.dataset.left);
  const left = Math.round((next.until - Date.now()) / 1000);
  if (left <= 0) {
    next.removeAttribute('data-left');
    changed();
  } else {
    const parts = [Math.floor(left / 3600), Math.floor(left / 60) % 60, left % 60].map((n) => String(n).padStart(2, '0'));
    next.textContent = next.textContent.replace(/ in [\d:]+/, ' in ' + parts.join(':').replace(/^00:/, '').replace(/^0/, ''));
  }
}
tick();
setInterval(tick, 1000);

const atEnd = () => innerHeight + scrollY > document.body.scrollHeight - 60;

// follows reports that the newest messages stay in view. It ends when the person scrolls up or
// selects something, and starts again at the end.
let follows = !selected && !new URL(location).searchParams.has('at');
let from = { y: scrollY, height: document.body.scrollHeight };
addEventListener('scroll', () => {
  const to = { y: scrollY, height: document.body.scrollHeight };
  if (atEnd()) follows = true;
  else if (follows && to.y < from.y && to.height === from.height) { follows = false; release(); }
  from = to;
}, { passive: true });
document.addEventListener('furl:selected', (e) => { if (e.detail) follows = false; });

// append adds a row to the end of the transcript, and keeps the end in view if it was.
async function append(row, seq) {
  if (document.getElementById('m' + seq)) return;
  let chunk = transcript.lastElementChild;
  if (chunk) await load(chunk);
  if (document.getElementById('m' + seq)) return;
  if (!chunk || chunk.childElementCount >= Number(transcript.dataset.chunkRows)) {
    const next = document.createElement('div');
    next.className = 'chunk';
    next.dataset.chunk = chunk ? Number(chunk.dataset.chunk) + 1 : 0;
    transcript.append(next);
    chunk = next;
  }
  chunk.insertAdjacentHTML('beforeend', row);
  chunk.lastElementChild.classList.add('new');
  if (follows) toEnd();
}

// refresh loads the rows again that are on the page, because they are shown in another way.
export async function refresh() {
  const shown = [...transcript.querySelectorAll('.chunk')].filter((c) => c.childElementCount);
  for (const chunk of shown) {
    const open = [...chunk.querySelectorAll('details[open]')].map((d) => d.dataset.part || d.id);
    let rows;
    try {
      await load(chunk); // if it has some of its rows
      rows = await html('messages', { chunk: chunk.dataset.chunk });
    } catch {
      continue;
    }
    chunk.innerHTML = rows;
    for (const d of chunk.querySelectorAll('details')) if (open.includes(d.dataset.part || d.id)) d.open = true;
  }
  const followed = follows;
  if (selected) select(selected, { push: false, scroll: false });
  follows = followed;
  if (follows) toEnd();
}

// notice says something to the person, also by a screen reader.
export function notice(text) {
  const p = document.createElement('p');
  p.textContent = text;
  const list = document.getElementById('notices');
  list.append(p);
  while (list.childElementCount > 2) list.firstElementChild.remove();
  setTimeout(() => p.remove(), 8000);
}

let queue = Promise.resolve(); // records are shown in their order

function received(e) {
  const record = JSON.parse(e.data);
  if (e.lastEventId) last = Math.max(last, Number(e.lastEventId));
  queue = queue.then(async () => {
    // What the model sees has no rows for reductions, and other rows after one.
    const model = session.see === 'model';
    if (record.row && !(model && record.changed)) await append(record.row, record.seq);
    if (record.changed) await (model ? again({ end: follows }) : refresh());
    for (const line of record.says || []) notice(line);
    changed();
  }).catch((e) => console.warn('a record was not shown', e)); // later ones are
}

// missing shows, after two seconds, that there is no connection, or hides it.
let timer = null;
function missing(on) {
  if (!on) {
    clearTimeout(timer);
    timer = null;
    document.getElementById('lost')?.remove();
    return;
  }
  timer ??= setTimeout(() => {
    const p = document.createElement('p');
    p.id = 'lost';
    p.className = 'notice';
    p.setAttribute('role', 'alert');
    p.textContent = 'furl does not respond. The page shows the session as it was; new messages appear when furl responds again.';
    document.body.append(p);
  }, 2000);
}

// lost is called when the connection ends. The browser reconnects by itself unless the server
// has refused it, as it does while it starts, or after the session was deleted.
async function lost() {
  missing(true);
  if (source?.readyState !== EventSource.CLOSED) return;
  disconnect();
  const response = await fetch(`${session.path}/meter`, { headers: { 'HX-Request': 'true' } }).catch(() => null);
  if (response?.status === 404) { missing(false); notice('This session does not exist any more. The page shows what it was.'); }
  else if (response?.status === 401) { missing(false); notice('Log in again to follow this session.'); }
  else setTimeout(connect, 5000);
}

function connect() {
  if (source || session.request || session.branch || document.hidden) return;
  source = new EventSource(`${session.path}/live?after=${last}`);
  source.addEventListener('record', received);
  source.addEventListener('error', lost);
  source.addEventListener('open', () => missing(false));
  source.addEventListener('reload', () => { disconnect(); location.reload(); });
}

function disconnect() {
  source?.close();
  source = null;
}

// leave disconnects on purpose.
function leave() {
  disconnect();
  missing(false);
}

document.addEventListener('visibilitychange', () => { if (document.hidden) leave(); else connect(); });
document.addEventListener('furl:moment', () => { if (session.request) leave(); else connect(); });
addEventListener('pagehide', leave);
document.addEventListener('furl:failed', (e) => notice(e.detail));
// htmx shows nothing of a failed request.
for (const name of ['htmx:responseError', 'htmx:sendError', 'htmx:timeout']) {
  document.addEventListener(name, (e) => {
    if (e.detail.target?.id === 'inspector') e.detail.target.replaceChildren();
    notice('A part of the page was not loaded: furl did not respond, or the session has changed. Try again.');
  });
}
connect();
