package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/replay"
)

func TestBrowser(t *testing.T) {
	rep := sample(5, 160, 0, 64_000)
	b := browsertest.Open(t, []byte(render(t, rep)))

	b.Run("one chart at a time", func(t *testing.T) {
		shown := `[...document.querySelectorAll('.w0 .chart')].filter(c => c.offsetParent).map(c => c.id)`
		if got := browsertest.Eval[[]string](b, shown); len(got) != 1 || got[0] != "c0-0" {
			t.Fatalf("shown at first: %v", got)
		}
		b.Do(chromedp.Click(chromedp.CSS(`.w0 [data-step="1"]`)))
		if got := browsertest.Eval[[]string](b, shown); len(got) != 1 || got[0] != "c0-1" {
			t.Errorf("after Next: %v", got)
		}
		browsertest.Eval[bool](b, `(s => { s.selectedIndex = 3; return s.dispatchEvent(new Event('change')) })(document.querySelector('.w0 select'))`)
		if got := browsertest.Eval[[]string](b, shown); len(got) != 1 || got[0] != "c0-3" {
			t.Errorf("after choosing: %v", got)
		}
	})

	b.Run("charts are drawn", func(t *testing.T) {
		colors := policyColors(b)
		if len(slices.Compact(slices.Sorted(slices.Values(colors)))) != 5 {
			t.Errorf("6 policies, 2 of them variants of one, have the colors %v", colors)
		}
		for _, chart := range []string{timelineChart, scatterChart} {
			for policy, n := range pixels(b, chart, colors) {
				if n < 20 {
					t.Errorf("%s: %d pixels have the color of policy %d", chart, n, policy)
				}
			}
		}
		box := browsertest.Eval[[]float64](b, `(r => [r.width, r.height])(document.querySelector('.w0 .track rect').getBoundingClientRect())`)
		if box[0] < 2 || box[1] < 2 {
			t.Errorf("a bar is %v pixels", box)
		}
	})

	b.Run("tooltip of the timeline", func(t *testing.T) {
		at := center(b, timelineChart+" .u-over")
		b.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
		var request int
		tip := tooltip(b)
		if _, err := fmt.Sscanf(tip, "request %d of 160", &request); err != nil || request < 78 || request > 83 {
			t.Fatalf("in the middle of 160 requests the tooltip says %q", tip)
		}
		expectTooltip(t, tip, rep.Recordings[3].Results, request)
		b.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 2, 2))
		if tip := tooltip(b); tip != "" {
			t.Errorf("when the pointer has left, the tooltip says %q", tip)
		}
	})

	b.Run("keys of the timeline", func(t *testing.T) {
		browsertest.Eval[any](b, `document.querySelector('`+timelineChart+`').focus()`)
		b.Drawn()
		for _, c := range []struct {
			key     string
			request int
		}{{kb.End, 160}, {kb.ArrowLeft, 159}, {kb.PageUp, 139}, {kb.Home, 1}, {kb.ArrowLeft, 1}, {kb.PageDown, 21}, {kb.ArrowRight, 22}} {
			b.Do(chromedp.KeyEvent(c.key))
			tip := tooltip(b)
			if want := fmt.Sprintf("request %d of 160", c.request); !strings.HasPrefix(tip, want) {
				t.Fatalf("the tooltip says %q, want %s", tip, want)
			}
			expectTooltip(t, tip, rep.Recordings[3].Results, c.request)
		}
		b.Do(chromedp.KeyEvent("+"))
		if got := zoomed(b); got[1]-got[0] > 80 || got[0] > 22 || got[1] < 22 {
			t.Errorf("after + the chart shows requests %v", got)
		}
		b.Do(chromedp.KeyEvent("-"))
		if got := zoomed(b); got[0] != 1 || got[1] != 160 {
			t.Errorf("after − the chart shows requests %v", got)
		}
		b.Do(chromedp.KeyEvent(kb.Escape))
		if tip := tooltip(b); tip != "" {
			t.Errorf("after Escape the tooltip says %q", tip)
		}
		browsertest.Eval[any](b, `document.activeElement.blur()`)
	})

	b.Run("zoom with the mouse", func(t *testing.T) {
		at := center(b, timelineChart+" .u-over")
		mouse := func(kind input.DispatchMouseEventType, x float64, clicks int) {
			t.Helper()
			b.Do(chromedp.MouseEvent(kind, x, at[1], chromedp.ButtonLeft, chromedp.ClickCount(clicks)))
		}
		mouse(input.DispatchMouseEventTypeMousePressed, at[0], 1)
		mouse(input.DispatchMouseEventTypeMouseMoved, at[0]+100, 1)
		mouse(input.DispatchMouseEventTypeMouseReleased, at[0]+100, 1)
		if got := zoomed(b); got[0] < 78 || got[0] > 83 || got[1]-got[0] > 40 || got[1]-got[0] < 5 {
			t.Errorf("after dragging 100 pixels from the middle the chart shows requests %v", got)
		}
		for n := range 2 {
			mouse(input.DispatchMouseEventTypeMousePressed, at[0], n+1)
			mouse(input.DispatchMouseEventTypeMouseReleased, at[0], n+1)
		}
		if got := zoomed(b); got[0] != 1 || got[1] != 160 {
			t.Errorf("after a double click the chart shows requests %v", got)
		}
		b.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 2, 2))
	})

	b.Run("tooltip of the scatter chart", func(t *testing.T) {
		dot := browsertest.Eval[[]float64](b, `(() => {
			const plot = plots.find(p => p.element === document.querySelector('`+scatterChart+`'));
			plot.element.scrollIntoView({block: 'center', behavior: 'instant'});
			const box = plot.u.over.getBoundingClientRect();
			return [box.left + plot.u.valToPos(0.81, 'x'), box.top + plot.u.valToPos(385 / 400, 'y')];
		})()`)
		b.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, dot[0]+3, dot[1]-3))
		if got, want := tooltip(b), "clear-100k cost 0.81× still visible 96.2% (385 of 400)"; got != want {
			t.Errorf("the tooltip says %q, want %q", got, want)
		}
		b.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 2, 2))
		if tip := tooltip(b); tip != "" {
			t.Errorf("when the pointer has left, the tooltip says %q", tip)
		}
		browsertest.Eval[any](b, `document.querySelector('`+scatterChart+`').focus()`)
		b.Drawn()
		b.Do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
		if got := tooltip(b); !strings.HasPrefix(got, "auto cost 0.63×") {
			t.Errorf("after two keys the tooltip says %q", got)
		}
		browsertest.Eval[any](b, `document.activeElement.blur()`)
	})

	b.Run("a policy can be hidden", func(t *testing.T) {
		color := policyColors(b)[2]
		before := pixels(b, timelineChart, []string{color})[0]
		b.Do(chromedp.Click(chromedp.CSS(`.w0 .legend input[value="2"]`)))
		if after := pixels(b, timelineChart, []string{color})[0]; after > before/4 { // its shape remains
			t.Errorf("%d of %d pixels remain", after, before)
		}
		b.Do(chromedp.Click(chromedp.CSS(`.w0 [data-step="1"]`)))
		if n := pixels(b, timelineChart, []string{color})[0]; n > before/4 {
			t.Errorf("the next chart shows it with %d pixels", n)
		}
		b.Do(chromedp.Click(chromedp.CSS(`.w0 [data-step="-1"]`)), chromedp.Click(chromedp.CSS(`.w0 .legend input[value="2"]`)))
		if after := pixels(b, timelineChart, []string{color})[0]; after != before {
			t.Errorf("shown again it has %d pixels, %d before", after, before)
		}
	})

	b.Run("tables sort", func(t *testing.T) {
		const head = `.w0 .matrix thead th:nth-child(1)`
		names := `[...document.querySelectorAll('.w0 .matrix tbody th')].map(th => th.textContent.trim().toLowerCase())`
		b.Click(head + ` button`)
		if got := browsertest.Eval[[]string](b, names); len(got) < 2 || !slices.IsSorted(got) {
			t.Errorf("by name: %q", got)
		}
		b.Click(head + ` button`)
		if got := browsertest.Eval[[]string](b, names); slices.IsSorted(got) {
			t.Errorf("by name, falling: %q", got)
		}
		if got := browsertest.Eval[string](b, `document.querySelector('`+head+`').getAttribute('aria-sort')`); got != "descending" {
			t.Errorf("aria-sort %q", got)
		}
	})
	b.Run("the recommended policy is in view", func(t *testing.T) {
		if right := browsertest.Eval[float64](b, `document.querySelector('.w0 .totals th.best').getBoundingClientRect().right`); right > 1280 {
			t.Errorf("its column ends at %.0f px", right)
		}
		if browsertest.Eval[bool](b, `document.querySelector('.w0 .totals .scroll').scrollWidth > document.querySelector('.w0 .totals .scroll').clientWidth`) {
			t.Error("the table is wider than the page")
		}
	})

	b.Run("another window", func(t *testing.T) {
		browsertest.Eval[any](b, `document.querySelector('#w1').click()`)
		if got := browsertest.Eval[[]bool](b, `[...document.querySelectorAll('.panel')].map(p => p.offsetParent !== null)`); got[0] || !got[1] {
			t.Errorf("shown: %v, want the second only", got)
		}
		browsertest.Eval[any](b, `document.querySelector('#w0').click()`)
	})

	b.Run("light and dark", func(t *testing.T) {
		luminance := `(c => c.match(/\d+/g).slice(0, 3).reduce((a, v) => a + Number(v), 0))(getComputedStyle(document.body).%s)`
		for scheme, dark := range map[string]bool{"light": false, "dark": true} {
			b.Media("", scheme)
			ground, ink := browsertest.Eval[int](b, fmt.Sprintf(luminance, "backgroundColor")), browsertest.Eval[int](b, fmt.Sprintf(luminance, "color"))
			if (ground < ink) != dark {
				t.Errorf("%s: ground %d, ink %d", scheme, ground, ink)
			}
		}
	})

	b.Run("charts follow the theme", func(t *testing.T) {
		b.Media("", "light")
		light := policyColors(b)
		b.Media("", "dark")
		dark := policyColors(b)
		if light[1] == dark[1] {
			t.Fatalf("policy 1 is %s in both", dark[1])
		}
		for _, chart := range []string{timelineChart, scatterChart} {
			for policy, n := range pixels(b, chart, dark) {
				if n < 20 {
					t.Errorf("%s: %d pixels have the dark color of policy %d", chart, n, policy)
				}
			}
		}
		b.Media("", "light")
	})

	b.Run("contrast", func(t *testing.T) {
		for _, scheme := range []string{"light", "dark"} {
			b.Media("", scheme)
			for _, low := range browsertest.Eval[[]string](b, contrasts) {
				t.Errorf("%s: %s", scheme, low)
			}
		}
		b.Media("", "light")
	})

	b.Run("on paper", func(t *testing.T) {
		b.Media("print", "dark")
		b.Drawn()
		for _, c := range []struct{ what, expression string }{
			{"the ground is white", `getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'`},
			{"what only clicks is gone", `document.querySelector('.chooser').offsetParent === null && document.querySelector('.step').offsetParent === null`},
			{"what is folded is open", `[...document.querySelectorAll('details.rec table')].every(d => d.getBoundingClientRect().height > 10)`},
			{"the charts are dense", `[...document.querySelectorAll('.w0 canvas')].filter(c => c.offsetParent).every(c => c.width >= 2 * c.clientWidth)`},
			{"the charts fit", `[...document.querySelectorAll('.w0 .plot')].filter(p => p.offsetParent).every(p => p.querySelector('canvas').clientWidth <= p.clientWidth)`},
			{"nothing scrolls", `[...document.querySelectorAll('.scroll')].every(d => getComputedStyle(d).overflowX === 'visible')`},
		} {
			if !browsertest.Eval[bool](b, c.expression) {
				t.Errorf("not so: %s", c.what)
			}
		}
		colors := policyColors(b)
		for policy, n := range pixels(b, timelineChart, colors) {
			if n < 20 {
				t.Errorf("%d pixels have the color of policy %d on paper", n, policy)
			}
		}
		b.Media("", "light")
	})

	b.Run("on any width", func(t *testing.T) {
		for _, width := range []int64{320, 400, 800, 1600} {
			b.Size(width, 900)
			b.Drawn()
			for _, chart := range []string{timelineChart, scatterChart} {
				widths := browsertest.Eval[[]float64](b, `(p => [p.clientWidth, p.querySelector('canvas').clientWidth])(document.querySelector('`+chart+`'))`)
				if widths[0] != widths[1] {
					t.Errorf("at %d pixels %s is %v pixels wide and its canvas %v", width, chart, widths[0], widths[1])
				}
			}
			for _, low := range browsertest.Eval[[]string](b, labelsApart) {
				t.Errorf("at %d pixels %s", width, low)
			}
			if over := browsertest.Eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("at %d pixels the page is %d too wide", width, over)
			}
		}
		b.Size(1280, 900)
	})

	b.Run("names of dots stay apart", func(t *testing.T) {
		if got := browsertest.Eval[[]string](b, randomLabels); len(got) > 0 {
			t.Errorf("%d times: %s", len(got), got[0])
		}
	})

	b.Run("all that can be clicked has a name", func(t *testing.T) {
		unnamed := browsertest.Eval[[]string](b, `[...document.querySelectorAll('button, a, input, select, summary, [role=img], [role=region]')]
			.filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels && e.labels.length && e.labels[0].textContent.trim()))
			.map(e => e.outerHTML.slice(0, 80))`)
		if len(unnamed) > 0 {
			t.Errorf("without a name: %q", unnamed)
		}
	})

	b.Silent()
}

// The charts of the first window that are shown.
const (
	timelineChart = ".w0 .chart.on .plot"
	scatterChart  = ".w0 .scatter .plot"
)

// policyColors are the colors of the policies in the legend.
func policyColors(b *browsertest.Page) []string {
	return browsertest.Eval[[]string](b, `[...document.querySelectorAll('.w0 .legend .line')].map(l => getComputedStyle(l).stroke)`)
}

// pixels counts the pixels of a chart that have exactly these colors, after the
// chart was drawn.
func pixels(b *browsertest.Page, chart string, colors []string) []int {
	wanted, _ := json.Marshal(colors)
	b.Drawn()
	return browsertest.Eval[[]int](b, `(() => {
		const canvas = document.querySelector('`+chart+` canvas');
		const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
		copy.drawImage(canvas, 0, 0);
		const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
		const found = new Map();
		for (let i = 0; i < data.length; i += 4) {
			if (data[i + 3] !== 255) continue;
			const color = 'rgb(' + data[i] + ', ' + data[i + 1] + ', ' + data[i + 2] + ')';
			found.set(color, (found.get(color) || 0) + 1);
		}
		return `+string(wanted)+`.map(c => found.get(c) || 0);
	})()`)
}

// center scrolls to an element and returns its middle.
func center(b *browsertest.Page, selector string) []float64 {
	return browsertest.Eval[[]float64](b, `(e => {
		e.scrollIntoView({block: 'center', behavior: 'instant'});
		const r = e.getBoundingClientRect();
		return [r.left + r.width / 2, r.top + r.height / 2];
	})(document.querySelector('`+selector+`'))`)
}

// tooltip is the text of the tooltip, "" if it is hidden.
func tooltip(b *browsertest.Page) string {
	b.Drawn()
	text := browsertest.Eval[string](b, `document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').innerText`)
	return strings.Join(strings.Fields(text), " ")
}

// expectTooltip fails if a tooltip does not have the prompt size of a request
// under each policy, and what was removed.
func expectTooltip(t *testing.T, tip string, results []replay.Result, request int) {
	t.Helper()
	if !strings.Contains(tip, "tokens in the prompt") {
		t.Errorf("no unit in the tooltip %q", tip)
	}
	for _, r := range within(results, 0) {
		p := r.Series[0].Points[request-1]
		want := policyName(&r) + " " + count(p.Tokens)
		if p.Freed > 0 {
			want += " −" + count(p.Freed) + " mask"
		}
		if !strings.Contains(tip, want) {
			t.Errorf("%q is missing from the tooltip %q", want, tip)
		}
	}
}

// zoomed is the first and the last request that the timeline shows.
func zoomed(b *browsertest.Page) []float64 {
	b.Drawn()
	return browsertest.Eval[[]float64](b, `(s => [s.min, s.max])(plots.find(p => p.element === document.querySelector('`+timelineChart+`')).u.scales.x)`)
}

// labelsApart lists names that overlap in the charts that are shown.
const labelsApart = `(() => {
	const found = [];
	for (const { element, u } of plots) {
		if (!u || !element.clientWidth) continue;
		u.labels.forEach((a, i) => u.labels.slice(i + 1).forEach((b) => {
			const overlap = a.area ? a.area[0] < b.area[2] && b.area[0] < a.area[2] && a.area[1] < b.area[3] && b.area[1] < a.area[3] : Math.abs(a.y - b.y) < 14;
			if (overlap) found.push((a.p || a).d?.name + ' lies on ' + (b.p || b).d?.name);
		}));
	}
	return found;
})()`

// randomLabels places the names of up to ten dots in a chart as narrow as on a
// phone, 300 times, and lists names that overlap.
const randomLabels = `(() => {
	let seed = 1;
	const random = (n) => (seed = seed * 48271 % 2147483647) % n;
	const found = [];
	for (let round = 0; round < 300; round++) {
		const placed = Array.from({ length: 1 + random(10) }, (_, i) => ({ d: { name: 'p'.repeat(4 + i), best: i === 3 }, x: random(310), y: random(300), name: 7 * (4 + i) }));
		const labels = label(placed, [], { left: 0, top: 0, right: 310, bottom: 300 });
		labels.forEach(({ area: a, p }, i) => labels.slice(i + 1).forEach(({ area: b, p: q }) => {
			if (a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]) found.push('round ' + round + ': ' + p.d.name + ' lies on ' + q.d.name);
		}));
	}
	return found;
})()`

// contrasts lists texts and signs that stand out too little from their ground:
// 4.5 for words and 3 for lines and shapes (WCAG 2.2, 1.4.3 and 1.4.11).
const contrasts = `(() => {
	const rgb = s => s.match(/[\d.]+/g).slice(0, 3).map(v => Number(v) / 255);
	const light = c => { const [r, g, b] = c.map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b };
	const ratio = (a, b) => { const [x, y] = [light(rgb(a)), light(rgb(b))].sort((p, q) => q - p); return (x + .05) / (y + .05) };
	const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (c && c !== 'rgba(0, 0, 0, 0)' && c !== 'transparent') return c } return 'rgb(255, 255, 255)' };
	const low = new Set();
	const check = (e, color, least, what) => { if (ratio(color, ground(e)) < least) low.add(what + ' ' + color + ' on ' + ground(e) + ': ' + ratio(color, ground(e)).toFixed(2)) };
	for (const e of document.querySelectorAll('h1, h2, p, dt, dd, dd span, th, td, .sum span, em, a, summary, label, .scale span')) if (e.offsetParent) check(e, getComputedStyle(e).color, 4.5, e.tagName + '.' + e.className);
	const resolved = name => { const e = document.body.appendChild(document.createElement('i')); e.style.color = color(name); const c = getComputedStyle(e).color; e.remove(); return c };
	for (const name of ['--ink', '--soft', '--warn']) check(document.querySelector('.panel'), resolved(name), 4.5, 'text of charts, ' + name);
	// The names at the ends of lines have the color of their line.
	for (const e of document.querySelectorAll('.dot')) check(e.closest('.panel'), getComputedStyle(e).stroke === 'none' ? getComputedStyle(e).fill : getComputedStyle(e).stroke, 4.5, 'a shape');
	for (const e of document.querySelectorAll('.legend .line')) check(e.closest('.panel'), getComputedStyle(e).stroke, 4.5, 'a line');
	for (const t of document.querySelectorAll('.track text')) {
		const bar = t.closest('svg').querySelector('rect.' + t.getAttribute('class').slice(3));
		if (ratio(getComputedStyle(t).fill, getComputedStyle(bar).fill) < 4.5) low.add('in a bar: ' + t.getAttribute('class'));
	}
	return [...low];
})()`

// On a dense screen a chart has as many pixels as the screen.
func TestBrowserDenseScreen(t *testing.T) {
	b := browsertest.Open(t, []byte(render(t, sample(1, 60))))
	b.Do(chromedp.EmulateViewport(800, 900, chromedp.EmulateScale(2)), chromedp.Reload())
	b.Drawn()
	for _, chart := range []string{timelineChart, scatterChart} {
		widths := browsertest.Eval[[]float64](b, `(c => [c.width, c.clientWidth])(document.querySelector('`+chart+` canvas'))`)
		if widths[0] != 2*widths[1] {
			t.Errorf("%s has %v pixels on %v", chart, widths[0], widths[1])
		}
	}
}

// Without its script the page has all numbers, in texts, bars and tables, and
// says that the charts need the script.
func TestBrowserWithoutScript(t *testing.T) {
	page := strings.Replace(render(t, sample(4, 60)), "<script>"+script()+"</script>", "", 1)
	b := browsertest.Open(t, []byte(page))
	if n := browsertest.Eval[int](b, `[...document.querySelectorAll('.chart')].filter(c => c.offsetParent).length`); n != 4 {
		t.Errorf("%d of 4 recordings are shown", n)
	}
	b.Do(chromedp.Click(chromedp.CSS(`.chart summary`)))
	if height := browsertest.Eval[float64](b, `document.querySelector('.chart table').getBoundingClientRect().height`); height < 100 {
		t.Errorf("the numbers of a chart are %v pixels high", height)
	}
	for selector, shown := range map[string]bool{".needs-script": true, "h1": true, ".tiles": true, ".track rect": true, ".totals table": true, ".controls": false, ".plot": false, ".hint": false} {
		got := browsertest.Eval[bool](b, `document.querySelector('`+selector+`').getBoundingClientRect().height > 0`)
		if got != shown {
			t.Errorf("%s shown: %v, want %v", selector, got, shown)
		}
	}
	b.Silent()
}

// Texts from recordings are never run, in the page, the charts or their
// tooltips.
func TestBrowserHostile(t *testing.T) {
	rep := hostileSample()
	b := browsertest.Open(t, []byte(render(t, rep)))
	same := func(what, shown, want string) {
		t.Helper()
		if strings.Join(strings.Fields(shown), " ") != strings.Join(strings.Fields(want), " ") {
			got, _ := json.Marshal(shown)
			t.Errorf("%s shows %s", what, got)
		}
	}
	same("a note", browsertest.Eval[string](b, `document.querySelector('.notices').innerText`), clean(hostile, noteLength))
	at := center(b, timelineChart+" .u-over")
	b.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
	if tip, want := tooltip(b), strings.Join(strings.Fields(clean("auto"+hostile, 40)), " "); !strings.Contains(tip, want) {
		t.Errorf("the tooltip %q lacks %q", tip, want)
	}
	b.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 2, 2))
	browsertest.Eval[any](b, `document.querySelector('`+scatterChart+`').focus()`)
	b.Drawn()
	b.Do(chromedp.KeyEvent(kb.ArrowRight))
	if tip, want := tooltip(b), strings.Join(strings.Fields(clean("auto:frugal"+hostile, 40)), " "); !strings.HasPrefix(tip, want) {
		t.Errorf("the tooltip %q does not begin with %q", tip, want)
	}
	b.Silent()
}

// A large report opens quickly: 43 recordings of 2,000 requests under 10
// policies.
func TestBrowserLargeReport(t *testing.T) {
	rep := sample(43, 2000)
	for i := range rep.Recordings {
		rec := &rep.Recordings[i]
		for j := range 4 {
			r := rec.Results[1+j]
			r.Policy += ":variant"
			rec.Results = append(rec.Results, r)
		}
	}
	page := render(t, rep)
	b := browsertest.Open(t, []byte(page))
	b.Drawn()
	b.Drawn()
	painted := browsertest.Eval[float64](b, `performance.getEntriesByName('first-contentful-paint')[0].startTime`)
	elements := browsertest.Eval[int](b, `document.querySelectorAll('*').length`)
	browsertest.Eval[any](b, `window.begin = performance.now(), document.querySelector('[data-step="1"]').click()`)
	b.Drawn()
	next := browsertest.Eval[float64](b, `performance.now() - begin`)
	t.Logf("%d bytes, %d elements, first paint after %.0f ms, next chart after %.0f ms", len(page), elements, painted, next)
	// Generous bounds: other tests run at the same time.
	if len(page) > 4_000_000 || elements > 30_000 || painted > 10_000 || next > 10_000 {
		t.Error("too large or too slow")
	}
	b.Silent()
}
