package replay

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/keepalive"
	"github.com/furlhq/furl/transcript"
)

// TestPauses counts the pauses of recorded sessions, for the table in
// docs/internals/cost-model.md: how many of those that last some time end before twice
// that time. The end of a session counts as a pause that does not end.
//
//	FURL_RECORDINGS=folder go test ./replay -run TestPauses -v
func TestPauses(t *testing.T) {
	dir := recordings.Dir(t)
	o, err := Options{}.complete()
	if err != nil {
		t.Fatal(err)
	}
	const forever = 1000 * time.Hour
	var pauses []time.Duration
	var more [4]int // stretches without a pause of more than an hour, by their pauses; 3: or more
	for rec, err := range transcript.Walk(filepath.Join(dir, "entire-cli"), filepath.Join(dir, "agentv"), filepath.Join(dir, "nimbus"), filepath.Join(dir, "pi-mono")) {
		if err != nil {
			continue
		}
		for _, ts := range rec.Sessions {
			s, err := prepare(t.Context(), ts, o)
			if err != nil {
				t.Fatal(err)
			}
			short := 0
			for i, q := range s.requests {
				pause := forever
				if i+1 < len(s.requests) {
					pause = s.requests[i+1].at.Sub(q.at)
				}
				pauses = append(pauses, pause)
				switch {
				case pause > time.Hour:
					more[min(short, len(more)-1)]++
					short = 0
				case pause > 5*time.Minute:
					short++
				}
			}
		}
	}
	t.Logf("stretches without a pause of more than an hour: %d with no pause of more than five minutes, %d with one, %d with two, %d with more", more[0], more[1], more[2], more[3])
	for _, long := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, 2 * time.Hour} {
		longer, ended := 0, 0
		for _, p := range pauses {
			if p > long {
				longer++
				if p <= 2*long {
					ended++
				}
			}
		}
		share, expected := float64(ended)/float64(max(1, longer)), keepalive.Chance(long, 0, long)
		t.Logf("longer than %v: %d; ended before twice that: %d, %.2f; expected %.2f", long, longer, ended, share, expected)
		if longer >= 50 && (share < expected/2 || share > 2*expected) {
			t.Errorf("of %d pauses of %v, %.2f ended before twice that, expected %.2f", longer, long, share, expected)
		}
	}
}
