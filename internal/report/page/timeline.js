// Prompt size over time: one line per policy, and below the plot one row per policy with a stroke for each reduction.

const timelineHeight = 372; // without the rows
const rowHeight = 15;
const maxMarks = 16; // circles on one line; with more of them, only the rows tell
const roomy = 640; // pixels from which there is room for names at the ends of lines

function timeline(panel, target, data, hidden) {
  const sums = (list) => {
    let sum = 0;
    return list.map((d) => sum += d);
  };
  const lines = data.lines.map((l) => {
    const tokens = sums(l.tokens);
    const x = l.x ? sums(l.x) : tokens.map((_, i) => i + 1);
    const reductions = new Map();
    for (let i = 0, request = 0; i < (l.reductions || []).length; i += 3) {
      request += l.reductions[i];
      reductions.set(request, { removed: l.reductions[i + 1], stage: l.stages[l.reductions[i + 2]] });
    }
    return { ...l, x, tokens, reductions };
  });
  // The line as recorded goes over lines that coincide with it, which show between its dashes; the best goes over all.
  const rank = (l) => l.best ? 2 : l.asRecorded ? 1 : 0;
  const drawn = [...lines].sort((a, b) => rank(a) - rank(b));
  const refused = drawn.filter((l) => l.refused);
  const points = uPlot.join([...drawn, ...refused].map((l, i) => {
    if (i < drawn.length) return [l.x, l.tokens];
    const values = l.tokens.map(() => null);
    for (const [from, to] of l.refused) for (let j = from; j <= to; j++) values[j] = l.tokens[j];
    return [l.x, values];
  }));
  const pauses = new Map((data.pauses || []).map((p) => [p.request, p.took]));

  return addPlot(target, (width, scale) => {
    const looks = new Map(lines.map((l) => [l, look(panel, l.policy)]));
    const px = scale * uPlot.pxRatio;
    const shown = (l) => !hidden.has(l.policy);
    const wide = (u) => u.width / scale >= roomy;
    const rows = lines.length * rowHeight + 30;
    const u = new uPlot({
      width, height: (timelineHeight + rows) * scale,
      padding: [() => 20 * scale, (u) => (wide(u) ? 168 : 14) * scale, () => rows * scale, () => 0],
      legend: { show: false },
      cursor: { y: false, points: { size: 7, fill: (u, i) => i <= drawn.length ? looks.get(drawn[i - 1]).color : color('--warn') }, drag: { dist: 8, x: true, y: false } },
      scales: {
        // At least four requests, so that there is a line to see.
        x: { time: false, range: (u, from, to) => to - from >= 3 ? [from, to] : [Math.max(1, from - 1.5), Math.max(4, from + 1.5)] },
        y: { range: [0, data.top] },
      },
      axes: [
        axis(scale, { label: 'request', size: 28 * scale, space: 60 * scale, grid: { show: false }, incrs: [1, 2, 5].flatMap((n) => [n, 10 * n, 100 * n, 1000 * n, 1e4 * n, 1e5 * n]).sort((a, b) => a - b), values: (u, list) => list.map(count) }),
        axis(scale, { size: 46 * scale, space: 44 * scale, values: (u, list) => list.map(short) }),
      ],
      series: [{}, ...drawn.map((l) => ({
        label: l.name, show: shown(l), stroke: looks.get(l).color, width: (l.best ? 2.8 : 1.6) * scale, dash: looks.get(l).dash.map((d) => d * px), spanGaps: true,
        points: { show: true, size: 9 * scale, width: 1.8 * scale, fill: color('--bg'), filter: (u) => marks(u, l) },
      })), ...refused.map((l) => ({
        show: shown(l), stroke: color('--warn'), width: 3.6 * scale, dash: [px / 10, 7 * px], cap: 'round',
        points: { show: false, size: 5 * scale, fill: color('--warn') },
      }))],
      hooks: {
        draw: [(u) => onCanvas(u, scale, (ctx, box, x, y) => {
          drawWindow(ctx, box, y);
          drawPauses(ctx, box, x, u);
          drawEnds(ctx, box, y, u);
          drawRows(ctx, box, x, u);
        })],
        setCursor: [read],
      },
    }, points, target);
    u.policies = [null, ...drawn, ...refused].map((l) => l && l.policy); // of each series, for the legend
    return u;

    // The reductions to circle among the requests in view.
    function marks(u, l) {
      const found = [];
      for (const request of l.reductions.keys()) {
        if (request < u.scales.x.min || request > u.scales.x.max) continue;
        if (found.length === maxMarks) return [];
        found.push(u.valToIdx(request));
      }
      return found;
    }

    function drawWindow(ctx, box, y) {
      if (!data.window) return;
      drawLine(ctx, color('--warn'), 1, [8, 4], [box.left, y(data.window)], [box.right, y(data.window)]);
      ctx.fillStyle = color('--warn');
      ctx.font = font(12);
      ctx.textAlign = 'left'; // where prompts are small
      ctx.fillText('context window ' + short(data.window), box.left + 2, y(data.window) - 9);
    }

    function drawPauses(ctx, box, x, u) {
      for (const request of pauses.keys()) {
        if (request < u.scales.x.min || request > u.scales.x.max) continue;
        drawLine(ctx, color('--ink'), 1.5, [], [x(request), box.bottom], [x(request), box.bottom - 9]);
      }
    }

    // Names the lines where they leave the plot. A narrow chart has their shapes there instead.
    function drawEnds(ctx, box, y, u) {
      const labels = [];
      drawn.forEach((l, i) => {
        const values = u.data[i + 1];
        let at = Math.min(u.valToIdx(u.scales.x.max), values.length - 1);
        while (at > 0 && values[at] === undefined) at--;
        if (!shown(l) || values[at] === undefined) return;
        const value = values[at];
        const end = Math.min(Math.max(y(value), box.top), box.bottom);
        labels.push({ l, value, y: end, end });
        if (!wide(u)) drawShape(ctx, looks.get(l), box.right, end);
      });
      u.labels = wide(u) ? labels : [];
      if (!wide(u)) return;
      labels.sort((a, b) => a.end - b.end);
      let next = box.top;
      for (const label of labels) next = (label.y = Math.max(label.y, next)) + 14;
      let last = box.bottom + 8;
      for (const label of labels.reverse()) last = (label.y = Math.min(label.y, last)) - 14;
      ctx.textAlign = 'left';
      for (const { l, value, y, end } of labels) {
        ctx.globalAlpha = 0.6;
        drawLine(ctx, looks.get(l).color, 1, [], [box.right + 2, end], [box.right + 12, y]);
        ctx.globalAlpha = 1;
        ctx.font = font(12, l.best ? 650 : 400);
        ctx.fillStyle = looks.get(l).color;
        ctx.fillText(l.name, box.right + 15, y);
        const name = ctx.measureText(l.name + ' ').width;
        ctx.font = font(12);
        ctx.fillStyle = color('--soft');
        ctx.fillText(short(value) + (value > data.top ? ' ↑' : ''), box.right + 15 + name, y);
      }
    }

    function drawRows(ctx, box, x, u) {
      let y = box.bottom + 68;
      ctx.textAlign = 'left';
      ctx.fillStyle = color('--soft');
      ctx.font = font(12);
      ctx.fillText('reductions', box.left, y);
      for (const l of lines) {
        y += rowHeight;
        drawShape(ctx, looks.get(l), 34, y, 0.8);
        drawLine(ctx, color('--hair'), 1, [], [box.left, y], [box.right, y]);
        ctx.strokeStyle = looks.get(l).color;
        ctx.lineWidth = 1.2;
        ctx.beginPath();
        let before = -1;
        for (const request of shown(l) ? l.reductions.keys() : []) {
          const at = (Math.round(x(request) * px) + 0.5) / px; // on a pixel
          if (at === before || request < u.scales.x.min || request > u.scales.x.max) continue;
          before = at;
          ctx.moveTo(at, y - 4);
          ctx.lineTo(at, y + 4);
        }
        ctx.stroke();
        if (!wide(u)) continue;
        ctx.fillStyle = color('--soft');
        ctx.font = font(11);
        ctx.fillText(l.name + '  ' + count(l.count), box.right + 15, y);
      }
    }

    // The tooltip: all prompt sizes at one request.
    function read(u) {
      const { idx, idxs } = u.cursor;
      if (idx == null || paper.on) return hideTip(u);
      const request = u.data[0][idx];
      const head = element('b', { textContent: `request ${count(request)} of ${count(data.requests)}` });
      const rows = [];
      drawn.forEach((l, i) => {
        const value = u.data[i + 1][idxs[i + 1] ?? idx];
        if (shown(l) && value !== undefined) rows.push({ l, value });
      });
      rows.sort((a, b) => b.value - a.value);
      const cells = rows.flatMap(({ l, value }) => {
        const r = l.reductions.get(request);
        const name = element('i', { textContent: l.name });
        name.style.borderColor = looks.get(l).color;
        return [name, element('span', { textContent: count(value) }), element('small', { textContent: r ? `−${count(r.removed)} ${r.stage}` : '' })];
      });
      const reduced = rows.some(({ l }) => l.reductions.has(request));
      const notes = [reduced ? 'tokens in the prompt, tokens removed' : 'tokens in the prompt'];
      if (pauses.has(request)) notes.unshift(`after a pause of ${pauses.get(request)}`);
      showTip(u, u.valToPos(request, 'x'), head, ...notes.map((n) => element('p', { textContent: n })), element('div', {}, ...cells));
    }
  }, data.from && { min: data.from, max: data.to });
}

// The keys of a timeline: arrows move by requests, plus and minus zoom.
function timelineKeys(plot, data) {
  let request = 1;
  plot.element.addEventListener('keydown', (e) => {
    const { u } = plot;
    if (!u || e.ctrlKey || e.metaKey || e.altKey) return;
    const { min, max } = u.scales.x;
    const zoom = (factor) => {
      const half = Math.max(1.5, (max - min) * factor / 2);
      const from = Math.max(1, Math.min(request - half, data.requests - 2 * half));
      u.setScale('x', { min: from, max: Math.min(data.requests, from + 2 * half) });
    };
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity }[e.key];
    if (u.cursor.idx != null) request = u.data[0][u.cursor.idx];
    if (step) {
      request = Math.min(Math.floor(max), Math.ceil(min) > request + step ? Math.ceil(min) : request + step);
      u.setCursor({ left: u.valToPos(request, 'x'), top: 1 });
    } else if (e.key === '+' || e.key === '=') zoom(0.5);
    else if (e.key === '-' || e.key === '−') zoom(2);
    else if (e.key === 'Escape') u.setCursor({ left: -10, top: -10 });
    else return;
    e.preventDefault();
  });
  plot.element.addEventListener('blur', () => plot.u?.setCursor({ left: -10, top: -10 }));
  // uPlot follows the mouse; a finger reads the chart as well.
  plot.element.addEventListener('pointermove', (e) => {
    if (e.pointerType === 'mouse' || !plot.u) return;
    const box = plot.u.over.getBoundingClientRect();
    plot.u.setCursor({ left: Math.min(Math.max(e.clientX - box.left, 0), box.width), top: 1 });
  });
}

for (const section of all('.timeline')) {
  const panel = section.closest('.panel');
  const figures = all('.chart', section);
  const select = section.querySelector('select');
  const hidden = new Set(); // policies
  const charts = new Map(); // by figure, those that were shown
  const show = (i) => {
    figures.forEach((f, j) => f.classList.toggle('on', i === j));
    if (select) select.selectedIndex = i;
    hideTip();
    const figure = figures[i];
    if (charts.has(figure)) return;
    const data = JSON.parse(figure.querySelector('script').textContent);
    const plot = timeline(panel, figure.querySelector('.plot'), data, hidden);
    timelineKeys(plot, data);
    const whole = figure.querySelector('[data-whole]');
    if (whole) {
      whole.addEventListener('click', () => {
        plot.u.setScale('x', { min: 1, max: data.requests });
        figure.querySelector('.focus').remove();
      });
    }
    charts.set(figure, plot);
  };
  if (select) {
    select.addEventListener('change', () => show(select.selectedIndex));
    for (const b of all('[data-step]', section)) {
      b.addEventListener('click', () => show((select.selectedIndex + Number(b.dataset.step) + figures.length) % figures.length));
    }
  }
  for (const box of all('.legend input', section)) {
    const change = () => {
      const policy = Number(box.value);
      if (box.checked) hidden.delete(policy); else hidden.add(policy);
      for (const { u } of charts.values()) u?.policies.forEach((p, i) => { if (p === policy) u.setSeries(i, { show: box.checked }); });
    };
    box.addEventListener('change', change);
    if (!box.checked) change(); // the browser restored it
  }
  show(Math.max(0, select ? select.selectedIndex : 0));
}
