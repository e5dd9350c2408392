package replay

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/price"
)

// notableError is the relative error of the simulated input cost above which the report has a
// note.
const notableError = 0.05

// simulatedError returns by what share the input cost of the recorded requests, simulated with
// the hits that the provider reported, differs from what was billed; nil if it reported nothing.
func simulatedError(sessions []*session) *float64 {
	var billed, fitted float64
	for _, s := range sessions {
		billed += s.billed
		fitted += s.fitted
	}
	if billed == 0 {
		return nil
	}
	e := fitted/billed - 1
	return &e
}

// recordingNotes returns the notes of one recording.
func recordingNotes(sessions []*session, o *Options) []string {
	var out []string
	for _, name := range unknown(sessions) {
		out = append(out, fmt.Sprintf("%s is not in the catalogue: %s%s", modelName(name), assumption(o, sessions, name), missing(o, windowless(sessions, name))))
	}
	if e := simulatedError(sessions); e != nil && math.Abs(*e) > notableError {
		out = append(out, fmt.Sprintf("The simulation of the recorded requests costs %+.0f%% of what was billed for their prompts.", 100**e))
	}
	return out
}

// addRepeatedNote says how many requests were counted once although several sessions have them.
func (r *Report) addRepeatedNote() {
	switch r.Repeated {
	case 0:
	case 1:
		r.Notes = append(r.Notes, "1 request repeats one of another session and is counted there.")
	default:
		r.Notes = append(r.Notes, numbers.Count(r.Repeated, "request")+" repeat those of another session and are counted there.")
	}
}

// unknown lists the models of sessions that are not in the catalogue.
func unknown(sessions []*session) []string {
	var names []string
	for _, s := range sessions {
		for _, q := range s.requests {
			if !q.known && !slices.Contains(names, q.model.ID) {
				names = append(names, q.model.ID)
			}
		}
	}
	return names
}

func modelName(id string) string {
	if id == "" {
		return "the unnamed model of the recording"
	}
	return "model " + id
}

// assumption says what is assumed of a model that is not in the catalogue, "" if nothing.
func assumption(o *Options, sessions []*session, model string) string {
	for _, s := range sessions {
		for _, q := range s.requests {
			switch m := &q.model; {
			case m.ID != model || m.Like == "":
			case m.WindowAssumed && slices.Contains(o.Windows, 0):
				return fmt.Sprintf("assumed to be like %s, with an assumed window of %s tokens; ", m.Like, numbers.Thousands(m.Window))
			default:
				return fmt.Sprintf("assumed to be like %s; ", m.Like)
			}
		}
	}
	return ""
}

// windowless reports whether a request to a model has no known window.
func windowless(sessions []*session, model string) bool {
	for _, s := range sessions {
		for _, q := range s.requests {
			if q.model.ID == model && q.model.Window == 0 {
				return true
			}
		}
	}
	return false
}

// missing explains what a model without an entry in the catalogue lacks.
func missing(o *Options, windowless bool) string {
	var parts []string
	if windowless && slices.Contains(o.Windows, 0) {
		parts = append(parts, "nothing is reduced without --window")
	}
	if !price.Known(o.Prices) {
		parts = append(parts, "costs are compared in tokens without a price")
	}
	if len(parts) == 0 {
		return "using the known window and prices"
	}
	return strings.Join(parts, ", ")
}

// summaryNote explains what replaces the summaries of models, in the rows of some
// policies.
func summaryNote(policies []string) string {
	return fmt.Sprintf("Summaries of %s are extracts of the hidden messages, as long as the recording's own summaries or 2,000 tokens. "+
		"The cost includes the model call that would have written them.", strings.Join(policies, ", "))
}

// addNotes adds the notes that concern all recordings.
func (r *Report) addNotes(models []string) {
	var summarized []string
	for i := range r.Totals {
		if t := &r.Totals[i]; t.summarized && !slices.Contains(summarized, t.Policy) {
			summarized = append(summarized, t.Policy)
		}
	}
	if len(summarized) > 0 {
		r.Notes = append(r.Notes, summaryNote(summarized))
	}
	for i := range r.Totals {
		if t := &r.Totals[i]; t.reported > 0 && t.reported < t.Requests {
			r.Notes = append(r.Notes, fmt.Sprintf("%s of %s have no recorded usage; their cost is simulated.", numbers.Thousands(t.Requests-t.reported), numbers.Count(t.Requests, "request")))
			break
		}
	}
	if len(models) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("Not in the catalogue: %s.", strings.Join(models, ", ")))
	}
}
