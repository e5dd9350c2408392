'use strict';
// Charts are drawn by uPlot onto canvases. Their colors, dashes and shapes are read from the page, so that a chart looks
// like its legend in every theme. A chart is built when its element is first visible, follows the width of its element,
// and is built again for another theme and for paper.

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const element = (tag, properties, ...children) => {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
};
document.documentElement.classList.add('js');

// Numbers are written as in the tables.
const count = (n) => n.toLocaleString('en-US');
const decimals = (n, most) => String(Number(n.toFixed(most)));
const short = (n) => n < 999.5 ? decimals(n, 0) : n < 99950 ? decimals(n / 1e3, 1) + 'k' : n < 999500 ? decimals(n / 1e3, 0) + 'k' : decimals(n / 1e6, 2) + 'M';

// A color of the style sheet.
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// How the legend shows a policy.
function look(panel, policy) {
  const dot = panel.querySelector(`.bars .s${policy} .dot`);
  const line = panel.querySelector(`.legend .s${policy} .line`);
  if (!dot) return { color: color('--ink'), dash: [] };
  const { fill, stroke } = getComputedStyle(dot);
  const hollow = stroke !== 'none';
  const dash = line && getComputedStyle(line).strokeDasharray.match(/[\d.]+/g);
  return { color: hollow ? stroke : fill, fill, hollow, dash: dash ? dash.map(Number) : [], shape: new Path2D(dot.getAttribute('d')) };
}

// Draws the shape of a policy, 12 pixels wide, around a point.
function drawShape(ctx, looks, x, y, size = 1) {
  if (!looks.shape) return;
  ctx.save();
  ctx.translate(x, y);
  ctx.scale(size, size);
  ctx.translate(-6, -6);
  ctx.fillStyle = looks.fill;
  ctx.fill(looks.shape);
  if (looks.hollow) {
    ctx.strokeStyle = looks.color;
    ctx.lineWidth = 1.8;
    ctx.stroke(looks.shape);
  }
  ctx.restore();
}

function drawLine(ctx, style, width, dash, ...points) {
  ctx.strokeStyle = style;
  ctx.lineWidth = width;
  ctx.setLineDash(dash);
  ctx.beginPath();
  points.forEach(([x, y], i) => i ? ctx.lineTo(x, y) : ctx.moveTo(x, y));
  ctx.stroke();
}

// Calls draw with the context scaled to CSS pixels, or to the pixels of a chart for paper, and with the plot's edges.
function onCanvas(u, scale, draw) {
  const unit = uPlot.pxRatio * scale;
  const { left, top, width, height } = u.bbox;
  u.ctx.save();
  u.ctx.scale(unit, unit);
  u.ctx.textBaseline = 'middle';
  draw(u.ctx, { left: left / unit, top: top / unit, right: (left + width) / unit, bottom: (top + height) / unit },
    (x) => u.valToPos(x, 'x', true) / unit, (y) => u.valToPos(y, 'y', true) / unit);
  u.ctx.restore();
}

const fontFamily = getComputedStyle(document.body).fontFamily;
const font = (size, weight = 400) => `${weight} ${size}px ${fontFamily}`;

// What both charts have in common.
const axis = (scale, options) => ({
  stroke: color('--soft'), font: font(12 * scale), labelFont: font(12 * scale), labelSize: 22 * scale, gap: 6 * scale,
  grid: { stroke: color('--hair'), width: scale }, ticks: { show: false }, ...options,
});

// One tooltip serves all charts. A chart only hides its own.
const tip = document.querySelector('.tip');
let tipOwner = null;
function showTip(u, x, ...children) {
  tipOwner = u;
  tip.replaceChildren(...children);
  tip.hidden = false;
  tip.style.left = 0; // its width does not depend on where it was
  const box = u.over.getBoundingClientRect();
  const left = box.left + scrollX + x;
  const room = document.documentElement.clientWidth + scrollX - left;
  tip.style.left = (room < tip.offsetWidth + 24 ? Math.max(scrollX + 4, left - tip.offsetWidth - 14) : left + 14) + 'px';
  tip.style.top = box.top + scrollY + 8 + 'px';
}
function hideTip(u = tipOwner) { if (u === tipOwner) tip.hidden = true; }

// Paper is denser than a screen. A chart for it is drawn three times as large, and the style sheet shrinks it.
const paper = { on: false, width: 960, scale: 3 };
const plots = [];

function draw(plot) {
  const view = plot.u?.scales.x; // as zoomed
  hideTip(plot.u);
  plot.u?.destroy();
  const width = paper.on ? paper.width * paper.scale : plot.element.clientWidth;
  plot.u = plot.build(width, paper.on ? paper.scale : 1);
  if (view || plot.start) plot.u.setScale('x', view ? { min: view.min, max: view.max } : plot.start);
}

const resized = new ResizeObserver((entries) => {
  if (paper.on) return;
  for (const { target } of entries) {
    const plot = plots.find((p) => p.element === target);
    const width = target.clientWidth;
    if (!width) continue;
    if (!plot.u) draw(plot);
    else if (plot.u.width !== width) plot.u.setSize({ width, height: plot.u.height });
  }
});

// Shows a chart in an element: build(width, scale) returns a uPlot in it. start is the part of the x axis that it shows at
// first, if that is not all of it.
function addPlot(target, build, start) {
  const plot = { element: target, build, start, u: null };
  plots.push(plot);
  resized.observe(target);
  return plot;
}

const drawAll = () => plots.filter((p) => p.u).forEach(draw);
for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) matchMedia(query).addEventListener('change', drawAll);

function setPaper(on) {
  if (on === paper.on) return;
  paper.on = on;
  document.documentElement.classList.toggle('paper', on); // and its colors, before the browser lays it out for paper
  hideTip();
  drawAll();
}
addEventListener('beforeprint', () => setPaper(true));
addEventListener('afterprint', () => setPaper(false));
matchMedia('print').addEventListener('change', (e) => setPaper(e.matches));
