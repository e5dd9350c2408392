package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// masked returns a session whose first results are hidden.
func masked(t testing.TB) (*session.Sessions, *session.Session) {
	t.Helper()
	all, _ := sessiontest.Open(t, session.Options{Policy: "rolling-mask-10"})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5", Title: "Find the slow build", Client: "claude-cli", Project: "/src/box", Ledger: ledger(20_000, 1, 3)})
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 40, 600))
	if _, err := s.Reduce(t.Context(), session.ReduceOptions{}); err != nil {
		t.Fatal(err)
	}
	return all, s
}

// The recall box finds what memory_search finds, and says why.
func TestRecall(t *testing.T) {
	all, s := masked(t)
	page := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	hits, err := s.Search(t.Context(), "marker_3", session.SearchOptions{Limit: 20, WithoutRecall: true})
	if err != nil || len(hits) == 0 {
		t.Fatalf("memory_search finds %v, %v", hits, err)
	}
	status, text := get(t, page+"/recall?q=marker_3", "HX-Request", "true")
	for _, want := range []string{
		fmt.Sprintf(`data-select="%d.0"`, hits[0].Pos.Msg), `<mark>marker_3</mark>`, `matches <bdi>marker_3</bdi>`, `class="hit hidden"`, `result of read`,
		fmt.Sprintf("%.2f", hits[0].Score), `Reading file 3.`,
	} {
		if status != 200 || !strings.Contains(text, want) {
			t.Errorf("status %d; the hits lack %s", status, want)
		}
	}
	if n := strings.Count(text, `class="hit hidden"`); n != len(hits) {
		t.Errorf("%d hits, memory_search has %d", n, len(hits))
	}
	for _, tt := range []struct{ query, want string }{
		{"q=nowhere_39", "Nothing that is hidden from the model matches."},
		{"q=marker_39&in=visible", `class="hit visible"`},
		{"q=marker_3&in=visible", `<mark>`},
		{"q=marker_3&in=everywhere", `class="hit hidden"`},
		{"q=zebra&in=everywhere", "Nothing in this session matches."},
		{"q=makrer", "Nothing found for <bdi>“makrer”</bdi>. Results for <bdi>“marker”</bdi>"},
		{"q=", "memory_search"},
	} {
		if status, text := get(t, page+"/recall?"+tt.query, "HX-Request", "true"); status != 200 || !strings.Contains(text, tt.want) || strings.Contains(text, "<html") {
			t.Errorf("%s: status %d; no %s in %.600s", tt.query, status, tt.want, text)
		}
	}
	link := fmt.Sprintf(`<a href="/furl/sessions/%s"><bdi>`, s.ID())
	if status, text := get(t, page+"/recall?q=marker_3"); status != 200 || !strings.Contains(text, "<html") || !strings.Contains(text, link) {
		t.Errorf("without scripts: status %d, or no link to the session", status)
	}
	for _, bad := range []string{"in=all", "q=" + strings.Repeat("x", 501)} {
		if status, _ := get(t, page+"/recall?"+bad); status != 400 {
			t.Errorf("%.20s: status %d", bad, status)
		}
	}
}

// Matched parts are marked in any case, longest first, and never become HTML.
func TestSearchAll(t *testing.T) {
	all, s := masked(t)
	other := all.Create(storage.Meta{Title: "Another one", Model: "claude-sonnet-4-5"})
	sessiontest.AppendAll(t, other, []*furl.Message{sessiontest.Message(t, furl.RoleUser, sessiontest.Text(`The <b>Marker_3</b> & "marker_3x" of <script>alert(1)</script>`))})
	address := serve(t, all, nil)
	status, text := get(t, address+"/furl/search?q=marker_3+script", "HX-Request", "true")
	for _, want := range []string{
		`&lt;b&gt;<mark>Marker</mark>_<mark>3</mark>&lt;/b&gt; &amp;`, `&lt;<mark>script</mark>&gt;`, "Another one", "Find the slow build",
		fmt.Sprintf("/furl/sessions/%s?at=1.0", other.ID()), fmt.Sprintf("/furl/sessions/%s?at=", s.ID()),
	} {
		if status != 200 || !strings.Contains(text, want) {
			t.Errorf("status %d; the hits lack %s", status, want)
		}
	}
	expectInert(t, "hits", text)
	if n := strings.Count(text, `class="of"`); n != 2 {
		t.Errorf("hits are of %d sessions in a row", n)
	}
	if status, text := get(t, address+"/furl/search?q=zebra"); status != 200 || !strings.Contains(text, "No message of any session matches.") {
		t.Errorf("no hits: status %d", status)
	}
	if status, _ := get(t, address+"/furl/search?q=x&since=5y"); status != 400 {
		t.Errorf("invalid time: status %d", status)
	}
}

func TestBrowserRecall(t *testing.T) {
	all, s := masked(t)
	b := browsertest.OpenURL(t, serve(t, all, nil)+"/furl/sessions/"+string(s.ID()))
	b.Wait(`document.querySelectorAll('.row').length > 20`)
	b.Run("the key / focuses it, hits appear while typing", func(t *testing.T) {
		b.Key("/")
		b.Wait(`document.activeElement.name === 'q' && !document.getElementById('recall-panel').hidden`)
		b.Key("marker_3")
		b.Wait(`document.querySelector('#recall-hits .hit mark')?.textContent === 'marker_3' && document.querySelector('#recall input').value === 'marker_3'`)
		if !browsertest.Eval[bool](b, `(r => [.02, .5, .98].every((y) => document.elementFromPoint((r.left + r.right) / 2, r.top + y * r.height).closest('#recall-panel')))(document.getElementById('recall-panel').getBoundingClientRect())`) {
			t.Error("something covers the panel")
		}
		b.Screenshot("recall")
	})
	b.Run("another part of the session", func(t *testing.T) {
		b.Click(`#recall input[value=visible]`)
		b.Wait(`document.querySelector('#recall-hits .hit.visible')`)
		b.Click(`#recall input[value=hidden]`)
		b.Wait(`document.querySelector('#recall-hits .hit.hidden') && !document.querySelector('#recall-hits .hit.visible')`)
	})
	b.Run("a hit becomes the selection", func(t *testing.T) {
		at := browsertest.Eval[string](b, `document.querySelector('#recall-hits a[data-select]').dataset.select`)
		b.Click(`#recall-hits a[data-select]`)
		b.Wait(fmt.Sprintf(`new URL(location).searchParams.get('at') === '%s' && document.querySelector('.part.selected')?.dataset.at === '%[1]s'`, at))
		b.Wait(`document.getElementById('recall-panel').hidden && document.querySelector('#inspector').textContent.includes('marker_3')`)
	})
	b.Run("escape closes it", func(t *testing.T) {
		b.Key("/")
		b.Wait(`!document.getElementById('recall-panel').hidden`)
		b.Key("\x1b")
		b.Wait(`document.getElementById('recall-panel').hidden && document.activeElement === document.body`)
	})
	b.Silent()
}
