// The colors and textures of kinds, as pixels. A class is a kind that the model sees, or a
// kind whose block is hidden: class 2k or 2k+1 for kind k.
const root = document.documentElement;
const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });

// rgb returns the color of a CSS color as [red, green, blue].
function rgb(color) {
  probe.clearRect(0, 0, 1, 1);
  probe.fillStyle = color;
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

// resolve returns the color of a custom property, also if that is a system color.
function resolve(name) {
  const el = document.createElement('span');
  el.style.color = `var(--${name})`;
  root.append(el);
  const color = getComputedStyle(el).color;
  el.remove();
  return rgb(color);
}

const mix = (a, b, t) => a.map((v, i) => Math.round(v + (b[i] - v) * t));
const little = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
const pixel = ([r, g, b]) => (little ? (255 << 24) | (b << 16) | (g << 8) | r : (r << 24) | (g << 16) | (b << 8) | 255) >>> 0;

// drawn tells where a texture has its second color, in CSS pixels. Each kind has a texture
// of its own, so that kinds differ without colors too.
const drawn = {
  system: (x, y) => y % 4 === 1,
  tools: (x, y) => x % 6 === 2 || y % 6 === 2,
  user: (x) => x % 9 === 4,
  assistant: () => false,
  call: (x) => x % 3 === 1,
  thinking: (x, y) => (x + y) % 6 < 1,
  result: (x, y) => x % 8 === 2 && y % 8 === 2 || x % 8 === 6 && y % 8 === 6,
  summary: (x, y) => (x + 1000 - y) % 8 < 3,
  placeholder: (x, y) => (x + 1000 - y) % 4 < 1,
};
// period is the width after which every texture repeats, in CSS pixels.
const period = 72;
// strength is how much the second color is like the ground.
const strength = { system: .35, tools: .4, user: .3, call: .5, thinking: .5, result: .3, summary: .55, placeholder: .7 };

const forced = matchMedia('(forced-colors: active)');

// textures returns the pixels of all classes for a strip of a height, in device pixels:
// for each class the rows of a tile that is width pixels wide. Classes that dim is true for
// are pale.
export function textures(kinds, height, ratio, dim = () => false) {
  const unit = Math.max(1, Math.round(ratio));
  const width = period * unit;
  const ground = resolve('bg');
  const tiles = [];
  const seams = []; // between two runs of a class
  for (const kind of kinds) {
    const color = resolve(kind);
    const over = forced.matches ? ground : mix(color, ground, strength[kind] ?? .4);
    for (const hidden of [false, true]) {
      const pale = dim(kind, hidden) ? .78 : 0;
      const strong = pixel(mix(color, ground, pale));
      const second = pixel(mix(over, ground, pale));
      const faint = pixel(mix(color, ground, 1 - .1 * (1 - pale)));
      const dot = pixel(mix(color, ground, Math.max(.25, pale)));
      const tile = new Uint32Array(width * height);
      for (let py = 0; py < height; py++) {
        const y = Math.floor(py / unit);
        const edge = py < unit || py >= height - unit;
        for (let px = 0; px < width; px++) {
          const x = Math.floor(px / unit);
          let p;
          if (!hidden) p = drawn[kind](x, y) ? second : strong;
          else if (edge) p = dot;
          else p = x % 4 === 1 && y % 4 === 3 ? dot : faint;
          tile[py * width + px] = p;
        }
      }
      tiles.push(tile);
      seams.push(hidden ? faint : pixel(mix(color, ground, Math.max(.45, pale))));
    }
  }
  return { tiles, seams, width, height, unit };
}

// swatch draws a sample of a class.
export function swatch(kinds, cls, width, height) {
  const ratio = devicePixelRatio || 1;
  const canvas = document.createElement('canvas');
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const kind = kinds[cls >> 1];
  const set = textures([kind], canvas.height, ratio);
  const image = new ImageData(canvas.width, canvas.height);
  const out = new Uint32Array(image.data.buffer);
  const tile = set.tiles[cls & 1];
  for (let y = 0; y < canvas.height; y++) for (let x = 0; x < canvas.width; x++) out[y * canvas.width + x] = tile[y * set.width + x];
  canvas.getContext('2d').putImageData(image, 0, 0);
  canvas.setAttribute('aria-hidden', 'true');
  return canvas;
}

// onRestyle calls f when colors change: another color scheme, forced colors, print.
export function onRestyle(f) {
  for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)', 'print']) matchMedia(query).addEventListener('change', f);
}

export const color = (name) => { const [r, g, b] = resolve(name); return `rgb(${r} ${g} ${b})`; };
