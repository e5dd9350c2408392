package policy_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/demo"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

// ForgetTool is a stage of your own: it masks all old results of one tool, whose
// output is long and easy to get again. A stage looks at a view and returns
// which blocks should show something else. The pipeline checks that the request
// stays valid and gets smaller; furl can undo every reduction.
type ForgetTool struct {
	Tool string `json:"tool"`
	Keep int    `json:"keep"` // how many of the newest steps stay
}

func (ForgetTool) Name() string { return "forget-tool" }

func (f ForgetTool) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	red := &furl.Reduction{Stage: f.Name(), Reason: "old results of " + f.Tool}
	for _, u := range v.Units {
		if u.Kind != furl.UnitStep || u.Protected || v.Steps-u.Step < f.Keep {
			continue
		}
		mine := map[string]bool{} // calls of the tool in this step
		for _, sb := range u.Blocks {
			switch sb.Block.Kind {
			case furl.KindCall:
				mine[sb.Block.ID] = sb.Block.Name == f.Tool
			case furl.KindResult:
				if !mine[sb.Block.ID] || sb.By != 0 || sb.Hold == furl.Keep {
					continue // another tool's, hidden already, or kept
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

// A pipeline makes a policy of a stage of your own. Here a replay compares it
// with sending everything, on a generated session; transcript.ReadFile reads
// yours.
func Example_stageOfYourOwn() {
	forgetful := &policy.Pipeline{Label: "forgetful", Stages: []policy.Stage{ForgetTool{Tool: "Bash", Keep: 2}}}
	candidates, err := replay.Candidates(nil, "none")
	if err != nil {
		fmt.Println(err)
		return
	}
	recordings := slices.Values([]*transcript.Recording{demo.Recording()})
	report, err := replay.Run(context.Background(), recordings, replay.Options{
		Candidates: append(candidates, replay.Fixed(forgetful)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	none, own := report.Totals[0], report.Totals[1]
	fmt.Println(own.Policy, "hid something:", own.Reductions > 0)
	fmt.Println("sent less:", own.TokensSent < none.TokensSent)
	fmt.Println("requests the provider would refuse:", own.InvalidRequests)
	// Output:
	// forgetful hid something: true
	// sent less: true
	// requests the provider would refuse: 0
}

// A Set makes the stage available to configuration, by its name. A session or a
// gateway takes the set as session.Options.Policies. A program that calls
// command.Main with it reads the same from furl's configuration file.
func Example_stageInConfiguration() {
	policies := policy.NewSet()
	policies.AddStage(ForgetTool{Keep: 2})
	err := policies.Configure("forgetful", []byte(`{
		"context_threshold": 0.8,
		"stages": [{"forget-tool": {"tool": "Bash"}}, "clip"]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := policies.Policy("forgetful", policy.Settings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Name())
	fmt.Println(policies.Configure("forgetful", []byte(`{"stages": [{"forget-tool": {"tol": "Bash"}}]}`)))
	// Output:
	// forgetful
	// unknown key "tol" for stage "forget-tool": expected one of keep, tool
}

// Each preset has a type with its options. Policies that are not mentioned keep
// their defaults.
func ExampleNewSet() {
	policies := policy.NewSet(
		policy.Rolling{Target: 0.7, KeepMessages: 20},
		policy.Compaction{SummaryOptions: policy.SummaryOptions{TailTokens: 4000}},
	)
	p, err := policies.Policy("rolling", policy.Settings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Name())
	_, err = policies.Policy("roling", policy.Settings{})
	fmt.Println(err)
	// Output:
	// rolling
	// unknown policy "roling": choose one of none, tool-age, sliding-window, compaction, rolling, graduated, rolling-mask-10, rolling-mask-5, clear-100k, auto, auto:frugal, auto:faithful
}
