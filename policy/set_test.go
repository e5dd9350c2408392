package policy

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// forgetful is a stage of a program's own, with a dependency that no
// configuration can name.
type forgetful struct {
	Tool string `json:"tool"`
	Keep int    `json:"keep"`

	seen *int
}

func (forgetful) Name() string { return "forget" }

func (f forgetful) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	*f.seen++
	m := Mask{KeepSteps: f.Keep, Keep: func(r *Result) bool { return r.Tool() != f.Tool }}
	return m.Reduce(ctx, v, b)
}

func (f forgetful) Validate() error {
	if f.Keep > 9 {
		return errors.New("keep is too large")
	}
	return nil
}

func TestConfigure(t *testing.T) {
	seen := 0
	base := NewSet(Rolling{Target: 0.7})
	base.AddStage(forgetful{Keep: 2, seen: &seen})
	base.AddPolicy(&Pipeline{Label: "mine", Threshold: 0.9, Stages: []Stage{&Clip{}}})
	for _, tt := range []struct {
		name, options string
		path          []string
		want          string // of the error
	}{
		{"rolling", `{"min_keep_messages": 4}`, nil, ""},
		{"rolling", `{"minKeepMessages": 4, "targetUtilization": 0.6, "evictionNote": false}`, nil, ""},
		{"rolling", `{"minKeepMessages": 4, "min_keep_messages": 5}`, []string{"min_keep_messages"}, "min_keep_messages is set twice"},
		{"rolling", `{"target_utilization": 2}`, []string{"target_utilization"}, "invalid target_utilization 2: expected at most 1"},
		{"rolling", `{"context_threshold": 0.6}`, []string{"context_threshold"}, "invalid target_utilization 0.7: expected at most the context_threshold, 0.6"},
		{"rolling", `{"eviction_note": "no"}`, []string{"eviction_note"}, `invalid eviction_note "no": expected true or false`},
		{"rolling", `{"fraction": 0.5}`, []string{"fraction"}, `unknown key "fraction" for policy "rolling": expected one of context_threshold, eviction_note, exclude_tools, keep_tools, min_keep_messages, repair_edits, target_utilization`},
		{"rolling", `[]`, nil, `invalid options of policy "rolling": expected keys with values`},
		{"rolling", `{"target_utilization"`, nil, `invalid options of policy "rolling"`},
		{"safeguard", `{"summary": false, "tail_tokens": 7}`, nil, ""},
		{"default", `{"summary": false, "tail_tokens": 7}`, nil, ""},
		{"auto:frugal:results", `{"summary": true}`, nil, ""},
		{"clear-100k", `{"text": 3}`, []string{"text"}, "invalid text 3: expected a text"},
		{"mine", `{"context_threshold": 0.5, "min_gain": 100}`, nil, ""},
		{"mine", `{"Label": "x"}`, []string{"Label"}, `unknown key "Label" for policy "mine": expected one of context_threshold, exclude_tools, keep_tools, min_gain, repair_edits, stages`},
		{"lean", `{"stages": ["clip", {"forget": {"tool": "Bash"}}, {"mask": {"text": "[{tool}]"}}]}`, nil, ""},
		{"lean", `{"stages": ["clip", {"mask": {"keep": 1}}]}`, []string{"stages", "1", "mask", "keep"}, `unknown key "keep" for stage "mask": expected one of keep_results, keep_steps, label, longer_than, min_tokens, reason, text`},
		{"lean", `{"stages": [{"forget": {"keep": 10}}]}`, []string{"stages", "0", "forget", "keep"}, "keep is too large"},
		{"lean", `{"stages": [{"mask": {"keep_steps": -1}}]}`, []string{"stages", "0", "mask", "keep_steps"}, "invalid keep_steps -1: expected 0 or more"},
		{"lean", `{"stages": [{"mask": {"text": []}}]}`, []string{"stages", "0", "mask", "text"}, "invalid text []: expected a text"},
		{"lean", `{"stages": [{"mask": 3}]}`, []string{"stages", "0", "mask"}, `invalid options of stage "mask"`},
		{"lean", `{"stages": ["masc"]}`, []string{"stages", "0"}, `unknown stage "masc": choose one of mask, clip, shorten, truncate, evict, extract, compact, forget`},
		{"lean", `{"stages": [["mask"]]}`, []string{"stages", "0"}, "invalid stage: expected its name"},
		{"lean", `{"stages": []}`, []string{"stages"}, "invalid stages: expected a list of stages"},
		{"lean", `{}`, nil, `unknown policy "lean": choose one of none, `},
	} {
		set := base.Clone()
		err := set.Configure(tt.name, []byte(tt.options))
		if tt.want == "" {
			if _, made := set.Policy(tt.name, Settings{}); err != nil || made != nil {
				t.Errorf("%s with %s: %v, %v", tt.name, tt.options, err, made)
			}
			continue
		}
		o, ok := errors.AsType[*OptionError](err)
		if !ok || !strings.HasPrefix(o.Error(), tt.want) || !slices.Equal(o.Path, tt.path) {
			t.Errorf("%s with %s: %v, want %q at %q", tt.name, tt.options, err, tt.want, tt.path)
		}
		if !reflect.DeepEqual(set.entries, base.entries) {
			t.Errorf("%s with %s: the invalid options changed the set", tt.name, tt.options)
		}
	}
	if want := NewSet(Rolling{Target: 0.7}).entries; !reflect.DeepEqual(base.entries[:len(want)], want) {
		t.Error("a clone changed its original")
	}
	if err := NewSet().Configure("tool-age", []byte(`{"max": 1, "age": 2}`)); len(err.(interface{ Unwrap() []error }).Unwrap()) != 2 {
		t.Errorf("not every invalid option is reported: %v", err)
	}
}

// A stage of a program's own runs with the options that a configuration sets.
func TestAddStage(t *testing.T) {
	seen := 0
	set := NewSet()
	set.AddStage(forgetful{Keep: 1, seen: &seen})
	if err := set.Configure("lean", []byte(`{"stages": [{"forget": {"tool": "Bash"}}]}`)); err != nil {
		t.Fatal(err)
	}
	p, err := set.Policy("lean", Settings{})
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	for i := range 6 {
		s.step([]string{"Bash", "Read"}[i%2], text(50))
	}
	plan := s.plan(p, s.budget(0))
	if seen != 1 || len(plan.Reductions) != 1 || plan.Steps[0].Hidden != 3 || p.Name() != "lean" {
		t.Errorf("%s ran %d times: %+v", p.Name(), seen, plan.Steps)
	}
}

// What settings change holds for a pipeline of a program's own too.
func TestSettingsOfOwnPipeline(t *testing.T) {
	set := NewSet()
	own := &Pipeline{Label: "own", Threshold: 0.9, Stages: []Stage{&Compact{TailTokens: 9}, &Truncate{}}}
	set.AddPolicy(own)
	plan := func(settings Settings) *furl.Plan {
		t.Helper()
		p, err := set.Policy("own", settings)
		if err != nil {
			t.Fatal(err)
		}
		s := long(t, 10)
		return s.plan(p, s.budget(s.budget(0).Size*5/4)) // at 0.8 of the window
	}
	if got := plan(Settings{}); len(got.Steps) != 0 {
		t.Errorf("below its threshold it does %+v", got.Steps)
	}
	if got := plan(Settings{Threshold: 0.7}); len(got.Steps) != 1 || got.Steps[0].Stage != "truncate" {
		t.Errorf("without a summarizer it does %+v", got.Steps)
	}
	if got := plan(Settings{Threshold: 0.7, Summarizer: short("done")}); len(got.Steps) != 1 || got.Steps[0].Stage != "compact" {
		t.Errorf("with a summarizer it does %+v", got.Steps)
	}
	if got := plan(Settings{Threshold: 0.7, Summarizer: short("done"), Ask: func(context.Context, int, int) bool { return false }}); got.Reason != "declined" {
		t.Errorf("after a no it does %+v", got)
	}
	if got := plan(Settings{Threshold: 0.7, Off: true}); len(got.Steps) != 0 {
		t.Errorf("turned off it does %+v", got.Steps)
	}
	p, err := set.Policy("own", Settings{RollingContext: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	if c, acts := SummaryStage(p, &furl.Budget{}); c == nil || c.TailTokens != 9 || c.Summarizer != nil || acts != 0.9 {
		t.Errorf("summaries are prepared with %+v at %v", c, acts)
	}
	if len(own.Stages) != 2 || own.Threshold != 0.9 {
		t.Errorf("the program's pipeline was changed: %+v", own)
	}
}

// Rules give models policies and windows of their own.
func TestByModel(t *testing.T) {
	set := NewSet()
	qwen := NewSet(Clear100k{Trigger: 100, Text: "[qwen]"})
	set.ByModel("none",
		ModelRule{Model: "qwen*", Policy: "clear-100k", Policies: qwen},
		ModelRule{Model: "small", Window: 50},
		ModelRule{Model: "*mask", Policy: "rolling-mask-5"},
	)
	p, err := set.Policy("none", Settings{})
	if err != nil || p.Name() != "none" {
		t.Fatal(p, err)
	}
	for model, want := range map[string]string{"qwen3": "[qwen]", "a-mask": "[observation masked", "other": "", "small": ""} {
		s := newSession(t)
		s.say(furl.RoleUser, "go")
		for range 8 {
			s.step("read", text(50))
		}
		b := s.budget(100_000)
		b.Model.ID = model
		plan := s.plan(p, b)
		got := ""
		if len(plan.Reductions) > 0 {
			got = plan.Reductions[0].Items[0].Show.(furl.In).Text
		}
		if !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%s shows %q, want %q", model, got, want)
		}
	}
	for model, want := range map[string]int{"small": 50, "qwen3": 0, "other": 0} {
		if got := set.Window(model); got != want {
			t.Errorf("the window of %s is %d, want %d", model, got, want)
		}
	}
	if p, err := set.Policy("compaction", Settings{}); err != nil || reflect.TypeOf(p) != reflect.TypeFor[*Pipeline]() {
		t.Errorf("rules for none apply to compaction: %T, %v", p, err)
	}
	set.ByModel("none", ModelRule{Model: "a", Policy: "nothing"})
	if _, err := set.Policy("none", Settings{}); err == nil || !strings.Contains(err.Error(), `model a: unknown policy "nothing"`) {
		t.Errorf("a rule with an unknown policy gives %v", err)
	}
	set = NewSet()
	set.ByModel("none", ModelRule{Model: "big", Policy: "compaction"}, ModelRule{Model: "*", Policy: "rolling"})
	if p, err = set.Policy("none", Settings{Threshold: 0.6}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		model  string
		recall bool
		want   float64
	}{{"big", true, 0.6}, {"other", true, 0}, {"other", false, 0.6}} {
		if _, acts := SummaryStage(p, &furl.Budget{Model: furl.Model{ID: tt.model}, Recall: tt.recall}); acts != tt.want {
			t.Errorf("%s, recall %v: acts at %v, want %v", tt.model, tt.recall, acts, tt.want)
		}
	}
}

// Options by value and by pointer are the same, and those of auto hold for all
// presets of auto.
func TestNewSet(t *testing.T) {
	set := NewSet(&Auto{SummaryOptions: SummaryOptions{Summary: new(true)}}, RollingMask{Text: "[x]"})
	for _, name := range []string{"auto", "auto:frugal", "auto:faithful:results"} {
		p, err := set.Policy(name, Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if c, acts := SummaryStage(p, &furl.Budget{}); c == nil || c.TailTokens != autoTail || acts != forcedFirst {
			t.Errorf("%s prepares %+v at %v", name, c, acts)
		}
	}
	if c, _ := SummaryStage(must(t, "auto"), &furl.Budget{}); c != nil {
		t.Errorf("auto prepares %+v by default", c)
	}
	names := set.Variants()
	if len(names) != len(set.Names())+3 || !slices.Contains(names, "auto:frugal:results") {
		t.Errorf("variants are %v", names)
	}
}
