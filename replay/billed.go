package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/transcript"
)

// bill sets what the recording has cost by its recorded usage. without is what policy none costs.
func (r *RecordingReport) bill(rec *transcript.Recording, sessions []*session, o *Options, without *float64) {
	own := *o
	own.Model = "" // of the recording, whatever it is replayed as
	bill := billed.Sum(billed.OfRecording(rec, func(s *transcript.Session) billed.Models {
		return own.models(s)
	}))
	if bill.Requests > bill.Unpriced {
		r.Billed, r.BilledSubagents = &bill.Cost, bill.Subagents
	}
	r.OutputRecorded, r.OutputEstimated = bill.Output, bill.Output
	for _, s := range sessions {
		for _, q := range s.requests {
			if !q.again {
				r.OutputEstimated += q.estimated - q.ex.Usage.Output
			}
		}
	}
	if through := slices.ContainsFunc(sessions, func(s *session) bool { return !s.sentAsRecorded }); through && r.Billed != nil && without != nil && *without > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("furl has reduced the recorded requests: $%.2f was billed; without furl they would have cost about $%.2f (simulated), %+.0f%%", *r.Billed, *without, 100*(*without / *r.Billed - 1)))
	}
	if r.OutputRecorded > 0 && 10*r.OutputRecorded < 9*r.OutputEstimated {
		r.Notes = append(r.Notes, fmt.Sprintf("billed: the agent recorded %s tokens of output, of replies that were not finished; by their text there are about %s", numbers.Thousands(r.OutputRecorded), numbers.Thousands(r.OutputEstimated)))
	}
	if len(bill.Terms) > 0 {
		r.Notes = append(r.Notes, "not priced: "+strings.Join(bill.Terms, ", "))
	}
	if bill.Unpriced > 0 && r.Billed != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("billed: without %s to models without a price", numbers.Count(bill.Unpriced, "request")))
	}
}

// models describes the models of a session by their names in requests.
func (o *Options) models(s *transcript.Session) func(name string) furl.Model {
	known := make(map[string]furl.Model)
	return func(name string) furl.Model {
		m, ok := known[name]
		if !ok {
			m, _ = o.model(name, s)
			known[name] = m
		}
		return m
	}
}
