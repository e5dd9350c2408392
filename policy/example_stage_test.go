package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// ForgetTool is a stage of one's own: it masks all old results of one tool,
// which is known to be chatty and quick to ask again. A stage looks at a view
// and says which blocks should show something else; that the request stays
// valid, that all of it can be taken back, and that it is recorded only if it
// helps, is seen to elsewhere.
type ForgetTool struct {
	Tool string
	Keep int // steps that stay as they are
}

func (f ForgetTool) Name() string { return "forget-" + f.Tool }

func (f ForgetTool) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	red := &furl.Reduction{Stage: f.Name(), Reason: "old results of " + f.Tool}
	for _, u := range v.Units {
		if u.Kind != furl.UnitStep || u.Protected() || v.State().Steps()-u.Step < f.Keep {
			continue
		}
		mine := map[string]bool{} // calls of the tool in this step
		for _, sb := range u.Blocks {
			switch sb.Block.Kind {
			case furl.KindCall:
				mine[sb.Block.ID] = sb.Block.Name == f.Tool
			case furl.KindResult:
				if !mine[sb.Block.ID] || sb.By != 0 || sb.Hold == furl.Keep {
					continue // another tool's, hidden already, or wanted
				}
				red.Items = append(red.Items, furl.Item{
					Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}},
					Show:  furl.InPlace(sb.Block, "[old "+f.Tool+" output]", b.Counter),
				})
			}
		}
	}
	if len(red.Items) == 0 {
		return nil, policy.Nothing
	}
	return red, nil
}

// A stage of one's own, in one file, made a policy by putting it in a
// pipeline. Replay takes it as it takes a preset.
func Example_stageOfOnesOwn() {
	p := &policy.Pipeline{Label: "forgetful", Stages: []policy.Stage{ForgetTool{Tool: "status", Keep: 1}}}

	log := sample()
	plan, err := p.Plan(context.Background(), log.State(), furl.Budget{Counter: wordCounter{}, Size: 500})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range plan.Steps {
		fmt.Printf("%s hid %d results and %d tokens\n", step.Stage, step.Hidden, step.Before-step.After)
	}
	for _, sh := range plan.View.Messages {
		for _, b := range sh.Blocks {
			if b.Block.Kind == furl.KindResult {
				fmt.Println(b.Words())
			}
		}
	}
	// Output:
	// forget-status hid 2 results and 52 tokens
	// [old status output]
	// package main
	// [old status output]
	// all quiet all quiet all quiet all quiet all quiet all quiet all quiet all quiet all quiet all quiet
}

// wordCounter counts a token a word. Package token counts as models do.
type wordCounter struct{}

func (wordCounter) Count(text string) int { return len(strings.Fields(text)) }

// sample is a short session in which a tool was asked often.
func sample() *furl.Log {
	log := furl.NewLog()
	add := func(m *furl.Message) {
		m.Measure(wordCounter{})
		m.Seal()
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, m); err != nil {
			panic(err) // a mistake in the example
		}
	}
	add(furl.TextMessage(furl.RoleUser, "Watch the build and fix what breaks."))
	for i, call := range []struct{ tool, result string }{
		{"status", strings.Repeat("building ", 29)},
		{"read", "package main"},
		{"status", strings.Repeat("building ", 29)},
		{"status", strings.TrimSpace(strings.Repeat("all quiet ", 10))},
	} {
		id := fmt.Sprint("call_", i)
		add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{
			{Kind: furl.KindCall, ID: id, Name: call.tool, Args: json.RawMessage(`{}`)},
		}})
		add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{
			{Kind: furl.KindResult, ID: id, Text: call.result},
		}})
	}
	return log
}
