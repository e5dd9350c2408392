'use strict';
// The page is whole without this. It adds: one picture at a time, a reading of a
// picture under the pointer, tables that sort, and a print that hides nothing.
(() => {
  const all = (sel, root = document) => [...root.querySelectorAll(sel)];
  const tip = document.querySelector('.tip');
  document.documentElement.classList.add('js');

  // One picture at a time.
  for (const section of all('.timeline')) {
    const charts = all('.chart', section);
    const select = section.querySelector('select');
    const show = (i) => {
      charts.forEach((c, j) => c.classList.toggle('on', i === j));
      if (select) select.selectedIndex = i;
      hide();
    };
    if (select) {
      select.addEventListener('change', () => show(select.selectedIndex));
      for (const b of all('[data-step]', section)) {
        b.addEventListener('click', () => show((select.selectedIndex + Number(b.dataset.step) + charts.length) % charts.length));
      }
    }
    show(select ? select.selectedIndex : 0);
  }

  // The reading under the pointer, or moved with the arrow keys.
  const tokens = (n) => n < 1000 ? String(Math.round(n)) : n < 99950 ? (n / 1000).toFixed(1) + 'k' : n < 999500 ? Math.round(n / 1000) + 'k' : (n / 1e6).toFixed(2) + 'M';
  function hide() {
    tip.hidden = true;
    for (const c of all('.cross.on')) c.classList.remove('on');
  }
  function read(area, share) {
    const requests = Number(area.dataset.requests);
    const height = area.height.baseVal.value;
    const request = Math.min(requests, Math.max(1, Math.round(1 + share * (requests - 1))));
    const x = requests > 1 ? (request - 1) / (requests - 1) : 0;
    const rows = [];
    for (const line of all('polyline.line', area)) {
      if (getComputedStyle(line).display === 'none') continue;
      const at = nearest(points(line), 1000 * x);
      rows.push({ name: line.dataset.name, value: (height - at[1]) / height * Number(area.dataset.top), color: [...line.classList].find((c) => /^p\d$/.test(c)) });
    }
    rows.sort((a, b) => b.value - a.value);
    tip.replaceChildren(Object.assign(document.createElement('b'), { textContent: 'request ' + request.toLocaleString('en') }));
    for (const r of rows) {
      const div = document.createElement('div');
      const label = Object.assign(document.createElement('i'), { textContent: r.name, className: r.color });
      div.append(label, Object.assign(document.createElement('span'), { textContent: tokens(r.value) }));
      tip.append(div);
    }
    const cross = area.querySelector('.cross');
    cross.setAttribute('x1', 100 * x + '%');
    cross.setAttribute('x2', 100 * x + '%');
    cross.classList.add('on');
    tip.hidden = false;
    const box = area.getBoundingClientRect();
    const left = box.left + scrollX + x * box.width;
    const room = document.documentElement.clientWidth + scrollX - left;
    tip.style.left = (room < tip.offsetWidth + 24 ? Math.max(4, left - tip.offsetWidth - 12) : left + 12) + 'px';
    tip.style.top = box.top + scrollY + 8 + 'px';
    return request;
  }
  const cache = new WeakMap();
  function points(line) {
    if (!cache.has(line)) cache.set(line, line.getAttribute('points').split(' ').map((p) => p.split(',').map(Number)));
    return cache.get(line);
  }
  function nearest(list, x) {
    let lo = 0, hi = list.length - 1;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (list[mid][0] < x) lo = mid + 1; else hi = mid;
    }
    return lo > 0 && x - list[lo - 1][0] < list[lo][0] - x ? list[lo - 1] : list[lo];
  }
  for (const area of all('.chart .area')) {
    let request = 1;
    area.setAttribute('tabindex', '0');
    const share = () => Number(area.dataset.requests) > 1 ? (request - 1) / (Number(area.dataset.requests) - 1) : 0;
    area.addEventListener('pointermove', (e) => {
      const box = area.getBoundingClientRect();
      request = read(area, (e.clientX - box.left) / box.width);
    });
    area.addEventListener('pointerleave', hide);
    area.addEventListener('blur', hide);
    area.addEventListener('keydown', (e) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[e.key];
      if (e.key === 'Escape') return hide();
      if (!step) return;
      e.preventDefault();
      request = Math.min(Number(area.dataset.requests), Math.max(1, request + step));
      read(area, share());
    });
  }

  // Tables that sort: numbers as numbers, and what is no number last.
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

  // A print shows what is folded.
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = all('details:not([open])');
    opened.forEach((d) => { d.open = true; });
  });
  addEventListener('afterprint', () => opened.forEach((d) => { d.open = false; }));
})();
