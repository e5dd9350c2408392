package web_test

import (
	"fmt"
	"testing"

	"github.com/furlhq/furl/internal/dev/browsertest"
)

// A session of 10,000 messages: every message can be reached by its address and by keys.
// TestBrowserScroll scrolls.
func TestBrowserLong(t *testing.T) {
	all, s := longSession(t, 10_000)
	url := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	state := stateOf(t, s)
	seq, _ := state.Message(5000)
	b := browsertest.OpenURL(t, fmt.Sprintf("%s?at=%d", url, seq))
	inView := func(seq any) string {
		return fmt.Sprintf(`(r => r && r.top >= 0 && r.top < innerHeight)(document.getElementById('m%v')?.getBoundingClientRect())`, seq)
	}
	b.Run("a link to a message shows it", func(t *testing.T) {
		b.Wait(inView(seq))
		b.Wait(`!!document.querySelector('#inspector h2, #inspector h3')`)
		t.Logf("usable after %.0f ms", browsertest.Eval[float64](b, `performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd`))
		b.Screenshot("long")
	})
	b.Run("keys go on from it", func(t *testing.T) {
		b.Key("j")
		b.Wait(fmt.Sprintf(`Number(document.querySelector('.row.selected')?.dataset.seq) > %d`, seq))
		b.Key("k")
		b.Wait(fmt.Sprintf(`document.querySelector('.row.selected')?.dataset.seq == '%d' && location.search.includes('at=%d')`, seq, seq))
	})
	b.Run("the first and the last message", func(t *testing.T) {
		first, _ := state.Message(0)
		last, _ := state.Message(state.Len() - 1)
		b.Key("g")
		b.Wait(inView(first))
		b.Key("G")
		b.Wait(inView(last))
	})
	b.Run("reductions", func(t *testing.T) {
		b.Key("N")
		b.Wait(`document.querySelector('.row.marker.selected details')?.open && !!document.querySelector('.row.marker.selected .figures')`)
		b.Wait(`document.querySelector('.row.marker.selected .figures').getBoundingClientRect().bottom <= innerHeight`)
		b.Screenshot("long-marker")
	})
	b.Run("back", func(t *testing.T) {
		marker := browsertest.Eval[string](b, `location.search`)
		b.Leave(`history.back()`)
		b.Wait(fmt.Sprintf(`location.search != '%s'`, marker))
		b.Wait(`document.querySelector('.row.selected')?.dataset.seq == new URL(location).searchParams.get('at')`)
	})
	b.Silent()
}
