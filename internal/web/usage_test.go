package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// spent adds a session with requests of 1,000 fresh tokens and 100 tokens out, one on each of the last days.
func spent(t *testing.T, st storage.Store, id string, meta storage.Meta, model string, days int) {
	t.Helper()
	var records []furl.Record
	for day := range days {
		records = append(records, furl.Record{Seq: furl.Seq(day + 1), Parent: furl.Seq(day), By: furl.Upstream, At: time.Now().AddDate(0, 0, -day), Body: &furl.Exchange{Model: model, Usage: furl.Usage{Input: 1000, Output: 100}}})
	}
	if err := st.Append(t.Context(), furl.SessionKey{Session: furl.SessionID(id)}, storage.Batch{Records: records, Meta: &meta}); err != nil {
		t.Fatal(err)
	}
}

// The page adds up what sessions have cost, by day and by a grouping that a link chooses. It needs no script.
func TestUsage(t *testing.T) {
	all, st := sessiontest.Open(t, session.Options{})
	const hostile = `<script>alert("x")</script>`
	spent(t, st, "main", storage.Meta{Title: "The main one", Client: "claude-cli", Project: "/home/me/" + hostile}, "claude-opus-4-5-20251101", 3)
	spent(t, st, "sub", storage.Meta{Parent: "main", Client: "claude-cli"}, "claude-opus-4-5-20251101", 1)
	spent(t, st, "other", storage.Meta{Client: "codex_exec"}, "no-such-model", 2)
	address := serve(t, all, nil)
	status, page := get(t, address+"/furl/usage")
	if status != 200 {
		t.Fatalf("status %d: %s", status, page)
	}
	expectAll(t, "the page", page, `<a href="/furl/usage" aria-current="page">Usage</a>`, "<strong>6 requests</strong>: 6,000 tokens in, 600 out; list price $0.03, of that $0.01 by sub-agents",
		">claude-opus-4-5<", "2 requests to models without a known price", `<rect class="with"`, time.Now().Format(time.DateOnly)+": 3 requests, 3,000 tokens in; list price $0.0")
	if strings.Contains(page, `<rect class="without"`) || strings.Contains(page, " style=") {
		t.Error("the chart is of two things, or has style attributes")
	}
	_, page = get(t, address+"/furl/usage?by=session&since=all")
	expectAll(t, "by session", page, `<a href="/furl/sessions/main/money">The main one</a>`, `class="in1"`, "With sub-agents")
	_, page = get(t, address+"/furl/usage?by=project&since=1d")
	expectAll(t, "by project", page, "&lt;script&gt;", "<strong>3 requests</strong>")
	if strings.Contains(page, hostile) {
		t.Error("a project is markup")
	}
	_, page = get(t, address+"/furl/usage?by=agent")
	expectAll(t, "by agent", page, "Claude Code", "Codex")
	for _, query := range []string{"since=x", "by=colour"} {
		if status, _ := get(t, address+"/furl/usage?"+query); status != 400 {
			t.Errorf("%s: status %d", query, status)
		}
	}
	_, page = get(t, newLister(t).serve(t)+"/furl/usage")
	expectAll(t, "an empty store", page, "No requests in this time", "<code>furl import</code>")
}

// From the list, a browser gets to the page, and from there to another grouping and a session.
func TestBrowserUsage(t *testing.T) {
	all, st := sessiontest.Open(t, session.Options{})
	for i := range 3 {
		spent(t, st, fmt.Sprintf("s%d", i), storage.Meta{Title: fmt.Sprintf("Session %d", i), Client: "claude-cli"}, "claude-opus-4-5", 10*(i+1))
	}
	b := browsertest.OpenURL(t, serve(t, all, nil))
	b.Click(`a[href="/furl/usage"]`)
	b.Wait(`document.querySelectorAll('.chart rect.with').length == 30`)
	b.Click(`a[href*="by=session"]`)
	b.Wait(`document.querySelectorAll('tbody tr').length == 3 && document.querySelector('tbody th').innerText == 'Session 2'`)
	if wide := browsertest.Eval[bool](b, `document.documentElement.scrollWidth > innerWidth`); wide {
		t.Error("the page is wider than the window")
	}
	if widths := browsertest.Eval[string](b, `Array.from(document.querySelectorAll('.share rect'), r => r.getAttribute('width')).join()`); widths != "100.0,66.7,33.3" {
		t.Errorf("the bars are %s", widths)
	}
	b.Click(`tbody a`)
	b.Wait(`location.pathname == '/furl/sessions/s2/money'`)
	b.Silent()
}
