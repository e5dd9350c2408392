// Oracle compares policies with a plan that knows the future. It replays
// recordings as recorded, under auto, and under a policy that knows which
// identifiers and lines the later replies use.
//
//	go run -C internal/dev/bench ./oracle [-json] FOLDER...
//
// docs/internals/cost-model.md, "The distance to the optimum", explains the plan and
// has the results.
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
	"text/tabwriter"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
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
// recorded, as cost_ratio of furl replay.
type line struct {
	File     string  `json:"file"`
	Requests int     `json:"requests"`
	Policy   float64 `json:"policy"`
	Oracle   float64 `json:"oracle"`
	Floor    float64 `json:"floor"`
	// Distance is Policy - Oracle.
	Distance float64 `json:"distance"`
	// Kept is what each of them keeps visible.
	PolicyKept kept `json:"policy_kept"`
	OracleKept kept `json:"oracle_kept"`
	// Parts are the costs by part, as shares of the input cost as recorded.
	Parts []partLine `json:"parts"`
	// Invalid counts the requests of the oracle that the provider would refuse.
	Invalid int `json:"invalid_requests"`

	// In dollars: the input cost as recorded, what the floor saves, and the costs.
	none, saved, policy, oracle float64
	policyKept, oracleKept      counts
	bills                       *[3]bill // as recorded, of the policy, of the oracle
}

// kept is the shares of what later replies use that are still visible.
type kept struct {
	FirstHand float64 `json:"first_hand"`
	Own       float64 `json:"own"`
	Lines     float64 `json:"lines"`
	Edits     int     `json:"edits"`
	Blind     int     `json:"blind_edits"`
}

// partLine is one part of the cost.
type partLine struct {
	Part       string  `json:"part"`
	AsRecorded float64 `json:"as_recorded"`
	Policy     float64 `json:"policy"`
	Oracle     float64 `json:"oracle"`
}

func run(ctx context.Context, o *options, paths []string, w io.Writer, asJSON bool) error {
	if len(paths) == 0 || slices.Contains(paths, "") {
		return errors.New("name a folder of recordings: make bench-oracle FURL_RECORDINGS=folder")
	}
	lines, err := measure(ctx, o, transcript.Walk(paths...))
	if err != nil {
		return err
	}
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(lines)
	}
	return printLines(w, o, lines)
}

// measure replays all recordings. The last line is for all of them.
func measure(ctx context.Context, o *options, recordings iter.Seq2[*transcript.Recording, error]) ([]line, error) {
	candidates, err := replay.Candidates(nil, "none", o.policy)
	if err != nil {
		return nil, err
	}
	futures := make(map[*furl.Message]*future)
	for _, v := range variants {
		candidates = append(candidates, replay.Candidate{Name: "oracle", New: func(policy.Summarizer) (furl.Policy, error) {
			return newOracle(futures, v), nil
		}})
	}
	// The plan does not change the lifetime of cache entries, so the policy does not either.
	opts := replay.Options{CacheRead: &o.read, CacheWrite: &o.write, HourCache: protocol.HourNever}
	first := opts
	first.Candidates = slices.Clone(candidates[:1])
	for i := range candidates {
		inner := candidates[i].New
		candidates[i].New = func(s policy.Summarizer) (furl.Policy, error) {
			p, err := inner(s)
			return &watch{Policy: p, futures: futures, as: i}, err
		}
	}
	opts.Candidates = candidates
	var sessions [][]*future // by recording
	var failed error
	report, err := replay.Run(ctx, func(yield func(*transcript.Recording) bool) {
		for rec, err := range recordings {
			if _, ok := errors.AsType[*transcript.UnknownFilesError](err); ok {
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
			sessions = append(sessions, list)
			if !yield(rec) {
				return
			}
			for _, f := range list {
				f.messages, f.requests = nil, nil // or all recordings stay in memory
			}
		}
	}, opts)
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	return linesOf(report, sessions), nil
}

// linesOf summarizes the recordings with a price.
func linesOf(report *replay.Report, sessions [][]*future) []line {
	all := line{File: "all", bills: new([3]bill)}
	var lines []line
	for i := range report.Recordings {
		r := &report.Recordings[i]
		l := line{File: r.File, none: r.Results[0].Split.Input(), bills: new([3]bill)}
		if l.none == 0 {
			continue
		}
		// The floor is that of a policy under which the agent never compacts.
		l.saved += r.Results[0].Split.Compactions
		best := 2
		for k := range r.Results {
			if k > best && r.Results[k].Split.Input() < r.Results[best].Split.Input() {
				best = k
			}
		}
		chosen := [3]int{0, 1, best}
		for n, k := range chosen {
			l.bills[n][partCompactions] = r.Results[k].Split.Compactions
		}
		for j, f := range sessions[i] {
			l.saved += f.floor.dollars
			for n, k := range chosen {
				b := f.billOf(k, r.Results[k].Series[j].Points)
				l.bills[n].add(&b)
			}
		}
		l.add(&r.Results[1], &r.Results[best])
		all.sum(&l)
		l.finish()
		lines = append(lines, l)
	}
	if len(lines) > 0 {
		all.finish()
		lines = append(lines, all)
	}
	return lines
}

// add sets the results of a recording.
func (l *line) add(p, o *replay.Result) {
	l.Requests, l.Invalid = o.Requests, o.InvalidRequests
	l.policyKept, l.oracleKept = countOf(p), countOf(o)
	if p.CostRatio != nil && o.CostRatio != nil {
		l.policy, l.oracle = *p.CostRatio*l.none, *o.CostRatio*l.none
	}
}

// sum adds a recording to the line of all.
func (l *line) sum(o *line) {
	l.Requests += o.Requests
	l.Invalid += o.Invalid
	l.none += o.none
	l.saved += o.saved
	l.policy += o.policy
	l.oracle += o.oracle
	l.policyKept.add(&o.policyKept)
	l.oracleKept.add(&o.oracleKept)
	for n := range l.bills {
		l.bills[n].add(&o.bills[n])
	}
}

// counts are numbers of identifiers and lines that later replies use.
type counts struct{ refs, refsKept, own, ownKept, lines, linesKept, edits, blind int }

func countOf(r *replay.Result) counts {
	return counts{r.References, r.ReferencesKept, r.OwnReferences, r.OwnReferencesKept, r.QuotedLines, r.QuotedLinesKept, r.Edits, r.BlindEdits}
}

func (c *counts) add(d *counts) {
	c.refs += d.refs
	c.refsKept += d.refsKept
	c.own += d.own
	c.ownKept += d.ownKept
	c.lines += d.lines
	c.linesKept += d.linesKept
	c.edits += d.edits
	c.blind += d.blind
}

func (c *counts) kept() kept {
	return kept{share(c.refsKept, c.refs), share(c.ownKept, c.own), share(c.linesKept, c.lines), c.edits, c.blind}
}

func share(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}

// finish computes the shares from the dollars.
func (l *line) finish() {
	l.Policy, l.Oracle, l.Floor = l.policy/l.none, l.oracle/l.none, 1-l.saved/l.none
	l.Distance = l.Policy - l.Oracle
	l.PolicyKept, l.OracleKept = l.policyKept.kept(), l.oracleKept.kept()
	for of := range numParts {
		l.Parts = append(l.Parts, partLine{partNames[of], l.bills[0][of] / l.none, l.bills[1][of] / l.none, l.bills[2][of] / l.none})
	}
}

func printLines(w io.Writer, o *options, lines []line) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "recording\trequests\t%s\toracle\tfloor\tdistance\tfirst-hand\tlines\toracle: lines\t\n", o.policy)
	for i := range lines {
		l := &lines[i]
		fmt.Fprintf(t, "%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t\n", filepath.Base(l.File), l.Requests, l.Policy, l.Oracle, l.Floor, l.Distance,
			l.PolicyKept.FirstHand, l.PolicyKept.Lines, l.OracleKept.Lines)
	}
	if len(lines) > 0 {
		all := &lines[len(lines)-1]
		fmt.Fprintf(t, "\t\t\t\t\t\t\t\t\n")
		fmt.Fprintf(t, "part of the cost\tas recorded\t%s\toracle\tdifference\t\n", o.policy)
		for _, p := range all.Parts {
			fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.3f\t%+.3f\t\n", p.Part, p.AsRecorded, p.Policy, p.Oracle, p.Policy-p.Oracle)
		}
	}
	return t.Flush()
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
		f.prompts = make([][]prompt, 2+len(variants))
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
