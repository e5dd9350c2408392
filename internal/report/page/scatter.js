// Cost against what stayed visible: one dot per policy, named beside it, and a stepped line through the policies
// that no other beats in both.

const scatterHeight = 368;
const dotRadius = 6;

function scatter(panel, target, dots) {
  const costs = dots.map((d) => d.cost);
  const costRange = [Math.min(1, ...costs, ...dots.map((d) => d.low || d.cost)), Math.max(1, ...costs, ...dots.map((d) => d.high || d.cost))];
  const lowest = Math.min(1, ...dots.map((d) => d.kept));
  const pad = Math.max(0.04, (costRange[1] - costRange[0]) * 0.08);

  const plot = addPlot(target, (width, scale) => {
    const looks = new Map(dots.map((d) => [d, look(panel, d.policy)]));
    return new uPlot({
      width, height: scatterHeight * scale,
      padding: [() => 18 * scale, () => 16 * scale, () => 0, () => 0],
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false, range: [Math.max(0, costRange[0] - pad), costRange[1] + pad] },
        y: { range: [Math.max(0, lowest - Math.max(0.02, (1 - lowest) * 0.12)), 1] },
      },
      axes: [
        axis(scale, { label: 'cost (1 is as recorded)', size: 28 * scale, space: 60 * scale, values: (u, list) => list.map((v) => decimals(v, 3)) }),
        axis(scale, { size: 46 * scale, space: 44 * scale, values: (u, list) => list.map((v) => decimals(100 * v, 1) + '%') }),
      ],
      series: [{}, { paths: () => null, points: { show: false } }, {
        stroke: color('--soft'), width: 1.5 * scale, alpha: 0.7, spanGaps: true, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false },
      }],
      hooks: {
        draw: [(u) => onCanvas(u, scale, (ctx, box, x, y) => {
          drawLine(ctx, color('--soft'), 1, [2, 4], [x(1), box.top], [x(1), box.bottom]);
          const placed = dots.map((d) => ({ d, x: x(d.cost), y: y(d.kept) })).sort((a, b) => Boolean(a.d.best) - Boolean(b.d.best));
          const front = placed.filter((p) => p.d.front).sort((a, b) => a.x - b.x);
          const steps = front.slice(1).flatMap((p, i) => [[front[i].x, front[i].y - 1, p.x, front[i].y + 1], [p.x - 1, p.y, p.x + 1, front[i].y]]);
          for (const p of placed) p.name = nameFont(ctx, p.d);
          u.labels = label(placed, steps, box);
          for (const { p, line } of u.labels) {
            if (!line) continue;
            ctx.globalAlpha = 0.6;
            drawLine(ctx, looks.get(p.d).color, 1, [], [p.x, p.y], line);
            ctx.globalAlpha = 1;
          }
          for (const { d, y } of placed) {
            if (d.low) drawLine(ctx, looks.get(d).color, 1.5, [], [x(d.low), y], [x(d.high), y]);
          }
          for (const p of placed) {
            ctx.setLineDash([]);
            drawShape(ctx, looks.get(p.d), p.x, p.y);
            if (!p.d.best) continue;
            ctx.strokeStyle = looks.get(p.d).color;
            ctx.lineWidth = 1.5;
            ctx.beginPath();
            ctx.arc(p.x, p.y, 10, 0, 7);
            ctx.stroke();
          }
          for (const { p, x, y } of u.labels) {
            nameFont(ctx, p.d);
            ctx.textAlign = 'left';
            ctx.lineJoin = 'round';
            ctx.lineWidth = 3;
            ctx.strokeStyle = color('--bg');
            ctx.strokeText(p.d.name, x, y);
            ctx.fillStyle = color('--ink');
            ctx.fillText(p.d.name, x, y);
          }
        })],
      },
    }, [costs, dots.map((d) => d.kept), dots.map((d) => d.front ? d.kept : undefined)], target);
  });

  // The tooltip: the policy at or next to the pointer, or the one that the arrow keys chose.
  let chosen = -1;
  const read = (i) => {
    const { u } = plot;
    chosen = i;
    if (i < 0) return hideTip(u);
    const d = dots[i];
    const name = element('i', { textContent: d.name });
    name.style.borderColor = look(panel, d.policy).color;
    showTip(u, u.valToPos(d.cost, 'x'), element('b', {}, name),
      element('div', { className: 'pairs' }, 'cost', element('span', { textContent: d.costText }), 'still visible', element('span', { textContent: d.keptText })));
  };
  target.addEventListener('pointermove', (e) => {
    const { u } = plot;
    if (!u) return;
    const box = u.over.getBoundingClientRect();
    const far = dots.map((d) => Math.hypot(u.valToPos(d.cost, 'x') - e.clientX + box.left, u.valToPos(d.kept, 'y') - e.clientY + box.top));
    const nearest = far.indexOf(Math.min(...far));
    read(far[nearest] < 28 ? nearest : -1);
  });
  target.addEventListener('pointerleave', () => read(-1));
  target.addEventListener('blur', () => read(-1));
  target.addEventListener('keydown', (e) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (e.key === 'Escape') return read(-1);
    if (!step || !plot.u) return;
    e.preventDefault();
    read(Math.min(dots.length - 1, Math.max(0, chosen + step)));
  });
}

// Sets the font of a dot's name and returns its width.
function nameFont(ctx, d) {
  ctx.font = font(12, d.best ? 650 : 400);
  return ctx.measureText(d.name).width;
}

// Finds a place for each name where it covers no dot and no other name, and if possible no line. Places farther from the
// dot cost more; they get a line to the dot.
function label(placed, lines, box) {
  const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  const taken = placed.map((p) => [p.x - dotRadius, p.y - dotRadius, p.x + dotRadius, p.y + dotRadius]);
  const order = [...placed].sort((a, b) => Boolean(b.d.best) - Boolean(a.d.best) || a.y - b.y);
  return order.map((p) => {
    const beside = p.d.best ? 14 : dotRadius + 4;
    const places = [[-p.name / 2, dotRadius + 10, 1], [-p.name / 2, -dotRadius - 10, 1.2], [beside, 0, 0], [-beside - p.name, 0, 0.5]];
    for (let step = 1; step < 14; step++) {
      for (const dy of [14 * step, -14 * step]) places.push([14, dy, 2 * step, 14], [-14 - p.name, dy, 2 * step + 0.5, -14]);
    }
    let best = null;
    for (const [dx, dy, far, line] of places) {
      const area = [p.x + dx - 2, p.y + dy - 7, p.x + dx + p.name + 2, p.y + dy + 7];
      let cost = far;
      if (area[0] < box.left - 6 || area[2] > box.right + 14 || area[1] < box.top - 16 || area[3] > box.bottom + 4) cost += 50;
      for (const l of lines) if (overlap(area, l)) cost += 3;
      taken.forEach((t, i) => { if (placed[i] !== p && overlap(area, t)) cost += 100; });
      if (!best || cost < best.cost) best = { p, cost, area, x: p.x + dx, y: p.y + dy, line: line && [p.x + line, p.y + dy] };
    }
    taken.push(best.area);
    return best;
  });
}

for (const figure of all('.scatter')) {
  const data = figure.querySelector('script');
  if (data) scatter(figure.closest('.panel'), figure.querySelector('.plot'), JSON.parse(data.textContent));
}
