package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// A database in the schema of Crush, written by hand: a sub-agent, images, a failed result, a call without a result,
// a summary, a command of the user, and a broken message.
func TestCrushDatabase(t *testing.T) {
	text, err := os.ReadFile("testdata/crush.sql")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "project")
	if err := os.MkdirAll(filepath.Join(folder, ".crush"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, ".crush", "crush.db")
	newDatabase(t, path, string(text))
	list := walked(t, path)
	if len(list) != 1 || len(list[0].Sessions) != 2 || list[0].Agent != "Crush" {
		t.Fatalf("%v, want a session and its sub-agent", list)
	}
	main, helper := list[0].Sessions[0], list[0].Sessions[1]
	if main.Project != folder || main.Title != "Look around" || main.Model != "claude-sonnet-4-5" || main.Wire != furl.FormatAnthropic || helper.Parent != "c1" || main.Compactions != 1 {
		t.Errorf("project %q, title %q, model %q, wire %q, parent %q, %d compactions", main.Project, main.Title, main.Model, main.Wire, helper.Parent, main.Compactions)
	}
	got := contentsOf(main)
	if got.requests != 4 || got.calls != 4 || got.images != 2 || got.error != 2 || contentsOf(helper).requests != 1 {
		t.Errorf("%+v", got)
	}
	wantShown(t, main, "user The user looked at a.txt.", "user And now? $ ls\na.txt\n(exit code 0)", "assistant Done.")
	if notes := strings.Join(list[0].Notes, "|"); !strings.Contains(notes, "$0.0123") || len(list[0].Skipped) != 1 {
		t.Errorf("notes %q, skipped %v", notes, list[0].Skipped)
	}
	checkRequests(t, main, true)
}
