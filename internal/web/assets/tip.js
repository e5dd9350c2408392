// The tooltip of the ribbon and the curve. It follows the pointer, and screen readers do
// not read it: they have the values of the sliders and a table.
const tip = document.createElement('div');
tip.id = 'tip';
tip.hidden = true;
tip.setAttribute('aria-hidden', 'true');
document.body.append(tip);

// line returns an element with a text.
export function line(text, className = '') {
  const p = document.createElement('p');
  p.textContent = text;
  if (className) p.className = className;
  return p;
}

// show shows elements below a point, or above it if there is no room.
export function show(x, top, bottom, ...children) {
  tip.replaceChildren(...children);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(document.documentElement.clientWidth - box.width - 8, x - box.width / 2))}px`;
  tip.style.top = `${bottom + 8 + box.height < innerHeight ? bottom + 8 : Math.max(8, top - box.height - 8)}px`;
}

export function hide() { tip.hidden = true; }

const digits = new Intl.NumberFormat('en-US');
export const count = (n) => digits.format(Math.round(n));
export const tokens = (n) => (Math.round(n) === 1 ? '1 token' : `${count(n)} tokens`);
// share is a part of a whole in percent, as a person says it.
export const share = (part, whole) => {
  if (!whole || !part) return '0%';
  const p = 100 * part / whole;
  return p < 1 ? '<1%' : `${p < 10 ? p.toFixed(1) : count(p)}%`;
};
