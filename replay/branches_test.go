package replay

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/fidelity"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// A recording that returns to an abandoned branch is measured on that branch:
// its identifiers, lines and calls count, those of the other branch do not.
func TestRunSwitchesBranches(t *testing.T) {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user("Look at pkg/parse.go.")
	b.asks("0s")
	fork := b.says("Which part of pkg/parse.go?")
	b.user("All of it.")
	b.asks("10s")
	b.calls("c1", "read", `{"file_path":"pkg/parse.go"}`)
	first := b.result("c1", header)
	b.rewind(fork) // a second branch, of the same number of messages
	b.user("Only its tests.")
	b.asks("20s")
	b.calls("c2", "read", `{"file_path":"pkg/parse_test.go"}`)
	b.result("c2", "func TestOtherBranch(t *testing.T) { other_branch() }")
	b.rewind(first)
	b.asks("30s")
	// Two first-hand references, one own, one line and no repeated call. A
	// path with the second branch's messages has TestOtherBranch too.
	b.message(furl.RoleAssistant,
		furl.Block{Kind: furl.KindText, Text: "parseHeader returns Header, not TestOtherBranch; see pkg/parse.go."},
		furl.Block{Kind: furl.KindCall, ID: "c3", Name: "edit", Args: []byte(`{"old":"` + header + `"}`)})
	b.result("c3", "done")
	b.asks("40s")
	b.says("Done.")
	hidden := script{4: hide(4, "[gone]", 5)}
	rep := play(t, Options{Candidates: append(presets(t, none), hidden.candidate("p"))}, b.recording())
	for i, want := range []string{
		"refs 2/2+0 own 2/2+0 lines 1/1 refetches 0",
		"refs 1/2+1 own 2/2+0 lines 0/1 refetches 0",
	} {
		if got := kept(&rep.Totals[i]); got != want {
			t.Errorf("%s: %s, want %s", rep.Totals[i].Policy, got, want)
		}
	}
}

// After each rewind the tracker is the same as one built anew for the path.
func TestTrackerAfterRewinds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := randomTape(t, rt)
		if err := checkTracker(b.s, must(t, Options{Catalog: toyCatalog(t)}), new(int)); err != nil {
			rt.Fatal(err)
		}
	})
}

// Recordings with branches, each continued on all branches that it left.
func TestTrackerAfterRewindsRecordings(t *testing.T) {
	rewinds, switches := 0, 0
	dir := recordings.Dir(t)
	if raceDetector {
		dir = filepath.Join(dir, "aider")
	}
	for rec, err := range transcript.Walk(dir) {
		if errors.As(err, new(*transcript.UnknownFilesError)) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rec.Sessions {
			switches += returnToBranches(s.Log)
			if err := checkTracker(s, must(t, Options{}), &rewinds); err != nil {
				t.Errorf("%s: %v", filepath.Base(rec.File), err)
			}
		}
	}
	t.Logf("%d requests after rewinds, %d of them on a branch that was left", rewinds, switches)
	if switches == 0 {
		t.Error("no recording has branches")
	}
}

// returnToBranches continues a log on each branch that it left, with a reply that
// names what the first branch's messages name.
func returnToBranches(log *furl.Log) (n int) {
	var tips []furl.Seq
	for i := 2; i <= log.Len(); i++ {
		if _, ok := log.At(furl.Seq(i)).Body.(*furl.Head); ok {
			tips = append(tips, furl.Seq(i-1))
		}
	}
	if len(tips) == 0 {
		return 0
	}
	var said strings.Builder
	for _, r := range log.Path(tips[0]) {
		if m, ok := r.Body.(*furl.Message); ok {
			for i := range m.Blocks {
				said.WriteString(m.Blocks[i].Text + "\n")
			}
		}
	}
	reply := furl.TextMessage(furl.RoleAssistant, said.String())
	for _, tip := range tips {
		if _, err := log.Rewind(tip, time.Time{}, furl.Import); err != nil {
			continue // another head
		}
		asked, err := log.Append(log.Head(), time.Time{}, furl.Import, &furl.Exchange{})
		if err != nil {
			continue
		}
		if _, err := log.Append(asked.Seq, time.Time{}, furl.Import, reply); err == nil {
			n++
		}
	}
	return n
}

// checkTracker compares the tracker at the first request after each rewind with
// one built anew. It adds the number of comparisons to n.
func checkTracker(rec *transcript.Session, o *Options, n *int) error {
	s := newSession(rec, o)
	w := walker{s: s, rec: rec, o: o, state: new(furl.State), preamble: token.Part{}}
	rewound := false
	for seq := furl.Seq(1); int(seq) <= rec.Log.Len(); seq++ {
		r := rec.Log.At(seq)
		switch r.Body.(type) {
		case *furl.Head:
			rewound = true
		case *furl.Exchange:
			if !rewound {
				break
			}
			rewound = false
			*n++
			var anew fidelity.Tracker
			for _, p := range rec.Log.Path(r.Parent) {
				if m, ok := p.Body.(*furl.Message); ok {
					anew.Add(m)
				}
			}
			reply := replyOf(rec.Log, seq)
			if got, want := fmt.Sprint(*w.track.Reply(reply...)), fmt.Sprint(*anew.Reply(reply...)); got != want {
				return fmt.Errorf("request at record %d\n got %.500s\nwant %.500s", seq, got, want)
			}
		}
		if err := w.record(r); err != nil {
			return err
		}
	}
	return nil
}
