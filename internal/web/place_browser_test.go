package web_test

import (
	"fmt"
	"testing"

	"github.com/furlhq/furl/internal/dev/browsertest"
)

// A link opens at what it names, also after the messages around it have their real heights.
// On a narrow screen the inspector closes, and back opens it again.
func TestBrowserPlace(t *testing.T) {
	all, s := longSession(t, 1000)
	url := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	state := stateOf(t, s)
	seq, _ := state.Message(500)
	b := browsertest.OpenURL(t, fmt.Sprintf("%s?at=%d", url, seq))
	uncovered := fmt.Sprintf(`(r => r && r.top >= document.getElementById('picture').getBoundingClientRect().bottom - 1 && r.top < innerHeight)(document.getElementById('m%d')?.getBoundingClientRect())`, seq)
	b.Run("the message is below what is fixed on top", func(t *testing.T) {
		b.Wait(`document.querySelector('#inspector [data-for]') && document.querySelector('.row.selected')`)
		b.Wait(uncovered)
		b.Drawn()
		b.Wait(uncovered)
	})
	b.Run("loaded messages leave no gaps", func(t *testing.T) {
		b.Wait(`document.querySelectorAll('.chunk .row').length > 60`)
		if gap := browsertest.Eval[float64](b, `Math.max(...[...document.querySelectorAll('.chunk')].filter((c) => c.lastElementChild?.checkVisibility({ contentVisibilityAuto: true }))
			.map((c) => c.getBoundingClientRect().bottom - c.lastElementChild.getBoundingClientRect().bottom))`); gap > 2 {
			t.Errorf("%.0f pixels below the last message of a chunk", gap)
		}
	})
	b.Run("the sheet closes", func(t *testing.T) {
		const open = `document.querySelector('#inspector').checkVisibility()`
		b.Size(390, 844)
		b.Wait(open)
		b.Click("#inspector [data-deselect]")
		b.Wait(`!` + open + ` && !location.search.includes('at=') && !document.querySelector('.row.selected')`)
		b.Leave(`history.back()`)
		b.Wait(open + fmt.Sprintf(` && document.querySelector('.row.selected')?.id === 'm%d'`, seq))
		b.Key("\x1b")
		b.Wait(`!` + open)
	})
	b.Silent()
}
