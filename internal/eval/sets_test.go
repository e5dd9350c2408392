package eval

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/furlhq/furl/internal/dev/needs"
)

// The hidden tests of each built-in task fail as the agent gets it, and pass with the
// reference solution in testdata, which the binary does not have.
func TestSets(t *testing.T) {
	needs.Shell(t)
	for _, set := range SetNames {
		t.Run(set, func(t *testing.T) {
			if command := program[set][0]; !found(command) {
				t.Skipf("needs the command %s", command)
			}
			dir := t.TempDir()
			if err := WriteSet(dir, set); err != nil {
				t.Fatal(err)
			}
			tasks, err := LoadTasks(dir)
			if err != nil {
				t.Fatal(err)
			}
			home := t.TempDir()
			cache := "" // the standard library is compiled already
			if set == "go" {
				out, err := exec.Command("go", "env", "GOCACHE").Output()
				if err != nil {
					t.Fatal(err)
				}
				cache = "GOCACHE='" + strings.TrimSpace(string(out)) + "' "
			}
			for i := range tasks {
				t.Run(tasks[i].Name, func(t *testing.T) { testSetTask(t, &tasks[i], set, home, cache) })
			}
		})
	}
}

// testSetTask checks a task before and after its solution, as a run does. prefix begins
// the check.
func testSetTask(t *testing.T, task *Task, set, home, prefix string) {
	solution, err := txtar.ParseFile(filepath.Join("testdata", "solutions", set, task.Name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	s := &sandbox{copy: filepath.Join(root, "copy"), home: home, temp: filepath.Join(root, "temp"), logs: filepath.Join(root, "logs")}
	for _, dir := range []string{s.copy, s.temp, s.logs} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyInto(s.copy, task.Repository); err != nil {
		t.Fatal(err)
	}
	if err := copyInto(s.copy, task.CheckFiles); err != nil {
		t.Fatal(err)
	}
	check := func() (exit int, log string) {
		t.Helper()
		end, err := s.shell(context.Background(), prefix+task.Check, "check.log", task.CheckTimeLimit)
		if err != nil {
			t.Fatal(err)
		}
		if end.timedOut {
			t.Fatalf("the check ran into its time limit of %v", task.CheckTimeLimit)
		}
		return end.exit, tailOf(filepath.Join(s.logs, "check.log"), 4000)
	}
	// A check that fails because of a mistake of its own would fail like this too, but
	// not pass with the solution.
	if exit, log := check(); exit == 0 {
		t.Errorf("the hidden tests pass without a solution:\n%s", log)
	}
	if err := writeArchive(s.copy, solution); err != nil {
		t.Fatal(err)
	}
	if exit, log := check(); exit != 0 {
		t.Errorf("the hidden tests fail with the reference solution:\n%s", log)
	}
}

// The sets are small, have titles, and none of their names is used twice, so that sets
// can be joined.
func TestSetList(t *testing.T) {
	list, err := List()
	if err != nil {
		t.Fatal(err)
	}
	names, count, total := map[string]bool{}, map[string]int{}, 0
	for _, one := range list {
		if names[one.Name] {
			t.Errorf("two tasks are named %s", one.Name)
		}
		names[one.Name] = true
		count[one.Set]++
		total += one.Bytes
		if one.Title == "" || len(one.Title) > 60 || strings.Contains(one.Title, "\n") {
			t.Errorf("%s: title %q, want one of at most 60 bytes", one.Name, one.Title)
		}
	}
	for _, set := range SetNames {
		if count[set] < 3 {
			t.Errorf("set %s has %d tasks, want at least 3", set, count[set])
		}
	}
	if total > 300_000 {
		t.Errorf("the repositories have %d bytes, want at most 300,000", total)
	}
}

func TestWriteSetErrors(t *testing.T) {
	if err := WriteSet(t.TempDir(), "rust"); err == nil || err.Error() != `unknown task set "rust": expected one of go, python` {
		t.Errorf("an unknown set: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	err := WriteSet(t.TempDir(), "python")
	if err == nil || !strings.Contains(err.Error(), "need Python 3.8 or newer: install it, so that the command python3 is in PATH") {
		t.Errorf("without python3: %v", err)
	}
}
