package policy_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

// marks are floors that auto must hold on one half of the recordings: input
// cost against doing nothing at most, references and quoted lines kept at
// least. TestProjects measures auto on the recordings of other projects.
var marks = map[string]map[string]struct{ cost, refs, own, lines float64 }{
	"even": {
		"auto:frugal":   {0.56, 0.95, 0.98, 0.885},
		"auto":          {0.62, 0.99, 0.98, 0.95},
		"auto:results":  {0.70, 0.99, 0.98, 0.98},
		"auto:faithful": {0.685, 0.99, 0.98, 0.975},
	},
	"odd": {
		"auto:frugal":   {0.525, 0.95, 0.98, 0.845},
		"auto":          {0.615, 0.98, 0.98, 0.905},
		"auto:results":  {0.74, 0.98, 0.98, 0.93},
		"auto:faithful": {0.70, 0.98, 0.98, 0.96},
	},
}

// TestAutoMarks replays the recordings of Claude Code, Codex, opencode, pi and
// others with cache reads at 0.1 and writes at 1.25 of the input price, or 2 for
// entries of one hour, which five of the recordings have:
//
//	FURL_RECORDINGS=folder go test ./policy -run TestAutoMarks -v
func TestAutoMarks(t *testing.T) {
	dir := recordings.Dir(t)
	names := []string{"none", "rolling-mask-10", "rolling-mask-5", "auto:results", "auto:frugal", "auto", "auto:faithful"}
	halves := []string{"even", "odd"}
	if policy.RaceDetector { // .ci/run replays all of it without, and compares with the marks
		halves, names = halves[1:], []string{"none", "rolling-mask-10", "rolling-mask-5", "auto"}
	}
	for _, half := range halves {
		t.Run(half, func(t *testing.T) {
			reports := replayHalf(t, dir, half, 0.1, 1.25, names)
			costs := make(map[string][][2]float64) // by policy, of each recording
			sums := make(map[string]*result)
			for i := range reports {
				rec := &reports[i]
				none := rec.Results[0].Split.Input()
				least := math.Inf(1) // of the rolling masks
				for j := range rec.Results {
					r := &rec.Results[j]
					cost := r.Split.Input()
					costs[r.Policy] = append(costs[r.Policy], [2]float64{cost, none})
					if sums[r.Policy] == nil {
						sums[r.Policy] = new(result)
					}
					sums[r.Policy].add(r, none)
					if j == 1 || j == 2 {
						least = min(least, cost)
						continue
					}
					if j == 0 {
						continue
					}
					t.Logf("%-28s %-14s %s", filepath.Base(rec.File), r.Policy, one(r, none))
					if r.InvalidRequests > 0 {
						t.Errorf("%s: %s: %d invalid requests: %s", rec.File, r.Policy, r.InvalidRequests, r.FirstRefusal)
					}
					// What hides little on purpose may cost more than a mask that hides much.
					if cost > least*1.002 && (r.Policy == "auto" || r.Policy == "auto:frugal") {
						t.Errorf("%s: %s costs $%.3f, a rolling mask $%.3f", rec.File, r.Policy, cost, least)
					}
					if cost > none*1.0001 {
						t.Errorf("%s: %s costs $%.3f, doing nothing $%.3f", rec.File, r.Policy, cost, none)
					}
				}
			}
			for _, name := range names[1:] {
				sum := sums[name]
				lo, hi := bootstrap(costs[name])
				t.Logf("%-28s %-14s %s, 90%% of resamples %.3f to %.3f", "all", name, sum, lo, hi)
				if m, ok := marks[half][name]; ok && !policy.RaceDetector && (sum.cost/sum.none > m.cost || sum.refs() < m.refs || sum.own() < m.own || sum.lines() < m.lines) {
					t.Errorf("%s: %s, want at most %.3f, at least %.3f, %.3f, %.3f", name, sum, m.cost, m.refs, m.own, m.lines)
				}
			}
		})
	}
}

// shortRecordings are those of the odd half that are replayed under the race detector.
var shortRecordings = []string{
	"entire-cli/6d-123b9a5bc6-0.jsonl.gz", "entire-cli/e9-a4a3c25669-0.jsonl.gz",
	"agentv/26-9e1b9e5502-0.copilot.jsonl.gz", "pi-mono/large-session.jsonl.gz",
}

// replayHalf gives what the policies made of the recordings of one half whose
// prices are known.
func replayHalf(t *testing.T, dir, half string, read, write float64, names []string) []replay.RecordingReport {
	t.Helper()
	candidates, err := replay.Candidates(nil, names...)
	if err != nil {
		t.Fatal(err)
	}
	var roots []string
	from := []string{"entire-cli", "agentv", "nimbus", "pi-mono"}
	if policy.RaceDetector {
		from = shortRecordings
	}
	for _, name := range from {
		roots = append(roots, filepath.Join(dir, name))
	}
	report, err := replay.Run(t.Context(), func(yield func(*transcript.Recording) bool) {
		for rec, err := range transcript.Walk(roots...) {
			if err == nil && halfOf(rec.File) == half && !yield(rec) {
				return
			}
		}
	}, replay.Options{Candidates: candidates, CacheRead: &read, CacheWrite: &write})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(report.Recordings, func(r replay.RecordingReport) bool {
		return len(r.Results) != len(names) || r.Results[0].Split.Input() == 0
	})
}

// halfOf is the half that a recording is in, by the hash of its name.
func halfOf(file string) string {
	sum := sha256.Sum256([]byte(filepath.Base(file)))
	return [...]string{"even", "odd"}[sum[len(sum)-1]%2]
}

// result sums up what one policy cost and kept.
type result struct {
	cost, none                     float64
	nRefs, nOwn, nLines            int
	keptRefs, keptOwn, keptLines   int
	recallable, breaks, reductions int
	edits, blinds                  int
}

func (s *result) add(r *replay.Result, none float64) {
	s.cost += r.Split.Input()
	s.none += none
	s.nRefs += r.References
	s.keptRefs += r.ReferencesKept
	s.recallable += r.ReferencesRecallable
	s.nOwn += r.OwnReferences
	s.keptOwn += r.OwnReferencesKept
	s.nLines += r.QuotedLines
	s.keptLines += r.QuotedLinesKept
	s.breaks += r.CacheBreaks
	s.reductions += r.Reductions
	s.edits += r.Edits
	s.blinds += r.BlindEdits
}

func (s *result) refs() float64  { return share(s.keptRefs, s.nRefs) }
func (s *result) own() float64   { return share(s.keptOwn, s.nOwn) }
func (s *result) lines() float64 { return share(s.keptLines, s.nLines) }

func (s *result) blind() float64 { return 1 - share(s.edits-s.blinds, s.edits) }

func (s *result) String() string {
	return fmt.Sprintf("cost %.3f, first-hand %.3f (or recallable %.4f), own %.3f, lines %.3f, %d reductions, %d breaks",
		s.cost/s.none, s.refs(), share(s.keptRefs+s.recallable, s.nRefs), s.own(), s.lines(), s.reductions, s.breaks)
}

func one(r *replay.Result, none float64) *result {
	s := new(result)
	s.add(r, none)
	return s
}

func share(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}

// bootstrap gives the 5th and 95th percentile of the cost ratio over resamples
// of the recordings.
func bootstrap(costs [][2]float64) (lo, hi float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	ratios := make([]float64, 1000)
	for i := range ratios {
		var cost, none float64
		for range costs {
			c := costs[rng.IntN(len(costs))]
			cost, none = cost+c[0], none+c[1]
		}
		ratios[i] = cost / none
	}
	slices.Sort(ratios)
	return ratios[50], ratios[949]
}

// TestAutoReadPrices replays under other prices of cache reads and writes:
// where reading is cheap, there is less to save and a rewrite weighs more.
func TestAutoReadPrices(t *testing.T) {
	dir := recordings.Dir(t)
	// The more a write costs beside a read, the less there is to save: at 0.025 an entry of
	// one hour costs eighty times what reading it does.
	prices := []struct{ read, write, more, worst float64 }{
		{0.1, 1.25, 0, 1.0001}, {0.05, 1.25, 0.08, 1.0001}, {0.025, 1.25, 0.20, 1.0001}, {0.25, 1, 0, 1.0001},
	}
	halves := []string{"odd", "even"}
	if os.Getenv("FURL_MARKS") == "" {
		t.Log("only one half; with FURL_MARKS=1 both")
		halves = halves[:1]
	}
	if policy.RaceDetector {
		t.Log("only short recordings at two prices, since the race detector is slow; without it all")
		prices = prices[:2]
	}
	for _, half := range halves {
		t.Run(half, func(t *testing.T) {
			var usual float64
			for _, p := range prices {
				sum, worst := new(result), 0.0
				for _, rec := range replayHalf(t, dir, half, p.read, p.write, []string{"none", "auto"}) {
					for i := range rec.Results {
						rec.Results[i].Split.Compactions = 0 // the agent's own, which auto avoids at any price
					}
					none := rec.Results[0].Split.Input()
					sum.add(&rec.Results[1], none)
					worst = max(worst, rec.Results[1].Split.Input()/none)
				}
				cost := sum.cost / sum.none
				if usual == 0 {
					usual = cost
				}
				t.Logf("read %g, write %g: %s, dearest %.3f", p.read, p.write, sum, worst)
				if !policy.RaceDetector && cost > usual+p.more+1e-9 {
					t.Errorf("read %g, write %g: cost %.3f, at the usual prices %.3f", p.read, p.write, cost, usual)
				}
				if worst > p.worst {
					t.Errorf("read %g, write %g: a recording costs %.3f of doing nothing", p.read, p.write, worst)
				}
			}
		})
	}
}
