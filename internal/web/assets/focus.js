// focusByKey moves the focus to a field for a key that was pressed, and keeps the key's
// character out of the field.
export function focusByKey(input, key) {
  input.focus();
  input.select();
  const drop = (e) => { if (e.data === key) e.preventDefault(); };
  input.addEventListener('beforeinput', drop);
  addEventListener('keyup', () => input.removeEventListener('beforeinput', drop), { once: true });
}
