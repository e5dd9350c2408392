package replay

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/recordings"
	"github.com/furlhq/furl/transcript"
)

// withUsage are the recordings that say what the provider read from its cache.
var withUsage = []string{"entire-cli/*.jsonl.gz", "agentv/*.codex.jsonl.gz", "nimbus/*.gz", "pi-mono/*.gz"}

// TestCacheAgainstReports holds the simulated cache to what the provider
// reported: input cost of policy none against that of the recorded usage. A
// client that asks for entries of one hour is simulated as what it is here,
// which Run does not do.
func TestCacheAgainstReports(t *testing.T) {
	var all bills
	for _, file := range recordings.Files(t, withUsage...) {
		rec, err := transcript.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum, asRecorded := billsOf(t, rec)
		t.Logf("%-34s recorded $%6.2f, simulated $%6.2f %+5.1f%%, with the recorded lifetime %+5.1f%%",
			filepath.Base(file), sum.recorded, sum.simulated, sum.off(), asRecorded.off())
		limit := 13.0
		switch filepath.Base(file) {
		case "large-session.jsonl.gz":
			limit = 50 // the client lost its cache with each message of the user
		case "43-2b48f6b6e6-0.jsonl.gz":
			limit = 25 // misses seconds after a hit, instructions included
		}
		if off := asRecorded.off(); math.Abs(off) > limit {
			t.Errorf("%s: %+.1f%%, want at most %v%%", filepath.Base(file), off, limit)
		}
		all.add(sum)
	}
	t.Logf("all: recorded $%.2f, simulated $%.2f, %+.1f%%", all.recorded, all.simulated, all.off())
	if math.Abs(all.off()) > 10 {
		t.Errorf("all recordings: %+.1f%%, want at most 10%%", all.off())
	}
}

// bills are the input cost of a recording, in dollars.
type bills struct{ recorded, simulated float64 }

func (b bills) off() float64 { return 100 * (b.simulated/b.recorded - 1) }

func (b *bills) add(c bills) {
	b.recorded += c.recorded
	b.simulated += c.simulated
}

// billsOf bills policy none as Run does, and with the lifetime of entries that
// each session's client asked for.
func billsOf(t *testing.T, rec *transcript.Recording) (sum, asRecorded bills) {
	t.Helper()
	o := must(t, Options{})
	for _, ts := range rec.Sessions {
		s, err := prepare(t.Context(), ts, o)
		if err != nil {
			t.Fatal(err)
		}
		five := billOf(t, s, o)
		hour := five
		if asHourly(s) {
			hour = billOf(t, s, o)
		}
		sum.add(five)
		asRecorded.add(hour)
	}
	return sum, asRecorded
}

func billOf(t *testing.T, s *session, o *Options) (sum bills) {
	t.Helper()
	none, err := presets(t, none)[0].New(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{s: s, o: o, policy: none}
	if err := r.play(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, q := range s.requests {
		u := q.ex.Usage
		if u.Prompt() == 0 {
			continue
		}
		u.Output = 0
		sum.add(bills{q.model.Cost(u), r.each[i].dollars})
	}
	return sum
}

// asHourly gives a session whose client asked for entries of one hour such
// entries, at their price.
func asHourly(s *session) bool {
	var sum furl.Usage
	for _, q := range s.requests {
		sum.CacheWrite += q.ex.Usage.CacheWrite
		sum.CacheWrite1h += q.ex.Usage.CacheWrite1h
	}
	if sum.CacheWrite1h <= sum.CacheWrite {
		return false
	}
	for _, q := range s.requests {
		q.model.Caching.Lifetime = time.Hour
		q.model.Prices.CacheWrite = q.model.Prices.CacheWrite1h
	}
	return true
}
