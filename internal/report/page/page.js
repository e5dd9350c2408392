// On paper everything that is folded is open.
let opened = [];
addEventListener('beforeprint', () => {
  opened = all('details:not([open])');
  opened.forEach((d) => { d.open = true; });
});
addEventListener('afterprint', () => opened.forEach((d) => { d.open = false; }));
