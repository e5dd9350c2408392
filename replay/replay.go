// Package replay replays recorded sessions under one policy after another,
// without a model or a network. It rebuilds each request that the agent made,
// applies the policy with what was known at that time, simulates the provider's
// prompt cache, and counts what each policy costs and what it hides.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/transcript"
)

// Input is a recording to replay, or what an earlier replay with the same options and the same
// build has made of it.
type Input struct {
	Recording *transcript.Recording
	// Project is the folder that the agent of Recording worked in, "" for what it says itself.
	Project string
	// Report is the outcome, without Recording; nil for a copy, all of whose requests are counted
	// elsewhere.
	Report *RecordingReport
	// Repeated is the number of requests that are counted elsewhere, without Recording.
	Repeated int
	// Done, if set, gets the outcome for Recording. It is not called for a copy.
	Done func(*RecordingReport)
}

// Run replays a sequence of recordings. It holds one at a time in memory.
func Run(ctx context.Context, recordings iter.Seq[*transcript.Recording], opts Options) (*Report, error) {
	return RunInputs(ctx, func(yield func(Input) bool) {
		for rec := range recordings {
			if !yield(Input{Recording: rec}) {
				return
			}
		}
	}, opts)
}

// RunInputs is Run for recordings of which some have been replayed before.
func RunInputs(ctx context.Context, inputs iter.Seq[Input], opts Options) (*Report, error) {
	o, err := opts.complete()
	if err != nil {
		return nil, err
	}
	report := &Report{Recordings: []RecordingReport{}, Totals: []Result{}}
	var models []string
	pauses := 0
	reading := time.Now()
	for in := range inputs {
		o.watch.addReading(reading)
		r := in.Report
		if rec := in.Recording; rec != nil {
			var counted int
			counted, in.Repeated = requestsIn(rec)
			if counted > 0 || in.Repeated == 0 || rec.Unreadable() > 0 { // not a copy; the report names what is damaged
				if r, err = replayOne(ctx, rec, o, len(report.Recordings)); err != nil {
					return nil, fmt.Errorf("%s: %w", rec.File, err)
				}
				r.Project = cmp.Or(in.Project, r.Project)
				o.forget(rec)
				if in.Done != nil {
					in.Done(r)
				}
			}
		} else {
			o.watch.addKnown()
		}
		report.Repeated += in.Repeated
		if r != nil {
			report.Recordings = append(report.Recordings, *r)
			models, pauses = append(models, r.unknown...), pauses+r.pauses
		}
		reading = time.Now()
	}
	o.watch.addReading(reading)
	report.Timing = o.watch.timing(o.Candidates)
	slices.Sort(models)
	report.total()
	report.Choose(Wish{})
	report.ToolDiet = dietOf(report.Recordings)
	report.addNotes(slices.Compact(models))
	report.addKeepAliveNote(o.KeepAlive)
	report.addHourNote()
	report.addPauseNote(pauses, o)
	report.addRepeatedNote()
	return report, nil
}

// requestsIn counts the requests of a recording, and those that are counted in another one.
func requestsIn(rec *transcript.Recording) (counted, repeated int) {
	for _, s := range rec.Sessions {
		for _, r := range s.Log.Records(0) {
			if _, ok := r.Body.(*furl.Exchange); ok && !s.Repeated[r.Seq] {
				counted++
			}
		}
		repeated += len(s.Repeated)
	}
	return counted, repeated
}

// replayOne replays a recording under every policy and window.
func replayOne(ctx context.Context, rec *transcript.Recording, o *Options, files int) (*RecordingReport, error) {
	sessions, err := prepareAll(ctx, rec, o)
	if err != nil {
		return nil, err
	}
	candidates, noneAt := withNone(o.Candidates)
	// runs[window][policy][session]
	runs := make([][][]*run, len(o.Windows))
	for w := range runs {
		runs[w] = make([][]*run, len(candidates))
		for c := range candidates {
			runs[w][c] = make([]*run, len(sessions))
		}
	}
	progress := newProgress(o, rec.File, files, len(o.Windows)*len(candidates)*len(sessions))
	play := func(w, c, i int) error {
		cand := candidates[c]
		r := &run{s: sessions[i], o: o, window: o.Windows[w], keepAlive: keepAlive{max: cand.pings}, hourCache: cand.hourCache, learns: w == 0 && c == noneAt}
		p, err := cand.New(&summarizer{r})
		if err != nil {
			return err
		}
		r.policy = p
		runs[w][c][i] = r
		defer progress.step()
		defer o.watch.addPolicy(cand.Name, time.Now())
		defer r.release()
		return r.play(ctx)
	}
	// The others use what the first run of policy none learns.
	for _, first := range []bool{true, false} {
		var g errgroup.Group
		g.SetLimit(o.Workers)
		for w := range o.Windows {
			for c := range candidates {
				for i := range sessions {
					if (w == 0 && c == noneAt) == first {
						g.Go(func() error { return play(w, c, i) })
					}
				}
			}
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	out := describe(rec, sessions)
	out.SimulatedError = simulatedError(sessions)
	for _, s := range sessions {
		out.pauses += s.pauses()
	}
	out.Notes = append(slices.Clip(out.Notes), recordingNotes(sessions, o)...)
	all := collect(none, o.Windows[0], runs[0][noneAt], runs[0][noneAt])
	out.bill(rec, sessions, o, all.Total())
	out.useTools(sessions, runs[0][noneAt])
	for w, window := range o.Windows {
		for c, cand := range o.Candidates {
			res := collect(cand.Name, window, runs[w][c], runs[w][noneAt])
			res.summarized = slices.ContainsFunc(runs[w][c], func(r *run) bool { return r.summarized })
			out.Results = append(out.Results, res)
		}
	}
	out.PlanLimits = planLimits(rec.Sessions)
	out.savePlan(&all)
	return out, nil
}

// withNone returns the candidates with policy none among them, and its index. All
// others are compared with it.
func withNone(candidates []Candidate) ([]Candidate, int) {
	if i := slices.IndexFunc(candidates, func(c Candidate) bool { return c.Name == none }); i >= 0 {
		return candidates, i
	}
	added := Candidate{Name: none, New: func(policy.Summarizer) (furl.Policy, error) { return policy.NewSet().Policy(none, policy.Settings{}) }}
	return append(slices.Clip(candidates), added), len(candidates)
}

// none is the policy that hides nothing.
const none = "none"

// prepareAll prepares the sessions of a recording concurrently.
func prepareAll(ctx context.Context, rec *transcript.Recording, o *Options) ([]*session, error) {
	sessions := make([]*session, len(rec.Sessions))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(o.Workers)
	for i, ts := range rec.Sessions {
		g.Go(func() error {
			start := time.Now()
			s, err := prepare(ctx, ts, o)
			o.watch.addPreparing(start)
			sessions[i] = s
			return err
		})
	}
	return sessions, g.Wait()
}

func describe(rec *transcript.Recording, sessions []*session) *RecordingReport {
	out := &RecordingReport{File: rec.File, Part: rec.Part, Format: rec.Format, Agent: rec.Agent, SkippedRecords: rec.Unreadable(), Damage: rec.Damage(), Notes: rec.Notes}
	for _, sk := range rec.Skipped {
		where := rec.File
		if sk.Line > 0 {
			where = fmt.Sprintf("%s:%d", rec.File, sk.Line)
		}
		out.Skipped = append(out.Skipped, where+": "+sk.Reason)
	}
	for i, ts := range rec.Sessions {
		out.Messages += ts.Messages
		out.Compactions += ts.Compactions
		out.Requests += len(sessions[i].requests) - len(ts.Repeated)
		out.Model = cmp.Or(out.Model, ts.Model)
		out.Project = cmp.Or(out.Project, ts.Project, ts.Meta.Project)
		out.client = cmp.Or(out.client, agents.Name(ts.Meta.Client))
		for _, name := range unknown(sessions[i : i+1]) {
			out.unknown = append(out.unknown, cmp.Or(name, "unnamed models"))
		}
		out.ReportedPeak = max(out.ReportedPeak, sessions[i].reportedPeak)
		out.EstimatedPeak = max(out.EstimatedPeak, sessions[i].estimatedPeak)
	}
	out.client = cmp.Or(out.client, rec.Agent)
	return out
}

// collect sums the sessions of one recording under one policy. base are the runs
// of policy none.
func collect(name string, window int, runs, base []*run) Result {
	out := Result{Policy: name, Window: window}
	for i, r := range runs {
		out.add(&r.out)
		out.compare(r.each, base[i].each)
		out.noneAll.add(base[i].out.all)
		for _, o := range r.each {
			out.priced = out.priced || o.priced
		}
	}
	out.finish()
	return out
}

// compare sums the input cost of requests that fit the window under both policies.
func (r *Result) compare(mine, none []outcome) {
	for i := range none {
		if i < len(mine) && none[i].sendable && mine[i].sendable {
			r.dollars += mine[i].dollars
			r.noneDollars += none[i].dollars
			r.tokens += mine[i].tokens
			r.noneTokens += none[i].tokens
			r.penalty.add(mine[i].penalty)
		}
	}
}

// finish computes Cost, CostRatio and CostShare from the sums.
func (r *Result) finish() {
	if r.priced {
		cost := r.Split.Input() + r.Split.Output
		r.Cost = &cost
		low, high := max(0, cost-math.Sqrt(r.risk.low)), cost+math.Sqrt(r.risk.high)
		r.CostLow, r.CostHigh = &low, &high
	}
	r.CostRatio = bought{r.dollars, r.tokens}.share(bought{r.noneDollars, r.noneTokens})
	r.PenalisedCostRatio = bought{r.dollars + r.penalty.dollars, r.tokens + r.penalty.tokens}.share(bought{r.noneDollars, r.noneTokens})
	r.CostShare = r.all.share(r.noneAll)
	r.PenalisedShare = bought{r.all.dollars + r.allPenalty.dollars, r.all.tokens + r.allPenalty.tokens}.share(r.noneAll)
}

// share divides dollars, or tokens if no price is known. It is nil if nothing was
// bought.
func (b bought) share(of bought) *float64 {
	var share float64
	switch {
	case of.dollars > 0:
		share = b.dollars / of.dollars
	case of.tokens > 0:
		share = float64(b.tokens) / float64(of.tokens)
	default:
		return nil
	}
	return &share
}

func (b *bought) add(c bought) {
	b.dollars += c.dollars
	b.tokens += c.tokens
}

// add sums everything except what finish computes.
func (r *Result) add(o *Result) {
	if o.Requests > 0 {
		r.inWindow(o.ContextWindow, o.windowsDiffer || r.windowsDiffer)
	}
	r.Requests += o.Requests
	r.TokensSent += o.TokensSent
	r.Peak = max(r.Peak, o.Peak)
	r.Overflows += o.Overflows
	r.Impossible += o.Impossible
	r.Backstops += o.Backstops
	r.Split.add(o.Split)
	r.OverflowCost += o.OverflowCost
	r.Unrecorded += o.Unrecorded
	r.all.add(o.all)
	r.allPenalty.add(o.allPenalty)
	r.CacheBreaks += o.CacheBreaks
	r.Reductions += o.Reductions
	r.References += o.References
	r.ReferencesKept += o.ReferencesKept
	r.ReferencesRecallable += o.ReferencesRecallable
	r.OwnReferences += o.OwnReferences
	r.OwnReferencesKept += o.OwnReferencesKept
	r.OwnRecallable += o.OwnRecallable
	r.QuotedLines += o.QuotedLines
	r.QuotedLinesKept += o.QuotedLinesKept
	r.Refetches += o.Refetches
	r.Edits += o.Edits
	r.BlindEdits += o.BlindEdits
	r.EditsNotMeasured += o.EditsNotMeasured
	r.risk.add(o.risk)
	r.reported += o.reported
	r.withoutFurl = r.withoutFurl || o.withoutFurl
	r.Pings += o.Pings
	r.HourRequests += o.HourRequests
	r.PingCost += o.PingCost
	r.InvalidRequests += o.InvalidRequests
	r.summarized = r.summarized || o.summarized
	if r.FirstRefusal == "" {
		r.FirstRefusal = o.FirstRefusal
	}
	r.Series = append(r.Series, o.Series...)
}

// total fills in Totals: the sums per policy and window.
func (r *Report) total() {
	if len(r.Recordings) == 0 {
		return
	}
	for i := range r.Recordings[0].Results {
		first := &r.Recordings[0].Results[i]
		t := Result{Policy: first.Policy, Window: first.Window}
		for j := range r.Recordings {
			res := &r.Recordings[j].Results[i]
			t.add(res)
			t.dollars += res.dollars
			t.noneDollars += res.noneDollars
			t.tokens += res.tokens
			t.noneTokens += res.noneTokens
			t.penalty.add(res.penalty)
			t.noneAll.add(res.noneAll)
			t.priced = t.priced || res.priced
		}
		t.Series = nil
		t.finish()
		r.Totals = append(r.Totals, t)
	}
}
