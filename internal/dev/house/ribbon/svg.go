package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/numbers"
)

// The geometry of the picture, in pixels.
const (
	width, height    = 840, 218
	left, right      = 20, 820
	stripTop, stripH = 44, 46
	curveTop, curveH = 104, 66
	maxHidden        = .25 // of the strip, as in strip.js
	cell             = 2   // pixels of a column
	seconds, hold    = 15.0, 3.0
	stepsOfText      = 40
)

// palette are the colors of a scheme, by the names of custom properties.
type palette map[string]string

// readColors reads the colors of both schemes from the page's style.
func readColors(file string) ([2]palette, error) {
	var out [2]palette
	text, err := os.ReadFile(file)
	if err != nil {
		return out, err
	}
	blocks := regexp.MustCompile(`(?s)color-scheme: (?:light|dark);(.*?)\}`).FindAllStringSubmatch(string(text), 2)
	if len(blocks) != 2 {
		return out, fmt.Errorf("%s has %d color schemes, want 2", file, len(blocks))
	}
	for i, b := range blocks {
		out[i] = make(palette)
		for _, m := range regexp.MustCompile(`--([\w-]+): (#[0-9a-f]+);`).FindAllStringSubmatch(b[1], -1) {
			out[i][m[1]] = m[2]
		}
	}
	return out, nil
}

// textures are the second colors of kinds as SVG, as in texture.js: the size of the tile
// and its contents.
var textures = map[string]struct {
	size int
	path string
}{
	"system": {4, "M0 1h4v1h-4z"}, "tools": {6, "M0 2h6v1h-6zM2 0h1v6h-1z"}, "user": {9, "M4 0h1v9h-1z"}, "assistant": {8, ""}, "call": {3, "M1 0h1v3h-1z"},
	"thinking": {6, "M0 6L6 0v1.4L1.4 6z"}, "result": {8, "M2 2h1v1h-1zM6 6h1v1h-1z"}, "summary": {8, "M0 0h4l4 4v4zM0 4v4h4z"}, "placeholder": {4, "M0 0h1.4L4 2.6v1.4z"},
}

// epoch is a part of the movie without reductions.
type epoch struct {
	first, last int // frames
}

func (m *movie) epochs() []epoch {
	starts := map[int]bool{0: true}
	for _, r := range m.curve.Reductions {
		if r.Request > 0 {
			starts[r.Request-1] = true
		}
	}
	var list []epoch
	for _, first := range slices.Sorted(maps.Keys(starts)) {
		if n := len(list); n > 0 {
			list[n-1].last = first - 1
		}
		list = append(list, epoch{first, len(m.frames) - 1})
	}
	return list
}

// morph is how long a reduction takes, in seconds.
func morph(list []epoch) float64 { return min(.8, 4/float64(len(list))) }

// times returns when each frame is shown, in shares of the whole.
func (m *movie) times(list []epoch) []float64 {
	at := make([]float64, len(m.frames))
	step := (seconds - hold - morph(list)*float64(len(list)-1)) / float64(len(m.frames))
	now := 0.0
	for k, e := range list {
		if k > 0 {
			now += morph(list)
		}
		for i := e.first; i <= e.last; i++ {
			at[i] = now / seconds
			now += step
		}
	}
	return at
}

// placed are the widths of a frame's runs in the strip.
func placed(f *frame) (w []float64, end float64) {
	all, hidden := float64(max(f.Window, f.Size)), 0.0
	for i, n := range f.Tokens {
		hidden += float64(n * f.Hidden[i])
	}
	const wide = right - left
	visible := wide / (all + hidden)
	small := visible
	if hidden*small > maxHidden*wide {
		small, visible = maxHidden*wide/hidden, (1-maxHidden)*wide/all
	}
	w = make([]float64, len(f.Tokens))
	for i, n := range f.Tokens {
		w[i] = float64(n) * visible
		if f.Hidden[i] == 1 {
			w[i] = float64(n) * small
		}
		end += w[i]
	}
	return w, end
}

// strip draws the runs of a frame: a path for each class. Runs that share a column of
// pixels divide its height.
func strip(b *strings.Builder, f *frame) {
	w, end := placed(f)
	classes := 2 * len(f.Kinds)
	columns := int(math.Ceil(end / cell))
	shares := make([]float64, columns*classes)
	x := 0.0
	for i := range w {
		class := f.Kind[i] + len(f.Kinds)*f.Hidden[i] // hidden ones below
		for to := x + w[i]; x < to-1e-9; {
			c := min(int(x/cell), columns-1)
			next := min(to, float64(c+1)*cell)
			if next <= x {
				next = to
			}
			shares[c*classes+class] += (next - x) / cell
			x = next
		}
	}
	for class := range classes {
		var path strings.Builder
		start, top, tall := 0, -1, 0 // an open rectangle of equal columns
		flush := func(c int) {
			if top >= 0 && tall > 0 {
				fmt.Fprintf(&path, "M%d %dh%dv%dh-%dz", left+start*cell, top, (c-start)*cell, tall, (c-start)*cell)
			}
		}
		for c := range columns {
			before := 0.0
			for k := range class {
				before += shares[c*classes+k]
			}
			// In steps of two pixels, so that neighbors are often equal.
			y0 := stripTop + 2*int(math.Round(before*stripH/2))
			y1 := stripTop + 2*int(math.Round(min(1, before+shares[c*classes+class])*stripH/2))
			if shares[c*classes+class] == 0 {
				y0, y1 = -1, -1
			}
			if y0 != top || y1-y0 != tall {
				flush(c)
				start, top, tall = c, y0, y1-y0
			}
		}
		flush(columns)
		if path.Len() > 0 {
			prefix := ""
			if class >= len(f.Kinds) {
				prefix = "h-"
			}
			fmt.Fprintf(b, `<path fill="url(#%s%s)" d="%s"/>`, prefix, f.Kinds[class%len(f.Kinds)], path.String())
		}
	}
}

// svg returns the picture.
func (m *movie) svg(colors [2]palette) string {
	list := m.epochs()
	at := m.times(list)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t"><title id="t">The prompt of each of %d requests to scale: it fills up, and furl hides what is not needed any more</title>`,
		width, height, width, height, len(m.frames))
	b.WriteString("<style>")
	m.style(&b, colors, list, at)
	b.WriteString("</style><defs>")
	for _, k := range m.frames[0].Kinds {
		t := textures[k]
		fmt.Fprintf(&b, `<pattern id="%s" width="%d" height="%d" patternUnits="userSpaceOnUse"><rect width="%d" height="%d" fill="var(--%s)"/><path d="%s" class="over"/></pattern>`, k, t.size, t.size, t.size, t.size, k, cmp.Or(t.path, "M0 0"))
		fmt.Fprintf(&b, `<pattern id="h-%s" width="4" height="4" patternUnits="userSpaceOnUse"><rect width="4" height="4" fill="var(--%s)" opacity=".1"/><rect x="1" y="2" width="1" height="1" fill="var(--%s)"/></pattern>`, k, k, k)
	}
	fmt.Fprintf(&b, `</defs><rect width="%d" height="%d" rx="6" class="bg"/>`, width, height)
	fmt.Fprintf(&b, `<text x="%d" y="28" class="head">The prompt, to scale</text>`, left)
	fmt.Fprintf(&b, `<text x="%d" y="28" class="soft end">window %s tokens</text>`, right, numbers.Thousands(m.frames[len(m.frames)-1].Window))
	for k, e := range list {
		fmt.Fprintf(&b, `<g class="e e%d">`, k)
		strip(&b, &m.frames[e.last])
		b.WriteString(`</g>`)
	}
	fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" class="free"/>`, left, stripTop, right-left+cell, stripH)
	fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" class="edge"/>`, right, stripTop-1, width-right, stripH+2)
	fmt.Fprintf(&b, `<rect x="%d.5" y="%d.5" width="%d" height="%d" rx="2" class="frame"/>`, left-1, stripTop-1, right-left+1, stripH+1)
	m.drawCurve(&b)
	m.legend(&b)
	b.WriteString("</svg>\n")
	return b.String()
}

// style writes the colors and the animations.
func (m *movie) style(b *strings.Builder, colors [2]palette, list []epoch, at []float64) {
	for i, p := range colors {
		if i == 1 {
			b.WriteString("@media (prefers-color-scheme:dark){")
		}
		b.WriteString(":root{")
		for _, name := range append([]string{"bg", "card", "ink", "soft", "faint", "accent", "warn"}, m.frames[0].Kinds...) {
			fmt.Fprintf(b, "--%s:%s;", name, p[name])
		}
		b.WriteString("}")
		if i == 1 {
			b.WriteString("}")
		}
	}
	fmt.Fprintf(b, `text{font:13px system-ui,-apple-system,"Segoe UI",sans-serif;fill:var(--ink)}.head{font-weight:600;font-size:15px}.soft{fill:var(--soft)}.end{text-anchor:end}.mid{text-anchor:middle;font-weight:600;font-variant-numeric:tabular-nums}.bg,.edge{fill:var(--bg)}.free{fill:var(--card)}.frame{fill:none;stroke:var(--faint)}.over{fill:var(--bg);opacity:.45}.size{fill:none;stroke:var(--accent);stroke-width:1.8}.area{fill:var(--accent);opacity:.16}.without{fill:none;stroke:var(--soft)}.hid{fill:var(--summary);opacity:.12}.cover{fill:var(--bg)}.line{stroke:var(--soft)}.trigger{stroke:var(--warn);stroke-dasharray:5 4}.mark{fill:var(--summary)}.dot{fill:var(--accent);stroke:var(--bg)}.e,.n{opacity:0}.e%d,.n%d{opacity:1}`, len(list)-1, stepsOfText-1)
	last := &m.frames[len(m.frames)-1]
	_, end := placed(last)
	fmt.Fprintf(b, ".free{transform:translateX(%.1fpx)}.cover{transform:translateX(%dpx)}.dot{transform:translate(%.1fpx,%.1fpx)}", end, right-left, m.x(len(m.frames)-1), m.y(last.Size))
	b.WriteString("@media (prefers-reduced-motion:no-preference){")
	for _, name := range []string{"free", "cover", "dot"} {
		fmt.Fprintf(b, ".%s{animation:%s %gs linear infinite}", name, name, seconds)
	}
	fade := morph(list) / seconds
	for k, e := range list {
		from, to := at[e.first]-fade, 1.0
		if k+1 < len(list) {
			to = at[list[k+1].first] - fade
		}
		fmt.Fprintf(b, ".e%d{animation:e%d %gs linear infinite}@keyframes e%d{", k, k, seconds, k)
		if k > 0 {
			fmt.Fprintf(b, "0%%,%s{opacity:0}%s{opacity:1}", percent(from), percent(from+fade))
		} else {
			b.WriteString("0%{opacity:1}")
		}
		if k+1 < len(list) {
			fmt.Fprintf(b, "%s{opacity:1}%s,to{opacity:0}", percent(to), percent(to+fade))
		} else {
			b.WriteString("to{opacity:1}")
		}
		b.WriteString("}")
	}
	m.keyframes(b, list, at)
	b.WriteString("}")
}

// keyframes writes the ways of what moves, and when each size is shown.
func (m *movie) keyframes(b *strings.Builder, list []epoch, at []float64) {
	shown := make(map[int]bool) // the frames with a keyframe
	for _, e := range list {
		n := max(2, 60*(e.last-e.first+1)/len(m.frames))
		for k := range n {
			shown[e.first+k*(e.last-e.first)/(n-1)] = true
		}
	}
	frames := slices.Sorted(maps.Keys(shown))
	each := func(name string, f func(i int) string) {
		fmt.Fprintf(b, "@keyframes %s{", name)
		for _, i := range frames {
			fmt.Fprintf(b, "%s{transform:%s}", percent(at[i]), f(i))
		}
		fmt.Fprintf(b, "to{transform:%s}}", f(len(m.frames)-1))
	}
	each("free", func(i int) string { _, end := placed(&m.frames[i]); return fmt.Sprintf("translateX(%.1fpx)", end) })
	each("cover", func(i int) string { return fmt.Sprintf("translateX(%.1fpx)", m.x(i)) })
	each("dot", func(i int) string { return fmt.Sprintf("translate(%.1fpx,%.1fpx)", m.x(i), m.y(m.frames[i].Size)) })
	for k := range stepsOfText {
		from, to := at[m.textFrame(k)], 1.0
		if k+1 < stepsOfText {
			to = at[m.textFrame(k+1)]
		}
		fmt.Fprintf(b, ".n%d{animation:n%d %gs step-end infinite}@keyframes n%d{0%%{opacity:0}%s{opacity:1}", k, k, seconds, k, percent(from))
		if k+1 < stepsOfText {
			fmt.Fprintf(b, "%s{opacity:0}", percent(to))
		}
		b.WriteString("}")
	}
}

// textFrame is the frame whose size is written in a step.
func (m *movie) textFrame(k int) int { return k * (len(m.frames) - 1) / (stepsOfText - 1) }

func percent(share float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", 100*max(0, share)), "0"), ".") + "%"
}

// x is the place of a request on the curve, from its left end.
func (m *movie) x(i int) float64 { return float64(i) * (right - left) / float64(len(m.frames)-1) }

// y is the height of a size on the curve, from its top.
func (m *movie) y(size int) float64 {
	most := m.frames[0].Window
	for i := range m.curve.Size {
		most = max(most, m.curve.Size[i]+m.curve.Without[i])
	}
	return curveH * (1 - float64(size)/(1.02*float64(most)))
}

// drawCurve draws the sizes of all requests.
func (m *movie) drawCurve(b *strings.Builder) {
	line := func(size func(i int) int) string {
		var path strings.Builder
		for i := range m.frames {
			fmt.Fprintf(&path, "%.1f,%.1f ", m.x(i), m.y(size(i)))
		}
		return strings.TrimSpace(path.String())
	}
	size := line(func(i int) int { return m.curve.Size[i] })
	fmt.Fprintf(b, `<g transform="translate(%d %d)">`, left, curveTop)
	fmt.Fprintf(b, `<polygon class="area" points="0,%d %s %d,%d"/>`, curveH, size, right-left, curveH)
	fmt.Fprintf(b, `<polyline class="without" points="%s"/>`, line(func(i int) int { return m.curve.Size[i] + m.curve.Without[i] }))
	fmt.Fprintf(b, `<polyline class="size" points="%s"/>`, size)
	for _, r := range m.curve.Reductions {
		if r.Request > 0 {
			fmt.Fprintf(b, `<path class="mark" d="M%.1f 0h8l-4 7z"/>`, m.x(r.Request-1)-4)
		}
	}
	fmt.Fprintf(b, `<rect class="cover" y="-2" width="%d" height="%d"/>`, right-left+8, curveH+4)
	if window := m.frames[0].Window; window > 0 {
		fmt.Fprintf(b, `<path class="line" d="M0 %.1fh%d"/>`, m.y(window), right-left)
	}
	if trigger := m.frames[0].Trigger; trigger > 0 {
		fmt.Fprintf(b, `<path class="trigger" d="M0 %.1fh%d"/>`, m.y(trigger), right-left)
	}
	b.WriteString(`<circle class="dot" r="4"/></g>`)
	for k := range stepsOfText {
		i := m.textFrame(k)
		fmt.Fprintf(b, `<text x="%d" y="28" class="mid n n%d">request %s of %s · %s tokens</text>`, width/2, k, numbers.Thousands(i+1), numbers.Thousands(len(m.frames)), numbers.Thousands(m.frames[i].Size))
	}
}

// legend names the kinds of the last frame.
func (m *movie) legend(b *strings.Builder) {
	last := &m.frames[len(m.frames)-1]
	seen := make(map[string]bool)
	hidden := ""
	for i, k := range last.Kind {
		if last.Hidden[i] == 1 {
			hidden = cmp.Or(hidden, last.Kinds[k])
		} else {
			seen[last.Kinds[k]] = true
		}
	}
	names := map[string]string{"call": "calls", "result": "results", "summary": "summaries", "placeholder": "placeholders"}
	x := left
	add := func(fill, text string) {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="14" height="11" rx="2" fill="url(#%s)"/><text x="%d" y="%d" class="soft">%s</text>`, x, height-24, fill, x+20, height-14, text)
		x += 20 + 7*len(text) + 10
	}
	for _, k := range last.Kinds {
		if seen[k] {
			add(k, cmp.Or(names[k], k))
		}
	}
	if hidden != "" {
		add("h-result", "hidden")
	}
	fmt.Fprintf(b, `<path class="mark" d="M%d %dh10l-5 9z"/><text x="%d" y="%d" class="soft">reduction</text>`, x, height-23, x+16, height-14)
}
