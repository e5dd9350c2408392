package policy_test

import (
	"os"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

// TestDialSensitivity prints how much the result depends on each number of auto's dial: the cost
// and what stays visible with half of it and twice as much, for the table in
// docs/internals/cost-model.md. Whatever the numbers are, auto costs less than doing nothing,
// and the provider accepts its requests.
//
//	FURL_MARKS=1 FURL_RECORDINGS=folder go test ./policy -run TestDialSensitivity -v
func TestDialSensitivity(t *testing.T) {
	files := []string{"entire-cli/37-*.jsonl.gz"}
	if os.Getenv("FURL_MARKS") != "" {
		files = append(files, "entire-cli/6d-*.jsonl.gz", "entire-cli/aa-*.jsonl.gz", "entire-cli/c1-*.jsonl.gz", "entire-cli/e9-*.jsonl.gz", "agentv/1f-*.gz", "agentv/33-*.gz", "nimbus/*.gz", "pi-mono/*.gz")
	} else {
		t.Log("only one recording; with FURL_MARKS=1 nine")
	}
	candidates, err := replay.Candidates(nil, "none", "auto")
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range policy.DialFields() {
		for _, by := range []struct {
			name   string
			factor float64
		}{{"half", 0.5}, {"twice", 2}} {
			c := candidates[1]
			c.Name = field + ", " + by.name
			p := policy.WithDial(field, by.factor)
			c.New = func(policy.Summarizer) (furl.Policy, error) { return p, nil }
			candidates = append(candidates, c)
		}
	}
	read, write := 0.1, 1.25
	rep, err := replay.Run(t.Context(), func(yield func(*transcript.Recording) bool) {
		for _, file := range recordings.Files(t, files...) {
			rec, err := transcript.ReadFile(file)
			if err != nil {
				t.Error(err)
				return
			}
			if !yield(rec) {
				return
			}
		}
	}, replay.Options{Candidates: candidates, CacheRead: &read, CacheWrite: &write})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(candidates); i++ {
		sum := new(result)
		for _, rec := range rep.Recordings {
			r := &rec.Results[i]
			if r.InvalidRequests > 0 {
				t.Errorf("%s: %s: %d invalid requests: %s", rec.File, r.Policy, r.InvalidRequests, r.FirstRefusal)
			}
			sum.add(r, rec.Results[0].Split.Input())
		}
		if t.Logf("%-20s %s", candidates[i].Name, sum); sum.cost >= sum.none {
			t.Errorf("%s costs %.3f of doing nothing", candidates[i].Name, sum.cost/sum.none)
		}
	}
}
