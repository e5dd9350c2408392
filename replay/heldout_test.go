package replay

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// inProjects sets the projects of the recordings of a report, in order.
func inProjects(rep *Report, projects ...string) *Report {
	for i, p := range projects {
		rep.Recordings[i].Project = p
	}
	return rep
}

// Each project is measured with what the others choose, not with its own choice.
func TestTuneHeldOut(t *testing.T) {
	policies := []string{"none", "a", "b"}
	kind := [][3]int{{10, 100, 100}, {4, 100, 90}, {6, 100, 100}} // a suits it
	odd := [][3]int{{10, 100, 100}, {2, 60, 40}, {9, 98, 90}}     // a keeps too little
	rep := inProjects(tuned(policies, kind, kind, odd, kind), "/w/one", "/w/two", "/w/three", "/w/one")
	for i := range rep.Recordings[2].Results { // edits are in one project only
		r := &rep.Recordings[2].Results[i]
		r.Edits, r.BlindEdits = 20, []int{0, 8, 1}[i]
	}
	got := Tune(rep, Wish{})
	want := &HeldOut{
		Projects: []HeldProject{
			// On three and two, a has 8 of 20 edits blind and 130 of 200 lines; b has 1 and 190.
			{Project: "one", Recordings: 2, Chosen: "b", Outcome: Outcome{Cost: 0.6, Names: 1, Lines: 1}, Fits: true},
			{Project: "three", Recordings: 1, Chosen: "a", Outcome: Outcome{Cost: 0.2, Names: 0.6, Lines: 0.4, Blind: 0.4}},
			{Project: "two", Recordings: 1, Chosen: "b", Outcome: Outcome{Cost: 0.6, Names: 1, Lines: 1}, Fits: true},
		},
		// (12 + 2 + 6) of 40; 360 identifiers and 340 lines of 400.
		Pooled: Outcome{Cost: 0.5, Names: 0.9, Lines: 0.85, Blind: 0.4},
		Least:  Outcome{Cost: 0.2, Names: 0.6, Lines: 0.4, Blind: 0.4},
		Most:   Outcome{Cost: 0.6, Names: 1, Lines: 1, Blind: 0.4}, // two projects have no edits to count
	}
	if !reflect.DeepEqual(got.HeldOut, want) {
		t.Errorf("held out\n%+v, want\n%+v", got.HeldOut, want)
	}
	if got.Chosen != "b" {
		t.Errorf("chose %q on all, want b", got.Chosen)
	}
	const text = "Chosen on the other projects and measured on each in turn (3 projects): 50% of the cost as recorded (20% to 60%), 90% of the identifiers (60% to 100%), 85% of the quoted lines (40% to 100%), 40% of the edits blind (40% to 40%). The choice is within these limits in 2 projects."
	if s := got.String(); !strings.HasSuffix(s, " "+text) || !strings.Contains(s, "b, 68% of the cost as recorded (chosen and measured on the same recordings).") {
		t.Errorf("the tuning says %q, want at its end %q", s, text)
	}
	// The order of the recordings makes no difference.
	slices.Reverse(rep.Recordings)
	if again := Tune(rep, Wish{}); !reflect.DeepEqual(again.HeldOut, want) {
		t.Errorf("in the other order\n%+v, want\n%+v", again.HeldOut, want)
	}
}

// Where the others have no choice, a project counts as recorded.
func TestTuneHeldOutWithoutChoice(t *testing.T) {
	policies := []string{"a", "b"} // as recorded need not be among them
	good, bad := [][3]int{{4, 100, 100}, {5, 100, 100}}, [][3]int{{4, 80, 50}, {5, 80, 50}}
	rep := inProjects(tuned(policies, good, bad, good, good, good), "/w/x", "/w/y", "/w/z", "/w/x", "/w/x")
	h := Tune(rep, Wish{Lines: 0.8}).HeldOut
	if h == nil {
		t.Fatal("nothing was held out")
	}
	x := HeldProject{Project: "x", Recordings: 3, Outcome: Outcome{Cost: 1, Names: 1, Lines: 1}}
	if h.Projects[0] != x {
		t.Errorf("%+v, want %+v", h.Projects[0], x)
	}
	// On x and y, a keeps 380 of 400 identifiers and 350 lines, on y and z 180 of 200 identifiers.
	y := HeldProject{Project: "y", Recordings: 1, Chosen: "a", Outcome: Outcome{Cost: 0.4, Names: 0.8, Lines: 0.5}}
	if h.Projects[1] != y {
		t.Errorf("%+v, want %+v", h.Projects[1], y)
	}
	if s := h.String(); !strings.HasSuffix(s, " The choice is within these limits in 1 project. Where the others have none (1 project), the recordings count as they are.") {
		t.Errorf("it says %q", s)
	}
}

// A choice that sends invalid requests or overflows on the project held out is no success there, though
// it saves.
func TestTuneHeldOutUnsound(t *testing.T) {
	policies := []string{"none", "a", "b"}
	alike := [][3]int{{10, 100, 100}, {4, 100, 100}, {6, 100, 100}}
	rep := inProjects(tuned(policies, alike, alike, alike), "/w/x", "/w/y", "/w/z")
	rep.Recordings[0].Results[1].InvalidRequests = 2
	rep.Recordings[1].Results[2].Overflows = 3
	rep.Recordings[1].Results[0].Impossible = 1
	h := Tune(rep, Wish{}).HeldOut
	want := []HeldProject{
		{Project: "x", Recordings: 1, Chosen: "a", Outcome: Outcome{Cost: 0.4, Names: 1, Lines: 1}, Refused: 2},
		{Project: "y", Recordings: 1, Chosen: "b", Outcome: Outcome{Cost: 0.6, Names: 1, Lines: 1}, Overflows: 3},
		{Project: "z", Recordings: 1, Outcome: Outcome{Cost: 1, Names: 1, Lines: 1}},
	}
	if !reflect.DeepEqual(h.Projects, want) {
		t.Errorf("%+v, want %+v", h.Projects, want)
	}
	// A request that does not fit has no price to compare with.
	if s := h.String(); strings.Contains(s, "cost") {
		t.Errorf("it names a cost: %q", s)
	}
}

// Of fewer than three projects, nothing is said.
func TestTuneFewProjects(t *testing.T) {
	policies := []string{"none", "a"}
	alike, empty := [][3]int{{10, 100, 100}, {4, 100, 100}}, [][3]int{{0, 0, 0}, {0, 0, 0}}
	rep := inProjects(tuned(policies, alike, alike, alike, empty), "/w/x", "/w/y", "/v/X", "/w/z")
	for i := range rep.Recordings[3].Results {
		rep.Recordings[3].Results[i].noneAll = bought{} // nothing was sent in z
	}
	got := Tune(rep, Wish{})
	if got.HeldOut != nil || strings.Contains(got.String(), "project") {
		t.Errorf("held out %+v: %s", got.HeldOut, got)
	}
}

func TestProjectOf(t *testing.T) {
	for _, tt := range []struct{ project, file, want string }{
		{"/home/me/src/cli", "/r/a.jsonl", "cli"},
		{`C:\Users\Me\src\Cli`, "/r/a.jsonl", "cli"},
		{"/home/me/src/cli/.worktrees/alex/fix", "/r/a.jsonl", "cli"},
		{"/home/me/src/cli/.claude/worktrees/fix", "/r/a.jsonl", "cli"},
		{"/home/me/.codex/worktrees/9a6a/cli", "/r/a.jsonl", "cli"},
		{"/home/me/.claude", "/r/a.jsonl", ".claude"},
		{"", "/r/chats/a.jsonl", "chats"},
		{"", "a.jsonl", "."},
		{"/", "/r/a.jsonl", ""},
	} {
		if got := projectOf(&RecordingReport{Project: tt.project, File: tt.file}); got != tt.want {
			t.Errorf("%q in %s is %q, want %q", tt.project, tt.file, got, tt.want)
		}
	}
}
