package session_test

import (
	"math"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// The price that a preview shows is that of the change, and a preview changes nothing.
func TestPrices(t *testing.T) {
	now := sessiontest.Still()
	all, _ := sessiontest.Open(t, session.Options{Now: func() time.Time { return now }})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	steps := sessiontest.Steps(t, 30, 4000)
	sessiontest.AppendAll(t, s, steps)
	records := s.Info().Records

	to, back, err := s.PriceOfRewind(11)
	if err != nil {
		t.Fatal(err)
	}
	if to.To != 11 || back.After >= back.Before || back.Rewrite != 0 || back.Once != 0 {
		t.Errorf("rewind: %+v, %+v", to, back)
	}
	hide := session.ReduceOptions{Stage: &policy.Hide{Spans: []furl.Span{{First: furl.Pos{Msg: 3}, Last: furl.Pos{Msg: 3}}}}, DryRun: true}
	dry, err := s.Reduce(t.Context(), hide)
	if err != nil || len(dry.Planned) != 1 {
		t.Fatalf("%+v, %v", dry, err)
	}
	p := dry.Price
	if p.After >= p.Before || p.Rewrite <= 0 || p.Rewrite >= p.After || !p.Cached || p.Expired || !p.Priced || p.Once <= 0 || p.PerRequest <= 0 {
		t.Errorf("hide: %+v", p)
	}
	if p.Once != dry.Planned[0].Cost.Rewrite || p.PerRequest != dry.Planned[0].Cost.PerRequest {
		t.Errorf("the price %+v differs from the recorded cost %+v", p, dry.Planned[0].Cost)
	}
	hide.DryRun = false
	done, err := s.Reduce(t.Context(), hide)
	if err != nil || done.Price != p {
		t.Fatalf("done: %+v, %v; want the price of the preview %+v", done, err, p)
	}

	undo, err := s.Restore(t.Context(), session.RestoreOptions{Reduction: done.Planned[0].Record, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if u := undo.Price; u.Before != p.After || u.After != p.Before || u.PerRequest != -p.PerRequest || u.Rewrite <= p.Rewrite {
		t.Errorf("undo: %+v after %+v", u, p)
	}

	if _, err := s.PriceOfApproval(); err == nil {
		t.Error("no summary waits, and there is a price of its approval")
	}
	if _, err := s.PriceOfEdit(done.Planned[0].Record, "text"); err == nil {
		t.Error("no summary, and there is a price of an edit")
	}
	if got := s.Info().Records; got != records+1 {
		t.Errorf("previews have recorded something: %d records, want %d", got, records+1)
	}
	sessiontest.Checked(t, s)
}

// A request's cost is that of all its passes, each at its model's price, and its size that
// of the last one. The classes of the totals have all of it.
func TestPassesAreBilled(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	s := all.Create(storage.Meta{Model: "claude-opus-4-6"})
	last := furl.Usage{Input: 63_156, Output: 100}
	records := []furl.Body{
		sessiontest.Message(t, furl.RoleUser, sessiontest.Text("review")),
		&furl.Exchange{Model: "claude-opus-4-6", Usage: last, Passes: furl.Passes{
			{Kind: furl.PassMessage, Usage: furl.Usage{Input: 54_805, Output: 40}},
			{Kind: "advisor_message", Model: "claude-haiku-4-5", Usage: furl.Usage{Input: 60_000, Output: 2_000}},
			{Kind: furl.PassMessage, Usage: last},
		}},
		sessiontest.Message(t, furl.RoleAssistant, sessiontest.Text("done")),
	}
	log := furl.NewLog()
	for _, body := range records {
		if _, err := log.Append(log.Head(), time.Time{}, furl.Import, body); err != nil {
			t.Fatal(err)
		}
	}
	h := session.NewHistory(s.HistoryOptions())
	if _, err := h.Extend(log.Records(0), log.Head()); err != nil || len(h.Requests()) != 1 {
		t.Fatalf("%d requests, %v", len(h.Requests()), err)
	}
	requests := h.Requests()
	q := &requests[0]
	opus, haiku := s.Model("claude-opus-4-6").Prices, s.Model("claude-haiku-4-5").Prices
	want := (float64(54_805+63_156)*opus.Input + 140*opus.Output + 60_000*haiku.Input + 2_000*haiku.Output) / 1e6
	if q.Size != last.Prompt() || !q.Priced || math.Abs(q.Cost-want) > 1e-9 || q.Without != q.Cost {
		t.Errorf("%d tokens, cost %v, without furl %v; want %d and %v", q.Size, q.Cost, q.Without, last.Prompt(), want)
	}
	sum := session.TotalsOf(requests)
	if classes := sum.Fresh.Cost + sum.Output.Cost; math.Abs(classes-want) > 1e-9 || sum.Tokens != last.Prompt() || sum.Fresh.Tokens != 54_805+60_000+63_156 {
		t.Errorf("totals %+v, want classes of %v", sum, want)
	}
}
