package replay

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/price"
)

// notableDifference is the relative difference between recorded and simulated
// input cost above which the report has a note.
const notableDifference = 0.15

// recordingNotes returns the notes of one recording. none are the runs of policy
// none.
func recordingNotes(sessions []*session, none []*run, o *Options) []string {
	var out []string
	for _, name := range unknown(sessions) {
		out = append(out, fmt.Sprintf("%s is not in the catalogue: %s%s", modelName(name), assumption(o, sessions, name), missing(o, windowless(sessions, name))))
	}
	var recorded, simulated float64
	for i, s := range sessions {
		for n, q := range s.requests {
			u := q.ex.Usage // its terms are in the model's prices
			if u.Prompt() == 0 || !q.known || q.again {
				continue
			}
			u.Output = 0
			recorded += price.OfRequest(&q.model, u, q.at)
			simulated += none[i].each[n].dollars
		}
	}
	catalogued := o.Model == "" && !price.Known(o.Prices) && o.CacheRead == nil && o.CacheWrite == nil
	if catalogued && recorded >= 0.01 && math.Abs(simulated/recorded-1) > notableDifference {
		out = append(out, fmt.Sprintf("input cost: $%.2f with the recorded use of the cache, $%.2f with the simulated one", recorded, simulated))
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
	if len(models) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("Not in the catalogue: %s.", strings.Join(models, ", ")))
	}
}
