package session_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/racetest"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// Whatever happens in a session, its History has the accounts that were made when its
// requests were recorded, also if it is continued record by record.
func TestHistoryOfRandomSessions(t *testing.T) {
	racetest.FewerChecks(t, 40)
	rapid.Check(t, func(rt *rapid.T) {
		m := newAccounted(t)
		rt.Repeat(map[string]func(*rapid.T){
			"step":    m.step,
			"again":   m.step,
			"words":   m.words,
			"reduce":  m.reduce,
			"restore": m.restore,
			"rewind":  m.rewind,
			"wait":    func(*rapid.T) { m.now = m.now.Add(20 * time.Minute) },
			"":        m.check,
		})
	})
}

// accountedSession is a session whose accounts are kept when they are made.
type accountedSession struct {
	t        *testing.T
	all      *session.Sessions
	s        *session.Session
	now      time.Time
	calls    int
	accounts map[furl.Seq]price.Account // by exchange
	history  *session.History
}

func newAccounted(t *testing.T) *accountedSession {
	m := &accountedSession{t: t, now: still(), accounts: make(map[furl.Seq]price.Account)}
	m.all = reopen(t, inmem.New(), session.Options{Policy: "rolling-mask-5", Window: 5000, Now: func() time.Time { return m.now }})
	m.s = m.all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	m.history = session.NewHistory(m.s.HistoryOptions())
	appendAll(t, m.s, []*furl.Message{message(t, furl.RoleUser, text("hi"))})
	return m
}

// step sends a request, and the result of the call in its reply.
func (m *accountedSession) step(rt *rapid.T) {
	ctx := context.Background()
	model := rapid.SampledFrom([]string{"claude-sonnet-4-5", "claude-sonnet-4-5", "gpt-5", "no-such-model"}).Draw(rt, "model")
	dry := rapid.IntRange(0, 5).Draw(rt, "dry") == 0
	// As clients of providers with two lifetimes: they write what they have requested.
	// Those of OpenAI request none: the log does not have what they requested.
	lifetime := rapid.SampledFrom([]time.Duration{0, 5 * time.Minute, time.Hour}).Draw(rt, "lifetime")
	requested := lifetime
	if model == "gpt-5" {
		requested = 0
	}
	var fit *policy.Fit
	d, err := m.s.Internal().Prepare(ctx, open.Preparation{
		Prompt: func(*open.Change) open.Prompt {
			return open.Prompt{Model: model, DryRun: dry, Cache: protocol.CacheRequest{Lifetime: requested, HourTail: -1}, Digest: furl.Digest{byte(rapid.IntRange(0, 1).Draw(rt, "tools"))}}
		},
		Encode: func(_ *open.Change, f *policy.Fit) error { fit = f; return nil },
	})
	if err == nil {
		err = d.Commit(ctx, open.Committed)
	}
	if err != nil {
		rt.Fatal(err)
	}
	m.now = m.now.Add(time.Minute)
	m.calls++
	size := fit.Plan.After + rapid.IntRange(0, 300).Draw(rt, "more")
	read := rapid.IntRange(0, size).Draw(rt, "read")
	usage := furl.Usage{CacheRead: read, Output: 50}
	switch {
	case model == "gpt-5":
		usage.Input = size - read
	case lifetime == 0:
		usage = rapid.SampledFrom([]furl.Usage{{Input: size, Output: 50}, {}}).Draw(rt, "usage")
	case lifetime == time.Hour:
		usage.CacheWrite1h = size - read + 1
	default:
		usage.CacheWrite = size - read + 1
	}
	var passes furl.Passes
	if usage != (furl.Usage{}) && rapid.IntRange(0, 3).Draw(rt, "passes") == 0 {
		passes = furl.Passes{
			{Kind: rapid.SampledFrom([]string{furl.PassMessage, furl.PassCompaction}).Draw(rt, "first"), Usage: furl.Usage{Input: 100, CacheRead: read, Output: 9}},
			{Kind: "advisor_message", Model: rapid.SampledFrom([]string{"claude-opus-4-5", "no-such-model"}).Draw(rt, "advisor"), Usage: furl.Usage{Input: 900, Output: 90}},
			{Kind: furl.PassMessage, Usage: usage},
		}
	}
	id := fmt.Sprintf("toolu_%d", m.calls)
	same := call(id, "read", fmt.Sprintf(`{"n":%d}`, m.calls%4))
	reply := &protocol.Reply{ID: id, Format: furl.FormatAnthropic, Usage: usage, Passes: passes, Messages: []*furl.Message{
		message(m.t, furl.RoleAssistant, text("I read it."), same),
	}}
	if err := m.s.Observe(ctx, fit, reply); err != nil {
		rt.Fatal(err)
	}
	records := m.s.Records(0)
	m.accounts[records[len(records)-2].Seq] = *fit.Account
	m.append(rt, message(m.t, furl.RoleUser, result(id, strings.Repeat(fmt.Sprint("line ", m.calls, " "), 50))))
}

func (m *accountedSession) append(rt *rapid.T, msgs ...*furl.Message) {
	if _, err := m.s.Append(context.Background(), msgs...); err != nil {
		rt.Fatal(err)
	}
}

func (m *accountedSession) words(rt *rapid.T) {
	m.append(rt, message(m.t, furl.RoleUser, text(fmt.Sprint("words ", m.s.Head()))))
}

func (m *accountedSession) reduce(rt *rapid.T) {
	if _, err := m.s.Reduce(context.Background(), session.ReduceOptions{}); err != nil {
		rt.Fatal(err)
	}
}

func (m *accountedSession) restore(rt *rapid.T) {
	seq := furl.Seq(rapid.IntRange(1, int(m.s.Head())).Draw(rt, "record"))
	o := session.RestoreOptions{Reduction: seq}
	if rapid.Bool().Draw(rt, "open") {
		at := furl.Pos{Msg: seq}
		o = session.RestoreOptions{Spans: []furl.Span{{First: at, Last: at}}}
	}
	_, _ = m.s.Restore(context.Background(), o) // if there is something to restore
}

func (m *accountedSession) rewind(rt *rapid.T) {
	to := furl.Seq(rapid.IntRange(1, len(m.s.Records(0))).Draw(rt, "to"))
	_, _ = m.s.Rewind(context.Background(), to)
	if st := m.s.View("m").State; st.Len() == 0 || len(st.OpenCalls()) > 0 { // so that a request can follow
		_, _ = m.s.Rewind(context.Background(), 1)
	}
}

func (m *accountedSession) check(rt *rapid.T) {
	records, head := m.s.Records(0), m.s.Head()
	before := append([]session.Request(nil), m.history.Requests()...)
	same, err := m.history.Extend(records, head)
	if err != nil {
		rt.Fatal(err)
	}
	list := m.history.Requests()
	if diff := cmp.Diff(before[:same], list[:same], cmpopts.EquateEmpty()); diff != "" {
		rt.Fatalf("requests that should be the same have changed:\n%s", diff)
	}
	fresh := session.NewHistory(m.s.HistoryOptions())
	if _, err := fresh.Extend(records, head); err != nil {
		rt.Fatal(err)
	}
	if diff := cmp.Diff(fresh.Requests(), list, cmpopts.EquateEmpty()); diff != "" {
		rt.Fatalf("a history read at once and one read in parts differ:\n%s", diff)
	}
	for _, q := range list {
		if diff := cmp.Diff(m.accounts[q.Exchange], q.Account); diff != "" {
			rt.Fatalf("request %d, record %d: recorded and computed account differ:\n%s", q.Number, q.Exchange, diff)
		}
	}
}

// sendAgain sends the requests of a recording through a session, with the usage that it
// reports, and returns the accounts.
func sendAgain(t *testing.T, s *session.Session, rec *transcript.Session, now *time.Time) (accounts []price.Account) {
	t.Helper()
	ctx := t.Context()
	for _, r := range rec.Log.Path(rec.Log.Head()) {
		*now = now.Add(10 * time.Second)
		switch b := r.Body.(type) {
		case *furl.Message:
			if b.Role != furl.RoleAssistant {
				m := *b
				if _, err := s.Append(ctx, &m); err != nil {
					t.Fatal(err)
				}
			}
		case *furl.Exchange:
			fit, err := s.Fit(ctx, "claude-sonnet-4-5")
			if err != nil {
				t.Fatal(err)
			}
			size := fit.Plan.After
			u := furl.Usage{CacheRead: size * 9 / 10, CacheWrite: size - size*9/10, Output: b.Usage.Output}
			if len(fit.Plan.Reductions) > 0 {
				u.CacheRead, u.CacheWrite = u.CacheWrite, u.CacheRead
			}
			reply := &protocol.Reply{ID: fmt.Sprint("r", r.Seq), Format: rec.Wire, Usage: u}
			for seq := r.Seq + 1; int(seq) <= rec.Log.Len(); seq++ {
				m, ok := rec.Log.At(seq).Body.(*furl.Message)
				if !ok || m.Role != furl.RoleAssistant {
					break
				}
				said := *m
				reply.Messages = append(reply.Messages, &said)
			}
			if err := s.Observe(ctx, fit, reply); err != nil {
				t.Fatal(err)
			}
			accounts = append(accounts, *fit.Account)
		}
	}
	return accounts
}

// The requests of real sessions have the accounts that were made when they were
// recorded, and add up to the session's ledger.
func TestHistoryOfRecordings(t *testing.T) {
	for _, file := range recordings.Files(t, "entire-cli/*.jsonl.gz") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			rec, err := transcript.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compareHistory(t, rec.Sessions[0])
		})
	}
}

// TestHistory is TestHistoryOfRecordings with a small recording.
func TestHistory(t *testing.T) {
	log := furl.NewLog()
	add := func(body furl.Body) {
		if _, err := log.Append(log.Head(), time.Time{}, furl.Import, body); err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range steps(t, 400, 3000) {
		if i%2 == 1 {
			add(&furl.Exchange{Model: "m", Usage: furl.Usage{Output: 60}})
		}
		if i > 0 && i%2 == 1 && i%50 == 1 { // again the first call
			m = message(t, furl.RoleAssistant, call(m.Blocks[1].ID, "read", `{"path":"src/file_0.go"}`))
		}
		add(m)
	}
	got := compareHistory(t, &transcript.Session{Log: log, Wire: furl.FormatAnthropic})
	if got.Refetched == 0 || got.Over == 0 {
		t.Errorf("no repeated calls or prompts above the window: %+v", got)
	}
}

// compareHistory sends a recording again, compares the accounts, and returns their sums.
func compareHistory(t *testing.T, rec *transcript.Session) session.Totals {
	t.Helper()
	now := still()
	all := reopen(t, inmem.New(), session.Options{Policy: "auto", Window: 30_000, Now: func() time.Time { return now }})
	s := all.Create(storage.Meta{})
	accounts := sendAgain(t, s, rec, &now)
	list, err := s.Requests()
	if err != nil || len(list) != len(accounts) {
		t.Fatalf("%d requests, %v; want %d", len(list), err, len(accounts))
	}
	for i, q := range list {
		if q.Account != accounts[i] {
			t.Fatalf("request %d: recorded and computed account differ:\n%s", q.Number, cmp.Diff(accounts[i], q.Account))
		}
		if most := max(q.Size, s.HistoryOptions().Model(q.Model).Limit); q.PromptWithout > most || q.PromptMost > most {
			t.Errorf("request %d: without furl %d or %d tokens, more than the provider accepts", q.Number, q.PromptWithout, q.PromptMost)
		}
		if r := s.Records(q.Exchange - 1)[0]; r.Parent != q.Sent || r.Body.(*furl.Exchange).Usage != q.Usage {
			t.Errorf("request %d is %+v, its record %+v", q.Number, q, r)
		}
		if q.Window != 30_000 || q.Trigger == 0 || q.Trigger >= q.Window {
			t.Errorf("request %d: window %d, trigger %d", q.Number, q.Window, q.Trigger)
		}
	}
	got, want := session.TotalsOf(list), s.Meta().Ledger.Total()
	sum := storage.Savings{
		Requests: got.Requests, Tokens: got.Tokens, TokensWithout: got.TokensWithout, SummaryTokens: got.Own.Tokens,
		Repairs: got.Repairs, RepairTokens: got.RepairTokens, OverWindow: got.Over, Unpriced: got.Unpriced, Cost: want.Cost, CostWithout: want.CostWithout, SummaryCost: got.Own.Cost,
		TokensSpread: got.TokensMost - got.TokensWithout, CostSpread: want.CostSpread,
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }
	if sum != want || !near(got.Cost, want.Cost) || !near(got.Without, want.CostWithout) || !near(got.WithoutMost, want.CostWithout+want.CostSpread) {
		t.Errorf("the requests add up to\n%+v\nthe ledger is\n%+v", got, want)
	}
	classes := got.Fresh.Cost + got.Read.Cost + got.Write.Cost + got.WriteHour.Cost + got.Output.Cost
	if !near(classes, got.Cost) || got.Cost == 0 {
		t.Errorf("price classes cost $%f, requests $%f", classes, got.Cost)
	}
	t.Logf("%d requests, %d reductions, $%.2f of $%.2f, %d repeated calls, breaks %v",
		got.Requests, len(s.Reductions()), got.Cost, got.Without, got.Refetched, got.Breaks)
	if got.TokensWithout <= got.Tokens || got.Without <= got.Cost || got.Breaks["planned"] == 0 {
		t.Errorf("nothing was hidden: %+v", got)
	}
	return got
}
