package policy

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/furlhq/furl"
)

func TestAgentNames(t *testing.T) {
	set := withAgents(NewSet())
	for _, name := range set.Unlisted() {
		if p := must(t, name); p.Name() != name {
			t.Errorf("the policy %q is called %q", name, p.Name())
		}
		if slices.Contains(set.Names(), name) || slices.Contains(set.Variants(), name) {
			t.Errorf("%q is listed among furl's own presets", name)
		}
		if err := set.Configure(name, []byte(`{"no_such_option": 1}`)); err == nil {
			t.Errorf("%s takes an option that it does not have", name)
		}
	}
}

// small makes the presets of agents act in sessions of two thousand words.
var small = map[string]string{
	"clear-tool-uses":   `{"trigger": 500, "clear_tool_inputs": true}`,
	"claude-code":       `{"reserve_tokens": 500}`,
	"codex":             `{"context_threshold": 0.7, "user_tokens": 50}`,
	"pi":                `{"reserve_tokens": 500, "keep_recent_tokens": 200}`,
	"cline":             `{"max_allowed": 1000}`,
	"opencode-prune":    `{"protect": 50, "minimum": 20}`,
	"gemini-masking":    `{"protect": 200, "minimum": 200}`,
	"openhands-summary": `{"max_size": 14}`,
	"openhands-masking": `{"attention_window": 6}`,
	"openhands-recent":  `{"max_size": 14}`, "openhands-amortized": `{"max_size": 14}`,
}

// Each of these presets in a long session, with and without a model for summaries:
// every view is accepted and fits, and all of it comes back.
func TestEveryAgent(t *testing.T) {
	for _, name := range withAgents(NewSet()).Unlisted() {
		for _, model := range []*fakeModel{nil, short("so far so good")} {
			t.Run(fmt.Sprintf("%s, summaries %v", name, model != nil), func(t *testing.T) {
				with := []any{small[name]}
				if model != nil {
					with = append(with, Settings{Summarizer: model})
				}
				everyAgent(t, must(t, name, with...))
			})
		}
	}
}

func everyAgent(t *testing.T, p furl.Policy) {
	s := newSession(t)
	s.say(furl.RoleSystem, "be brief")
	s.say(furl.RoleUser, text(30))
	reductions := 0
	for i := range 40 {
		s.thinkingStep(i, text(20+i%5*50))
		if i%4 == 3 {
			s.say(furl.RoleUser, text(12))
		}
		b := s.budget(2000)
		b.Model.Thinking.Removable = true
		plan := s.plan(p, b)
		reductions += len(plan.Reductions) - plan.Backstops
		if after := s.view().Tokens; plan.After != after || after > 2000 || plan.Impossible {
			t.Fatalf("request %d: the plan says %d tokens, the view has %d; %+v", i, plan.After, after, plan.Steps)
		}
		for _, c := range codecs {
			if err := accepted(c.codec, c.body, s.view()); err != nil {
				t.Fatalf("request %d: %s refuses: %v", i, c.codec.Format(), err)
			}
		}
	}
	if reductions == 0 {
		t.Error("nothing was ever reduced")
	}
	var seqs []furl.Seq
	for red := range s.log.State().Reductions() {
		if red.Reason == "" || red.Before <= red.After {
			t.Errorf("%s: reason %q, %d to %d tokens", red.Stage, red.Reason, red.Before, red.After)
		}
		seqs = append(seqs, red.Seq)
	}
	for _, seq := range seqs {
		s.add(&furl.Restoration{Of: seq})
	}
	v := s.view()
	for i := range v.Messages {
		if !v.Messages[i].AsRecorded() {
			t.Errorf("message %d is not as recorded", i)
		}
	}
	if len(v.Messages) != s.log.State().Len() {
		t.Errorf("%d of %d messages are shown", len(v.Messages), s.log.State().Len())
	}
}

// thinkingStep adds a step with thinking. Every third one reads a file again.
func (s *session) thinkingStep(i int, result string) {
	id := fmt.Sprintf("c%d", i)
	s.add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{
		{Kind: furl.KindThinking, Text: text(6), Signature: 20},
		{Kind: furl.KindCall, ID: id, Name: "Read", Args: fmt.Appendf(nil, `{"file_path":"f%d.go","why":%q}`, i%3, text(8))},
	}})
	s.add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: id, Text: result}}})
}

// The sizes at which agents act, and that they do not act below.
func TestAgentTriggers(t *testing.T) {
	tests := []struct {
		name           string
		window, output int
		acts           int // 0: never
	}{
		{"claude-code", 200_000, 64_000, 167_000}, // as the recordings have it: 167,448 and more
		{"claude-code", 1_000_000, 64_000, 967_000},
		{"claude-code", 200_000, 8_000, 179_000},
		{"claude-code", 32_000, 64_000, 0},
		{"codex", 272_000, 128_000, 244_800},
		{"codex", 400_000, 128_000, 360_000},
		{"pi", 200_000, 64_000, 183_617}, // above the window less 16,384
		{"pi", 16_000, 4_000, 0},
		{"cline", 200_000, 64_000, 160_000},
		{"cline", 128_000, 16_000, 98_000},
		{"cline", 64_000, 8_000, 37_000},
		{"cline", 1_000_000, 64_000, 960_000},
		{"cline", 100_000, 8_000, 80_000},
		{"clear-tool-uses", 200_000, 64_000, 100_001}, // above 100,000
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s, window %d", tt.name, tt.window), func(t *testing.T) {
			for _, size := range []int{tt.acts - 1, tt.acts} {
				s := newSession(t)
				s.say(furl.RoleUser, "go "+text(100))
				for i := range 12 {
					s.thinkingStep(i, text(100))
				}
				s.say(furl.RoleAssistant, "Done.") // the last request has all of it
				b := s.budget(tt.window)
				b.Model.MaxOutput = tt.output
				if tt.acts == 0 {
					size = tt.window
				}
				// A word is as many tokens as make up the size.
				b.Fixed = size - b.Size
				b.Size = size
				p := must(t, tt.name, Settings{Summarizer: short("x")}).(*Pipeline)
				if acts, _ := Sizes(p, &b); acts != tt.acts {
					t.Errorf("acts at %d, want %d", acts, tt.acts)
				}
				p.NoBackstop = true
				plan, err := p.Plan(context.Background(), s.log.State(), b)
				if err != nil {
					t.Fatal(err)
				}
				// A summary of so little is not worth it: that it was considered
				// is enough.
				if acted, want := len(plan.Steps) > 0, tt.acts > 0 && size >= tt.acts; acted != want {
					t.Errorf("at %d tokens acted: %v, want %v (%+v)", size, acted, want, plan.Steps)
				}
			}
		})
	}
}

func TestClearThinking(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "first")
	s.thinkingStep(0, "a")
	s.thinkingStep(1, "b")
	s.say(furl.RoleUser, "second")
	s.thinkingStep(2, "c")
	s.say(furl.RoleUser, "third")
	thoughts := func() (at []int) {
		v := s.view()
		for i := range v.Messages {
			for j := range v.Messages[i].Blocks {
				if v.Messages[i].Blocks[j].Block.Kind == furl.KindThinking {
					at = append(at, v.Messages[i].Index)
				}
			}
		}
		return at
	}
	b := s.budget(0)
	for _, thinking := range []furl.Thinking{{}, {Removable: true, LastOnly: true}} {
		b.Model.Thinking = thinking
		if plan := s.plan(must(t, "clear-thinking"), b); len(plan.Reductions) > 0 {
			t.Errorf("%+v: cleared", thinking)
		}
	}
	b.Model.Thinking = furl.Thinking{Removable: true}
	s.plan(must(t, "clear-thinking", `{"keep": 2}`), b)
	if got, want := thoughts(), []int{1, 3, 6}; !slices.Equal(got, want) {
		t.Errorf("thinking in %v, want %v: two turns have it", got, want)
	}
	// The message that was just sent has no thinking yet, so the turn before keeps it.
	s.plan(must(t, "clear-thinking"), b)
	if got, want := thoughts(), []int{6}; !slices.Equal(got, want) {
		t.Errorf("thinking in %v, want %v", got, want)
	}
	s.thinkingStep(3, "d")
	s.plan(must(t, "clear-thinking"), b)
	if got, want := thoughts(), []int{9}; !slices.Equal(got, want) {
		t.Errorf("thinking in %v, want %v", got, want)
	}
}

func TestClearToolUsesByCount(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	for range 5 {
		s.step("read", text(30))
	}
	p := must(t, "clear-tool-uses", `{"trigger_tool_uses": 5, "keep": 0, "clear_inputs_of": ["write"]}`)
	if plan := s.plan(p, s.budget(0)); len(plan.Reductions) > 0 {
		t.Error("cleared at the number of uses, want above it")
	}
	s.step("write", text(30))
	if plan := s.plan(p, s.budget(0)); len(plan.Reductions) != 1 || plan.Steps[0].Hidden != 5 {
		t.Errorf("cleared %+v, want all but the newest step", plan.Steps)
	}
}

// piBegins is how pi's summaries begin.
const piBegins = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"

// An edit of a summary keeps the words that the agent puts around it, and so does a
// summary that was prepared.
func TestFramedSummary(t *testing.T) {
	s := long(t, 8)
	model := short("the first half")
	p := must(t, "pi", `{"keep_recent_tokens": 50}`, Settings{})
	b := s.budget(s.budget(0).Size)
	stage, acts := SummaryStage(p, &b)
	if stage == nil || acts != 0 {
		t.Fatalf("no stage to prepare by, acts at %v; want one, in a window without a trigger", acts)
	}
	if _, acts := SummaryStage(p, &furl.Budget{Window: 100_000}); acts < 0.83 || acts > 0.84 {
		t.Errorf("acts at %v of a window of 100,000, want 83,617", acts)
	}
	stage.Summarizer = model
	red, err := stage.Prepare(context.Background(), s.log.State(), b)
	if err != nil {
		t.Fatal(err)
	}
	s.step("read", text(40))
	if red, err = Commit(s.log.State(), s.budget(0), red); err != nil {
		t.Fatal(err)
	}
	seq := s.add(red).Seq
	if got, want := markText(s), piBegins+"the first half\n</summary>"; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
	edited, err := Edit(s.log.State(), s.budget(0), seq, "the first half, corrected")
	if err != nil {
		t.Fatal(err)
	}
	s.add(edited)
	if got, want := markText(s), piBegins+"the first half, corrected\n</summary>"; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
}

// markText is the text of the first marker in the view.
func markText(s *session) string {
	v := s.view()
	for i := range v.Messages {
		if v.Messages[i].Index < 0 {
			return v.Messages[i].Msg.Blocks[0].Text
		}
	}
	return ""
}

// Codex keeps what it says about the environment, however long it is.
func TestCodexEnvironment(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "<environment_context>"+text(100)+"</environment_context>")
	s.say(furl.RoleUser, text(100))
	s.step("shell", text(100))
	s.say(furl.RoleUser, "short")
	s.step("shell", text(10))
	s.say(furl.RoleUser, "newest")
	b := s.budget(s.budget(0).Size)
	plan := s.plan(must(t, "codex", `{"user_tokens": 10}`, Settings{Summarizer: short("x")}), b)
	if len(plan.Reductions) != 1 {
		t.Fatalf("%+v", plan.Steps)
	}
	// The long message of the user is the second, the short one the fifth.
	if got, want := s.shown(), "1 mark 5 6 7 8"; got != want {
		t.Errorf("shown %s, want %s", got, want)
	}
}
