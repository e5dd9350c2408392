package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/procstat"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// ask sends a request for the page with the sessions of a tenant.
func ask(t *testing.T, p *Page, all *session.Sessions, method, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(form.Encode()))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	p.ServePage(w, r, gateway.Visit{Sessions: all})
	return w
}

func said(t *testing.T, s *session.Session, texts ...string) {
	t.Helper()
	for _, text := range texts {
		sessiontest.AppendAll(t, s, []*furl.Message{
			sessiontest.Message(t, furl.RoleUser, sessiontest.Text(text)), sessiontest.Message(t, furl.RoleAssistant, sessiontest.Text("reply to "+text)),
		})
	}
}

// fragments are the GET routes of a session.
var fragments = []string{
	"", "?see=model", "?at=1.0", "/messages?chunk=0", "/chunk?at=1", "/markers", "/meter", "/part?at=1.0", "/original?at=1.0", "/inspect?at=1.0", "/picture", "/peek?at=1.0",
	"/transcript", "/requests", "/requests/1", "/requests/1/body", "/recall?q=secret&in=everywhere", "/money", "/hidden", "/export", "/export?content=full", "/export?content=structure",
	"/whatif", "/whatif?policy=auto", "/whatif/progress?policy=auto", "/spark?records=1", "/spark?records=4", "/act/branches", "/act/settings", "/act/reduce", "/act/delete",
	"/act/fork?at=1", "/act/pin?at=1.0", "/act/hide?at=1.0", "/act/done?k=x",
}

// Two tenants have sessions of the same id, which one page has in its caches.
func TestTenants(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	p := New(nil)
	names := []string{"alpha", "beta"}
	for _, name := range names {
		of := all.For(furl.Tenant(name))
		said(t, of.CreateAs("same", storage.Meta{Title: "title of " + name, Project: "/src/" + name}), "secret of "+name, "more of "+name)
		said(t, of.CreateAs(furl.SessionID("only-"+name), storage.Meta{Title: "private " + name}), "secret of "+name)
	}
	for range 2 { // without and with caches
		for i, name := range names {
			own, other := all.For(furl.Tenant(name)), names[1-i]
			paths := []string{"/", "/furl/sessions", "/furl/money", "/furl/usage?by=session&since=all", "/furl/search?q=secret"}
			for _, rest := range fragments {
				paths = append(paths, "/furl/sessions/same"+rest)
			}
			for _, path := range paths {
				if w := ask(t, p, own, http.MethodGet, path, nil); w.Code >= 500 || strings.Contains(w.Body.String(), other) {
					t.Errorf("%s asks for %s: status %d, and the other's name is in it: %t", name, path, w.Code, strings.Contains(w.Body.String(), other))
				}
			}
			for _, id := range []string{"only-" + other, "only-" + other[:3], "private%20" + other, "title%20of%20" + other} {
				for _, rest := range fragments {
					w := ask(t, p, own, http.MethodGet, "/furl/sessions/"+id+rest, nil)
					if w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "secret of") {
						t.Errorf("%s asks for %s%s: status %d", name, id, rest, w.Code)
					}
				}
				for what, a := range actions() {
					if a.do == nil {
						continue
					}
					if w := ask(t, p, own, http.MethodPost, "/furl/sessions/"+id+"/act/"+what, url.Values{"at": {"1.0"}, "policy": {"auto"}}); w.Code != http.StatusNotFound {
						t.Errorf("%s posts %s to %s: status %d", name, what, id, w.Code)
					}
				}
			}
		}
	}
	// An outcome of one tenant is not shown to the other one.
	w := ask(t, p, all.For("alpha"), http.MethodPost, "/furl/sessions/same/act/settings", url.Values{"title": {"title of alpha 2"}})
	done := w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || !strings.Contains(ask(t, p, all.For("alpha"), http.MethodGet, done, nil).Body.String(), "alpha") {
		t.Fatalf("settings: status %d, %q", w.Code, done)
	}
	if w := ask(t, p, all.For("beta"), http.MethodGet, done, nil); strings.Contains(w.Body.String(), "alpha") {
		t.Errorf("beta reads the outcome of alpha: %s", w.Body)
	}
}

// By another name than its id, a session's pages lead to the id, and nothing is changed.
func TestOtherNames(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	p := New(nil)
	said(t, all.CreateAs("the-session", storage.Meta{Title: "A title"}), "words")
	for _, name := range []string{session.Latest, "the-s", "A%20title"} {
		w := ask(t, p, all, http.MethodGet, "/furl/sessions/"+name+"/inspect?at=1.0", nil)
		if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/furl/sessions/the-session/inspect?at=1.0" {
			t.Errorf("%s: status %d to %q", name, w.Code, to)
		}
		if w := ask(t, p, all, http.MethodGet, "/furl/sessions/"+name, nil); w.Header().Get("Location") != "/furl/sessions/the-session" {
			t.Errorf("%s: status %d to %q", name, w.Code, w.Header().Get("Location"))
		}
		if w := ask(t, p, all, http.MethodPost, "/furl/sessions/"+name+"/act/delete", nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: deleted with status %d", name, w.Code)
		}
	}
	if w := ask(t, p, all, http.MethodGet, "/furl/sessions/the-session", nil); w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
}

// A session that was deleted and made again under its id shows nothing of the deleted one.
func TestDeletedSession(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	p := New(nil)
	said(t, all.CreateAs("again", storage.Meta{}), "the old words")
	path := "/furl/sessions/again/messages?chunk=0"
	if w := ask(t, p, all, http.MethodGet, path, nil); !strings.Contains(w.Body.String(), "the old words") {
		t.Fatal(w.Body)
	}
	if err := all.Delete(t.Context(), "again"); err != nil {
		t.Fatal(err)
	}
	said(t, all.CreateAs("again", storage.Meta{}), "new", "words", "and more")
	if w := ask(t, p, all, http.MethodGet, path, nil); w.Code != 200 || strings.Contains(w.Body.String(), "the old words") || !strings.Contains(w.Body.String(), "and more") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	for _, how := range []string{"by the page", "by somebody else"} {
		ask(t, p, all, http.MethodGet, path, nil)
		ask(t, p, all, http.MethodGet, "/furl/sessions/again/spark?records=6", nil)
		if how == "by the page" {
			if w := ask(t, p, all, http.MethodPost, "/furl/sessions/again/act/delete", nil); w.Code != http.StatusSeeOther {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
		} else if err := all.Delete(t.Context(), "again"); err != nil {
			t.Fatal(err)
		} else if w := ask(t, p, all, http.MethodGet, path, nil); w.Code != http.StatusNotFound {
			t.Errorf("deleted %s: status %d", how, w.Code)
		}
		if len(p.cache.by)+len(p.figures.by)+len(p.outcomes.list) > 0 {
			t.Errorf("deleted %s: %d snapshots, %d figures and %d outcomes are kept", how, len(p.cache.by), len(p.figures.by), len(p.outcomes.list))
		}
		said(t, all.CreateAs("again", storage.Meta{}), "new", "words", "again")
	}
}

// While the requests of a long session are listed, other parts of the page do not wait.
func TestRequestsBlockNothingElse(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	p := New(nil)
	s := all.CreateAs("long", storage.Meta{})
	said(t, s, "words")
	snap := p.cache.of(s.Info().SessionKey, 0)
	snap.requests.mu.Lock() // as if it was computing
	defer snap.requests.mu.Unlock()
	for _, rest := range []string{"", "/messages?chunk=0", "/picture", "/meter", "/inspect?at=1.0", "/transcript?request=now"} {
		done := make(chan int)
		go func() { done <- ask(t, p, all, http.MethodGet, "/furl/sessions/long"+rest, nil).Code }()
		select {
		case code := <-done:
			if code != 200 {
				t.Errorf("%q: status %d", rest, code)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q waits", rest)
		}
	}
}

func TestSnapshotBounds(t *testing.T) {
	c := newSnapshots()
	key := func(i int) furl.SessionKey { return furl.SessionKey{Session: furl.SessionID(fmt.Sprint(i))} }
	for i := range 10 {
		c.of(key(i), maxSnapshotBytes/4)
	}
	if len(c.by) != 4 || c.by[key(9)] == nil || c.by[key(6)] == nil {
		t.Errorf("%d snapshots of a quarter of the limit", len(c.by))
	}
	if c.of(key(10), 2*maxSnapshotBytes); len(c.by) != 1 || c.by[key(10)] == nil {
		t.Errorf("%d snapshots with one above the limit", len(c.by))
	}
	for i := range 2 * maxSnapshots {
		c.of(key(100+i), 1)
	}
	if len(c.by) != maxSnapshots {
		t.Errorf("%d small snapshots", len(c.by))
	}
}

// A panic in a replay is its failure, not the end of the gateway.
func TestReplayPanics(t *testing.T) {
	r := newReplays(slog.New(slog.DiscardHandler))
	name, ended := of("a", "auto"), make(chan struct{})
	if err := r.start(name, func(context.Context, func(int, int)) (*replayed, error) { defer close(ended); panic("hostile") }); err != nil {
		t.Fatal(err)
	}
	<-ended
	for {
		r.mu.Lock()
		err := r.running[name.session].failure()
		r.mu.Unlock()
		if err != nil {
			break
		}
	}
}

// One of several tenants cannot take all places.
func TestReplaysOfTenants(t *testing.T) {
	r := newReplays(slog.New(slog.DiscardHandler))
	wait := func(ctx context.Context, _ func(int, int)) (*replayed, error) { <-ctx.Done(); return nil, ctx.Err() }
	started := 0
	for i := range maxReplays {
		err := r.start(replayOf{furl.SessionKey{Tenant: "a", Session: furl.SessionID(fmt.Sprint(i))}, "auto"}, wait)
		if err == nil {
			started++
		} else if !errors.Is(err, errBusy) {
			t.Fatal(err)
		}
	}
	if err := r.start(replayOf{furl.SessionKey{Tenant: "b", Session: "1"}, "auto"}, wait); err != nil || started != maxOfTenant {
		t.Errorf("%d of one tenant started; the other one: %v", started, err)
	}
	for i := range maxReplays {
		r.forget(furl.SessionKey{Tenant: "a", Session: furl.SessionID(fmt.Sprint(i))})
	}
	r.forget(furl.SessionKey{Tenant: "b", Session: "1"})
	if len(r.running) > 0 {
		t.Errorf("%d replays are left", len(r.running))
	}
}

// Pages of hostile sizes stay small.
func TestSizes(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	p := New(nil)
	var texts, calls, results []furl.Block
	n := 10_000
	if RaceDetector { // with which parsing so many calls of 150 levels takes forty times as long
		n = 1000
	}
	for i := range n {
		texts = append(texts, sessiontest.Text(fmt.Sprintf("block %d %s", i, strings.Repeat("words ", 200))))
		calls = append(calls, sessiontest.Call(fmt.Sprint("c", i), "Tool"+strings.Repeat("x", 500), `{"a":`+strings.Repeat("[", 150)+strings.Repeat("]", 150)+`}`))
		results = append(results, sessiontest.Result(fmt.Sprint("c", i), "result"))
	}
	deep := `{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`
	for name, messages := range map[string][]*furl.Message{
		"blocks":   {sessiontest.Message(t, furl.RoleUser, texts...)},
		"calls":    {sessiontest.Message(t, furl.RoleUser, sessiontest.Text("x")), sessiontest.Message(t, furl.RoleAssistant, calls...), sessiontest.Message(t, furl.RoleUser, results...)},
		"deep":     {sessiontest.Message(t, furl.RoleUser, sessiontest.Text("x")), sessiontest.Message(t, furl.RoleAssistant, sessiontest.Call("c", "T", deep))},
		"long":     {sessiontest.Message(t, furl.RoleUser, sessiontest.Text(strings.Repeat("words ", 400_000)))},
		"brackets": {sessiontest.Message(t, furl.RoleUser, sessiontest.Text(strings.Repeat("[", 100_000)))},
	} {
		s := all.CreateAs(furl.SessionID("size-"+name), storage.Meta{Title: strings.Repeat("title ", 100_000)})
		sessiontest.AppendAll(t, s, messages)
		base := "/furl/sessions/" + string(s.ID())
		for _, rest := range []string{"", "?see=model", "/messages?chunk=0", "/inspect?at=1.0", "/inspect?at=2.0", "/part?at=2.0", "/peek?at=1.0", "/act/hide?at=1.0", "/meter", "/money", "/export"} {
			before := procstat.Read().CPU
			w := ask(t, p, all, http.MethodGet, base+rest, nil)
			if n := w.Body.Len(); w.Code >= 500 || n > 3<<20 {
				t.Errorf("%s%s: status %d, %d bytes", name, rest, w.Code, n)
			}
			if d := procstat.Read().CPU - before; d > 5*time.Second {
				t.Errorf("%s%s takes %s of the processor", name, rest, d)
			}
		}
		if w := ask(t, p, all, http.MethodGet, "/", nil); w.Body.Len() > 1<<20 {
			t.Errorf("the list has %d bytes", w.Body.Len())
		}
	}
	if w := ask(t, p, all, http.MethodGet, "/furl/sessions/size-blocks/messages?chunk=0", nil); !strings.Contains(w.Body.String(), numbers.Thousands(n-300)+" more blocks") {
		t.Error("the row does not say how many more blocks there are")
	}
}

// Texts of reductions are as hostile as others.
func TestReductionTexts(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	log := furl.NewLog()
	for i, text := range []string{"one", "two", "three"} {
		m := sessiontest.Message(t, []furl.Role{furl.RoleUser, furl.RoleAssistant}[i%2], sessiontest.Text(text))
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, m); err != nil {
			t.Fatal(err)
		}
	}
	bad := "a\u202eb\x1b[31m<script>\u200b"
	v := log.State().View(furl.Model{})
	for i := range 2 {
		red := &furl.Reduction{Stage: "st" + bad, Reason: "why" + bad, Before: 9, After: 1, Summary: &furl.Summary{Number: 1, Messages: 1, Text: "sum" + bad, Model: "m" + bad},
			Items: []furl.Item{{Spans: v.Spans(v.Units[:1]...), Show: furl.Mark{Messages: []*furl.Message{furl.TextMessage(furl.RoleUser, "mark"+bad)}}}}}
		if i == 1 {
			at := furl.Pos{Msg: 2}
			red.Summary, red.Items = nil, []furl.Item{{Spans: []furl.Span{{First: at, Last: at}}, Show: furl.In{Text: "in" + bad}}}
		}
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, red); err != nil {
			t.Fatal(err)
		}
	}
	s, err := all.Import(t.Context(), "", log, storage.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	p := New(nil)
	for _, rest := range []string{"", "?see=model", "/messages?chunk=0", "/inspect?at=4", "/inspect?at=5", "/inspect?at=1.0", "/inspect?at=2.0", "/peek?at=4", "/peek?at=1.0", "/act/undo?reduction=4", "/act/edit?reduction=4"} {
		w := ask(t, p, all, http.MethodGet, "/furl/sessions/"+string(s.ID())+rest, nil)
		text := w.Body.String()
		if i := strings.Index(text, "<textarea"); i >= 0 { // what a person edits stays as it is
			text = text[:i]
		}
		if w.Code != 200 || strings.ContainsAny(text, "\u202e\x1b\u200b") || strings.Contains(text, "<script>") {
			t.Errorf("%s: status %d, %s", rest, w.Code, text)
		}
	}
}
