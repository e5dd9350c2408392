// The keys of the page of a request: [ and ] go to other requests, d compares with the other
// side, Escape goes back to the transcript.
const go = (selector) => () => document.querySelector(selector)?.click();
const sheet = document.getElementById('keys');
const on = { '[': go('a[rel=prev]'), ']': go('a[rel=next]'), d: go('.modes a[href^="?against="]:not([aria-current])'), Escape: go('.crumbs a'), '?': () => sheet.showModal() };

addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, textarea, select, dialog')) return;
  const act = on[e.key];
  if (!act) return;
  e.preventDefault();
  act();
});
