package web_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/web"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// lister makes sessions, each with a message.
type lister struct {
	*session.Sessions
	store storage.Store
	began time.Time
}

func newLister(t testing.TB) *lister {
	l := &lister{began: time.Now()}
	l.Sessions, l.store = sessiontest.Open(t, session.Options{Now: time.Now})
	return l
}

// add adds a session whose newest record has an age, as if it was imported; without an
// age, it is live.
func (l *lister) add(t testing.TB, age time.Duration, meta storage.Meta) *session.Session {
	t.Helper()
	if age > 0 {
		meta.Imported, meta.Recorded = 1, l.began.Add(-age)
	}
	s := l.Create(meta)
	sessiontest.AppendAll(t, s, []*furl.Message{sessiontest.Message(t, furl.RoleUser, sessiontest.Text("Hello."))})
	return s
}

// serve returns the address of the page over the sessions.
func (l *lister) serve(t testing.TB) string { return serve(t, l.Sessions, nil) }

// ledger is that of a session that has hidden so many tokens.
func ledger(hidden int, cost, without float64) *storage.Ledger {
	l := &storage.Ledger{Size: 50_000, Hidden: hidden}
	l.Add("2026-11-23", "claude-sonnet-4-5", storage.Savings{Requests: 10, Tokens: 500_000, TokensWithout: 500_000 + 10*hidden, Cost: cost, CostWithout: without})
	return l
}

var (
	sessionLink = regexp.MustCompile(`<tr class="(one[^"]*)" data-session="([^"]*)"`)
	groupName   = regexp.MustCompile(`data-group="([^"]*)"`)
)

// rowsOf returns the sessions that a list shows, in order; those of sub-agents begin
// with +.
func rowsOf(page string) (list []string) {
	for _, m := range sessionLink.FindAllStringSubmatch(page, -1) {
		if strings.Contains(m[1], "sub") {
			m[2] = "+" + m[2]
		}
		list = append(list, m[2])
	}
	return list
}

func expectRows(t *testing.T, url string, want ...string) string {
	t.Helper()
	status, page := get(t, url)
	if got := rowsOf(page); status != 200 || !slices.Equal(got, want) {
		t.Errorf("%s: status %d, sessions %v, want %v", url, status, got, want)
	}
	return page
}

// manySessions are in three projects, with sub-agents, live ones and hidden content.
func manySessions(t testing.TB) *lister {
	l := newLister(t)
	l.add(t, 100*time.Hour, storage.Meta{Title: "Fix the vault restore test", Client: "claude-cli", Model: "claude-sonnet-4-5-20250929", Project: "/src/box", Hint: "agent-1", Ledger: ledger(48_200, 3, 9)}) // s1
	l.add(t, 99*time.Hour, storage.Meta{Title: "Explore the vault", Client: "claude-cli", Model: "claude-haiku-4-5", Project: "/src/box", Parent: "agent-1"})                                                 // s2
	l.add(t, 98*time.Hour, storage.Meta{Title: "An inner one", Client: "claude-cli", Model: "claude-haiku-4-5", Project: "/src/box", Hint: "agent-1/inner"})                                                  // s3
	l.add(t, 0, storage.Meta{Title: "修复保险库恢复测试", Client: "codex", Model: "gpt-5.5", Project: "/src/other", Ledger: ledger(0, 1, 1)})                                                                          // s4
	l.add(t, 2*time.Hour, storage.Meta{Title: "Rename the config", Client: "codex", Model: "gpt-5.5", Project: "/src/other", Ledger: ledger(100, 5, 6)})                                                      // s5
	l.add(t, 50*time.Hour, storage.Meta{Title: strings.Repeat("long ", 100), Client: "pi", Model: "claude-sonnet-4-5"})                                                                                       // s6
	return l
}

func TestListGroups(t *testing.T) {
	address := manySessions(t).serve(t)
	page := expectRows(t, address+"/", "s4", "s5", "s6", "s1")
	var groups []string
	for _, m := range groupName.FindAllStringSubmatch(page, -1) {
		groups = append(groups, m[1])
	}
	if want := []string{"live", "project:/src/other", "project:", "project:/src/box"}; !slices.Equal(groups, want) {
		t.Errorf("groups %q, want %q", groups, want)
	}
	for _, want := range []string{`2 sub-agents`, `48,200 tokens are hidden`, `48k hidden`, `$3.00`, `$6.00`, `No project`, `/furl/sessions/s5/hidden`, `class="continue" href="/furl/sessions/s4"`,
		`50,000 of `, `修复保险库恢复测试`} {
		if !strings.Contains(page, want) {
			t.Errorf("the list lacks %s", want)
		}
	}
	expectRows(t, address+"/?open=s1", "s4", "s5", "s6", "s1", "+s3", "+s2")
	expectRows(t, address+"/?group=off", "s4", "s5", "s6", "s1")
	expectRows(t, address+"/?group=off&open=s1", "s4", "s5", "s6", "s1", "+s3", "+s2")
}

// A group has sums only if the figures of all its sessions are known.
func TestListGroupSums(t *testing.T) {
	l := newLister(t)
	l.add(t, time.Hour, storage.Meta{Title: "Known", Project: "/src/box", Ledger: ledger(48_200, 3, 9)})
	sums := "48,200 tokens hidden · $3.00 spent, $6.00 saved"
	if _, page := get(t, l.serve(t)+"/"); !strings.Contains(page, sums) {
		t.Errorf("the group lacks %q", sums)
	}
	l.add(t, 2*time.Hour, storage.Meta{Title: "Imported and not read yet", Project: "/src/box"})
	if _, page := get(t, l.serve(t)+"/"); !strings.Contains(page, "2 sessions") || strings.Contains(page, "tokens hidden ·") || strings.Contains(page, "$3.00 spent") {
		t.Error("the group has sums of one of its two sessions")
	}
}

// The meter says what a session has saved, or by how much more it has cost.
func TestMeterSaved(t *testing.T) {
	l := newLister(t)
	for _, tt := range []struct {
		cost float64
		want string
	}{{3, "$6.00 of $9.00"}, {11, "$2.00 more than $9.00 without furl"}} {
		s := l.add(t, time.Hour, storage.Meta{Title: "Saved", Ledger: ledger(48_200, tt.cost, 9)})
		if _, page := get(t, l.serve(t)+"/furl/sessions/"+string(s.ID())); !strings.Contains(page, tt.want) {
			t.Errorf("the meter lacks %q", tt.want)
		}
	}
	same := &storage.Ledger{}
	same.Add(time.Now().Format(time.DateOnly), "claude-sonnet-4-5", storage.Savings{Requests: 2, Tokens: 900, TokensWithout: 900, Cost: 0.03, CostWithout: 0.03})
	s := l.add(t, time.Hour, storage.Meta{Title: "New", Ledger: same})
	if _, page := get(t, l.serve(t)+"/furl/sessions/"+string(s.ID())); !strings.Contains(page, "nothing saved yet · $0.03 spent<") {
		t.Error("the meter does not say that nothing is saved yet")
	}
}

func TestListFilters(t *testing.T) {
	address := manySessions(t).serve(t)
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"agent=Codex", []string{"s4", "s5"}},
		{"project=/src/box", []string{"s1"}},
		{"project=box", []string{"s1"}},
		{"project=/src", []string{"s4", "s5", "s1"}},
		{"project=/sr", nil},
		{"model=claude-sonnet-4-5", []string{"s6", "s1"}},
		{"model=claude-haiku-4-5", []string{"+s3", "+s2"}},
		{"live=1", []string{"s4"}},
		{"hidden=1", []string{"s5", "s1"}},
		{"hidden=1&agent=Codex", []string{"s5"}},
		{"since=1d", []string{"s4", "s5"}},
		{"since=7d", []string{"s4", "s5", "s6", "s1"}},
		{"q=VAULT+fix", []string{"s1"}},
		{"q=explore", []string{"+s2"}},
		{"q=保险库", []string{"s4"}},
		{"q=s5", []string{"s5"}},
		{"q=agent-1", []string{"s1"}},
		{"sort=title", []string{"s4", "s1", "s6", "s5"}},
		{"sort=-title", []string{"s4", "s5", "s6", "s1"}},
		{"sort=spent", []string{"s4", "s5", "s1", "s6"}},
		{"sort=saved", []string{"s4", "s1", "s5", "s6"}},
		{"sort=-saved", []string{"s4", "s6", "s5", "s1"}},
		{"sort=-updated", []string{"s4", "s1", "s6", "s5"}},
		{"agent=Codex&sort=-spent&project=other", []string{"s4", "s5"}},
	} {
		expectRows(t, address+"/?"+tt.query, tt.want...)
	}
	page := expectRows(t, address+"/?agent=nothing&q=zebra")
	for _, want := range []string{"No session has this text in its title", `<a href="/">Clear`, `agent: nothing`, `href="/?q=zebra"`, "/furl/search?q=zebra"} {
		if !strings.Contains(page, want) {
			t.Errorf("a list without results lacks %s", want)
		}
	}
	for _, bad := range []string{"since=3y", "sort=color", "after=%21", "before=bm90", "q=" + strings.Repeat("x", 501)} {
		if status, _ := get(t, address+"/?"+bad); status != 400 {
			t.Errorf("%.40s: status %d", bad, status)
		}
	}
}

// A fragment names its address without empty parameters, in the history for a choice and in
// place of the last one while a person types.
func TestListFragment(t *testing.T) {
	l := manySessions(t)
	p := web.New(nil)
	for trigger, header := range map[string]string{"agent": "HX-Push-Url", "q": "HX-Replace-Url"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/furl/sessions?agent=Codex&project=&q=", nil)
		r.Header.Set("HX-Request", "true")
		r.Header.Set("HX-Trigger-Name", trigger)
		w := httptest.NewRecorder()
		p.ServePage(w, r, gateway.Visit{Sessions: l.Sessions})
		if got := w.Header().Get(header); got != "/?agent=Codex" {
			t.Errorf("%s after a change of %s: %q", header, trigger, got)
		}
		if body := w.Body.String(); strings.Contains(body, "<html") || !slices.Equal(rowsOf(body), []string{"s4", "s5"}) {
			t.Errorf("the fragment is %.200s", body)
		}
	}
}

var pageLink = regexp.MustCompile(`<a href="([^"]*)" rel="(prev|next)"`)

// walk follows links of pages and returns the sessions on each page.
func walk(t *testing.T, base, path, rel string) (pages [][]string, last string) {
	t.Helper()
	for path != "" {
		status, page := get(t, base+path)
		if status != 200 || len(pages) > 20 {
			t.Fatalf("%s: status %d after %d pages", path, status, len(pages))
		}
		pages, last, path = append(pages, rowsOf(page)), path, ""
		for _, m := range pageLink.FindAllStringSubmatch(page, -1) {
			if m[2] == rel {
				path = strings.ReplaceAll(m[1], "&amp;", "&")
			}
		}
	}
	return pages, last
}

// Pages show each session once, forward and back, while other sessions are used.
func TestListPages(t *testing.T) {
	l := newLister(t)
	for i := range 250 {
		l.add(t, time.Hour+time.Duration(i)*time.Minute, storage.Meta{Title: fmt.Sprintf("Session %03d", (i*7)%250), Project: fmt.Sprintf("/src/p%d", i%25), Ledger: ledger(i, float64(i%13), 20)})
	}
	address := l.serve(t)
	for _, query := range []string{"group=off", "sort=title", "sort=-title", "sort=spent", "sort=-saved", "sort=messages"} {
		pages, last := walk(t, address, "/?"+query, "next")
		var all []string
		for _, p := range pages {
			all = append(all, p...)
		}
		if len(pages) != 3 || len(all) != 250 || len(slices.Compact(slices.Sorted(slices.Values(all)))) != 250 {
			t.Errorf("%s: %d pages, %d sessions", query, len(pages), len(all))
		}
		back, _ := walk(t, address, last, "prev")
		slices.Reverse(back)
		if !slices.EqualFunc(back, pages, slices.Equal) {
			t.Errorf("%s: the pages differ on the way back", query)
		}
	}
	if pages, _ := walk(t, address, "/", "next"); len(pages) != 2 || len(pages[0]) != 20*8 || len(pages[1]) != 5*8 {
		t.Errorf("pages of groups: %d", len(pages))
	}
	first, _ := walk(t, address, "/?group=off", "none")
	_, page := get(t, address+"/?group=off")
	next := strings.ReplaceAll(pageLink.FindStringSubmatch(page)[1], "&amp;", "&")
	for _, id := range []string{first[0][99], "s200"} { // the cursor's session and another one become the newest
		s, err := l.Open(t.Context(), furl.SessionID(id))
		if err != nil {
			t.Fatal(err)
		}
		sessiontest.AppendAll(t, s, []*furl.Message{sessiontest.Message(t, furl.RoleAssistant, sessiontest.Text("Done."))})
	}
	_, page = get(t, address+next)
	for _, id := range rowsOf(page) {
		if slices.Contains(first[0], id) {
			t.Errorf("session %s is on the first page and on the next", id)
		}
	}
	if got := rowsOf(page); len(got) != 100 || got[0] != "s101" {
		t.Errorf("the next page has %d sessions from %s", len(got), got[0])
	}
	for _, key := range []string{`{"i":"gone","n":1}`, `{"i":"","n":-5,"t":"~"}`, `{"n":1e300}`} {
		if status, _ := get(t, address+"/?group=off&after="+base64.RawURLEncoding.EncodeToString([]byte(key))); status != 200 {
			t.Errorf("cursor %s: status %d", key, status)
		}
	}
}

func TestListEmpty(t *testing.T) {
	status, page := get(t, newLister(t).serve(t)+"/")
	for _, want := range []string{"No sessions yet", "<code>furl run -- claude</code>", "<code>furl import</code>", "<code>furl serve</code>"} {
		if status != 200 || !strings.Contains(page, want) {
			t.Errorf("status %d; the empty list lacks %s", status, want)
		}
	}
}

// Titles, agents, models and projects are text, whatever they contain.
func TestListHostile(t *testing.T) {
	l := newLister(t)
	for i, text := range hostile {
		l.add(t, time.Duration(i+1)*time.Hour, storage.Meta{Title: text, Client: text, Model: text, Project: "/" + text, Ledger: ledger(5, 1, 2)})
	}
	address := l.serve(t)
	query := url.QueryEscape(hostile[0])
	for _, path := range []string{"/", "/?group=off", "/?sort=title", "/?q=" + query + "&agent=" + query + "&project=" + query + "&model=" + query, "/furl/search?q=" + query, "/furl/money"} {
		status, page := get(t, address+path)
		if status != 200 {
			t.Errorf("%s: status %d", path, status)
		}
		expectInert(t, path, page)
		for _, r := range "\u202e\u2066\u200b\x1b\x00" {
			if strings.ContainsRune(page, r) {
				t.Errorf("%s has the character %U", path, r)
			}
		}
	}
}

// noReading is a store whose records cannot be read.
type noReading struct{ storage.Store }

var errRead = errors.New("records were read")

func (noReading) Read(context.Context, furl.SessionKey, furl.Seq) iter.Seq2[furl.Record, error] {
	return func(yield func(furl.Record, error) bool) { yield(furl.Record{}, errRead) }
}

// The list needs no records.
func TestListReadsNoRecords(t *testing.T) {
	l := manySessions(t)
	all := sessiontest.Reopen(t, noReading{l.store}, session.Options{})
	address := serve(t, all, nil)
	expectRows(t, address+"/", "s4", "s5", "s6", "s1")
	expectRows(t, address+"/?hidden=1&sort=spent", "s5", "s1")
	if status, _ := get(t, address+"/furl/money"); status != 200 {
		t.Errorf("savings: status %d", status)
	}
	if status, _ := get(t, address+"/furl/sessions/s1/spark?records=1"); status != 500 {
		t.Errorf("a curve without records: status %d", status)
	}
}

// A row's curve is drawn from its records, and drawn again without reading them.
func TestSpark(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{Policy: "rolling-mask-10"})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 60, 3000))
	if _, err := s.Reduce(t.Context(), session.ReduceOptions{}); err != nil {
		t.Fatal(err)
	}
	sessiontest.AppendAll(t, s, []*furl.Message{sessiontest.Message(t, furl.RoleAssistant, sessiontest.Text("Done."))})
	p := web.New(nil)
	ask := func(in *session.Sessions, records furl.Seq) (int, string) {
		w := httptest.NewRecorder()
		p.ServePage(w, httptest.NewRequestWithContext(t.Context(), "GET", fmt.Sprintf("/furl/sessions/%s/spark?records=%d", s.ID(), records), nil), gateway.Visit{Sessions: in})
		return w.Code, w.Body.String()
	}
	status, cells := ask(all, s.Info().Records)
	for _, want := range []string{"<polyline points=", "<circle", "at most ", "hidden</a>", "<rect class=\"used\"", "/furl/sessions/s1/hidden"} {
		if status != 200 || !strings.Contains(cells, want) {
			t.Errorf("status %d; the cells lack %s", status, want)
		}
	}
	if strings.Contains(cells, "style=") {
		t.Error("the content security policy forbids style attributes")
	}
	again := sessiontest.Reopen(t, noReading{all.Store()}, session.Options{})
	if status, same := ask(again, s.Info().Records); status != 200 || same != cells {
		t.Errorf("the same figures again: status %d", status)
	}
	if status, _ := ask(all.For(furl.Tenant("other")), s.Info().Records); status != 404 {
		t.Errorf("a session of another tenant: status %d", status)
	}
	if status, _ := ask(all, 1); status != 200 {
		t.Errorf("fewer records than there are: status %d", status)
	}
}

// BenchmarkList measures the list of 2,000 sessions.
func BenchmarkList(b *testing.B) {
	l := newLister(b)
	for i := range 2000 {
		l.add(b, time.Duration(i+1)*time.Minute, storage.Meta{Title: fmt.Sprintf("Session %d of many", i), Client: "claude-cli", Model: "claude-sonnet-4-5", Project: fmt.Sprintf("/src/p%d", i%40), Ledger: ledger(i, 1, 2)})
	}
	p := web.New(nil)
	for _, query := range []string{"", "?group=off", "?sort=spent", "?q=session+7&hidden=1"} {
		b.Run("query="+query, func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				p.ServePage(w, httptest.NewRequestWithContext(b.Context(), "GET", "/"+query, nil), gateway.Visit{Sessions: l.Sessions})
				if w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
