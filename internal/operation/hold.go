package operation

import "github.com/furlhq/furl"

// HoldInput is the input of pin, unpin and prefer.
type HoldInput struct {
	Blocks
	preview
}

type held struct {
	Handles []string `json:"handles"`
}

var pin = define(Operation{
	Name: "pin", Short: "Pin messages or results", Audit: Change, Optional: true,
	Long: `Pins messages or results: no policy hides them, not even when the window is full.
A handle names one block. The record number of a message names all of its blocks.`,
	Example: []string{"latest furl:12", "01jd5 12 14", "01jd5 40-120"},
}, func(c *Call, in *HoldInput) (*Result, error) {
	return setHold(c, in, furl.Pin, func(r *Result, what, it string, seen Seen) {
		r.Title, r.Did = "Pin "+what, "Pinned "+what
		r.Effects = []string{"No policy hides " + it + ", not even when the window is full."}
		if seen.Hidden {
			r.Notes = []string{"What is hidden now stays hidden. Expand " + it + " to show " + it + " to the model."}
		}
		if seen.Weakest == furl.Pin {
			r.Nothing = "It is pinned already."
		}
	})
})

var prefer = define(Operation{
	Name: "prefer", Short: "Prefer to keep messages or results", Audit: Change, Optional: true,
	Long: `Makes policies hide messages or results only if the context does not fit otherwise.
A pin is stronger: it keeps them in any case.`,
	Example: []string{"latest furl:12", "01jd5 40-120"},
}, func(c *Call, in *HoldInput) (*Result, error) {
	return setHold(c, in, furl.Keep, func(r *Result, what, it string, seen Seen) {
		r.Title, r.Did = "Prefer to keep "+what, "Preferred "+what
		r.Effects = []string{"Policies hide " + it + " only if the context does not fit otherwise."}
		switch {
		case seen.Strongest == furl.Pin:
			r.Notes = []string{"It was pinned, which is stronger."}
		case seen.Weakest == furl.Keep:
			r.Nothing = "Policies already prefer to keep it."
		}
	})
})

var unpin = define(Operation{
	Name: "unpin", Aliases: []string{"release"}, Short: "Unpin messages or results", Audit: Change, Optional: true,
	Long:    `Lets policies hide messages or results that were pinned, preferred or restored.`,
	Example: []string{"latest furl:12", "01jd5 12 14"},
}, func(c *Call, in *HoldInput) (*Result, error) {
	return setHold(c, in, furl.Release, func(r *Result, what, it string, seen Seen) {
		r.Title, r.Did = "Unpin "+what, "Unpinned "+what
		r.Effects = []string{"Policies may hide " + it + " like everything else."}
		if seen.Strongest == 0 && !seen.Marked { // a marker hides whether it is
			r.Nothing = "It is not pinned."
		}
	})
})

// setHold sets a hold on blocks. say sets the words of the result.
func setHold(c *Call, in *HoldInput, hold furl.Hold, say func(r *Result, what, it string, seen Seen)) (*Result, error) {
	spans, err := in.spans(c)
	if err != nil {
		return nil, err
	}
	seen := Look(c.Session, spans)
	r := &Result{Value: held{in.Handles}}
	if say(r, in.what(c), in.pronoun(), seen); r.Nothing != "" || c.Preview {
		return r, nil
	}
	if seen.Strongest == seen.Weakest && (seen.Strongest != 0 || hold != furl.Release) { // else no one operation undoes it
		r.Undo = &Undo{holdName(seen.Strongest), &HoldInput{Blocks: in.Blocks}}
	}
	return r, c.Session.Hold(c, hold, spans...)
}

// holdName is the operation that sets a hold.
func holdName(h furl.Hold) string {
	switch h {
	case furl.Pin:
		return "pin"
	case furl.Keep:
		return "prefer"
	}
	return "unpin"
}
