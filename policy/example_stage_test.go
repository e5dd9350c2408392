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

// A stage of one's own becomes a policy by putting it in a pipeline, and can
// then be tried on recorded sessions beside the presets. Here that is a
// generated one; transcript.ReadFile gives your own.
func Example_stageOfOnesOwn() {
	forgetful := &policy.Pipeline{Label: "forgetful", Stages: []policy.Stage{ForgetTool{Tool: "Bash", Keep: 2}}}
	candidates, err := replay.Presets("none")
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
