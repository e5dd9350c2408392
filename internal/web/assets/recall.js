// The recall box of a session: opens and closes its panel; hits become the selection.
import { select } from './session.js';
import { on } from './keys.js';
import { focusByKey } from './focus.js';

const box = document.getElementById('recall');
const input = box.querySelector('input[type=search]');
const panel = document.getElementById('recall-panel');

function open() { panel.hidden = false; }

// close hides the panel; the query stays.
function close() {
  if (panel.hidden) return false;
  panel.hidden = true;
  return true;
}

on['/'] = () => focusByKey(input, '/');
input.addEventListener('focus', open);
input.addEventListener('input', open);

box.addEventListener('keydown', (e) => {
  const links = [...panel.querySelectorAll('a[data-select]')];
  const at = links.indexOf(document.activeElement);
  if (e.key === 'Escape') {
    close();
    input.blur();
    document.activeElement?.blur();
  } else if (e.key === 'ArrowDown' && links.length) {
    links[Math.min(at + 1, links.length - 1)].focus();
  } else if (e.key === 'ArrowUp' && at >= 0) {
    (links[at - 1] || input).focus();
  } else {
    return;
  }
  e.preventDefault();
});

// A hit becomes the selection. On another branch or in an older view it is a link.
panel.addEventListener('click', (e) => {
  const link = e.target.closest('a[data-select]');
  if (!link || e.ctrlKey || e.metaKey || e.shiftKey || link.closest('.hit.other')) return;
  e.preventDefault();
  close();
  select(link.dataset.select, { focus: true });
});

document.addEventListener('click', (e) => { if (!e.target.closest('#recall')) close(); });
document.addEventListener('furl:close', (e) => { if (close()) e.preventDefault(); });
