// Oracle compares policies with a plan that knows the future. It replays
// recordings as recorded, under auto, and under a policy that knows which
// identifiers and lines the later replies use.
//
//	go run -C bench ./oracle [-json] FOLDER...
//
// docs/internals/cost-model.md explains the plan and has the results.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

func main() {
	var o options
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Float64Var(&o.read, "cache-read", 0.1, "price of cache reads, as a multiple of that of uncached input")
	flag.Float64Var(&o.write, "cache-write", 1.25, "price of cache writes, likewise")
	flag.StringVar(&o.policy, "policy", "auto", "`policy` to compare")
	flag.Parse()
	if err := run(context.Background(), &o, flag.Args(), os.Stdout, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// options are the flags of a run.
type options struct {
	read, write float64
	policy      string
}

// line is one recording, or all of them. Costs are shares of the input cost as
// recorded, as in the cost_ratio of furl replay.
type line struct {
	File     string  `json:"file"`
	Requests int     `json:"requests"`
	Policy   float64 `json:"policy"`
	Oracle   float64 `json:"oracle"`
	Floor    float64 `json:"floor"`
	Distance float64 `json:"distance"`

	Lines, LinesKept, Names, NamesKept, Own, OwnKept int
	Edits, Blind                                     int
	Invalid                                          int
}

func run(ctx context.Context, o *options, paths []string, w io.Writer, asJSON bool) error {
	lines, err := measure(ctx, o, transcript.Walk(paths...))
	if err != nil {
		return err
	}
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(lines)
	}
	fmt.Fprintf(w, "%-32s %8s %8s %8s %8s %8s\n", "recording", "requests", o.policy, "oracle", "floor", "distance")
	for i := range lines {
		l := &lines[i]
		fmt.Fprintf(w, "%-32s %8d %8.3f %8.3f %8.3f %8.3f   lines %d/%d names %d/%d own %d/%d blind %d/%d invalid %d\n", filepath.Base(l.File), l.Requests, l.Policy, l.Oracle, l.Floor, l.Distance,
			l.LinesKept, l.Lines, l.NamesKept, l.Names, l.OwnKept, l.Own, l.Blind, l.Edits, l.Invalid)
	}
	return nil
}

// measure replays all recordings. The last line is for all of them.
func measure(ctx context.Context, o *options, recordings iter.Seq2[*transcript.Recording, error]) ([]line, error) {
	none, err := replay.Candidates(nil, "none", o.policy)
	if err != nil {
		return nil, err
	}
	opts := replay.Options{CacheRead: &o.read, CacheWrite: &o.write}
	first := opts
	first.Candidates = none[:1]
	futures := make(map[*furl.Message]*future)
	var floors []saving // by recording
	var failed error
	learned := make([][]*future, 0)
	opts.Candidates = append(slices.Clip(none), replay.Candidate{Name: "oracle", New: func(policy.Summarizer) (furl.Policy, error) {
		return newOracle(futures), nil
	}})
	report, err := replay.Run(ctx, func(yield func(*transcript.Recording) bool) {
		for rec, err := range recordings {
			var unknown *transcript.UnknownFilesError
			if errors.As(err, &unknown) {
				continue
			}
			if err != nil {
				failed = err
				return
			}
			clear(futures)
			list, err := learnAll(ctx, rec, first, futures)
			if err != nil {
				failed = err
				return
			}
			learned = append(learned, list)
			if !yield(rec) {
				return
			}
			var s saving
			for _, f := range list {
				s.dollars += f.floor.dollars
				s.tokens += f.floor.tokens
			}
			floors = append(floors, s)
			learned[len(learned)-1] = nil
		}
	}, opts)
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	var lines []line
	var saved, cost float64
	for i := range report.Recordings {
		r := &report.Recordings[i]
		none := r.Results[0].Split.Input()
		if none == 0 {
			continue
		}
		lines = append(lines, lineOf(r.File, r.Results, 1-floors[i].dollars/none))
		saved += floors[i].dollars
		cost += none
	}
	if len(lines) > 0 {
		lines = append(lines, lineOf("all", report.Totals, 1-saved/cost))
	}
	return lines, nil
}

func lineOf(file string, results []replay.Result, floor float64) line {
	a, o := &results[1], &results[2]
	l := line{File: file, Requests: o.Requests, Floor: floor, Lines: o.QuotedLines, LinesKept: o.QuotedLinesKept, Names: o.References, NamesKept: o.ReferencesKept,
		Own: o.OwnReferences, OwnKept: o.OwnReferencesKept, Edits: o.Edits, Blind: o.BlindEdits, Invalid: o.InvalidRequests}
	if a.CostRatio != nil && o.CostRatio != nil {
		l.Policy, l.Oracle = *a.CostRatio, *o.CostRatio
		l.Distance = l.Policy - l.Oracle
	}
	return l
}

// learnAll learns the sessions of a recording.
func learnAll(ctx context.Context, rec *transcript.Recording, opts replay.Options, futures map[*furl.Message]*future) ([]*future, error) {
	report, err := replay.Run(ctx, slices.Values([]*transcript.Recording{rec}), opts)
	if err != nil {
		return nil, err
	}
	var list []*future
	for i, session := range rec.Sessions {
		f, err := learn(session)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rec.File, err)
		}
		f.setCache(report.Recordings[0].Results[0].Series[i].Points)
		list = append(list, f)
		for seq := furl.Seq(1); int(seq) <= session.Log.Len(); seq++ {
			if m, ok := session.Log.At(seq).Body.(*furl.Message); ok {
				futures[m] = f
				break
			}
		}
	}
	return list, nil
}
