package web_test

import (
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/storage"
)

// A person filters, folds and sorts the list, and goes back.
func TestBrowserList(t *testing.T) {
	l := manySessions(t)
	s := l.Create(storage.Meta{Title: "One with a curve", Client: "pi", Model: "claude-sonnet-4-5", Project: "/src/box", Imported: 41, Recorded: time.Now().Add(-time.Hour)}) // s7
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 20, 600))
	b := browsertest.OpenURL(t, l.serve(t)+"/")
	shows := func(ids string) {
		t.Helper()
		b.Wait(`[...document.querySelectorAll('tr.one')].map((r) => r.dataset.session).join(' ') === '` + ids + `'`)
	}
	const ready = `document.readyState === 'complete'` // the scripts have run
	b.Run("figures of visible rows load", func(t *testing.T) {
		b.Wait(`document.querySelector('tr[data-session=s7] .spark svg')`)
		b.Wait(`document.querySelector('tr[data-session=s7] .percent')`)
		b.Screenshot("list")
	})
	b.Run("a folded group stays folded", func(t *testing.T) {
		b.Click(`tbody[data-group="project:/src/box"] .fold`)
		b.Wait(`document.querySelector('tr[data-session=s1]').offsetParent === null`)
		b.Leave(`location.reload()`)
		b.Wait(`document.querySelector('tbody.folded[data-group="project:/src/box"] .fold[aria-expanded=false]')`)
		b.Click(`tbody[data-group="project:/src/box"] .fold`)
		b.Wait(`document.querySelector('tr[data-session=s1]').offsetParent !== null`)
	})
	b.Run("sub-agents", func(t *testing.T) {
		b.Click(`tr[data-session=s1] .subs`)
		b.Wait(`document.querySelector('tr.sub[data-session=s2]')`)
		b.Leave(`history.back()`)
		b.Wait(`location.search === '' && !document.querySelector('tr.sub') && ` + ready)
	})
	b.Run("a text, while it is typed", func(t *testing.T) {
		b.Key("/")
		b.Wait(`document.activeElement.name === 'q'`)
		b.Key("vault")
		b.Wait(`location.search === '?q=vault' && document.querySelector('input[name=q]').value === 'vault' && document.activeElement.name === 'q'`)
		b.Wait(`!!document.querySelector('.found .empty')`)
		shows("s1")
		b.Click(".chip")
		b.Wait(`location.search === '' && ` + ready)
	})
	b.Run("a choice, and back", func(t *testing.T) {
		b.Click(`input[name=hidden]`)
		b.Wait(`location.search === '?hidden=1'`)
		shows("s5 s1")
		b.Leave(`history.back()`)
		b.Wait(`location.search === '' && document.querySelectorAll('tr.one').length === 5 && ` + ready)
	})
	b.Run("a column", func(t *testing.T) {
		b.Click(`th.money a`)
		b.Wait(`document.querySelector('th[aria-sort=descending]')?.innerText.startsWith('Spent')`)
		b.Click(`th.money a`)
		b.Wait(`document.querySelector('th[aria-sort=ascending]')?.innerText.startsWith('Spent')`)
	})
	b.Silent()
}
