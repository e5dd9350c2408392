package recorded

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/index"
	"github.com/furlhq/furl/replay"
)

// A tuning knows the project of each recording, also of those that are not read again: the folder that it
// names, in its records or in its first message, else that of its file.
func TestTuningByProject(t *testing.T) {
	dir, at := t.TempDir(), filepath.Join(t.TempDir(), "index")
	claude := func(id, folder string) string {
		return strings.ReplaceAll(claudeText(id, "", 0, 3), `"cwd":"/p"`, `"cwd":"`+folder+`"`)
	}
	chat := func(first string) string {
		return `{"messages":[{"role":"user","content":"` + first + `"},{"role":"assistant","content":"Done."}],"model":"gpt-5.1"}` + "\n"
	}
	write(t, filepath.Join(dir, "logs", "1.jsonl"), claude("a", "/w/one"))
	write(t, filepath.Join(dir, "logs", "2.jsonl"), claude("b", "/w/two"))
	write(t, filepath.Join(dir, "logs", "3.jsonl"), claude("c", "/w/two/.worktrees/fix"))
	write(t, filepath.Join(dir, "logs", "4.jsonl"), chat("Working directory: /w/three"))
	write(t, filepath.Join(dir, "logs", "5.jsonl"), chat("Hello."))
	ageAll(t, dir, 1<<40)
	candidates, err := replay.Candidates(nil, "none", "rolling-mask-5")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{5, 0} { // recordings read
		source, err := Sources(nil, []string{dir})
		if err != nil {
			t.Fatal(err)
		}
		source.Index = index.Open(at)
		read := 0
		rep, err := replay.RunInputs(t.Context(), func(yield func(replay.Input) bool) {
			for in := range source.Inputs("") {
				if in.Recording != nil {
					read++
				}
				if !yield(in) {
					return
				}
			}
		}, replay.Options{Candidates: candidates})
		source.Index.Close()
		if err != nil || read != want {
			t.Fatalf("%d recordings read, want %d: %v", read, want, err)
		}
		h := replay.Tune(rep, replay.Wish{}).HeldOut
		if h == nil {
			t.Fatalf("no project was held out: %+v", rep.Recordings)
		}
		var got []string
		for _, p := range h.Projects {
			got = append(got, strings.Repeat(p.Project+" ", p.Recordings))
		}
		if got := strings.Join(got, ""); got != "logs one three two two " {
			t.Errorf("with %d recordings read, the projects are %q", read, got)
		}
	}
}
