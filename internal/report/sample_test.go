package report

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/furlhq/furl/replay"
)

// sample is an invented report: policies that differ, recordings of a number of
// requests, one or more windows.
func sample(recordings, requests int, windows ...int) *replay.Report {
	if len(windows) == 0 {
		windows = []int{0}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rep := &replay.Report{Notes: []string{"An invented report."}}
	for i := range recordings {
		rec := replay.RecordingReport{
			File: fmt.Sprintf("/home/mira/sessions/day-%03d.jsonl", i), Format: "claude-code", Agent: "Claude Code", Model: "claude-sonnet-4-5",
			Messages: 2 * requests, Requests: requests, ReportedPeak: 180_000, EstimatedPeak: 181_000,
			Notes: []string{"calls without a recorded result: 1"},
		}
		for _, w := range windows {
			for p, policy := range []string{none, "sliding-window", "rolling-mask-10", "clear-100k", "auto", "auto:frugal"} {
				rec.Results = append(rec.Results, sampleResult(rng, policy, p, w, requests))
			}
		}
		rep.Recordings = append(rep.Recordings, rec)
	}
	// In the order of the charts, so that the first chart is that of the first.
	slices.SortStableFunc(rep.Recordings, func(a, b replay.RecordingReport) int {
		return spread(within(b.Results, windows[0]), 0) - spread(within(a.Results, windows[0]), 0)
	})
	for i := range rep.Recordings {
		rep.Recordings[i].File = fmt.Sprintf("/home/mira/sessions/day-%03d.jsonl", i)
	}
	if recordings > 0 {
		for _, r := range rep.Recordings[0].Results {
			r.Series = nil
			rep.Totals = append(rep.Totals, r)
		}
	}
	return rep
}

func sampleResult(rng *rand.Rand, policy string, p, window, requests int) replay.Result {
	cost := []float64{10, 9.8, 11.2, 8.1, 6.3, 6.2}[p]
	ratio := cost / 10
	r := replay.Result{
		Policy: policy, Window: window, Requests: requests, TokensSent: requests * 80_000 / (p + 1), Peak: 190_000 / (p + 1),
		Cost: &cost, CostShare: &ratio, Split: replay.CostSplit{CacheRead: cost / 2, CacheWrite: cost / 4, Fresh: cost / 8, Output: cost / 8},
		References: 400, ReferencesKept: 400 - 5*p, ReferencesRecallable: 4 * p, OwnReferences: 900, OwnReferencesKept: 900 - p,
		QuotedLines: 150, QuotedLinesKept: 150 - 9*p, Refetches: 3 * p,
	}
	s := replay.Series{Session: "main", Window: 200_000}
	size, at := 20_000, time.Date(2026, 3, 2, 13, 0, 0, 0, time.UTC)
	for i := range requests {
		at = at.Add(time.Duration(10+rng.IntN(50)) * time.Second)
		if i%40 == 39 {
			at = at.Add(12 * time.Minute)
		}
		size += rng.IntN(2 * 160_000 / requests)
		point := replay.Point{At: at, Tokens: size, Read: size - 1000}
		if p > 0 && (p == 2 && i%2 == 1 || size > 150_000-20_000*p) {
			freed := size / 2
			size -= freed
			point.Tokens, point.Reduced, point.Freed = size, []string{"mask"}, freed
			r.Reductions++
		}
		if size > 195_000 {
			point.Refused = true
			r.Overflows++
		}
		s.Points = append(s.Points, point)
	}
	r.Series = []replay.Series{s}
	return r
}
