package agents

import (
	"cmp"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// ClaudeCode are the options of the preset claude-code, which compacts like Claude
// Code: a summary replaces the whole conversation when the window is nearly full.
// The reads of the files that were read last stay: Claude Code reads these files
// again.
type ClaudeCode struct {
	// ReserveTokens is the number of tokens of the window at which it compacts,
	// counted from its end. If zero, 33,000: 20,000 for the summary, or what the
	// model can write if that is less, and 13,000 more.
	ReserveTokens int `json:"reserve_tokens,omitempty"`
	// Files is how many of the files that were read last stay, and FileTokens the
	// longest of these results in tokens. If nil and zero, 5 and 5,000.
	Files      *int `json:"files,omitempty"`
	FileTokens int  `json:"file_tokens,omitempty"`
	// SummaryRequest asks the model for a summary. If empty,
	// DefaultSummaryRequest.
	SummaryRequest string `json:"summary_request,omitempty"`
}

func (o ClaudeCode) Validate() error {
	return validate(option{"reserve_tokens", o.ReserveTokens}, option{"files", orDefault(o.Files, 0)}, option{"file_tokens", o.FileTokens})
}

func (o ClaudeCode) Policy(name string, _ policy.Settings) furl.Policy {
	return summarizingAt(name, &policy.Compact{Request: o.SummaryRequest, Pick: o.pick, Frame: continued}, o.limit)
}

// limit is the size at which it compacts; 0: never, in a window that is too small.
func (o ClaudeCode) limit(b *furl.Budget) int {
	reserve := 33_000
	if m := b.Model.MaxOutput; m > 0 && m < 20_000 {
		reserve = 13_000 + m
	}
	return max(0, b.Window-cmp.Or(o.ReserveTokens, reserve))
}

// pick returns all units but those that read the newest files.
func (o ClaudeCode) pick(v *furl.View, b furl.Budget) []furl.Unit {
	stay := make(map[int]bool) // by the unit's first message
	seen := make(map[string]bool)
	files, most := orDefault(o.Files, 5), cmp.Or(o.FileTokens, 5000)
	for i := len(v.Units) - 1; i >= 0 && len(seen) < files; i-- {
		u := &v.Units[i]
		for j := len(u.Blocks) - 1; j >= 0 && len(seen) < files; j-- {
			sb := &u.Blocks[j]
			path := ""
			if sb.Block.IsResult() && sb.By == 0 && !sb.Block.Error {
				path = readPath((&policy.Result{Unit: u, Block: sb}).Call())
			}
			if path == "" || seen[path] {
				continue
			}
			seen[path] = true
			if b.Of(sb.Tokens, 0) <= most {
				stay[u.First] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(v.Units), func(u furl.Unit) bool { return u.Kind == furl.UnitStep && stay[u.First] })
}

// continued is what Claude Code shows in place of the conversation.
func continued(_ *furl.View, _ []furl.Unit, summary string) string {
	return claudeBegin + strings.ReplaceAll(summary, claudeEnd, "") + claudeEnd
}

const (
	claudeBegin = "This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion of the conversation.\n\n"
	claudeEnd   = "\nPlease continue the conversation from where we left it off without asking the user any further questions. Continue with the last task that you were asked to work on."
)
