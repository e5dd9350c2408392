package agents

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// Pi are the options of the preset pi, which compacts like pi: near the end of the
// window a summary replaces everything but the newest 20,000 tokens. Lists of the
// files that were read and changed follow the summary.
type Pi struct {
	// ReserveTokens is the number of tokens of the window at which it compacts,
	// counted from its end. If zero, 16,384.
	ReserveTokens int `json:"reserve_tokens,omitempty"`
	// KeepRecentTokens is how many of the newest tokens stay. If zero, 20,000.
	// Sizes are a quarter of the characters.
	KeepRecentTokens int `json:"keep_recent_tokens,omitempty"`
	// SummaryRequest asks the model for a summary. If empty,
	// DefaultSummaryRequest.
	SummaryRequest string `json:"summary_request,omitempty"`
}

func (o Pi) Validate() error {
	return validate(option{"reserve_tokens", o.ReserveTokens}, option{"keep_recent_tokens", o.KeepRecentTokens})
}

func (o Pi) Policy(name string, _ policy.Settings) furl.Policy {
	return summarizingAt(name, &policy.Compact{Request: o.SummaryRequest, Pick: o.pick, Frame: piSummary, Apart: piRequest}, o.limit)
}

func (o Pi) limit(b *furl.Budget) int {
	if limit := b.Window - cmp.Or(o.ReserveTokens, 16_384); limit > 0 {
		return limit + 1
	}
	return 0
}

// pick returns the units before the cut. The cut is before the first message of the
// user or the assistant after which at most about that many tokens follow; never
// before a result.
func (o Pi) pick(v *furl.View, _ furl.Budget) []furl.Unit {
	total := 0
	for i := len(v.Units) - 1; i >= 0; i-- {
		u := &v.Units[i]
		called, returned := piTokens(u)
		if u.Kind == furl.UnitMark {
			break // pi looks no further than to its last compaction
		}
		if total += returned; total >= cmp.Or(o.KeepRecentTokens, 20_000) {
			return slices.Clone(v.Units[:i+1])
		}
		if total += called; total >= cmp.Or(o.KeepRecentTokens, 20_000) {
			return slices.Clone(v.Units[:i])
		}
	}
	return nil
}

// piTokens is the size of a unit as pi estimates it: without and of its results.
func piTokens(u *furl.Unit) (called, returned int) {
	chars := 0
	for i := range u.Blocks {
		b := u.Blocks[i].Block
		switch {
		case b.IsResult():
			returned += quarter(u.Blocks[i].Words()) + 1200*len(b.Media)
		case b.Kind == furl.KindCall:
			chars += utf8.RuneCountInString(b.Name) + utf8.RuneCount(b.Args)
		default:
			chars += utf8.RuneCountInString(u.Blocks[i].Words())
		}
	}
	return (chars + 3) / 4, returned
}

// piRequest is the size of the conversation as pi sends it for a summary: as one text,
// with at most 2,000 characters of each result.
func piRequest(_ *furl.View, hidden []furl.Unit) int {
	n := 0
	for i := range hidden {
		for j := range hidden[i].Blocks {
			sb := &hidden[i].Blocks[j]
			tokens := sb.Tokens
			if chars := utf8.RuneCountInString(sb.Words()); sb.Block.IsResult() && chars > 2000 {
				tokens = tokens * 2000 / chars
			}
			n += tokens
		}
	}
	return n
}

// piSummary is what pi shows in place of old messages.
func piSummary(v *furl.View, hidden []furl.Unit, summary string) string {
	return piBegin + strings.ReplaceAll(summary, "</summary>", "(/summary)") + piFiles(v, hidden) + "\n</summary>"
}

const piBegin = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"

// piFiles lists the files that hidden calls read and changed.
func piFiles(v *furl.View, hidden []furl.Unit) string {
	read, changed := make(map[string]bool), make(map[string]bool)
	for _, sp := range v.Spans(hidden...) {
		first, ok1 := v.State.Find(sp.First.Msg)
		last, ok2 := v.State.Find(sp.Last.Msg)
		for i := first; ok1 && ok2 && i <= last; i++ {
			_, m := v.State.Message(i)
			for j := range m.Blocks {
				b := &m.Blocks[j]
				if b.Kind != furl.KindCall {
					continue
				}
				if path := readPath(b); path != "" {
					read[path] = true
				}
				for _, path := range policy.Written(b) {
					changed[path] = true
				}
			}
		}
	}
	maps.DeleteFunc(read, func(path string, _ bool) bool { return changed[path] })
	var text strings.Builder
	for _, list := range [...]struct {
		tag   string
		files map[string]bool
	}{{"read-files", read}, {"modified-files", changed}} {
		if files := slices.Sorted(maps.Keys(list.files)); len(files) > 0 {
			text.WriteString("\n\n<" + list.tag + ">\n" + strings.Join(files, "\n") + "\n</" + list.tag + ">")
		}
	}
	return text.String()
}
