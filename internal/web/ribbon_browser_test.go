package web_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/furlhq/furl/internal/dev/browsertest"
)

// The ribbon says what is in the context and selects it, and the scrubber shows the context
// of each request.
func TestBrowserRibbon(t *testing.T) {
	all, s := longSession(t, 400)
	requests, err := s.Requests()
	if err != nil {
		t.Fatal(err)
	}
	last := len(requests)
	page := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	b := browsertest.OpenURL(t, page)
	at := func(request int) string {
		return fmt.Sprintf(`document.querySelector('#ribbon').dataset.request == '%d'`, request)
	}
	ready := at(0) + fmt.Sprintf(` && document.querySelector('#scrubber .place').textContent == 'now / %d'`, last)
	b.Wait(ready)
	selected := `new URL(location).searchParams.get('at')`
	tip := `(t => t.hidden ? '' : t.textContent)(document.querySelector('#tip'))`

	b.Run("pointing says what is there", func(t *testing.T) {
		b.Point("move", ".strip", .999, .5)
		b.Wait(tip + `.startsWith('free')`)
		b.Point("move", ".strip", .001, .5)
		b.Wait(tip + `.includes('hidden by reduction')`) // the first message is long past
		b.Wait(tip + `.includes('archived') || ` + tip + `.includes('freed')`)
		b.Screenshot("ribbon-tip")
		b.Point("move", "#curve", .5, .5)
		b.Wait(tip + `.startsWith('request ') && /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/.test(` + tip + `)`)
		b.Point("move", "h1", .5, .5)
		b.Wait(tip + ` === ''`)
	})
	b.Run("a click selects", func(t *testing.T) {
		b.Point("press", ".strip", .1, .5)
		b.Point("release", ".strip", .1, .5)
		b.Wait(selected + ` && !document.querySelector('.frame.selection').hidden`)
		b.Wait(`!!document.querySelector('.row.selected') && !!document.querySelector('#inspector h2, #inspector h3, #inspector .figures')`)
	})
	b.Run("arrow keys go from run to run", func(t *testing.T) {
		before := browsertest.Eval[string](b, selected)
		browsertest.Eval[any](b, `document.querySelector('.strip').focus()`)
		b.Key(kb.End)
		b.Wait(fmt.Sprintf(`%s != %q && document.querySelector('.strip').getAttribute('aria-valuenow') == document.querySelector('.strip').getAttribute('aria-valuemax')`, selected, before))
		end := browsertest.Eval[string](b, selected)
		b.Key(kb.ArrowLeft)
		b.Wait(fmt.Sprintf(`%s != %q`, selected, end))
		b.Key(kb.Enter)
		b.Wait(`document.activeElement.matches('.row.selected') && document.querySelector('.part.selected details')?.open !== false`)
	})
	b.Run("the legend dims the others", func(t *testing.T) {
		pixels := `(c => c.toDataURL())(document.querySelector('.strip canvas'))`
		before := browsertest.Eval[string](b, pixels)
		b.Click(`#legend [data-focus=result]`)
		b.Wait(fmt.Sprintf(`document.querySelector('#legend [data-focus=result]').ariaPressed == 'true' && %s != %q`, pixels, before))
		b.Screenshot("ribbon-dim")
		b.Click(`#legend [data-focus=result]`)
		b.Wait(fmt.Sprintf(`%s == %q`, pixels, before))
	})
	b.Run("zoomed there is no free space", func(t *testing.T) {
		free := tip + `.startsWith('free')`
		b.Key("z")
		b.Wait(`document.querySelector('#zoom').ariaPressed == 'true'`)
		b.Point("move", ".strip", .995, .5)
		b.Wait(tip + ` && !` + free)
		b.Screenshot("ribbon-zoomed")
		b.Click("#zoom")
		b.Point("move", ".strip", .995, .4)
		b.Wait(free)
	})
	b.Run("a table says the same", func(t *testing.T) {
		b.Wait(`[...document.querySelectorAll('#ribbon tbody th')].some((th) => th.textContent == 'results')`)
	})
	browsertest.Eval[any](b, `{ window.frames = 0; const real = requestAnimationFrame; window.requestAnimationFrame = (f) => { window.frames++; return real(f); }; document.activeElement.blur(); }`)
	rows := `document.querySelectorAll('#transcript .chunk').length`
	b.Run("keys go to the previous and the next request", func(t *testing.T) {
		b.Key("[")
		b.Wait(at(last) + fmt.Sprintf(` && location.search.includes('request=%d') && window.frames > 0`, last)) // on a slow machine the way is one frame
		b.Wait(fmt.Sprintf(`document.querySelector('#modes').textContent.includes('at request %d of %d') && document.querySelector('#meter .size').textContent.includes('%s')`,
			last, last, thousands(requests[last-1].Size)))
		b.Key("[")
		b.Wait(at(last - 1))
		b.Key("]")
		b.Wait(at(last))
	})
	b.Run("a drag on the curve goes to any request, in one step of the history", func(t *testing.T) {
		before := browsertest.Eval[int](b, `history.length`)
		b.Point("press", "#curve", .6, .5)
		b.Point("move", "#curve", .4, .5)
		b.Point("move", "#curve", .2, .5)
		b.Wait(tip + `.includes('request ')`)
		b.Point("release", "#curve", .2, .5)
		n := int(.2*float64(last+1)) + 1
		b.Wait(at(n))
		b.Wait(fmt.Sprintf(`document.querySelector('#modes').textContent.includes('at request %d ')`, n))
		if after := browsertest.Eval[int](b, `history.length`); after != before+1 {
			t.Errorf("the history has %d entries more, want 1", after-before)
		}
		b.Screenshot("ribbon-scrubbed")
		b.Leave(`history.back()`)
		b.Wait(at(last))
		b.Leave(`history.forward()`)
		b.Wait(at(n))
		if browsertest.Eval[int](b, rows) == 0 {
			t.Error("no transcript")
		}
	})
	b.Run("with reduced motion it jumps", func(t *testing.T) {
		b.Still(true)
		b.Drawn()
		browsertest.Eval[any](b, `document.querySelector('#now').click(); window.frames = 0`)
		b.Wait(ready)
		b.Drawn()
		if n := browsertest.Eval[int](b, `window.frames`); n > 1 { // one is Drawn's
			t.Errorf("%d frames of an animation", n-1)
		}
		b.Still(false)
	})
	b.Run("links to a request", func(t *testing.T) {
		b.Wait(fmt.Sprintf(`document.querySelector('#earlier').href.includes('request=%d')`, last))
		b.Click("#earlier")
		b.Wait(at(last))
		b.Click("#now")
		b.Wait(ready)
	})
	b.Run("on a phone the legend is folded", func(t *testing.T) {
		b.Size(390, 800)
		b.Wait(`!document.querySelector('#legend').open && document.documentElement.scrollWidth <= 390`)
		b.Screenshot("ribbon-phone")
	})
	b.Silent()
}

// A ribbon of 10,000 messages is drawn within a frame. FURL_MARKS=1 measures that.
func TestBrowserRibbonLong(t *testing.T) {
	all, s := mixedSession(t, 10_000)
	b := browsertest.OpenURL(t, serve(t, all, nil)+"/furl/sessions/"+string(s.ID()))
	b.Wait(`document.querySelector('#ribbon').dataset.request == '0'`)
	took := browsertest.Eval[[]float64](b, `import(document.querySelector('script[src$="ribbon.js"]').src).then((ribbon) => Array.from({ length: 15 }, () => {
		const start = performance.now();
		ribbon.draw();
		return performance.now() - start;
	}))`)
	slices.Sort(took)
	t.Logf("drawing takes %.1f ms (median), at most %.1f ms", took[7], took[14])
	if os.Getenv("FURL_MARKS") != "" && took[7] > 10 {
		t.Errorf("drawing takes %.1f ms, want at most 10", took[7])
	}
	b.Screenshot("ribbon-long")
	b.Silent()
}

// thousands returns a number with commas between thousands.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
