package agents

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// Codex are the options of the preset codex, which compacts like Codex: at 90% of the
// window a summary replaces everything but the messages of the user, of which the
// newest 20,000 tokens stay.
type Codex struct {
	// Threshold is the share of the window at which it compacts. If zero, 0.9.
	Threshold float64 `json:"context_threshold,omitempty"`
	// Limit, if not zero, is the size in tokens at which it compacts if that is
	// less (model_auto_compact_token_limit).
	Limit int `json:"limit,omitempty"`
	// UserTokens is how many tokens of messages of the user stay. If zero, 20,000.
	// Sizes are a quarter of the bytes.
	UserTokens int `json:"user_tokens,omitempty"`
	// SummaryRequest asks the model for a summary. If empty,
	// DefaultSummaryRequest.
	SummaryRequest string `json:"summary_request,omitempty"`
}

func (o Codex) Validate() error {
	switch {
	case !(o.Threshold >= 0): // also for NaN
		return fmt.Errorf("invalid context_threshold %v: expected 0 or more", o.Threshold)
	case o.Threshold > 1:
		return fmt.Errorf("invalid context_threshold %v: expected at most 1", o.Threshold)
	}
	return validate(option{"limit", o.Limit}, option{"user_tokens", o.UserTokens})
}

func (o Codex) Policy(name string, s policy.Settings) furl.Policy {
	o.Threshold = cmp.Or(s.Threshold, o.Threshold, 0.9)
	return summarizingAt(name, &policy.Compact{Request: o.SummaryRequest, Pick: o.pick, Frame: handedOver}, o.limit)
}

// share is a share of a window in tokens, rounded down.
func share(window int, of float64) int {
	return int(float64(window)*of + 1e-9) // 0.29×100 is 28.999…
}

func (o Codex) limit(b *furl.Budget) int {
	limit := share(b.Window, o.Threshold)
	if o.Limit > 0 && (limit == 0 || o.Limit < limit) {
		limit = o.Limit
	}
	return limit
}

// pick returns all units but the newest messages of the user, and what the agent tells
// about its environment.
func (o Codex) pick(v *furl.View, _ furl.Budget) []furl.Unit {
	left := cmp.Or(o.UserTokens, 20_000)
	stay := make(map[int]bool)
	for i := len(v.Units) - 1; i >= 0; i-- {
		u := &v.Units[i]
		if u.Kind == furl.UnitSystem || u.Kind == furl.UnitUser && isEnvironment(u) {
			stay[i] = true
		}
		if u.Kind != furl.UnitUser || stay[i] {
			continue
		}
		n := 0
		for j := range u.Blocks {
			n += (len(u.Blocks[j].Words()) + 3) / 4
		}
		if n > left {
			left = 0 // the rest is too old
		}
		if left > 0 {
			left -= n
			stay[i] = true
		}
	}
	var picked []furl.Unit
	for i := range v.Units {
		if !stay[i] {
			picked = append(picked, v.Units[i])
		}
	}
	return picked
}

// isEnvironment reports whether a message of the user is what Codex says about the
// project and the machine. It says that again after a compaction.
func isEnvironment(u *furl.Unit) bool {
	words := ""
	if len(u.Blocks) > 0 {
		words = strings.TrimSpace(u.Blocks[0].Words())
	}
	for _, begin := range [...]string{"<environment_context", "<ENVIRONMENT_CONTEXT", "<user_instructions", "# AGENTS.md instructions"} {
		if strings.HasPrefix(words, begin) {
			return true
		}
	}
	return false
}

// handedOver is what Codex shows in place of the conversation.
func handedOver(_ *furl.View, _ []furl.Unit, summary string) string { return codexBegin + summary }

const codexBegin = "Another language model started to solve this problem and produced a summary of its thinking process. You also have access to the state of the tools that were used by that language model. Use this to build on the work that has already been done and avoid duplicating work. Here is the summary produced by the other language model, use the information in this summary to assist with your own analysis:\n"
