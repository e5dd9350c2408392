package report

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a page open in a real browser, with what it said and asked for.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	said     []string
	requests []string
}

// open shows a page in Chromium. Without one the test is skipped.
func open(t *testing.T, page string) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium to test the page in; to get one: apt-get install chromium, or brew install --cask chromium")
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))
	alloc, cancel := chromedp.NewExecAllocator(limit, opts...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	b.size(1280, 900)
	b.do(chromedp.Navigate((&url.URL{Scheme: "file", Path: file}).String()))
	return b
}

func (b *browser) listen(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		b.said = append(b.said, fmt.Sprint("console ", ev.Type))
	case *runtime.EventExceptionThrown:
		text := ev.ExceptionDetails.Text
		if ev.ExceptionDetails.Exception != nil {
			text += ": " + ev.ExceptionDetails.Exception.Description
		}
		b.said = append(b.said, "exception "+text)
	case *log.EventEntryAdded:
		b.said = append(b.said, fmt.Sprint(ev.Entry.Level, " ", ev.Entry.Text))
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, ev.Request.URL)
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// run is one part of a test, whose failures are its own.
func (b *browser) run(name string, f func(t *testing.T)) {
	whole := b.t
	whole.Run(name, func(t *testing.T) {
		b.t = t
		f(t)
	})
	b.t = whole
}

func (b *browser) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// media makes the page think it is printed ("print"), or that the user wants
// it light or dark.
func (b *browser) media(media, scheme string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// eval gives the value of a JavaScript expression.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// silent fails if the page complained, or asked for anything but itself.
func (b *browser) silent() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.said {
		b.t.Errorf("the browser said: %s", s)
	}
	if len(b.requests) != 1 || !strings.HasPrefix(b.requests[0], "file:") {
		b.t.Errorf("requests: %q, want only the page itself", b.requests)
	}
}

func TestBrowser(t *testing.T) {
	b := open(t, render(t, sample(5, 160, 0, 64_000)))

	b.run("one picture at a time", func(t *testing.T) {
		shown := `[...document.querySelectorAll('.w0 .chart')].filter(c => c.offsetParent).map(c => c.id)`
		if got := eval[[]string](b, shown); len(got) != 1 || got[0] != "c0-0" {
			t.Fatalf("shown at first: %v", got)
		}
		b.do(chromedp.Click(chromedp.CSS(`.w0 [data-step="1"]`)))
		if got := eval[[]string](b, shown); len(got) != 1 || got[0] != "c0-1" {
			t.Errorf("after Next: %v", got)
		}
		eval[bool](b, `(s => { s.selectedIndex = 3; return s.dispatchEvent(new Event('change')) })(document.querySelector('.w0 select'))`)
		if got := eval[[]string](b, shown); len(got) != 1 || got[0] != "c0-3" {
			t.Errorf("after choosing: %v", got)
		}
	})

	b.run("pictures are drawn", func(t *testing.T) {
		for _, sel := range []string{".w0 .chart.on polyline.line", ".w0 .chart.on .rug path.ticks", ".w0 .scatters .dot", ".w0 .track rect", ".w0 .front"} {
			box := eval[[]float64](b, `(r => [r.width, r.height])(document.querySelector('`+sel+`').getBoundingClientRect())`)
			if box[0] < 2 && box[1] < 2 {
				t.Errorf("%s is %v pixels", sel, box)
			}
		}
		colors := eval[int](b, `new Set([...document.querySelectorAll('.w0 .chart.on polyline.line')].map(l => getComputedStyle(l).stroke)).size`)
		if colors != 5 { // two are variants of one
			t.Errorf("6 policies, 2 of them variants of one, in %d colors", colors)
		}
	})

	b.run("a reading under the pointer", func(t *testing.T) {
		eval[any](b, `document.querySelector('.w0 .chart.on .area').scrollIntoView({block: 'center', behavior: 'instant'})`)
		at := eval[[]float64](b, `(r => [r.left + r.width / 2, r.top + r.height / 2])(document.querySelector('.w0 .chart.on .area').getBoundingClientRect())`)
		b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
		tip := eval[string](b, `document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').innerText`)
		if !strings.Contains(tip, "request 8") || !strings.Contains(tip, "clear-100k") {
			t.Errorf("the reading says %q", tip)
		}
		b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 2, 2))
		if !eval[bool](b, `document.querySelector('.tip').hidden`) {
			t.Error("the reading stays when the pointer has left")
		}
		eval[any](b, `document.querySelector('.w0 .chart.on .area').focus()`)
		b.do(chromedp.KeyEvent("\ue014")) // arrow right
		if tip := eval[string](b, `document.querySelector('.tip').innerText`); !strings.Contains(tip, "request 8") {
			t.Errorf("with the keyboard the reading says %q", tip)
		}
		eval[any](b, `document.activeElement.blur()`)
	})

	b.run("a policy can be hidden", func(t *testing.T) {
		visible := `getComputedStyle(document.querySelector('.w0 .chart.on polyline.s2')).display !== 'none'`
		if !eval[bool](b, visible) {
			t.Fatal("hidden from the start")
		}
		b.do(chromedp.Click(chromedp.CSS(`.w0 .legend input.k2`)))
		if eval[bool](b, visible) {
			t.Error("still there")
		}
		b.do(chromedp.Click(chromedp.CSS(`.w0 .legend input.k2`)))
	})

	b.run("tables sort", func(t *testing.T) {
		names := `[...document.querySelectorAll('.w0 .totals tbody th')].map(th => th.firstChild.textContent.trim())`
		b.do(chromedp.Click(chromedp.CSS(`.w0 .totals thead th:nth-child(2) button`)))
		if got := strings.Join(eval[[]string](b, names), " "); got != "auto:frugal auto clear-100k sliding-window none rolling-mask-10" {
			t.Errorf("by cost: %s", got)
		}
		b.do(chromedp.Click(chromedp.CSS(`.w0 .totals thead th:nth-child(2) button`)))
		if got := eval[[]string](b, names)[0]; got != "rolling-mask-10" {
			t.Errorf("by cost, falling: %s first", got)
		}
		if got := eval[string](b, `document.querySelector('.w0 .totals thead th:nth-child(2)').getAttribute('aria-sort')`); got != "descending" {
			t.Errorf("aria-sort %q", got)
		}
	})

	b.run("another window", func(t *testing.T) {
		eval[any](b, `document.querySelector('#w1').click()`)
		if got := eval[[]bool](b, `[...document.querySelectorAll('.panel')].map(p => p.offsetParent !== null)`); got[0] || !got[1] {
			t.Errorf("shown: %v, want the second only", got)
		}
		eval[any](b, `document.querySelector('#w0').click()`)
	})

	b.run("light and dark", func(t *testing.T) {
		luminance := `(c => c.match(/\d+/g).slice(0, 3).reduce((a, v) => a + Number(v), 0))(getComputedStyle(document.body).%s)`
		for scheme, dark := range map[string]bool{"light": false, "dark": true} {
			b.media("", scheme)
			ground, ink := eval[int](b, fmt.Sprintf(luminance, "backgroundColor")), eval[int](b, fmt.Sprintf(luminance, "color"))
			if (ground < ink) != dark {
				t.Errorf("%s: ground %d, ink %d", scheme, ground, ink)
			}
		}
	})

	b.run("contrast", func(t *testing.T) {
		for _, scheme := range []string{"light", "dark"} {
			b.media("", scheme)
			for _, low := range eval[[]string](b, contrasts) {
				t.Errorf("%s: %s", scheme, low)
			}
		}
		b.media("", "light")
	})

	b.run("on paper", func(t *testing.T) {
		b.media("print", "dark")
		for _, c := range []struct{ what, expression string }{
			{"the ground is white", `getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'`},
			{"what only clicks is gone", `document.querySelector('.chooser').offsetParent === null && document.querySelector('.step').offsetParent === null`},
			{"what is folded is open", `[...document.querySelectorAll('details.rec table')].every(d => d.getBoundingClientRect().height > 10)`},
			{"nothing scrolls", `[...document.querySelectorAll('.scroll')].every(d => getComputedStyle(d).overflowX === 'visible')`},
		} {
			if !eval[bool](b, c.expression) {
				t.Errorf("not so: %s", c.what)
			}
		}
		b.media("", "light")
	})

	b.run("on any width", func(t *testing.T) {
		for _, width := range []int64{320, 400, 800, 1600} {
			b.size(width, 900)
			if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("at %d pixels the page is %d too wide", width, over)
			}
		}
		b.size(1280, 900)
	})

	b.run("all that can be clicked has a name", func(t *testing.T) {
		unnamed := eval[[]string](b, `[...document.querySelectorAll('button, a, input, select, summary, svg[role=img], [role=region]')]
			.filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels && e.labels.length && e.labels[0].textContent.trim()))
			.map(e => e.outerHTML.slice(0, 80))`)
		if len(unnamed) > 0 {
			t.Errorf("without a name: %q", unnamed)
		}
	})

	b.silent()
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
	b := open(t, page)
	if n := eval[int](b, `[...document.querySelectorAll('.chart')].filter(c => c.offsetParent).length`); n != 4 {
		t.Errorf("%d of 4 pictures are shown", n)
	}
	if eval[bool](b, `document.querySelector('.chooser').offsetParent !== null`) {
		t.Error("there is a choice that does nothing")
	}
	b.silent()
}

// Texts from recordings do not run, whatever they are.
func TestBrowserHostile(t *testing.T) {
	rep := sample(2, 30)
	rep.Notes = []string{hostile}
	for i := range rep.Recordings {
		rep.Recordings[i].File, rep.Recordings[i].Model, rep.Recordings[i].Notes = hostile, hostile, []string{hostile}
	}
	b := open(t, render(t, rep))
	shown := eval[string](b, `document.querySelector('.notices').innerText`)
	if want := clean(hostile, noteLength); strings.Join(strings.Fields(shown), " ") != strings.Join(strings.Fields(want), " ") {
		got, _ := json.Marshal(shown)
		t.Errorf("shown as %s", got)
	}
	b.silent()
}
