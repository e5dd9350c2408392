package session_test

import (
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sessiontest"
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
