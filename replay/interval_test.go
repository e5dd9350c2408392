package replay

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/transcript"
)

// Half of a session says between which limits the other half costs.
func TestIntervals(t *testing.T) {
	if os.Getenv(recordings.Env) == "" {
		t.Skip(recordings.Env + " is not set")
	}
	candidates, err := Candidates(nil, none)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Options{Candidates: candidates}.complete()
	if err != nil {
		t.Fatal(err)
	}
	var inside, halves int
	var widths, errs []float64
	for _, file := range recordings.Files(t, "entire-cli/*.gz", "agentv/*.gz", "nimbus/*.gz", "pi-mono/*.gz", "cipher-box/*.gz", "context-evaluator/*.gz", "flutter-docker-image/*.gz", "fnox/*.gz", "hk/*.gz", "preloop/*.gz", "prsui/*.gz", "tij/*.gz", "wakil/*.gz") {
		rec, err := transcript.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, ts := range rec.Sessions {
			s, err := prepare(t.Context(), ts, o)
			if err != nil {
				t.Fatal(err)
			}
			r := &run{s: s, o: o, learns: true}
			if r.policy, err = candidates[0].New(&summarizer{r}); err != nil {
				t.Fatal(err)
			}
			if err := r.play(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.billed > .05 {
				errs = append(errs, math.Abs(s.fitted/s.billed-1))
			}
			n := len(s.asked) / 2
			if n < 5 || s.billed < .05 {
				continue
			}
			for _, half := range [][2][]asked{{s.asked[:n], s.asked[n:]}, {s.asked[n:], s.asked[:n]}} {
				l, k := lossesOf(half[0]), riskOf(half[1])
				low, high := l.within(&k)
				output := r.out.Split.Output / 2
				widths = append(widths, (high-low)/(k.cost+output))
				halves++
				if low <= k.cost && k.cost <= high {
					inside++
				}
			}
		}
	}
	slices.Sort(widths)
	slices.Sort(errs)
	t.Logf("%d of %d halves are inside; the median width is %.1f%% of the cost", inside, halves, 100*widths[halves/2])
	t.Logf("error of %d sessions: 90%% are below %.2f%%", len(errs), 100*errs[len(errs)*9/10])
}
