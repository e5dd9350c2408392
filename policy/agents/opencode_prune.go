package agents

import (
	"cmp"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// OpencodePrune are the options of the preset opencode-prune, which clears old tool
// results like opencode: when the agent has finished with a message of the user.
// Results of the last two messages of the user and the newest 40,000 tokens of older
// results stay.
type OpencodePrune struct {
	// Protect is how many tokens of results stay, and Minimum how many must be
	// cleared; otherwise nothing is. If zero, 40,000 and 20,000. Sizes are a
	// quarter of the characters.
	Protect int `json:"protect,omitempty"`
	Minimum int `json:"minimum,omitempty"`
	// ExcludeTools are the tools whose results stay. If nil, skill.
	ExcludeTools []string `json:"exclude_tools,omitempty"`
	// Text is the template of the placeholders, see [policy.Template]. If empty,
	// "[Old tool result content cleared]".
	Text string `json:"text,omitempty"`
}

func (o OpencodePrune) Validate() error {
	return validate(option{"protect", o.Protect}, option{"minimum", o.Minimum})
}

const textPruned = "[Old tool result content cleared]"

func (o OpencodePrune) Policy(name string, _ policy.Settings) furl.Policy {
	exclude := o.ExcludeTools
	if exclude == nil {
		exclude = skillTools
	}
	prune := &policy.Mask{
		Keep:   func(r *policy.Result) bool { return r.Block.Block.Error || isOneOf(r.Tool(), exclude...) },
		Text:   policy.Template(cmp.Or(o.Text, textPruned)),
		Reason: "old tool results, at the next message of the user",
	}
	prune.Choose = func(_ furl.Budget, may []policy.Result) []policy.Result {
		return o.choose(may, olderThanUsers(may[0].View, 3))
	}
	return &policy.Pipeline{Label: name, Stages: []policy.Stage{when{prune, afterUser}}}
}

// choose returns the results before a unit that are neither among the protected
// tokens nor too few.
func (o OpencodePrune) choose(may []policy.Result, before int) []policy.Result {
	total, pruned := 0, 0
	var out []policy.Result
	for i := len(may) - 1; i >= 0; i-- {
		r := &may[i]
		if r.Unit.First >= before {
			continue
		}
		n := (r.Chars() + 2) / 4 // rounded to the nearest
		if total += n; total > cmp.Or(o.Protect, 40_000) {
			pruned += n
			out = append(out, *r)
		}
	}
	if pruned <= cmp.Or(o.Minimum, 20_000) {
		return nil
	}
	slices.Reverse(out)
	return out
}

// olderThanUsers is the index in the view's messages of the message of the user with
// that number, counted from the newest; 0 if there are fewer.
func olderThanUsers(v *furl.View, n int) int {
	for i := len(v.Units) - 1; i >= 0; i-- {
		if v.Units[i].Kind != furl.UnitUser {
			continue
		}
		if n--; n == 0 {
			return v.Units[i].First
		}
	}
	return 0
}
