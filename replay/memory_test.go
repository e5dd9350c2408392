package replay

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/transcript"
)

// A replay holds one recording at a time, however many there are.
func TestRunHoldsOneRecording(t *testing.T) {
	c, err := Candidates(policy.NewSet(), "none", "auto")
	if err != nil {
		t.Fatal(err)
	}
	const files = 5
	var logs []weak.Pointer[furl.Log]
	recordings := func(yield func(*transcript.Recording) bool) {
		for i := range files {
			text := fmt.Sprintf(`{"model":"claude-opus-4-6","messages":[{"role":"user","content":"question %d"},{"role":"assistant","content":"answer"}]}`, i)
			rec, err := transcript.Read("x", bytes.NewReader([]byte(text)))
			if err != nil {
				t.Error(err)
				return
			}
			logs = append(logs, weak.Make(rec.Sessions[0].Log))
			if !yield(rec) {
				return
			}
		}
		runtime.GC()
		runtime.GC()
		held := 0
		for _, log := range logs[:files-1] {
			if log.Value() != nil {
				held++
			}
		}
		if held > 0 {
			t.Errorf("%d of %d recordings are still in memory", held, files-1)
		}
	}
	for _, timing := range []bool{false, true} {
		logs = nil
		rep, err := Run(t.Context(), recordings, Options{Candidates: c, Timing: timing})
		if err != nil || len(rep.Recordings) != files {
			t.Fatalf("%v, %v", rep, err)
		}
		if timing != (rep.Timing != nil) {
			t.Fatalf("timing %v: %+v", timing, rep.Timing)
		}
		if timing && (rep.Timing.Reading <= 0 || rep.Timing.Preparing <= 0 || len(rep.Timing.Policies) != 2 || rep.Timing.Policies[1].Policy != "auto" || rep.Timing.Policies[1].Seconds <= 0) {
			t.Errorf("%+v", rep.Timing)
		}
	}
}
