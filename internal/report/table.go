package report

import (
	"fmt"

	"github.com/furlhq/furl/replay"
)

// column is one measure of a result.
type column struct {
	Name, About string
	text        func(*replay.Result) string
}

// measures are all measures of a result, most asked for first.
var measures = []column{
	{"cost", "The whole bill in US dollars: prompts, replies, and the policy's own calls.", func(r *replay.Result) string { return cost(r.Cost) }},
	{"of none", "Input cost against sending everything (policy none), on the requests that both could send. 0.80 is a fifth less. Where no price is known: tokens.", func(r *replay.Result) string { return ratio(r.CostRatio) }},
	{"names kept", "Names that the agent took from a tool result or the user and used again: the share it could still see.", func(r *replay.Result) string { return share(r.ReferencesKept, r.References) }},
	{"kept or recallable", "The same, with those that a search of what is hidden finds among its first five.", func(r *replay.Result) string { return share(r.ReferencesKept+r.ReferencesRecallable, r.References) }},
	{"names", "How many names there were.", func(r *replay.Result) string { return count(r.References) }},
	{"own names kept", "Names that the agent had written itself before and used again: the share it could still see.", func(r *replay.Result) string { return share(r.OwnReferencesKept, r.OwnReferences) }},
	{"own kept or recallable", "The same, with those that a search finds.", func(r *replay.Result) string { return share(r.OwnReferencesKept+r.OwnRecallable, r.OwnReferences) }},
	{"own names", "How many of those there were.", func(r *replay.Result) string { return count(r.OwnReferences) }},
	{"lines kept", "Whole lines of earlier results that the agent quoted, as the old text of an edit does: the share it could still see.", func(r *replay.Result) string { return share(r.QuotedLinesKept, r.QuotedLines) }},
	{"lines", "How many lines were quoted.", func(r *replay.Result) string { return count(r.QuotedLines) }},
	{"re-fetched", "Calls made again with the same arguments after their result was hidden.", func(r *replay.Result) string { return count(r.Refetches) }},
	{"reductions", "How often the policy hid something.", func(r *replay.Result) string { return count(r.Reductions) }},
	{"cache breaks", "Requests that had to rewrite a prompt cache that was still warm.", func(r *replay.Result) string { return count(r.CacheBreaks) }},
	{"tokens sent", "Sum of the prompts of all requests.", func(r *replay.Result) string { return count(r.TokensSent) }},
	{"largest prompt", "In tokens.", func(r *replay.Result) string { return count(r.Peak) }},
	{"requests", "Requests replayed.", func(r *replay.Result) string { return count(r.Requests) }},
	{"overflows", "Requests above the window that could have been made to fit.", func(r *replay.Result) string { return count(r.Overflows) }},
	{"impossible", "Requests above the window that nothing could have made fit.", func(r *replay.Result) string { return count(r.Impossible) }},
	{"backstops", "Reductions beyond what the policy would hide by itself, because the window demanded them.", func(r *replay.Result) string { return count(r.Backstops) }},
	{"refused", "Requests that break a rule of the provider's.", func(r *replay.Result) string { return count(r.InvalidRequests) }},
	{"cache read", "Of the cost: what was read from the prompt cache.", split(func(s *replay.CostSplit) float64 { return s.CacheRead })},
	{"cache write", "Of the cost: what was written to the prompt cache.", split(func(s *replay.CostSplit) float64 { return s.CacheWrite })},
	{"fresh", "Of the cost: input that was not cached.", split(func(s *replay.CostSplit) float64 { return s.Fresh })},
	{"output", "Of the cost: the replies.", split(func(s *replay.CostSplit) float64 { return s.Output })},
	{"own calls", "Of the cost: the policy's own model calls.", split(func(s *replay.CostSplit) float64 { return s.Own })},
}

func split(of func(*replay.CostSplit) float64) func(*replay.Result) string {
	return func(r *replay.Result) string {
		if r.Cost == nil {
			return "–"
		}
		return dollars(of(&r.Split))
	}
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
	// Refusal is the provider's text for the first request it would not take.
	Refusal string
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

// heat is the class of a cell that shows a cost ratio: c for cheaper, d for
// dearer, more so the higher the number.
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

// recording is one row of the table of recordings, and what unfolds below it.
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

// Bounds on what is told of one recording.
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
		r.Facts += fmt.Sprintf(", largest prompt %s tokens as reported, %s as estimated", count(rec.ReportedPeak), count(rec.EstimatedPeak))
	} else {
		r.Facts += fmt.Sprintf(", largest prompt %s tokens, estimated", count(rec.EstimatedPeak))
	}
	if rec.Format != "" {
		r.Facts += ", format " + name(rec.Format)
	}
	return r
}

// unnamed is how a model is called that the recording does not name.
func unnamed(model string) string {
	if model == "" {
		return "recordings that name no model"
	}
	return name(model)
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return name(s)
}
