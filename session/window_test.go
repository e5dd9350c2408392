package session_test

import (
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/sessiontest"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// The window of a session is that of the first that knows one: its setting, the flag,
// the configuration, the recording, a refusal, the catalogue. A refusal lowers the
// others.
func TestWindowPrecedence(t *testing.T) {
	const name = "claude-opus-4-6"
	configured := func(window int) *policy.Set {
		set := policy.NewSet()
		set.ByModel("auto", policy.ModelRule{Model: "claude-*", Window: window})
		return set
	}
	for _, tt := range []struct {
		name    string
		o       session.Options
		meta    storage.Meta
		refused int // the limit in a refusal
		want    int
	}{
		{"the catalogue", session.Options{}, storage.Meta{}, 0, 1_000_000},
		{"a refusal", session.Options{}, storage.Meta{}, 150_000, 150_000},
		{"a refusal above the catalogue", session.Options{}, storage.Meta{}, 2_000_000, 2_000_000},
		{"the recording", session.Options{}, storage.Meta{Windows: map[string]int{name: 200_000}}, 0, 200_000},
		{"the recording of another model", session.Options{}, storage.Meta{Windows: map[string]int{"other": 200_000}}, 0, 1_000_000},
		{"the recording before a higher refusal", session.Options{}, storage.Meta{Windows: map[string]int{name: 200_000}}, 500_000, 200_000},
		{"a refusal below the recording", session.Options{}, storage.Meta{Windows: map[string]int{name: 200_000}}, 150_000, 150_000},
		{"the latest request before the import", session.Options{LastWindow: true}, storage.Meta{Model: name, Window: 64_000, Windows: map[string]int{name: 200_000}}, 0, 64_000},
		{"the configuration", session.Options{Policies: configured(60_000)}, storage.Meta{Windows: map[string]int{name: 200_000}}, 0, 60_000},
		{"the configuration with another policy", session.Options{Policies: configured(60_000)}, storage.Meta{Policy: "none"}, 0, 60_000},
		{"the flag", session.Options{Window: 30_000, Policies: configured(60_000)}, storage.Meta{}, 0, 30_000},
		{"a refusal below the flag", session.Options{Window: 300_000}, storage.Meta{}, 200_000, 200_000},
		{"the session's setting", session.Options{Window: 30_000}, storage.Meta{Settings: map[string]string{"context_limit": "20000"}}, 0, 20_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, err := session.New(inmem.New(), &tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if tt.refused > 0 {
				transact.OfSessions(all).(transact.Sessions[*session.Session]).RecordOverflow(name, &protocol.Overflow{Tokens: tt.refused + 1, Limit: tt.refused}, 0)
			}
			tt.meta.Model = name
			s := all.Create(tt.meta)
			appendAll(t, s, steps(t, 3, 400))
			fit, err := s.Fit(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			model, context, view := s.Model(name).Window, s.Context("").Limit, fit.Budget.Window
			if model != tt.want || context != tt.want || view != tt.want {
				t.Errorf("model %d, context %d, plan %d, want %d", model, context, view, tt.want)
			}
		})
	}
}

// Summaries are prepared in the window that the configuration sets for the model, and
// events say how full that is.
func TestConfiguredWindow(t *testing.T) {
	const window = 8000
	set := policy.NewSet()
	set.ByModel("compaction", policy.ModelRule{Model: "claude-*", Window: window})
	all, err := session.New(inmem.New(), &session.Options{Policy: "compaction", Policies: set})
	if err != nil {
		t.Fatal(err)
	}
	s := all.Create(storage.Meta{Model: "claude-opus-4-6"})
	for i, more := 0, steps(t, 40, 1000); s.Context("").Size < window*78/100; i++ {
		appendAll(t, s, more[i:i+1])
	}
	fit, err := s.Fit(t.Context(), "claude-opus-4-6")
	if err != nil {
		t.Fatal(err)
	}
	if s.SummaryStage(fit) == nil {
		t.Errorf("no summary is due at %d of %d tokens", fit.Plan.After, fit.Budget.Window)
	}
	if err := s.Observe(t.Context(), fit, &protocol.Reply{Format: furl.FormatAnthropic, Usage: furl.Usage{Input: fit.Plan.After}}); err != nil {
		t.Fatal(err)
	}
	moments, err := event.Timeline(sessiontest.Log(t, s), s.Head(), s.Context("").Limit)
	if err != nil {
		t.Fatal(err)
	}
	limit := 0
	for _, m := range moments {
		for _, e := range m.Events {
			if u, ok := e.(event.ContextUsage); ok {
				limit = u.Limit
			}
		}
	}
	if limit != window {
		t.Errorf("context_usage has the limit %d, want %d", limit, window)
	}
}
