// The list of sessions: folds groups, loads the figures of rows that are in view, and
// keeps the list of live sessions up to date.
import { focusByKey } from './focus.js';

// Which groups are folded is kept in this browser.
const storageKey = 'furl.folded';

function foldedGroups() {
  try {
    const list = JSON.parse(localStorage.getItem(storageKey));
    return new Set(Array.isArray(list) ? list : []);
  } catch {
    return new Set();
  }
}

// fold shows or hides the rows of a group.
function fold(group, on) {
  group.classList.toggle('folded', on);
  group.querySelector('.fold').setAttribute('aria-expanded', String(!on));
}

document.addEventListener('click', (e) => {
  const button = e.target.closest('.fold');
  if (!button) return;
  const group = button.closest('tbody');
  const on = !group.classList.contains('folded');
  fold(group, on);
  const list = foldedGroups();
  if (on) list.add(group.dataset.group);
  else list.delete(group.dataset.group);
  try {
    localStorage.setItem(storageKey, JSON.stringify([...list].slice(-500)));
  } catch {
    // A browser without storage forgets what is folded.
  }
});

// Figures that were loaded, by session and number of records: the cells of a row.
const known = new Map();
const waiting = [];
let running = 0;
const parallel = 3;

const keyOf = (row) => `${row.dataset.session} ${row.dataset.records}`;

// fill puts loaded cells into a row.
function fill(row, cells) {
  for (const cell of row.querySelectorAll('[data-cell]')) {
    const found = cells.querySelector(`[data-cell="${cell.dataset.cell}"]`);
    if (found) cell.replaceChildren(...[...found.childNodes].map((n) => n.cloneNode(true)));
  }
}

async function next() {
  if (running >= parallel || !waiting.length) return;
  const row = waiting.shift();
  if (!row.isConnected) return next();
  running++;
  try {
    const response = await fetch(`/furl/sessions/${encodeURIComponent(row.dataset.session)}/spark?records=${row.dataset.records}`, { headers: { 'HX-Request': 'true' } });
    if (response.ok) {
      const template = document.createElement('template');
      template.innerHTML = await response.text();
      known.set(keyOf(row), template.content);
      fill(row, template.content);
    }
  } catch {
    // The row keeps what the ledger says.
  } finally {
    running--;
    next();
  }
  return undefined;
}

const seen = new IntersectionObserver((entries) => {
  for (const e of entries) {
    if (!e.isIntersecting) continue;
    seen.unobserve(e.target);
    waiting.push(e.target);
    next();
  }
}, { rootMargin: '80px 0px' });

// prepare readies a list that the server has rendered.
function prepare() {
  const list = foldedGroups();
  for (const group of document.querySelectorAll('tbody[data-group]')) if (list.has(group.dataset.group)) fold(group, true);
  seen.disconnect();
  for (const row of document.querySelectorAll('tr[data-session]')) {
    const cells = known.get(keyOf(row));
    if (cells) fill(row, cells);
    else if (!row.querySelector('.spark svg')) seen.observe(row);
  }
}

document.addEventListener('htmx:afterSwap', (e) => { if (e.detail.target.id === 'listing' || e.detail.elt?.id === 'listing') prepare(); });

// The list follows the text while it is typed. To load it again when the field loses the
// focus would replace what the person is about to click on.
document.querySelector('.find input')?.addEventListener('change', (e) => e.stopPropagation());

// Empty fields make no parameters.
document.addEventListener('htmx:configRequest', (e) => {
  const parameters = e.detail.parameters;
  for (const name of Object.keys(parameters)) if (parameters[name] === '') delete parameters[name];
});

// A list with live sessions is loaded again from time to time, but not while a person uses
// it.
const refreshEvery = 15000;

setInterval(() => {
  const listing = document.getElementById('listing');
  if (!listing || !('live' in listing.dataset) || document.hidden || listing.contains(document.activeElement) || listing.matches(':hover')) return;
  fetch(`/furl/sessions${listing.dataset.here.slice(1)}`, { headers: { 'HX-Request': 'true' } })
    .then((r) => (r.ok ? r.text() : null))
    .then((html) => {
      if (!html || !listing.isConnected || listing.querySelector('.found')) return;
      listing.outerHTML = html;
      htmx.process(document.getElementById('listing'));
      prepare();
    })
    .catch(() => {}); // the next time
}, refreshEvery);

document.addEventListener('keydown', (e) => {
  if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, textarea, select')) return;
  e.preventDefault();
  const input = document.querySelector('.find input');
  if (input) focusByKey(input, '/');
});

prepare();

// htmx shows nothing of a failed request.
for (const name of ['htmx:responseError', 'htmx:sendError', 'htmx:timeout']) {
  document.addEventListener(name, (e) => {
    const p = document.createElement('p');
    p.className = 'notice';
    p.textContent = 'furl does not respond, so the list is as it was. Try again.';
    document.getElementById('notices').replaceChildren(p);
    if (e.detail.elt.closest?.('.found')) e.detail.elt.replaceChildren(p.cloneNode(true));
    setTimeout(() => p.remove(), 8000);
  });
}
