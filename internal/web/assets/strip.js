// The geometry and the pixels of the ribbon, without the page around it.

// maxHidden is the share of the strip that hidden parts take at most.
const maxHidden = .25;

// unpack returns the runs of the server's JSON: typed arrays with one element per run.
export function unpack(json) {
  const n = json.kind.length;
  const p = {
    n, size: json.size, window: json.window, trigger: json.trigger, target: json.target, request: json.request, head: json.head, kinds: json.kinds,
    cls: new Uint8Array(n), tokens: Float64Array.from(json.tokens), record: new Float64Array(n), block: Uint32Array.from(json.block), by: Float64Array.from(json.by),
    keys: new Array(n), hidden: 0, dropped: 0,
  };
  const seen = new Map(); // summaries have no record: their number among those of a reduction
  for (let i = 0, record = 0; i < n; i++) {
    record += json.record[i];
    p.record[i] = record;
    p.cls[i] = 2 * json.kind[i] + json.hidden[i];
    if (json.hidden[i]) p.hidden += p.tokens[i];
    if (json.hidden[i] && !json.by[i]) p.dropped += p.tokens[i]; // by the provider, as earlier thinking
    if (record) {
      // A block and its outline are one thing, a placeholder another.
      p.keys[i] = `${record}.${p.block[i]}${json.kinds[json.kind[i]] === 'placeholder' ? 'p' : ''}`;
    } else {
      const key = `${json.kinds[json.kind[i]]}${p.by[i]}`;
      const count = (seen.get(key) || 0) + 1;
      seen.set(key, count);
      p.keys[i] = `${key}#${count}`;
    }
  }
  return p;
}

// layout places runs in a strip of a width. Visible ones are to scale of the window, or of
// the prompt if zoomed. Hidden ones have a scale of their own if they would take too much.
export function layout(p, width, zoomed = false) {
  const whole = Math.max(zoomed ? 0 : p.window, p.size, 1);
  let visible = width / (whole + p.hidden);
  let hidden = visible;
  if (p.hidden * hidden > maxHidden * width) {
    hidden = maxHidden * width / p.hidden;
    visible = (1 - maxHidden) * width / whole;
  }
  const w = new Float64Array(p.n);
  const x = new Float64Array(p.n + 1);
  for (let i = 0; i < p.n; i++) {
    w[i] = p.tokens[i] * (p.cls[i] & 1 ? hidden : visible);
    x[i + 1] = x[i] + w[i];
  }
  return { w, x, visible, hidden, whole, width, ratio: visible / hidden };
}

// at returns the run at a position, -1 if there is none.
export function at(l, x) {
  if (x < 0 || x >= l.x[l.x.length - 1]) return -1;
  let lo = 0;
  let hi = l.w.length - 1;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (l.x[mid] <= x) lo = mid; else hi = mid - 1;
  }
  return lo;
}

// position returns where the model's prompt has so many tokens.
export function position(p, l, tokens) {
  let sum = 0;
  for (let i = 0; i < p.n; i++) {
    if (p.cls[i] & 1) continue;
    if (sum + p.tokens[i] > tokens) return l.x[i] + (tokens - sum) * l.visible;
    sum += p.tokens[i];
  }
  return l.x[p.n] + (tokens - sum) * l.visible;
}

// items are what is drawn: runs with their widths. While the strip changes, an item has two
// classes, of which the second has the share mix.
export function items(p, l) {
  return { n: p.n, keys: p.keys, w: l.w, a: p.cls, b: p.cls, mix: null };
}

// between returns a function that gives the items on the way from one to the other, by the
// identity of runs. Those that only one of them has grow or shrink in their place.
export function between(from, to) {
  const inTo = new Map();
  const inFrom = new Map();
  for (let i = 0; i < to.n; i++) inTo.set(to.keys[i], i);
  for (let i = 0; i < from.n; i++) inFrom.set(from.keys[i], i);
  const pairs = []; // index in from, index in to; -1 for none
  let i = 0;
  for (let j = 0; j < to.n; j++) {
    const k = inFrom.get(to.keys[j]);
    if (k === undefined) { pairs.push([-1, j]); continue; }
    for (; i < k; i++) if (!inTo.has(from.keys[i])) pairs.push([i, -1]);
    pairs.push([k, j]);
    i = Math.max(i, k + 1);
  }
  for (; i < from.n; i++) if (!inTo.has(from.keys[i])) pairs.push([i, -1]);
  const n = pairs.length;
  const keys = new Array(n);
  const w0 = new Float64Array(n);
  const w1 = new Float64Array(n);
  const a = new Uint8Array(n);
  const b = new Uint8Array(n);
  for (let k = 0; k < n; k++) {
    const [f, t] = pairs[k];
    keys[k] = f < 0 ? to.keys[t] : from.keys[f];
    w0[k] = f < 0 ? 0 : from.w[f];
    w1[k] = t < 0 ? 0 : to.w[t];
    a[k] = f < 0 ? to.a[t] : from.a[f];
    b[k] = t < 0 ? from.a[f] : to.a[t];
  }
  const w = new Float64Array(n);
  return (t) => {
    for (let k = 0; k < n; k++) w[k] = w0[k] + (w1[k] - w0[k]) * t;
    return { n, keys, w, a, b, mix: t };
  };
}

// shares returns for each column of pixels how much of it each class covers. scale is the
// number of device pixels per unit of width.
export function shares(list, columns, classes, scale, into) {
  const out = into && into.length === columns * classes ? into.fill(0) : new Float32Array(columns * classes);
  let x = 0;
  for (let i = 0; i < list.n; i++) {
    const x0 = x;
    x += list.w[i] * scale;
    if (x === x0) continue;
    cover(out, columns, classes, x0, x, list.a[i], list.mix === null || list.a[i] === list.b[i] ? 1 : 1 - list.mix);
    if (list.mix !== null && list.a[i] !== list.b[i]) cover(out, columns, classes, x0, x, list.b[i], list.mix);
  }
  return out;
}

function cover(out, columns, classes, x0, x1, cls, weight) {
  const first = Math.floor(x0);
  const last = Math.min(columns - 1, Math.floor(x1));
  if (first === last || first >= columns) {
    if (first < columns) out[first * classes + cls] += (x1 - x0) * weight;
    return;
  }
  out[first * classes + cls] += (first + 1 - x0) * weight;
  for (let c = first + 1; c < last; c++) out[c * classes + cls] += weight;
  out[last * classes + cls] += (Math.min(x1, columns) - last) * weight;
}

// seams calls f with the columns at which a run starts that can be told from its neighbor,
// and with its class.
function seams(list, columns, scale, least, f) {
  let x = 0;
  let before = 0;
  for (let i = 0; i < list.n; i++) {
    const w = list.w[i] * scale;
    if (w >= least && before >= least && Math.round(x) < columns) f(Math.round(x), list.b[i]);
    if (w > 0) before = w;
    x += w;
  }
}

// stacking is the order in which classes share a column: what the model sees above what is
// hidden.
export function stacking(classes) {
  return Array.from({ length: classes }, (_, i) => (i < classes / 2 ? 2 * i : 2 * i - classes + 1));
}

// paint fills an image with the textures of classes. A column that several classes share is
// divided between them from top to bottom, so that areas and colors stay true at any scale.
// It returns the shares of the columns.
export function paint(image, list, set, scale, buffer) {
  const { width: columns, height } = image;
  const classes = set.tiles.length;
  const part = shares(list, columns, classes, scale, buffer);
  const order = stacking(classes);
  const out = new Uint32Array(image.data.buffer);
  out.fill(0);
  for (let x = 0; x < columns; x++) {
    let top = 0;
    let sum = 0;
    const tx = x % set.width;
    for (const c of order) {
      const s = part[x * classes + c];
      if (s === 0) continue;
      sum += s;
      const bottom = Math.min(height, Math.round(sum * height));
      const tile = set.tiles[c];
      for (let y = top; y < bottom; y++) out[y * columns + x] = tile[y * set.width + tx];
      top = bottom;
    }
  }
  seams(list, columns, scale, 4 * set.unit, (x, cls) => {
    for (let y = 0; y < height; y++) out[y * columns + x] = set.seams[cls];
  });
  return part;
}
