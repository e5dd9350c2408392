package replay_test

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

// Compare a custom policy with two presets: it masks old results of 500 tokens and
// more once the prompt has more than 60,000 tokens. transcript.Walk reads your
// recordings.
func ExampleFixed() {
	own := &policy.Pipeline{
		Label:   "late-and-large",
		Trigger: func(_ *furl.View, b furl.Budget) bool { return b.Size > 60_000 },
		Stages:  []policy.Stage{&policy.Mask{KeepResults: 8, MinTokens: 500}},
	}
	candidates, err := replay.Candidates(nil, "none", "rolling-mask-10")
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := replay.Run(context.Background(), slices.Values([]*transcript.Recording{demo.Recording()}), replay.Options{
		Candidates: append(candidates, replay.Fixed(own)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	none, rolling, mine := report.Totals[0], report.Totals[1], report.Totals[2]
	fmt.Println(mine.Policy, "is cheaper than sending everything:", *mine.CostRatio < *none.CostRatio)
	fmt.Println("breaks the cache less often than", rolling.Policy+":", mine.CacheBreaks < rolling.CacheBreaks)
	fmt.Println("keeps more of what is used again:", mine.ReferencesKept > rolling.ReferencesKept)
	fmt.Println("sends what the provider refuses:", mine.InvalidRequests > 0)
	// Output:
	// late-and-large is cheaper than sending everything: true
	// breaks the cache less often than rolling-mask-10: true
	// keeps more of what is used again: true
	// sends what the provider refuses: false
}

// Inspect shows one request as a policy would have sent it.
func ExampleInspect() {
	session := demo.Recording().Sessions[0]
	candidates, err := replay.Candidates(nil, "rolling-mask-5")
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := replay.Inspect(context.Background(), session, candidates[0], 0, 20, replay.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	masked := 0
	for i := range in.View.Messages {
		for _, b := range in.View.Messages[i].Blocks {
			if b.By != 0 {
				masked++
			}
		}
	}
	fmt.Printf("request %d: some results are masked: %t\n", in.Number, masked > 0)
	fmt.Println("the newest is not:", in.View.Messages[len(in.View.Messages)-1].AsRecorded())
	// Output:
	// request 20: some results are masked: true
	// the newest is not: true
}
