package agents

import (
	"cmp"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// openHandsAmortized is one of the presets of OpenHands' condensers. They count events: a
// message of the user, a call, a result, a reply without calls.
const openHandsAmortized = "openhands-amortized"

// OpenHandsMasking are the options of the preset openhands-masking: before every
// request it masks results outside the newest events (ObservationMaskingCondenser).
type OpenHandsMasking struct {
	// AttentionWindow is how many of the newest events keep their results. If
	// zero, 100.
	AttentionWindow int `json:"attention_window,omitempty"`
	// Text is the template of the placeholders, see [policy.Template]. If empty,
	// "<MASKED>".
	Text string `json:"text,omitempty"`
}

func (o OpenHandsMasking) Validate() error {
	return validate(option{"attention_window", o.AttentionWindow})
}

func (o OpenHandsMasking) Policy(name string, _ policy.Settings) furl.Policy {
	mask := &policy.Mask{Text: policy.Template(cmp.Or(o.Text, "<MASKED>")), Reason: "results outside " + newest(cmp.Or(o.AttentionWindow, 100), "event")}
	mask.Choose = func(_ furl.Budget, may []policy.Result) []policy.Result {
		// The result's own event is that many events before the end.
		after := eventsAfter(may[0].View)
		n := 0
		for n < len(may) && after(&may[n]) >= cmp.Or(o.AttentionWindow, 100) {
			n++
		}
		return may[:n]
	}
	return &policy.Pipeline{Label: name, Stages: []policy.Stage{mask}}
}

// eventsAfter returns a function that counts the events after a result. Results must
// be given oldest first.
func eventsAfter(v *furl.View) func(r *policy.Result) int {
	left, at := 0, 0
	for i := range v.Units {
		left += events(&v.Units[i])
	}
	return func(r *policy.Result) int {
		for ; at < len(v.Units) && v.Units[at].First <= r.Unit.First && v.Units[at].Step != r.Unit.Step; at++ {
			left -= events(&v.Units[at])
		}
		newer, own := 0, false
		for i := range r.Unit.Blocks {
			sb := &r.Unit.Blocks[i]
			if own && sb.Block.IsResult() {
				newer++
			}
			own = own || sb.Pos == r.Block.Pos
		}
		return left - events(r.Unit) + newer
	}
}

// OpenHandsForgetting are the options of the presets openhands-recent
// (RecentEventsCondenser) and openhands-amortized (AmortizedForgettingCondenser).
// Once there are more than MaxSize events, the first one keeps the newest MaxSize
// before every request; the second forgets down to half of MaxSize. Nothing tells the
// model that messages are missing, apart from the few words that furl needs.
type OpenHandsForgetting struct {
	// KeepFirst is how many of the first events stay. If nil, 1.
	KeepFirst *int `json:"keep_first,omitempty"`
	// MaxSize is the largest number of events. If zero, 100.
	MaxSize int `json:"max_size,omitempty"`
}

func (o OpenHandsForgetting) Validate() error { return validateEvents(o.KeepFirst, o.MaxSize) }

func (o OpenHandsForgetting) Policy(name string, _ policy.Settings) furl.Policy {
	size := cmp.Or(o.MaxSize, 100)
	f := forgetting{first: orDefault(o.KeepFirst, 1), most: size, size: size}
	if name == openHandsAmortized {
		f.size = size / 2
	}
	return &policy.Pipeline{Label: name, Stages: []policy.Stage{when{&policy.Truncate{
		Pick:   f.pick,
		Reason: "all but the first and the newest events",
		Marker: textForgotten,
	}, f.due}}}
}

// textForgotten is the shortest marker: a marker cannot be empty.
const textForgotten = "[Context rolled]"

// OpenHandsSummary are the options of the preset openhands-summary: once there are
// more than MaxSize events, a summary replaces all but the first events and the
// newest, down to half of MaxSize (LLMSummarizingCondenser, as the agent of OpenHands
// uses it).
type OpenHandsSummary struct {
	// KeepFirst is how many of the first events stay, the instructions included.
	// If nil, 4.
	KeepFirst *int `json:"keep_first,omitempty"`
	// MaxSize is the largest number of events. If zero, 80.
	MaxSize int `json:"max_size,omitempty"`
	// SummaryRequest asks the model for a summary. If empty,
	// DefaultSummaryRequest.
	SummaryRequest string `json:"summary_request,omitempty"`
}

func (o OpenHandsSummary) Validate() error { return validateEvents(o.KeepFirst, o.MaxSize) }

func (o OpenHandsSummary) Policy(name string, _ policy.Settings) furl.Policy {
	size := cmp.Or(o.MaxSize, 80)
	f := forgetting{first: orDefault(o.KeepFirst, 4), most: size, size: size/2 - 1, system: true}
	summary := &policy.Compact{
		Request: o.SummaryRequest,
		Pick:    f.pick,
		Frame:   func(_ *furl.View, _ []furl.Unit, summary string) string { return summary },
		Apart:   asText,
	}
	return &policy.Pipeline{
		Label:   name,
		Trigger: f.due,
		Stages:  []policy.Stage{policy.FirstOf{summary, &policy.Extract{Pick: f.pick, MaxTokens: extractTokens}}},
	}
}

// asText is the size of units as one text.
func asText(_ *furl.View, hidden []furl.Unit) int {
	n := 0
	for i := range hidden {
		n += hidden[i].Tokens
	}
	return n
}

// openHandsHalf is the preset openhands-window: when the window is exceeded, it keeps
// the first message of the user and the newer half of the other events
// (ConversationWindowCondenser).
type openHandsHalf struct{}

func (openHandsHalf) Validate() error { return nil }

func (openHandsHalf) Policy(name string, _ policy.Settings) furl.Policy {
	pick := func(v *furl.View, _ furl.Budget) []furl.Unit {
		total := countEvents(v)
		f := forgetting{first: 1, most: total - 1, size: 1 + max(1, (total-1)/2)}
		return f.choose(v)
	}
	return &policy.Pipeline{Label: name, Stages: []policy.Stage{when{&policy.Truncate{
		Pick:   pick,
		Reason: "the older half of the events, since the window is exceeded",
		Marker: textForgotten,
	}, overflowing}}}
}

// forgetting chooses the units between the first and the newest events. Units are
// not divided: the last of the first events stays whole, the first of the newest is
// forgotten whole, since OpenHands drops a call without its result.
type forgetting struct {
	first  int  // events that stay at the start
	most   int  // events above which it is due
	size   int  // events that stay in all
	system bool // the instructions and the summary are events
}

func (f forgetting) due(v *furl.View, _ furl.Budget) bool { return f.count(v) > f.most }

func (f forgetting) pick(v *furl.View, _ furl.Budget) []furl.Unit { return f.choose(v) }

func (f forgetting) choose(v *furl.View) []furl.Unit {
	end := f.count(v) - (f.size - f.first) // the first event that stays
	at := 0
	if f.system {
		at = 1
	}
	var picked []furl.Unit
	for i := range v.Units {
		u := &v.Units[i]
		if u.Preamble {
			continue
		}
		if at >= end {
			break
		}
		if at >= f.first {
			picked = append(picked, *u)
		}
		at += f.events(u)
	}
	return picked
}

// count is the number of events in a view.
func (f forgetting) count(v *furl.View) int {
	n := countEvents(v)
	if f.system {
		n++
		for i := range v.Units {
			if v.Units[i].Kind == furl.UnitMark {
				n++
			}
		}
	}
	return n
}

func (f forgetting) events(u *furl.Unit) int {
	if f.system && u.Kind == furl.UnitMark {
		return 1
	}
	return events(u)
}

// countEvents is the number of events in a view, without instructions and markers.
func countEvents(v *furl.View) int {
	n := 0
	for i := range v.Units {
		if !v.Units[i].Preamble {
			n += events(&v.Units[i])
		}
	}
	return n
}

// events is the number of events in a unit.
func events(u *furl.Unit) int {
	switch u.Kind {
	case furl.UnitMark:
		return 0
	case furl.UnitStep:
		n := 0
		for i := range u.Blocks {
			if b := u.Blocks[i].Block; b.Kind == furl.KindCall || b.IsResult() {
				n++
			}
		}
		if slices.ContainsFunc(u.Blocks, func(sb furl.ShownBlock) bool { return sb.Block.Observation }) {
			n++ // the command in the text
		}
		return max(1, n)
	}
	return 1
}

func validateEvents(first *int, most int) error {
	return validate(option{"keep_first", orDefault(first, 0)}, option{"max_size", most})
}

// orDefault is the value of an optional number, or its default.
func orDefault(n *int, byDefault int) int {
	if n == nil {
		return byDefault
	}
	return *n
}
