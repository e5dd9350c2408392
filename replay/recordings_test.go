package replay

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl/internal/demo"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/transcript"
)

// withUsage are the recordings with the provider's cache reads.
var withUsage = []string{"entire-cli/*.jsonl.gz", "agentv/*.codex.jsonl.gz", "nimbus/*.gz", "pi-mono/*.gz"}

// TestCacheAgainstReports compares the simulated cache with what providers reported:
// the input cost of policy none with that of the recorded usage, and says what it
// would be with entries of five minutes only.
func TestCacheAgainstReports(t *testing.T) {
	files := recordings.Files(t, withUsage...)
	if raceDetector {
		t.Log("only two recordings, since the race detector is slow; without it all")
		files = recordings.Files(t, "entire-cli/bc-*.jsonl.gz", "nimbus/*.gz")
	}
	var all bills
	for _, file := range files {
		rec, err := transcript.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum, short := billsOf(t, rec, must(t, Options{})), billsOf(t, rec, must(t, Options{CacheLifetime: 5 * time.Minute}))
		t.Logf("%-34s recorded $%6.2f, simulated $%6.2f %+5.1f%%, with five minutes %+5.1f%%",
			filepath.Base(file), sum.recorded, sum.simulated, sum.off(), short.off())
		limit := 13.0
		switch filepath.Base(file) {
		case "large-session.jsonl.gz":
			limit = 50 // the client lost its cache with each message of the user
		case "43-2b48f6b6e6-0.jsonl.gz":
			limit = 25 // misses seconds after a hit, instructions included
		}
		if off := sum.off(); math.Abs(off) > limit {
			t.Errorf("%s: %+.1f%%, want at most %v%%", filepath.Base(file), off, limit)
		}
		all.add(sum)
	}
	t.Logf("all: recorded $%.2f, simulated $%.2f, %+.1f%%", all.recorded, all.simulated, all.off())
	if !raceDetector && math.Abs(all.off()) > 10 {
		t.Errorf("all recordings: %+.1f%%, want at most 10%%", all.off())
	}
}

// bills are the input costs of a recording, in dollars.
type bills struct{ recorded, simulated float64 }

func (b bills) off() float64 { return 100 * (b.simulated/b.recorded - 1) }

func (b *bills) add(c bills) {
	b.recorded += c.recorded
	b.simulated += c.simulated
}

// billsOf computes the input cost of policy none as Run does.
func billsOf(t *testing.T, rec *transcript.Recording, o *Options) (sum bills) {
	t.Helper()
	for _, ts := range rec.Sessions {
		s, err := prepare(t.Context(), ts, o)
		if err != nil {
			t.Fatal(err)
		}
		sum.add(billOf(t, s, o))
	}
	return sum
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
		m, _ := o.model(q.ex.Model, &transcript.Session{Wire: s.codec.Format()})
		sum.add(bills{price.OfRequest(&m, u, q.at), r.each[i].dollars})
	}
	sum.simulated -= r.out.Split.Compactions // their requests are not recorded ones
	return sum
}

// TestRecordings replays all recordings under all presets at three windows, and
// checks for what must never happen. Under the race detector only short recordings are
// replayed, each at one of the windows in turn.
func TestRecordings(t *testing.T) {
	dir := recordings.Dir(t)
	windows := []int{32_000, 128_000, 200_000}
	if raceDetector {
		t.Log("one window for each short recording, since the race detector is slow; without it all three for all")
	}
	files, requests := 0, 0
	g := newGolden(t, "testdata/requests.golden")
	for rec, err := range transcript.Walk(dir) {
		if errors.As(err, new(*transcript.UnknownFilesError)) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(rec.File)
		if len(rec.Skipped) > 0 && name != "edge_cases.jsonl" {
			t.Errorf("%s: skipped %v", name, rec.Skipped)
		}
		o := Options{Windows: windows}
		if raceDetector && isLong(rec) {
			continue
		}
		if raceDetector {
			o.Windows = windows[files%3:][:1]
		}
		o.sent = g.sent
		rep := replayAll(t, o, rec)
		g.compare(rec)
		for i := range rep.Recordings[0].Results {
			checkResult(t, name, &rep.Recordings[0].Results[i])
		}
		files++
		requests += rep.Recordings[0].Requests
	}
	g.finish(!raceDetector)
	t.Logf("%d recordings with %d requests", files, requests)
}

// isLong reports whether a recording is too long for tests under the race detector.
func isLong(rec *transcript.Recording) bool {
	n := 0
	for _, s := range rec.Sessions {
		n += s.Messages
	}
	return n > 250
}

func replayAll(t *testing.T, o Options, rec *transcript.Recording) *Report {
	t.Helper()
	rep, err := Run(t.Context(), slices.Values([]*transcript.Recording{rec}), o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func checkResult(t *testing.T, file string, r *Result) {
	t.Helper()
	if r.InvalidRequests > 0 {
		t.Errorf("%s, %s at %d: %d invalid requests, first: %s", file, r.Policy, r.Window, r.InvalidRequests, r.FirstRefusal)
	}
	if r.Policy != none {
		if r.Overflows > 0 {
			t.Errorf("%s, %s at %d: %d overflows", file, r.Policy, r.Window, r.Overflows)
		}
		return
	}
	if r.ReferencesKept < r.References || r.OwnReferencesKept < r.OwnReferences || r.QuotedLinesKept < r.QuotedLines {
		t.Errorf("%s: policy none lost something: %s", file, kept(r))
	}
	if r.Reductions > 0 || r.Backstops > 0 || r.Impossible > 0 {
		t.Errorf("%s: policy none acted: %+v", file, r)
	}
}

// Two replays of a recording have the same result, in spite of concurrency.
func TestDeterminism(t *testing.T) {
	recs := []*transcript.Recording{demo.Recording()}
	if dir := os.Getenv(recordings.Env); dir != "" {
		for _, file := range recordings.Files(t, "entire-cli/c1-*.jsonl.gz", "nimbus/*.gz", "swe-agent/test-repo-i1.traj") {
			rec, err := transcript.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			recs = append(recs, rec)
		}
	}
	o := Options{Windows: []int{32_000}}
	for _, rec := range recs {
		first, second := replayAll(t, o, rec), replayAll(t, o, rec)
		if diff := cmp.Diff(first, second, cmp.AllowUnexported(Result{}, RecordingReport{}, bought{}, risk{})); diff != "" {
			t.Errorf("%s: first and second run differ:\n%s", rec.File, diff)
		}
		checkSeries(t, first)
	}
}

// checkSeries compares the series of each session with the sums.
func checkSeries(t *testing.T, rep *Report) {
	t.Helper()
	for i := range rep.Recordings[0].Results {
		r := &rep.Recordings[0].Results[i]
		requests, sent, acted := 0, 0, 0
		for _, s := range r.Series {
			requests += len(s.Points)
			for _, p := range s.Points {
				if !p.Refused {
					sent += p.Tokens
				}
				acted += len(p.Reduced)
			}
		}
		if requests != r.Requests || sent != r.TokensSent || acted != r.Reductions {
			t.Errorf("%s: the series has %d requests, %d tokens, %d reductions; the result %d, %d, %d",
				r.Policy, requests, sent, acted, r.Requests, r.TokensSent, r.Reductions)
		}
	}
}
