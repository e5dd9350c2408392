package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/furlhq/furl/internal/browsertest"
)

func TestBrowser(t *testing.T) {
	b := browsertest.Open(t, []byte(render(t, sample(5, 160, 0, 64_000))))

	b.Run("one picture at a time", func(t *testing.T) {
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

	b.Run("pictures are drawn", func(t *testing.T) {
		for _, sel := range []string{".w0 .chart.on polyline.line", ".w0 .chart.on .rug path.ticks", ".w0 .scatters .dot", ".w0 .track rect", ".w0 .front"} {
			box := browsertest.Eval[[]float64](b, `(r => [r.width, r.height])(document.querySelector('`+sel+`').getBoundingClientRect())`)
			if box[0] < 2 && box[1] < 2 {
				t.Errorf("%s is %v pixels", sel, box)
			}
		}
		colors := browsertest.Eval[int](b, `new Set([...document.querySelectorAll('.w0 .chart.on polyline.line')].map(l => getComputedStyle(l).stroke)).size`)
		if colors != 5 { // two are variants of one
			t.Errorf("6 policies, 2 of them variants of one, in %d colors", colors)
		}
	})

	b.Run("a reading under the pointer", func(t *testing.T) {
		browsertest.Eval[any](b, `document.querySelector('.w0 .chart.on .area').scrollIntoView({block: 'center', behavior: 'instant'})`)
		at := browsertest.Eval[[]float64](b, `(r => [r.left + r.width / 2, r.top + r.height / 2])(document.querySelector('.w0 .chart.on .area').getBoundingClientRect())`)
		b.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
		tip := browsertest.Eval[string](b, `document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').innerText`)
		if !strings.Contains(tip, "request 8") || !strings.Contains(tip, "clear-100k") {
			t.Errorf("the reading says %q", tip)
		}
		b.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 2, 2))
		if !browsertest.Eval[bool](b, `document.querySelector('.tip').hidden`) {
			t.Error("the reading stays when the pointer has left")
		}
		browsertest.Eval[any](b, `document.querySelector('.w0 .chart.on .area').focus()`)
		b.Do(chromedp.KeyEvent("\ue014")) // arrow right
		if tip := browsertest.Eval[string](b, `document.querySelector('.tip').innerText`); !strings.Contains(tip, "request 8") {
			t.Errorf("with the keyboard the reading says %q", tip)
		}
		browsertest.Eval[any](b, `document.activeElement.blur()`)
	})

	b.Run("a policy can be hidden", func(t *testing.T) {
		visible := `getComputedStyle(document.querySelector('.w0 .chart.on polyline.s2')).display !== 'none'`
		if !browsertest.Eval[bool](b, visible) {
			t.Fatal("hidden from the start")
		}
		b.Do(chromedp.Click(chromedp.CSS(`.w0 .legend input.k2`)))
		if browsertest.Eval[bool](b, visible) {
			t.Error("still there")
		}
		b.Do(chromedp.Click(chromedp.CSS(`.w0 .legend input.k2`)))
	})

	b.Run("tables sort", func(t *testing.T) {
		names := `[...document.querySelectorAll('.w0 .totals tbody th')].map(th => th.firstChild.textContent.trim())`
		b.Do(chromedp.Click(chromedp.CSS(`.w0 .totals thead th:nth-child(2) button`)))
		if got := strings.Join(browsertest.Eval[[]string](b, names), " "); got != "auto:frugal auto clear-100k sliding-window none rolling-mask-10" {
			t.Errorf("by cost: %s", got)
		}
		b.Do(chromedp.Click(chromedp.CSS(`.w0 .totals thead th:nth-child(2) button`)))
		if got := browsertest.Eval[[]string](b, names)[0]; got != "rolling-mask-10" {
			t.Errorf("by cost, falling: %s first", got)
		}
		if got := browsertest.Eval[string](b, `document.querySelector('.w0 .totals thead th:nth-child(2)').getAttribute('aria-sort')`); got != "descending" {
			t.Errorf("aria-sort %q", got)
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
		for _, c := range []struct{ what, expression string }{
			{"the ground is white", `getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'`},
			{"what only clicks is gone", `document.querySelector('.chooser').offsetParent === null && document.querySelector('.step').offsetParent === null`},
			{"what is folded is open", `[...document.querySelectorAll('details.rec table')].every(d => d.getBoundingClientRect().height > 10)`},
			{"nothing scrolls", `[...document.querySelectorAll('.scroll')].every(d => getComputedStyle(d).overflowX === 'visible')`},
		} {
			if !browsertest.Eval[bool](b, c.expression) {
				t.Errorf("not so: %s", c.what)
			}
		}
		b.Media("", "light")
	})

	b.Run("on any width", func(t *testing.T) {
		for _, width := range []int64{320, 400, 800, 1600} {
			b.Size(width, 900)
			if over := browsertest.Eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("at %d pixels the page is %d too wide", width, over)
			}
		}
		b.Size(1280, 900)
	})

	b.Run("all that can be clicked has a name", func(t *testing.T) {
		unnamed := browsertest.Eval[[]string](b, `[...document.querySelectorAll('button, a, input, select, summary, svg[role=img], [role=region]')]
			.filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels && e.labels.length && e.labels[0].textContent.trim()))
			.map(e => e.outerHTML.slice(0, 80))`)
		if len(unnamed) > 0 {
			t.Errorf("without a name: %q", unnamed)
		}
	})

	b.Silent()
}

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
	for (const e of document.querySelectorAll('.point text, .tick, .ay text, .ends text, .ends tspan, text.limit')) check(e.closest('figure'), getComputedStyle(e).fill, 4.5, 'text.' + e.getAttribute('class'));
	for (const e of document.querySelectorAll('.dot')) check(e.closest('.panel'), getComputedStyle(e).stroke === 'none' ? getComputedStyle(e).fill : getComputedStyle(e).stroke, 3, 'a shape');
	for (const e of document.querySelectorAll('polyline.line, line.limit, .gap')) check(e.closest('figure'), getComputedStyle(e).stroke, 3, 'a line');
	for (const t of document.querySelectorAll('.track text')) {
		const bar = t.closest('svg').querySelector('rect.' + t.getAttribute('class').slice(3));
		if (ratio(getComputedStyle(t).fill, getComputedStyle(bar).fill) < 4.5) low.add('in a bar: ' + t.getAttribute('class'));
	}
	return [...low];
})()`

// Without its script the page shows everything.
func TestBrowserWithoutScript(t *testing.T) {
	page := strings.Replace(render(t, sample(4, 60)), "<script>"+script+"</script>", "", 1)
	b := browsertest.Open(t, []byte(page))
	if n := browsertest.Eval[int](b, `[...document.querySelectorAll('.chart')].filter(c => c.offsetParent).length`); n != 4 {
		t.Errorf("%d of 4 pictures are shown", n)
	}
	if browsertest.Eval[bool](b, `document.querySelector('.chooser').offsetParent !== null`) {
		t.Error("there is a choice that does nothing")
	}
	b.Silent()
}

// Texts from recordings do not run, whatever they are.
func TestBrowserHostile(t *testing.T) {
	rep := sample(2, 30)
	rep.Notes = []string{hostile}
	for i := range rep.Recordings {
		rep.Recordings[i].File, rep.Recordings[i].Model, rep.Recordings[i].Notes = hostile, hostile, []string{hostile}
	}
	b := browsertest.Open(t, []byte(render(t, rep)))
	shown := browsertest.Eval[string](b, `document.querySelector('.notices').innerText`)
	if want := clean(hostile, noteLength); strings.Join(strings.Fields(shown), " ") != strings.Join(strings.Fields(want), " ") {
		got, _ := json.Marshal(shown)
		t.Errorf("shown as %s", got)
	}
	b.Silent()
}
