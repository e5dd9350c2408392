package policy_test

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

// projectMarks are what auto's dials must hold over the recordings of thirteen projects, with
// entries of five minutes, at the usual prices. docs/internals/cost-model.md has what was measured.
var projectMarks = map[string]struct{ cost, refs, own, lines, blind float64 }{
	"auto:frugal":   {0.51, 0.92, 0.98, 0.85, 0.23},
	"auto":          {0.565, 0.98, 0.99, 0.925, 0.115},
	"auto:faithful": {0.635, 0.985, 0.99, 0.965, 0.05},
}

// TestProjects replays the recordings of all projects: those of FURL_RECORDINGS and, where
// they are beside it, those of its sibling folder projects. No recording costs more than
// doing nothing under any dial, and the dials are in order.
//
//	FURL_RECORDINGS=folder go test ./policy -run TestProjects -v
func TestProjects(t *testing.T) {
	if policy.RaceDetector {
		t.Skip("replays without concurrency that other tests lack; .ci/run has it without the race detector")
	}
	dir := recordings.Dir(t)
	var projects []string
	for _, name := range []string{"entire-cli", "agentv", "nimbus", "pi-mono"} {
		projects = append(projects, filepath.Join(dir, name))
	}
	more, err := filepath.Glob(filepath.Join(dir, "..", "projects", "*", "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range more {
		projects = append(projects, filepath.Dir(file))
	}
	if len(more) == 0 {
		t.Log("there is no folder projects beside FURL_RECORDINGS: the marks are not compared")
	}
	names := []string{"none", "auto:frugal", "auto", "auto:faithful"}
	candidates, err := replay.Candidates(nil, names...)
	if err != nil {
		t.Fatal(err)
	}
	read, write := 0.1, 1.25
	sums := make(map[string]map[string]*result) // by project and policy
	sum := func(project string, r *replay.Result, none float64) {
		if sums[project] == nil {
			sums[project] = make(map[string]*result)
		}
		if sums[project][r.Policy] == nil {
			sums[project][r.Policy] = new(result)
		}
		sums[project][r.Policy].add(r, none)
	}
	report, err := replay.Run(t.Context(), func(yield func(*transcript.Recording) bool) {
		for rec, err := range transcript.Walk(projects...) {
			if err == nil && !yield(rec) {
				return
			}
		}
	}, replay.Options{Candidates: candidates, CacheRead: &read, CacheWrite: &write, CacheLifetime: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	disorder := 0
	for i := range report.Recordings {
		rec := &report.Recordings[i]
		none := rec.Results[0].Split.Input()
		if len(rec.Results) != len(names) || none == 0 {
			continue
		}
		project := filepath.Base(filepath.Dir(rec.File))
		for j := range rec.Results[1:] {
			r := &rec.Results[j+1]
			sum(project, r, none)
			sum("all", r, none)
			if r.InvalidRequests > 0 {
				t.Errorf("%s: %s: %d invalid requests: %s", rec.File, r.Policy, r.InvalidRequests, r.FirstRefusal)
			}
			if r.Split.Input() > none*1.0001 {
				t.Errorf("%s: %s costs $%.3f, doing nothing $%.3f", rec.File, r.Policy, r.Split.Input(), none)
			}
		}
		frugal, auto, faithful := &rec.Results[1], &rec.Results[2], &rec.Results[3]
		if frugal.Split.Input() > auto.Split.Input() || faithful.QuotedLinesKept < auto.QuotedLinesKept || faithful.BlindEdits > auto.BlindEdits ||
			faithful.ReferencesKept < auto.ReferencesKept || faithful.OwnReferencesKept < auto.OwnReferencesKept {
			disorder++
			t.Logf("%s: the dials are not in order: cost %.3f, %.3f, %.3f; lines %d, %d; blind %d, %d; identifiers %d, %d; own %d, %d", rec.File,
				frugal.Split.Input()/none, auto.Split.Input()/none, faithful.Split.Input()/none, auto.QuotedLinesKept, faithful.QuotedLinesKept,
				auto.BlindEdits, faithful.BlindEdits, auto.ReferencesKept, faithful.ReferencesKept, auto.OwnReferencesKept, faithful.OwnReferencesKept)
		}
	}
	if disorder > len(report.Recordings)/8 {
		t.Errorf("the dials are not in order on %d of %d recordings", disorder, len(report.Recordings))
	}
	for _, name := range names[1:] {
		least, most := math.Inf(1), math.Inf(-1) // of the projects
		for _, project := range projects {
			if s := sums[filepath.Base(project)][name]; s != nil {
				t.Logf("%-22s %-14s %s, blind %.1f%%", filepath.Base(project), name, s, 100*s.blind())
				least, most = min(least, s.cost/s.none), max(most, s.cost/s.none)
			}
		}
		s, m := sums["all"][name], projectMarks[name]
		t.Logf("%-22s %-14s %s, blind %.1f%%, projects %.3f to %.3f", "all", name, s, 100*s.blind(), least, most)
		if len(more) > 0 && (s.cost/s.none > m.cost || s.refs() < m.refs || s.own() < m.own || s.lines() < m.lines || s.blind() > m.blind) {
			t.Errorf("%s: %s, blind %.3f; want at most %.3f, at least %.3f, %.3f, %.3f, at most %.3f", name, s, s.blind(), m.cost, m.refs, m.own, m.lines, m.blind)
		}
	}
}
