package policy_test

import (
	"path/filepath"
	"testing"

	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

// TestKeepAliveMarks measures what pings save under auto, at the prices of
// TestAutoMarks. On the recordings of Claude Code they must save 0.02 of the cost as
// recorded (0.024 when this was written), with no less visible than without them.
//
//	FURL_RECORDINGS=folder go test ./policy -run TestKeepAliveMarks -v
func TestKeepAliveMarks(t *testing.T) {
	dir := recordings.Dir(t)
	from := []string{"entire-cli", "agentv", "nimbus", "pi-mono"}
	if policy.RaceDetector { // .ci/run replays all of them without, and compares with the marks
		from = shortRecordings
	}
	var roots []string
	for _, name := range from {
		roots = append(roots, filepath.Join(dir, name))
	}
	candidates, err := replay.Candidates(nil, "none", "auto")
	if err != nil {
		t.Fatal(err)
	}
	read, write := 0.1, 1.25
	report, err := replay.Run(t.Context(), func(yield func(*transcript.Recording) bool) {
		for rec, err := range transcript.Walk(roots...) {
			if err == nil && !yield(rec) {
				return
			}
		}
	}, replay.Options{Candidates: candidates, CacheRead: &read, CacheWrite: &write, KeepAlive: 4, HourCache: protocol.HourNever})
	if err != nil {
		t.Fatal(err)
	}
	type sums struct {
		result
		pings    int
		pingCost float64
	}
	groups := make(map[string]map[string]*sums) // by group and policy
	for i := range report.Recordings {
		rec := &report.Recordings[i]
		none := rec.Results[0].Split.Input()
		for _, group := range []string{halfOf(rec.File), rec.Agent} {
			if groups[group] == nil {
				groups[group] = make(map[string]*sums)
			}
			for j := range rec.Results {
				r := &rec.Results[j]
				if groups[group][r.Policy] == nil {
					groups[group][r.Policy] = new(sums)
				}
				s := groups[group][r.Policy]
				s.add(r, none)
				s.pings += r.Pings
				s.pingCost += r.PingCost
			}
		}
		t.Logf("%-28s none %.3f, auto %.3f, with %d pings %.3f", filepath.Base(rec.File), rec.Results[1].Split.Input()/none,
			rec.Results[2].Split.Input()/none, rec.Results[3].Pings, rec.Results[3].Split.Input()/none)
	}
	for _, group := range []string{"even", "odd", "Claude Code"} {
		for _, name := range []string{"none+keep-alive", "auto", "auto+keep-alive"} {
			s := groups[group][name]
			if s == nil {
				continue
			}
			t.Logf("%-12s %-16s %s, %d pings %.4f", group, name, s, s.pings, s.pingCost/s.none)
		}
	}
	without, with := groups["Claude Code"]["auto"], groups["Claude Code"]["auto+keep-alive"]
	if saved := (without.cost - with.cost) / with.none; !policy.RaceDetector && saved < 0.02 {
		t.Errorf("pings save %.3f of the cost as recorded, want 0.02", saved)
	}
	const noise = 0.001 // pings move the times of reductions
	if with.refs() < without.refs()-noise || with.own() < without.own()-noise || with.lines() < without.lines()-noise {
		t.Errorf("less is visible with pings: %s, without %s", with, without)
	}
}
