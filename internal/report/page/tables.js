// Tables that sort: numbers by value, and cells without a number last.
const number = (s) => {
  const n = parseFloat(s.replace(/[^0-9.\-−]/g, '').replace('−', '-'));
  return Number.isNaN(n) ? null : n;
};
for (const table of all('table.sortable')) {
  const heads = all('thead th', table);
  heads.forEach((th, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...th.childNodes);
    th.append(button);
    button.addEventListener('click', () => {
      const up = th.getAttribute('aria-sort') !== 'ascending';
      heads.forEach((h) => h.removeAttribute('aria-sort'));
      th.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const numeric = th.classList.contains('n');
      const rows = all('tbody tr', table).map((tr) => {
        const text = tr.children[column].textContent.trim();
        return { tr, key: numeric ? number(text) : text.toLowerCase() };
      });
      rows.sort((a, b) => {
        if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
        return (a.key < b.key ? -1 : a.key > b.key ? 1 : 0) * (up ? 1 : -1);
      });
      table.tBodies[0].append(...rows.map((r) => r.tr));
    });
  });
}
