package session_test

import (
	"cmp"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// The window of a session is that of the first that knows one: its setting, the flag,
// the configuration, the recording, a refusal, the models API, the catalogue, similar
// models. A refusal lowers the others, and an answered prompt raises those that the user
// has not set.
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
		more    windowCase
	}{
		{"the catalogue", session.Options{}, storage.Meta{}, 0, 1_000_000, windowCase{}},
		{"a refusal", session.Options{}, storage.Meta{}, 150_000, 150_000, windowCase{}},
		{"a refusal above the catalogue", session.Options{}, storage.Meta{}, 2_000_000, 2_000_000, windowCase{}},
		{"the recording", session.Options{}, storage.Meta{Windows: map[string]int{name: 200_000}}, 0, 200_000, windowCase{}},
		{"the recording of another model", session.Options{}, storage.Meta{Windows: map[string]int{"other": 200_000}}, 0, 1_000_000, windowCase{}},
		{"the recording before a higher refusal", session.Options{}, storage.Meta{Windows: map[string]int{name: 200_000}}, 500_000, 200_000, windowCase{}},
		{"a refusal below the recording", session.Options{}, storage.Meta{Windows: map[string]int{name: 200_000}}, 150_000, 150_000, windowCase{}},
		{"the latest request before the import", session.Options{LastWindow: true}, storage.Meta{Model: name, Window: 64_000, Windows: map[string]int{name: 200_000}}, 0, 64_000, windowCase{}},
		{"the configuration", session.Options{Policies: configured(60_000)}, storage.Meta{Windows: map[string]int{name: 200_000}}, 0, 60_000, windowCase{}},
		{"the configuration with another policy", session.Options{Policies: configured(60_000)}, storage.Meta{Policy: "none"}, 0, 60_000, windowCase{}},
		{"the flag", session.Options{Window: 30_000, Policies: configured(60_000)}, storage.Meta{}, 0, 30_000, windowCase{}},
		{"a refusal below the flag", session.Options{Window: 300_000}, storage.Meta{}, 200_000, 200_000, windowCase{}},
		{"the session's setting", session.Options{Window: 30_000}, storage.Meta{Settings: map[string]string{"context_limit": "20000"}}, 0, 20_000, windowCase{}},
		{"the models API before the catalogue", session.Options{Reported: reported}, storage.Meta{}, 0, 700_000, windowCase{}},
		{"the user's catalogue before the models API", session.Options{Reported: reported, Catalog: catalogOf(t, "models: [{id: claude-opus-4-6, window: 90_000, max_output: 1000}]")}, storage.Meta{}, 0, 90_000, windowCase{}},
		{"the user's new model before the models API", session.Options{Reported: reported, Catalog: catalogOf(t, "models: [{id: somebody-s-own, window: 90_000}]")}, storage.Meta{}, 0, 90_000, windowCase{model: "somebody-s-own"}},
		{"the user's entry without a window", session.Options{Reported: reported, Catalog: catalogOf(t, "models: [{id: claude-opus-4-6, max_output: 1000}]")}, storage.Meta{}, 0, 700_000, windowCase{}},
		{"a refusal before the models API", session.Options{Reported: reported}, storage.Meta{}, 150_000, 150_000, windowCase{}},
		{"the recording before the models API", session.Options{Reported: reported}, storage.Meta{Windows: map[string]int{name: 200_000}}, 0, 200_000, windowCase{}},
		{"the flag before the models API", session.Options{Reported: reported, Window: 30_000}, storage.Meta{}, 0, 30_000, windowCase{}},
		{"similar models", session.Options{}, storage.Meta{}, 0, 1_000_000, windowCase{model: "claude-opus-9", assumed: true}},
		{"the models API before similar models", session.Options{Reported: reported}, storage.Meta{}, 0, 700_000, windowCase{model: "claude-opus-9"}},
		{"a refusal before similar models", session.Options{}, storage.Meta{}, 150_000, 150_000, windowCase{model: "claude-opus-9"}},
		{"the flag before similar models", session.Options{Window: 30_000}, storage.Meta{}, 0, 30_000, windowCase{model: "claude-opus-9"}},
		{"the setting before similar models", session.Options{}, storage.Meta{Settings: map[string]string{"context_limit": "20000"}}, 0, 20_000, windowCase{model: "claude-opus-9"}},
		{"no similar models", session.Options{}, storage.Meta{}, 0, 0, windowCase{model: "somebody-s-own"}},
		{"an answered prompt proves more than the catalogue", session.Options{}, storage.Meta{}, 0, 1_200_000, windowCase{answered: 1_200_000}},
		{"an answered prompt below the catalogue", session.Options{}, storage.Meta{}, 0, 1_000_000, windowCase{answered: 200_000}},
		{"an answered prompt above the recording", session.Options{}, storage.Meta{Windows: map[string]int{name: 200_000}}, 0, 210_000, windowCase{answered: 210_000}},
		{"an answered prompt above the models API", session.Options{Reported: reported}, storage.Meta{}, 0, 800_000, windowCase{answered: 800_000}},
		{"an answered prompt above similar models", session.Options{}, storage.Meta{}, 0, 1_200_000, windowCase{model: "claude-opus-9", answered: 1_200_000, assumed: true}},
		{"an answered prompt above the flag", session.Options{Window: 30_000}, storage.Meta{}, 0, 30_000, windowCase{answered: 40_000}},
		{"an answered prompt of an unknown model", session.Options{}, storage.Meta{}, 0, 0, windowCase{model: "somebody-s-own", answered: 40_000}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := cmp.Or(tt.more.model, name)
			all, err := session.New(inmem.New(), &tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if tt.refused > 0 {
				all.Internal().RecordOverflow(name, &protocol.Overflow{Tokens: tt.refused + 1, Limit: tt.refused}, 0)
			}
			tt.meta.Model = name
			s := all.Create(tt.meta)
			appendAll(t, s, steps(t, 3, 400))
			if tt.more.answered > 0 {
				observe(t, s, name, tt.more.answered)
			}
			fit, err := s.Fit(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			model, context, view := s.Model(name).Window, s.Context("").Limit, fit.Budget.Window
			if model != tt.want || context != tt.want || view != tt.want {
				t.Errorf("model %d, context %d, plan %d, want %d", model, context, view, tt.want)
			}
			listed, assumed := all.WindowOf(s.Meta())
			if want := tt.more.assumed; s.Model(name).WindowAssumed != want || s.Context("").LimitAssumed != want || fit.Budget.Model.WindowAssumed != want || assumed != want && listed == tt.want {
				t.Errorf("assumed %t, in the context %t, in the plan %t, in the list %t; want %t", s.Model(name).WindowAssumed, s.Context("").LimitAssumed, fit.Budget.Model.WindowAssumed, assumed, want)
			}
		})
	}
}

// windowCase are the rarer parts of a case: another model, and the size of a prompt that
// its provider has answered.
type windowCase struct {
	model    string
	answered int
	assumed  bool // the window that is wanted
}

// catalogOf returns the built-in catalogue with changes.
func catalogOf(t *testing.T, text string) *catalog.Catalog {
	t.Helper()
	own, err := catalog.Parse("own.yaml", []byte(text))
	if err == nil {
		own, err = catalog.Default().Merge(own)
	}
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// reported is what a models API reports of every model.
func reported(string, furl.Format) (session.Reported, bool) {
	return session.Reported{Window: 700_000, From: "https://api.example/v1/models"}, true
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
	moments, err := event.Timeline(sessiontest.Log(t, s), 0, s.Head(), s.Context("").Limit)
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

// observe records that the provider has answered a prompt of that size.
func observe(t *testing.T, s *session.Session, model string, prompt int) {
	t.Helper()
	fit, err := s.Fit(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Observe(t.Context(), fit, &protocol.Reply{Format: furl.FormatAnthropic, Usage: furl.Usage{Input: prompt}}); err != nil {
		t.Fatal(err)
	}
}
