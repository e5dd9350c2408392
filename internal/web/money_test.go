package web_test

import (
	"fmt"
	"html"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

func expectAll(t *testing.T, what, page string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(page, w) {
			t.Errorf("%s lacks %s", what, w)
		}
	}
}

// The savings are those of furl usage --savings, in its words.
func TestMoney(t *testing.T) {
	l := newLister(t)
	today := time.Now().Format(time.DateOnly)
	old := time.Now().AddDate(0, 0, -20).Format(time.DateOnly)
	led := &storage.Ledger{}
	led.Add(old, "claude-sonnet-4-5-20250929", storage.Savings{Requests: 5, Tokens: 100_000, TokensWithout: 100_000, Cost: 0.5, CostWithout: 0.5})
	led.Add(today, "claude-sonnet-4-5-20250929", storage.Savings{Requests: 40, Tokens: 300_000, TokensWithout: 1_200_000, SummaryTokens: 2_000, Cost: 1, CostWithout: 4, SummaryCost: 0.25, OverWindow: 2})
	led.Add(today, "local-model", storage.Savings{Requests: 3, Tokens: 7_000, TokensWithout: 6_000, Unpriced: 3})
	l.add(t, time.Hour, storage.Meta{Client: "claude-cli", Ledger: led})
	older := storage.Batch{Records: []furl.Record{{Seq: 1, At: time.Now(), Body: &furl.Exchange{Model: "m"}}}, Meta: &storage.Meta{Client: "codex"}}
	if err := l.Store().Append(t.Context(), furl.SessionKey{Session: "older"}, older); err != nil {
		t.Fatal(err)
	}
	address := l.serve(t)
	status, page := get(t, address+"/furl/money")
	if status != 200 {
		t.Fatalf("status %d", status)
	}
	expectAll(t, "the page", page, "<strong>48 requests</strong>", "409,000 tokens sent instead of 1,306,000 (69% less); list price $1.75 instead of $4.50 (61% less)",
		"would not have fit the context window", "3 requests without a known price", "unknown for 1 session", "Claude Code", ">claude-sonnet-4-5<", "−1,000", "$2.75", "302,000", "2,000 tokens of summaries ($0.25)",
		`<rect class="with"`, today+": 43 requests", old)
	if n := strings.Count(page, `<rect class="with"`); n != 21 {
		t.Errorf("%d bars for 21 days", n)
	}
	if strings.Contains(page, " style=") {
		t.Error("the content security policy forbids style attributes")
	}
	_, page = get(t, address+"/furl/money?since=7d")
	expectAll(t, "the last week", page, "<strong>43 requests</strong> since", "list price $1.25 instead of $4.00 (69% less)")
	if status, _ := get(t, address+"/furl/money?since=x"); status != 400 {
		t.Errorf("invalid time: status %d", status)
	}
	_, page = get(t, newLister(t).serve(t)+"/furl/money")
	expectAll(t, "an empty store", page, "No requests were recorded", "<code>furl run -- claude</code>")
}

// Long periods have a bar for each week or month.
func TestMoneyPeriods(t *testing.T) {
	for days, want := range map[int]string{1: "", 90: "", 200: "one bar per week", 1000: "one bar per month"} {
		l := newLister(t)
		led := &storage.Ledger{}
		for _, ago := range []int{days - 1, 0} {
			led.Add(time.Now().AddDate(0, 0, -ago).Format(time.DateOnly), "m", storage.Savings{Requests: 1, Tokens: 10, TokensWithout: 20})
		}
		l.add(t, time.Hour, storage.Meta{Ledger: led})
		_, page := get(t, l.serve(t)+"/furl/money")
		if !strings.Contains(page, want) || want == "" && strings.Contains(page, "one bar per") {
			t.Errorf("%d days: no %q", days, want)
		}
		if n := strings.Count(page, `<rect class="with"`); n < 1 || n > 92 {
			t.Errorf("%d days: %d bars", days, n)
		}
	}
}

// A session's page adds up to the totals of its requests.
func TestSessionMoney(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	address := serve(t, all, nil)
	for _, s := range importFiles(t, all, "entire-cli/bc-*.gz", "agentv/1f-*.jsonl.gz") {
		requests, err := s.Requests()
		if err != nil {
			t.Fatal(err)
		}
		totals := session.TotalsOf(requests)
		status, page := get(t, fmt.Sprintf("%s/furl/sessions/%s/money", address, s.ID()))
		if status != 200 {
			t.Fatalf("status %d: %.300s", status, page)
		}
		tokens := totals.Fresh.Tokens + totals.Read.Tokens + totals.Write.Tokens + totals.WriteHour.Tokens + totals.Output.Tokens + totals.Own.Tokens
		cost := totals.Fresh.Cost + totals.Read.Cost + totals.Write.Cost + totals.WriteHour.Cost + totals.Output.Cost
		if math.Abs(cost-totals.Cost) > 0.005 {
			t.Errorf("%s: the classes cost %f, the requests %f", s.ID(), cost, totals.Cost)
		}
		expectAll(t, string(s.ID()), page, "This session was imported. furl did not send its requests", fmt.Sprintf("<strong>%s requests</strong>", commas(len(requests))),
			fmt.Sprintf(`<td class="n">%s</td>`, commas(tokens)), fmt.Sprintf(`<td class="n">$%.2f</td>`, totals.Cost), "Cache read", "Output", `<polyline class="with"`, "Repeated calls", "Blind edits", "Recall fetches")
		if strings.Contains(page, "Without furl") || strings.Contains(page, " style=") {
			t.Errorf("%s: an imported session is compared with furl", s.ID())
		}
	}
}

// A session without a price says why, and says nothing about dollars.
func TestSessionMoneyWithoutPrice(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	address := serve(t, all, nil)
	for model, want := range map[string]string{"acme-9000": "no price is known for the model <bdi>acme-9000</bdi>", "claude-sonnet-4-5": "the provider reported no usage"} {
		s := all.Create(storage.Meta{Model: model})
		sessiontest.AppendAll(t, s, sessiontest.Steps(t, 3, 100))
		_, page := get(t, fmt.Sprintf("%s/furl/sessions/%s/money", address, s.ID()))
		expectAll(t, model, page, "The list price is unknown, because "+want)
		if strings.Contains(page, "Dollars") || strings.Contains(page, "$") {
			t.Errorf("%s: the page mentions dollars", model)
		}
	}
}

func commas(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// A session's page counts what the model did because something was hidden.
func TestSessionMoneyUses(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{Policy: "rolling-mask-10"})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	steps := sessiontest.Steps(t, 30, 600)
	sessiontest.AppendAll(t, s, steps)
	edit := func(id, old string) []*furl.Message {
		return []*furl.Message{
			sessiontest.Message(t, furl.RoleAssistant, sessiontest.Call(id, "Edit", fmt.Sprintf(`{"old_string":%q,"new_string":"x"}`, old))),
			sessiontest.Message(t, furl.RoleUser, sessiontest.Result(id, "Done.")),
		}
	}
	sessiontest.AppendAll(t, s, edit("a", "file 2: marker_2")) // still visible
	if _, err := s.Reduce(t.Context(), session.ReduceOptions{}); err != nil {
		t.Fatal(err)
	}
	sessiontest.AppendAll(t, s, edit("b", "file 3: marker_3 ")) // hidden
	sessiontest.AppendAll(t, s, edit("c", "file 29: marker_29"))
	sessiontest.AppendAll(t, s, edit("d", "never seen anywhere"))
	sessiontest.AppendAll(t, s, []*furl.Message{
		sessiontest.Message(t, furl.RoleAssistant, sessiontest.Call("e", "mcp__furl__memory_get", `{}`), sessiontest.Call("f", "memory_search", `{}`)),
		sessiontest.Message(t, furl.RoleUser, sessiontest.Result("e", "Found."), sessiontest.Result("f", "Found.")),
	})
	status, page := get(t, serve(t, all, nil)+"/furl/sessions/"+string(s.ID())+"/money")
	if status != 200 {
		t.Fatalf("status %d", status)
	}
	expectAll(t, "the page", page, "<dt>Reductions</dt><dd>1<", "<dt>Recall fetches</dt><dd>2 ", "<dt>Blind edits</dt><dd>1 ")
}

// The page of an imported session has the sum that a replay of its file says was billed, the
// agent's compactions and other branches included.
func TestSessionBilled(t *testing.T) {
	files, err := filepath.Glob("../../transcript/testdata/*.json*")
	if err != nil {
		t.Fatal(err)
	}
	all, _ := sessiontest.Open(t, session.Options{})
	address := serve(t, all, nil)
	models := func(*transcript.Session) billed.Models {
		return func(name string) furl.Model { return all.Model(name, furl.FormatAnthropic) }
	}
	known := 0
	for _, file := range files {
		rec, err := transcript.ReadFile(file)
		if err != nil || strings.HasSuffix(file, ".want") {
			continue
		}
		for i, ts := range rec.Sessions {
			want := billed.Sum(billed.OfSession(rec, ts, models(ts)))
			if want.Cost < 0.01 {
				continue
			}
			meta := storage.Meta{Model: ts.Model, Format: ts.Wire, Imported: furl.Seq(ts.Log.Len())}
			s, err := all.Import(t.Context(), furl.SessionID(fmt.Sprintf("%s-%d", strings.ReplaceAll(filepath.Base(file), "_", "-"), i)), ts.Log, meta)
			if err != nil {
				t.Fatal(err)
			}
			known++
			_, page := get(t, fmt.Sprintf("%s/furl/sessions/%s/money", address, s.ID()))
			if !strings.Contains(page, fmt.Sprintf(`<td class="n">$%.2f</td></tr></tfoot>`, want.Cost)) && !strings.Contains(page, fmt.Sprintf("Billed by the recorded usage: $%.2f", want.Cost)) {
				t.Errorf("%s, session %s: the page lacks $%.4f", file, ts.ID, want.Cost)
			}
			for _, term := range want.Terms {
				expectAll(t, file, page, "Not priced", html.EscapeString(term))
			}
		}
	}
	if known < 10 {
		t.Errorf("only %d sessions have a usage with a price", known)
	}
}
