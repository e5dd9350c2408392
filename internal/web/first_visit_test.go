package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/storage"
)

// visitor is a person who has never seen furl. It counts clicks.
type visitor struct {
	*browsertest.Page
	clicks int
}

// click clicks on an element that the person sees, and whose text says what it does.
func (v *visitor) click(t *testing.T, selector, says string) {
	t.Helper()
	if text := v.Text(selector); !strings.Contains(text, says) {
		t.Errorf("click %d: %s says %q, not %q", v.clicks+1, selector, text, says)
	}
	v.Click(selector)
	v.clicks++
}

// A person who has never seen furl finds from the root, without documentation: what was
// hidden in their newest session, why, and how to get it back.
func TestBrowserFirstVisit(t *testing.T) {
	all, s := masked(t)
	l := &lister{Sessions: all, began: time.Now()}
	l.add(t, time.Hour, storage.Meta{Title: "An older session", Ledger: ledger(5, 1, 2)})
	l.add(t, 0, storage.Meta{Title: "A newer session without hidden content", Ledger: ledger(0, 1, 1)})
	list := s.Reductions()
	v := &visitor{Page: browsertest.OpenURL(t, serve(t, all, nil)+"/")}
	v.Run("the list says that something is hidden", func(t *testing.T) {
		v.Screenshot("first-1")
		v.click(t, "a.latest", "tokens hidden")
	})
	v.Run("a marker says what was hidden and why", func(t *testing.T) {
		v.Wait(`document.querySelector('.row.marker details.opens')?.open`)
		v.Wait(`document.querySelector('#inspector .figures')`)
		v.Drawn()
		v.Screenshot("first-2")
		if text := v.Text(".row.marker .figures"); !strings.Contains(text, list[0].Reason) {
			t.Errorf("the marker says %q, not why: %q", text, list[0].Reason)
		}
		if !browsertest.Eval[bool](v.Page, `(r => r.top >= 0 && r.top < innerHeight)(document.querySelector('.row.marker').getBoundingClientRect())`) {
			t.Error("the marker is out of view")
		}
		v.click(t, ".row.marker .hid a", "read src/file_0.go")
	})
	v.Run("the original is there", func(t *testing.T) {
		v.Wait(`document.querySelector('#inspector').textContent.includes('marker_0 ')`)
		v.Screenshot("first-3")
		if text := v.Text("#inspector"); !strings.Contains(text, "Hidden by reduction") || !strings.Contains(text, list[0].Reason) {
			t.Errorf("the inspector does not say why: %.300q", text)
		}
		if !browsertest.Eval[bool](v.Page, `(e => e.scrollWidth <= e.clientWidth)(document.querySelector('#inspector'))`) {
			t.Error("the inspector scrolls sideways")
		}
	})
	v.Run("it comes back, after its price", func(t *testing.T) {
		before := s.Context("").Hidden
		v.click(t, `#inspector a[href*="act/undo"]`, "Undo reduction")
		v.Wait(`document.getElementById('act').open`)
		v.Drawn()
		v.Screenshot("first-4")
		v.click(t, "#act form button.primary", "Undo")
		v.Wait(`document.getElementById('act').innerText.includes('Undid reduction')`)
		v.Wait(`!document.querySelector('.part[data-at="3.0"]')?.classList.contains('masked')`)
		v.Screenshot("first-5")
		if after := s.Context("").Hidden; before == 0 || after != 0 || !s.Reductions()[0].Lifted {
			t.Errorf("hidden tokens: %d before, %d after", before, after)
		}
	})
	if v.clicks > 5 {
		t.Errorf("%d clicks", v.clicks)
	}
	v.Silent()
}
