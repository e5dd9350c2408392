package report

import (
	"fmt"
	"slices"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/replay"
)

// column is one measure of a result.
type column struct {
	Name, About string
	text        func(*replay.Result) string
}

// measures are all measures of a result, the most important first.
var measures = []column{
	{"cost", "List price in US dollars of all requests: prompts, replies, the policy's own calls, and requests over the context window as if the provider had accepted them.", func(r *replay.Result) string { return cost(r.Total()) }},
	{"between", "Where that cost is with a probability of 90%, if the prompt cache loses entries as often as in the recording.", interval},
	{"× as recorded", "That cost compared with the recording. 0.80 is 20% less. Compares tokens where no price is known.", func(r *replay.Result) string { return ratio(r.CostShare) }},
	{"identifiers still visible", "Identifiers from tool results or the user that the agent used again: the share that was still visible to it.", func(r *replay.Result) string { return share(r.ReferencesKept, r.References) }},
	{"visible or recallable", "The same, plus identifiers that a search of the hidden text finds among its first five results.", func(r *replay.Result) string { return share(r.ReferencesKept+r.ReferencesRecallable, r.References) }},
	{"identifiers", "Number of these identifiers.", func(r *replay.Result) string { return count(r.References) }},
	{"own identifiers still visible", "Identifiers that the agent wrote itself and used again: the share that was still visible to it.", func(r *replay.Result) string { return share(r.OwnReferencesKept, r.OwnReferences) }},
	{"own visible or recallable", "The same, plus identifiers that a search finds.", func(r *replay.Result) string { return share(r.OwnReferencesKept+r.OwnRecallable, r.OwnReferences) }},
	{"own identifiers", "Number of these identifiers.", func(r *replay.Result) string { return count(r.OwnReferences) }},
	{"quoted lines still visible", "Whole lines of earlier results that the agent quoted, for example as the old text of an edit: the share that was still visible to it.", func(r *replay.Result) string { return share(r.QuotedLinesKept, r.QuotedLines) }},
	{"quoted lines", "Number of quoted lines.", func(r *replay.Result) string { return count(r.QuotedLines) }},
	{"blind edits", "Edits that replace text which was no longer visible to the agent, as a share of all edits of text that it had seen.", func(r *replay.Result) string { return share(r.BlindEdits, r.Edits) }},
	{"× with re-reads", "The cost compared with the recording, if each blind edit also pays for a request that reads the text again.", func(r *replay.Result) string { return ratio(r.PenalisedShare) }},
	{"edits", "Number of edits of text that the agent had seen.", func(r *replay.Result) string { return count(r.Edits) }},
	{"edits not measured", "Requests with a script that calls tools with text that it computes, which may be edits.", func(r *replay.Result) string { return count(r.EditsNotMeasured) }},
	{"repeated calls", "Calls made again with the same arguments after their result was hidden.", func(r *replay.Result) string { return count(r.Refetches) }},
	{"reductions", "Number of times the policy hid something.", func(r *replay.Result) string { return count(r.Reductions) }},
	{"cache breaks", "Requests that rewrote a prompt cache that had not expired.", func(r *replay.Result) string { return count(r.CacheBreaks) }},
	{"tokens sent", "Sum of all prompts.", func(r *replay.Result) string { return count(r.TokensSent) }},
	{"largest prompt", "In tokens.", func(r *replay.Result) string { return count(r.Peak) }},
	{"requests", "Requests replayed.", func(r *replay.Result) string { return count(r.Requests) }},
	{"overflows", "Requests over the context window that could have been reduced to fit.", func(r *replay.Result) string { return count(r.Overflows) }},
	{"impossible", "Requests over the context window that could not be reduced to fit.", func(r *replay.Result) string { return count(r.Impossible) }},
	{"backstops", "Additional reductions that the context window required.", func(r *replay.Result) string { return count(r.Backstops) }},
	{"refused", "Requests that break a rule of the provider.", func(r *replay.Result) string { return count(r.InvalidRequests) }},
	{"cache read", "Part of the cost: tokens read from the prompt cache.", split(func(s *replay.CostSplit) float64 { return s.CacheRead })},
	{"cache write", "Part of the cost: tokens written to the prompt cache.", split(func(s *replay.CostSplit) float64 { return s.CacheWrite })},
	{"uncached input", "Part of the cost: input tokens that were not cached.", split(func(s *replay.CostSplit) float64 { return s.Fresh })},
	{"output", "Part of the cost: the replies.", split(func(s *replay.CostSplit) float64 { return s.Output })},
	{"own calls", "Part of the cost: the policy's own model calls.", split(func(s *replay.CostSplit) float64 { return s.Own })},
	{"agent's compactions", "Part of the cost: compactions by the agent itself. A policy whose prompt was at least a tenth smaller than the one that the agent compacted does not pay.", split(func(s *replay.CostSplit) float64 { return s.Compactions })},
	{"over the window", "Part of the cost: requests over the context window, which the provider would have refused.", func(r *replay.Result) string {
		if r.Cost == nil {
			return "–"
		}
		return dollars(r.OverflowCost)
	}},
}

func split(of func(*replay.CostSplit) float64) func(*replay.Result) string {
	return func(r *replay.Result) string {
		if r.Cost == nil {
			return "–"
		}
		return dollars(of(&r.Split))
	}
}

// interval writes the limits of a cost, "–" if it is known.
func interval(r *replay.Result) string {
	if r.CostLow == nil || r.CostHigh == nil || r.Label() == "billed" || !finite(*r.CostLow) || !finite(*r.CostHigh) || !(*r.CostHigh-*r.CostLow >= 0.005) || *r.CostHigh+r.OverflowCost > most {
		return "–"
	}
	return numbers.Between(*r.CostLow+r.OverflowCost, *r.CostHigh+r.OverflowCost)
}

func cost(c *float64) string {
	if c == nil {
		return "–"
	}
	return dollars(*c)
}

// row is one result in a table.
type row struct {
	Key    key
	Window string
	Best   bool
	Cells  []string
	// Refusal is the provider's error for the first request it would refuse.
	Refusal string
}

// bestFirst moves the recommended row behind that of what was billed, where it is in view.
func bestFirst(rows []row) {
	slices.SortStableFunc(rows, func(a, b row) int {
		rank := func(r row) int {
			switch {
			case r.Key.Policy == none:
				return 0
			case r.Best:
				return 1
			}
			return 2
		}
		return rank(a) - rank(b)
	})
}

func newRow(r *replay.Result, keys map[string]key, best bool) row {
	out := row{Key: keys[r.Policy], Window: window(r.Window), Best: best, Cells: make([]string, len(measures))}
	for i := range measures {
		out.Cells[i] = measures[i].text(r)
	}
	if r.InvalidRequests > 0 {
		out.Refusal = clean(r.FirstRefusal, noteLength)
	}
	return out
}

// heat is the CSS class of a cell with a cost ratio: c for cheaper and d for
// more expensive, with a higher number for a larger difference.
func heat(r *float64) string {
	if r == nil || !finite(*r) {
		return "na"
	}
	steps := []struct {
		below float64
		class string
	}{{0.5, "c4"}, {0.7, "c3"}, {0.85, "c2"}, {0.975, "c1"}, {1.025, "c0"}, {1.15, "d1"}, {1.4, "d2"}}
	for _, s := range steps {
		if *r < s.below {
			return s.class
		}
	}
	return "d3"
}

// recording is one row in the list of recordings, and its details.
type recording struct {
	ID             string
	File           string
	Agent, Model   string
	Facts          string
	Requests       string
	Peak           string
	Rows           []row
	Notes, Skipped []string
	Open           bool
}

// Bounds on the texts about one recording.
const (
	maxNotes   = 20
	maxSkipped = 20
)

func newRecording(i int, file string, rec *replay.RecordingReport) recording {
	r := recording{
		ID:       fmt.Sprintf("r%d", i),
		File:     file,
		Agent:    orUnknown(rec.Agent),
		Model:    orUnknown(rec.Model),
		Requests: count(rec.Requests),
		Peak:     count(max(rec.ReportedPeak, rec.EstimatedPeak)),
		Notes:    notes(rec.Notes, maxNotes),
		Skipped:  notes(rec.Skipped, maxSkipped),
	}
	r.Facts = counted(rec.Messages, "message") + ", " + counted(rec.Requests, "request")
	if rec.ReportedPeak > 0 {
		r.Facts += fmt.Sprintf(", largest prompt %s tokens as reported, %s tokens as estimated", count(rec.ReportedPeak), count(rec.EstimatedPeak))
	} else {
		r.Facts += fmt.Sprintf(", largest prompt %s tokens as estimated", count(rec.EstimatedPeak))
	}
	if rec.Format != "" {
		r.Facts += ", format " + name(rec.Format)
	}
	return r
}

// unnamed is the name of a model, or the text for recordings without one.
func unnamed(model string) string {
	if model == "" {
		return "recordings without a model name"
	}
	return name(model)
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return name(s)
}
