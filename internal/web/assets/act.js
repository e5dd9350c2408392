// Actions on the session. A link or a form with data-act shows its page in the panel: first
// what the action would do and its price, then what it has changed, with a button that undoes
// it. The server renders both.
import { session, selected } from './session.js';
import { changed, notice } from './live.js';
import { on } from './keys.js';

const panel = document.getElementById('act');
let opener = null; // what had the focus before the panel was opened
let last = null; // the form that undoes the last action: { url, body }

// show shows HTML of the server in the panel.
function show(html) {
  panel.innerHTML = html;
  if (!panel.open) panel.show();
  const first = panel.querySelector('textarea, input:not([type=hidden], [type=radio]), .ask button.primary, .ask:has(button.danger) a.cancel, [data-undo] button, input[type=radio]:checked, h2');
  (first || panel).focus({ preventScroll: true });
}

// close closes the panel and returns the focus.
export function close() {
  if (!panel.open) return;
  panel.close();
  panel.replaceChildren();
  if (opener?.isConnected) opener.focus({ preventScroll: true });
  else document.getElementById('transcript').focus({ preventScroll: true });
  opener = null;
}

// request gets or posts a page of an action and shows it.
async function request(url, body) {
  panel.setAttribute('aria-busy', 'true');
  try {
    const response = await fetch(url, { method: body ? 'POST' : 'GET', body, headers: { 'HX-Request': 'true' } });
    const to = response.headers.get('HX-Redirect');
    const html = await response.text();
    if (to && body) { leave(to); return; }
    show(html);
    if (response.ok && body) did();
  } catch {
    notice('furl did not respond. Nothing is known to have changed; load the page again.');
  } finally {
    panel.removeAttribute('aria-busy');
  }
}

// leave loads a page again: that of the session with the outcome of an action, or another one.
function leave(to) {
  const url = new URL(to, location);
  if (!url.pathname.endsWith('/act/done')) { location.assign(to); return; }
  sessionStorage.setItem('furl.done', to);
  location.assign(session.path);
}

// did tells the other parts of the page that the session has changed.
function did() {
  const form = panel.querySelector('form[data-undo]');
  last = form && { url: form.action, body: new URLSearchParams(new FormData(form)) };
  changed();
}

// open shows the page of an action.
export function open(url) {
  if (!panel.contains(document.activeElement)) opener = document.activeElement;
  return request(url);
}

document.addEventListener('click', (e) => {
  if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  if (panel.contains(e.target) && e.target.closest('[data-close]')) { e.preventDefault(); close(); return; }
  const link = e.target.closest('a[data-act]');
  if (!link) return;
  e.preventDefault();
  open(link.href);
});

document.addEventListener('submit', (e) => {
  const form = e.target.closest('form[data-act]');
  if (!form) return;
  e.preventDefault();
  const data = new URLSearchParams(new FormData(form));
  if (form.method === 'get') { request(`${form.action}?${data}`); return; }
  for (const b of form.querySelectorAll('button')) b.disabled = true;
  request(form.action, data);
});

// Choosing a policy previews it.
panel.addEventListener('change', (e) => { if (e.target.closest('.policies')) e.target.form.requestSubmit(); });

panel.addEventListener('keydown', (e) => {
  if (e.key === 'Escape') { e.preventDefault(); close(); }
  if (e.key === 'u' && !e.ctrlKey && !e.metaKey && !e.altKey && !e.target.closest('input, textarea, select')) { e.preventDefault(); undo(); }
});
document.addEventListener('furl:close', (e) => { if (panel.open) e.preventDefault(); close(); });

// press follows the link of a key in the inspector, after the inspector has shown the
// selection.
async function press(key, none) {
  if (!selected) { notice('Select a message first.'); return; }
  const inspector = document.getElementById('inspector');
  const shown = () => inspector.querySelector('[data-for]')?.dataset.for === selected;
  if (!shown()) await new Promise((done) => inspector.addEventListener('htmx:afterSwap', done, { once: true }));
  const link = shown() && inspector.querySelector(`a[data-key="${key}"]`);
  if (link) open(link.href);
  else notice(none);
}

// expand, pin and undo ask for the action on the selection.
export function expand() { return press('e', 'The model sees all of the selection already.'); }
export function pin() { return press('p', 'Only messages and results can be pinned.'); }

// undo undoes the last action of this page, or asks to undo the selected reduction.
export function undo() {
  if (!last) return press('u', 'Nothing was changed on this page. Select a reduction to undo it.');
  const { url, body } = last;
  last = null;
  if (!panel.contains(document.activeElement)) opener = document.activeElement;
  return request(url, body);
}

Object.assign(on, { e: expand, p: pin, u: undo });

// After the page was loaded again by an action, show the action's outcome.
const done = sessionStorage.getItem('furl.done');
if (done) {
  sessionStorage.removeItem('furl.done');
  if (new URL(done, location).pathname.startsWith(session.path + '/')) {
    request(done).then(() => { if (panel.querySelector('[data-done]')) did(); });
  }
}
