// The keys of a session's page. The sheet of the key ? lists them.
import { select, deselect, selected, session, rowOf, bring } from './session.js';

const transcript = document.getElementById('transcript');

// rows are the rows that are loaded, in order.
const rows = () => [...transcript.querySelectorAll('.row[data-seq]')];

// current is the selected row, or else the first one in view.
function current(list) {
  const seq = selected && selected.split('.')[0];
  const found = list.findIndex((r) => r.dataset.seq === seq);
  if (found >= 0) return found;
  const top = document.getElementById('picture').getBoundingClientRect().bottom;
  return Math.max(0, list.findIndex((r) => r.getBoundingClientRect().bottom > top)) - 1;
}

// step selects the row that is n rows away.
function step(n) {
  const list = rows();
  const row = list[Math.min(list.length - 1, Math.max(0, current(list) + n))];
  if (row) select(row.dataset.seq, { focus: true });
}

// reduction selects the next marker in a direction, and opens it. If the loaded rows have
// none, it looks in the list of the server.
async function reduction(direction) {
  const response = await fetch(`${session.path}/markers?after=${selected ? selected.split('.')[0] : ''}&direction=${direction}`);
  const seq = response.ok && Number(await response.text());
  if (!seq) return;
  const row = await rowOf(seq);
  const details = row && row.querySelector(':scope > details');
  if (details) details.open = true;
  select(String(seq), { focus: true });
}

// end goes to the first or the last message.
async function end(last) {
  const chunks = transcript.querySelectorAll('.chunk');
  const chunk = chunks[last ? chunks.length - 1 : 0];
  const { load } = await import('./session.js');
  await load(chunk);
  const list = chunk.querySelectorAll('.row[data-seq]');
  const row = list[last ? list.length - 1 : 0];
  if (row) { bring(row); select(row.dataset.seq, { focus: true }); }
}

function toggleMode() {
  const url = new URL(location);
  if (session.see === 'model') url.searchParams.delete('see');
  else url.searchParams.set('see', 'model');
  location.assign(url);
}

// difference opens the page of the request that is shown, which compares it with the one
// before.
function difference() {
  const n = session.request || session.requests;
  if (n) location.assign(`${session.path}/requests/${n}`);
}

const sheet = document.getElementById('keys');

// on is what each key does. Other scripts add to it.
export const on = {
  j: () => step(1), k: () => step(-1), ArrowDown: null, n: () => reduction('next'), N: () => reduction('previous'),
  g: () => end(false), G: () => end(true), m: toggleMode, d: difference,
  '?': () => sheet.showModal(),
  Escape: () => { if (document.dispatchEvent(new CustomEvent('furl:close', { cancelable: true }))) deselect(); },
  Enter: () => {
    const row = rows()[current(rows())];
    const details = row && (row.querySelector('.part.selected details') || row.querySelector('details'));
    if (details) details.open = !details.open;
  },
};

document.querySelector('[data-keys]')?.addEventListener('click', () => sheet.showModal());

addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
  if (e.target.closest('input, textarea, select, [contenteditable], dialog')) return;
  if (e.key === 'Enter' && e.target.closest('a, button, summary')) return;
  const act = on[e.key];
  if (!act) return;
  e.preventDefault();
  act(e);
});
