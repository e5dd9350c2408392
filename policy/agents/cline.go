package agents

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// Cline are the options of the preset cline, which does what Cline's ContextManager
// does without auto-condense: near the end of the window it replaces all reads of a
// file but the last one. If that does not free 30% of the characters, it also hides
// half of the messages after the first two.
type Cline struct {
	// MaxAllowed is the size of the last request, in tokens, at which it acts. If
	// zero, it depends on the window: 160,000 of 200,000, 98,000 of 128,000,
	// 37,000 of 64,000, else the larger of the window less 40,000 and 80% of it.
	MaxAllowed int `json:"max_allowed,omitempty"`
}

func (o Cline) Validate() error { return validate(option{"max_allowed", o.MaxAllowed}) }

func (o Cline) Policy(name string, _ policy.Settings) furl.Policy {
	return &policy.Pipeline{Label: name, Acts: o.limit, Stages: []policy.Stage{&clineStage{o}}}
}

func (o Cline) limit(b *furl.Budget) int {
	switch {
	case o.MaxAllowed > 0:
		return o.MaxAllowed
	case b.Window == 64_000:
		return b.Window - 27_000
	case b.Window == 128_000:
		return b.Window - 30_000
	}
	return max(b.Window-40_000, share(b.Window, 0.8))
}

// The texts of Cline.
const (
	textReadAgain = "[[NOTE] This file read has been removed to save space in the context window. Refer to the latest file read for the most up to date version of this file.]"
	textTruncated = "[NOTE] Some previous conversation history with the user has been removed to maintain optimal context window length. The initial user task has been retained for continuity, while intermediate conversation history has been removed. Keep this in mind as you continue assisting the user. Pay special attention to the user's latest messages."
)

// enoughSaved is the share of the characters that removed reads must free, so that no
// messages are hidden.
const enoughSaved = 0.3

// clineStage is the stage of that preset.
type clineStage struct{ o Cline }

func (*clineStage) Name() string { return "truncate" }

func (c *clineStage) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	limit, last := c.o.limit(&b), lastRequest(v, b)
	if !b.Force && (limit <= 0 || last < limit) {
		return nil, policy.Nothing
	}
	red := &furl.Reduction{Stage: c.Name(), Reason: "reads of files that were read again later"}
	var saved int
	red.Items, saved = replaceReads(ctx, v, b, nil)
	if float64(saved) >= enoughSaved*float64(policy.Chars(v)) {
		return red, nil
	}
	run := c.old(v, last/2 > limit)
	if slices.ContainsFunc(run, func(u furl.Unit) bool { return u.Kind != furl.UnitMark }) {
		red.Reason = "old messages, and reads of files that were read again later"
		red.Items, _ = replaceReads(ctx, v, b, run)
		red.Items = append(red.Items, policy.Marker(v, b, run, textTruncated))
	}
	if len(red.Items) == 0 {
		return nil, policy.Nothing
	}
	return red, nil
}

// replaceReads replaces reads of files that were read again later by a note, except
// those in the given units, and counts the characters that this saves.
func replaceReads(ctx context.Context, v *furl.View, b furl.Budget, except []furl.Unit) (items []furl.Item, saved int) {
	last := make(map[string]furl.Pos) // the last read of each file
	chars := make(map[furl.Pos]int)
	for i := range v.Units {
		u := &v.Units[i]
		for j := range u.Blocks {
			sb := &u.Blocks[j]
			if u.Kind == furl.UnitStep && sb.Block.IsResult() && !sb.Block.Error {
				last[readPath((&policy.Result{Unit: u, Block: sb}).Call())] = sb.Pos
			}
		}
	}
	mask := policy.Mask{
		Keep: func(r *policy.Result) bool {
			path := readPath(r.Call())
			return path == "" || r.Block.Block.Error || last[path] == r.Block.Pos ||
				slices.ContainsFunc(except, func(u furl.Unit) bool { return u.First == r.Unit.First })
		},
		Text: func(r *policy.Result) string {
			chars[r.Block.Pos] = r.Chars()
			return textReadAgain
		},
	}
	red, err := mask.Reduce(ctx, v, b)
	if err != nil {
		return nil, 0 // nothing to replace
	}
	for i := range red.Items {
		saved += chars[red.Items[i].Spans[0].First] - utf8.RuneCountInString(textReadAgain)
	}
	return red.Items, saved
}

// lastRequest is the size of the view up to the newest reply: what the last request
// and its reply took.
func lastRequest(v *furl.View, b furl.Budget) int {
	tokens, items := 0, 0
	for i := len(v.Units) - 1; i >= 0; i-- {
		u := &v.Units[i]
		if u.Kind != furl.UnitStep {
			tokens += u.Tokens
			continue
		}
		for j := range u.Blocks {
			if u.Blocks[j].Block.IsResult() {
				tokens, items = tokens+u.Blocks[j].Tokens, items+1
			}
		}
		break
	}
	return b.Size - b.Of(tokens, items)
}

// old returns the units to hide: half of the messages after the first two, or three
// quarters, up to a message of the assistant. The second message, the first of the
// assistant, is among them: Cline shows its note in the place of that message's text.
func (c *clineStage) old(v *furl.View, most bool) []furl.Unit {
	i := 0
	for i < len(v.Units) && v.Units[i].Preamble {
		i++
	}
	if i < len(v.Units) && v.Units[i].Kind == furl.UnitUser {
		i++
	}
	rest, n := v.Units[i:], 0
	noted := false // the first message of the assistant is hidden already
	for j := range rest {
		n += messagesIn(&rest[j])
		noted = noted || rest[j].Kind == furl.UnitMark
	}
	if !noted {
		n--
	}
	remove := n / 4 * 2
	if most {
		remove = n * 3 / 4 / 2 * 2
	}
	var run []furl.Unit
	taken, end := 0, 0
	for j := range rest {
		u := &rest[j]
		if taken >= remove {
			break
		}
		if mayGo(v, u) {
			run = append(run, *u)
			if u.Kind == furl.UnitStep || u.Kind == furl.UnitMark {
				end = len(run)
			}
		}
		taken += messagesIn(u)
		if !noted && u.Kind == furl.UnitStep {
			taken, noted = taken-1, true
		}
	}
	return run[:end] // the last hidden message is one of the assistant
}

// mayGo reports whether Cline's note may replace a unit.
func mayGo(v *furl.View, u *furl.Unit) bool {
	if u.Protected || u.Hold == furl.Keep {
		return false
	}
	red, ok := v.State.Reduction(u.By)
	return u.Kind != furl.UnitMark || !ok || red.Summary == nil
}
