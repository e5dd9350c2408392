package policy

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
)

// stageClip is the name of the stage Clip. Mask may replace its results again.
const stageClip = "clip"

// Clip shows only the head and the tail of long tool results, with a note of how
// much is missing between them (A3). Results of the newest step, of a step with
// an open call, and results that are kept, pinned or already replaced stay. In a
// result with images, the note names the images; if its text alone is not too
// long, the result stays.
type Clip struct {
	// MaxTokens is the size, in the provider's tokens, above which a result is
	// clipped. If zero, 2000.
	MaxTokens int `json:"max_tokens,omitempty"`
	// WindowShare lowers MaxTokens in a small window: to this share of the window, at
	// least 1500. If zero, or if the window is unknown, it does not.
	WindowShare float64 `json:"window_share,omitempty"`
	// Newest clips results of the newest step too, before the model has
	// seen them.
	Newest bool `json:"newest,omitempty"`
	// Keep, if not nil, reports which other results stay.
	Keep func(r *Result) bool `json:"-"`
}

// minClip is the size to which WindowShare lowers MaxTokens at most.
const minClip = 1500

func (c *Clip) validate() error {
	return validate(number("max_tokens", c.MaxTokens), shareOption("window_share", c.WindowShare))
}

// limit is the size, in the provider's tokens, above which a result is clipped.
func (c *Clip) limit(b furl.Budget) int {
	most := cmp.Or(c.MaxTokens, 2000)
	if c.WindowShare > 0 && b.Window > 0 {
		most = min(most, max(minClip, part(b.Window, c.WindowShare)))
	}
	return most
}

// Name is "clip".
func (c *Clip) Name() string { return stageClip }

// Reduce clips all results that are too long, in one reduction.
func (c *Clip) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	return c.hide(c.pick(v, b), b)
}

// pick returns the results that are too long, oldest first.
func (c *Clip) pick(v *furl.View, b furl.Budget) []Result {
	most := unscaled(b, c.limit(b))
	var picked []Result
	eachResult(v, b, func(r *Result) bool {
		sb := r.Block
		switch {
		case r.Unit.Open, r.Unit.Newest && !c.Newest:
		case sb.By != 0, sb.Hold >= furl.Keep, sb.Tokens <= most:
		case len(sb.Block.Media) > 0 && count(b.Counter, sb.Block.Text) <= most:
		case c.Keep != nil && c.Keep(r):
		default:
			picked = append(picked, *r)
		}
		return true
	})
	return picked
}

// hide clips the picked results.
func (c *Clip) hide(picked []Result, b furl.Budget) (*furl.Reduction, error) {
	most := c.limit(b)
	red := &furl.Reduction{Stage: c.Name(), Reason: fmt.Sprintf("tool results of more than %d tokens", most)}
	for i := range picked {
		r := &picked[i]
		text := clipped(r.Block.Block.Text, unscaled(b, most), b.Counter)
		red.Items = r.replace(red.Items, text+mediaNote(r.Block.Block.Media), b)
	}
	if len(red.Items) == 0 {
		return nil, Nothing
	}
	return red, nil
}

// unscaled converts the provider's tokens to counted tokens.
func unscaled(b furl.Budget, tokens int) int {
	if b.Scale == 0 {
		return tokens
	}
	return int(float64(tokens) / b.Scale)
}

// count is the size of a text alone.
func count(c furl.Counter, text string) int {
	return furl.InPlace(&furl.Block{}, text, c).Tokens - envelope
}

// isClip reports whether a block was clipped.
func isClip(v *furl.View, sb *furl.ShownBlock) bool {
	red, ok := v.State.Reduction(sb.By)
	return ok && red.Stage == stageClip
}

// clipped returns the head and the tail of a text, about the same share of each,
// in at most so many tokens including the note and the envelope. A text that is
// not longer stays.
func clipped(text string, tokens int, c furl.Counter) string {
	room := tokens - envelope - count(c, clipNote(len(text), len(text)))
	head := headOf(text, room/2, c)
	tail := tailOf(text, room/2, c)
	if len(head)+len(tail) >= len(text) {
		return text
	}
	out := head
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	all := utf8.RuneCountInString(text)
	out += clipNote(all-utf8.RuneCountInString(head)-utf8.RuneCountInString(tail), all)
	if tail != "" && !strings.HasPrefix(tail, "\n") {
		out += "\n"
	}
	return out + tail
}

func clipNote(missing, all int) string {
	return fmt.Sprintf("[content clipped - %d of %d characters left out here]", missing, all)
}

// headOf is a start of the text of at most so many tokens, up to the end of a
// line or a word if one is near.
func headOf(text string, tokens int, c furl.Counter) string {
	head := text[:longest(len(text), tokens, func(n int) int { return runeStart(text, n) }, func(n int) int { return count(c, text[:n]) })]
	if len(head) == len(text) {
		return head
	}
	if i := strings.LastIndexByte(head, '\n'); i >= len(head)*3/4 {
		return head[:i+1]
	}
	if i := strings.LastIndexByte(head, ' '); i >= len(head)*3/4 {
		return head[:i]
	}
	return head
}

// tailOf is an end of the text of at most so many tokens, from the start of a
// line or a word if one is near.
func tailOf(text string, tokens int, c furl.Counter) string {
	tail := text[len(text)-longest(len(text), tokens, func(n int) int { return len(text) - runeStart(text, len(text)-n) }, func(n int) int { return count(c, text[len(text)-n:]) }):]
	if len(tail) == len(text) {
		return tail
	}
	for _, start := range [...]byte{'\n', ' '} {
		if i := strings.IndexByte(tail, start); i >= 0 && i < len(tail)/4 {
			return tail[i+1:]
		}
	}
	return tail
}

// longest is about the largest number of bytes, of at most all, whose count is
// within the limit. It counts only a few times, and never much more than the
// limit, because a text may be very long. fit moves a number so that no character
// is split.
func longest(all, limit int, fit, count func(n int) int) int {
	best, n := 0, fit(min(all, 4*max(limit, 0)))
	for range 8 {
		if n <= best || n > all {
			break
		}
		got := count(n)
		if got > limit {
			n = fit(max(best, min(n-1, n*limit/got*19/20)))
			continue
		}
		best = n
		if n == all || got*10 >= limit*9 {
			break
		}
		n = fit(min(all, max(n+1, min(4*n, n*limit/max(got, 1)))))
	}
	return best
}

// runeStart moves an offset back to the start of a character.
func runeStart(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
