package policy

import (
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// Some agents let the model write commands in its text and send their output back
// as words of the user: furl.Block.Observation.

// isWritten reports whether the calls of a step are in the assistant's text.
func isWritten(u *furl.Unit) bool {
	return slices.ContainsFunc(u.Blocks, func(sb furl.ShownBlock) bool { return sb.Block.Observation })
}

// commandTags are the elements in which OpenHands had its models write commands.
var commandTags = []string{"execute_bash", "execute_ipython", "execute_browse"}

// commandIn returns the first line of the command in an assistant's text: of the
// last block in a fence, as SWE-agent and mini-swe-agent demand it, in one of
// the commandTags, or after "Action:", as tau-bench demands it. It is "" if there
// is none.
func commandIn(texts []string) string {
	for _, text := range slices.Backward(texts) {
		for _, tag := range commandTags {
			if _, body, ok := strings.Cut(text, "<"+tag+">"); ok {
				return firstLine(body)
			}
		}
		if i := strings.LastIndex(text, "Action:\n"); i >= 0 {
			return firstLine(text[i+len("Action:\n"):])
		}
		end := strings.LastIndex(text, "```")
		if end < 0 {
			continue
		}
		start := strings.LastIndex(text[:end], "```")
		if start < 0 {
			continue
		}
		_, body, _ := strings.Cut(text[start:end], "\n")
		if line := firstLine(body); line != "" {
			return line
		}
	}
	return ""
}
