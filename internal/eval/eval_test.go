package eval

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/needs"
)

// write writes files below a folder, by their slash-separated names.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoadTasks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"one/task.yaml": "instruction: do it\nrepository: repo\ncheck: test -e done\ncheck_files: hidden\ntime_limit: 90s\nscript: s.txtar\n",
		"one/repo/a":    "a", "one/hidden/b": "b", "one/s.txtar": "-- 1 --\ntext: x\n",
		"two/task.yaml": "# a comment\ninstruction: |\n  first line\n  second line\ncheck: 'true'\n",
		".git/x":        "", "README.md": "",
	})
	tasks, err := LoadTasks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) != 2 || tasks[0].Name != "one" || tasks[1].Name != "two" {
		t.Fatalf("tasks %v", tasks)
	}
	one, two := tasks[0], tasks[1]
	if one.TimeLimit != 90*time.Second || one.CheckTimeLimit != DefaultCheckTimeLimit || one.Repository != filepath.Join(dir, "one", "repo") {
		t.Errorf("task one is %+v", one)
	}
	if two.Instruction != "first line\nsecond line" || two.TimeLimit != DefaultTimeLimit || two.Repository != "" {
		t.Errorf("task two is %+v", two)
	}
	single, err := LoadTasks(filepath.Join(dir, "one"))
	if err != nil || len(single) != 1 || single[0].Digest != one.Digest {
		t.Errorf("one task of its own: %v, %v", single, err)
	}
}

// Everything that changes a run changes the digest; comments do not.
func TestTaskDigest(t *testing.T) {
	base := map[string]string{
		"t/task.yaml": "instruction: do it\nrepository: repo\ncheck: test -e done\ncheck_files: hidden\nscript: s.txtar\n",
		"t/repo/a":    "a", "t/hidden/b": "b", "t/s.txtar": "s",
	}
	digest := func(change func(dir string)) string {
		t.Helper()
		dir := t.TempDir()
		write(t, dir, base)
		change(dir)
		tasks, err := LoadTasks(dir)
		if err != nil {
			t.Fatal(err)
		}
		return tasks[0].Digest
	}
	was := digest(func(string) {})
	for _, same := range []string{"# comment\n" + base["t/task.yaml"], base["t/task.yaml"] + "time_limit: 30m\n"} {
		if got := digest(func(dir string) { write(t, dir, map[string]string{"t/task.yaml": same}) }); got != was {
			t.Errorf("%q has another digest", same)
		}
	}
	for name, change := range map[string]func(dir string){
		"instruction": func(dir string) { write(t, dir, map[string]string{"t/task.yaml": base["t/task.yaml"] + "setup: x\n"}) },
		"file":        func(dir string) { write(t, dir, map[string]string{"t/repo/a": "b"}) },
		"new file":    func(dir string) { write(t, dir, map[string]string{"t/repo/c": ""}) },
		"check file":  func(dir string) { write(t, dir, map[string]string{"t/hidden/b": "c"}) },
		"script":      func(dir string) { write(t, dir, map[string]string{"t/s.txtar": "t"}) },
		"executable": func(dir string) {
			if err := os.Chmod(filepath.Join(dir, "t", "repo", "a"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"link": func(dir string) {
			if err := os.Symlink("a", filepath.Join(dir, "t", "repo", "l")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if digest(change) == was {
			t.Errorf("a changed %s has the same digest", name)
		}
	}
}

func TestTaskErrors(t *testing.T) {
	const good = "instruction: do it\ncheck: 'true'\n"
	for _, tt := range []struct{ file, want string }{
		{good + "instrction: x\n", `set/t/task.yaml: unknown key "instrction" (line 3): did you mean "instruction"?`},
		{"check: 'true'\n", "missing instruction (line 1): the text that the agent gets"},
		{"instruction: x\n", "missing check (line 1)"},
		{"", "missing instruction"},
		{"instruction: x\ncheck:\n", "missing value of check (line 2): expected a command line"},
		{"instruction: ' '\ncheck: x\n", `invalid instruction " " (line 1): expected a text`},
		{good + "time_limit: soon\n", `invalid time_limit "soon" (line 3): expected a duration from 1s to 24h`},
		{good + "time_limit: 0s\n", `invalid time_limit "0s" (line 3)`},
		{good + "repository: nope\n", `invalid repository "nope" (line 3): no such file in the folder of the task`},
		{good + "repository: ../t\n", `invalid repository "../t" (line 3): expected a folder or an archive`},
		{good + "repository: /etc\n", "expected a folder or an archive"},
		{good + "repository: task.yaml\n", "expected a folder or an archive"},
		{good + "check_files: task.yaml\n", "expected a folder of the task"},
		{good + "repository: https://example.com/x.git\n", "invalid repository"},
		{good + "check: x\n", `duplicate key "check" (line 3): first on line 2`},
		{"instruction: [x\n", "set/t/task.yaml: invalid YAML (line"},
	} {
		dir := filepath.Join(t.TempDir(), "set")
		write(t, dir, map[string]string{"t/task.yaml": tt.file})
		_, err := LoadTasks(dir)
		if err == nil || !strings.Contains(filepath.ToSlash(err.Error()), tt.want) {
			t.Errorf("%q: error %v, want %q", tt.file, err, tt.want)
		}
	}
	dir := t.TempDir()
	if _, err := LoadTasks(dir); err == nil || !strings.Contains(err.Error(), "no tasks in") {
		t.Errorf("an empty folder: %v", err)
	}
	write(t, dir, map[string]string{"a/x": "", "b c/task.yaml": good})
	_, err := LoadTasks(dir)
	if err == nil || !strings.Contains(err.Error(), "each folder of a task set is a task") || !strings.Contains(err.Error(), `invalid name "b c"`) {
		t.Errorf("two broken tasks: %v", err)
	}
}

// entry is an entry of an archive.
type entry struct {
	name, text, link string
	mode             int64
}

func makeTar(t *testing.T, name string, entries ...entry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out io.WriteCloser = f
	if strings.HasSuffix(strings.ToLower(name), "gz") {
		out = gzip.NewWriter(f)
		defer out.Close()
	}
	w := tar.NewWriter(out)
	defer w.Close()
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.text)), Typeflag: tar.TypeReg}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func makeZip(t *testing.T, entries ...entry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name}
		h.SetMode(fs.FileMode(e.mode))
		if e.link != "" {
			h.SetMode(fs.ModeSymlink | 0o777)
			e.text = e.link
		}
		to, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(to, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCopy(t *testing.T) {
	src := t.TempDir()
	write(t, src, map[string]string{"a": "1", "d/b": "2", ".git/HEAD": "ref"})
	if err := os.Chmod(filepath.Join(src, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("d/b", filepath.Join(src, "l")); err != nil {
		t.Fatal(err)
	}
	all := []entry{{name: "a", text: "1", mode: 0o700}, {name: "./d/b", text: "2"}, {name: ".git/HEAD", text: "ref"}, {name: "l", link: "d/b"}}
	for _, from := range []string{src, makeTar(t, "r.tar", all...), makeTar(t, "r.tgz", all...), makeTar(t, "R.TAR.GZ", all...), makeZip(t, all...)} {
		dst := t.TempDir()
		if err := copyInto(dst, from); err != nil {
			t.Errorf("%s: %v", filepath.Base(from), err)
			continue
		}
		for name, want := range map[string]string{"a": "1", "d/b": "2", ".git/HEAD": "ref", "l": "2"} {
			if got, err := os.ReadFile(filepath.Join(dst, name)); err != nil || string(got) != want {
				t.Errorf("%s: %s has %q, %v", filepath.Base(from), name, got, err)
			}
		}
		if fi, err := os.Stat(filepath.Join(dst, "a")); err == nil && runtime.GOOS != "windows" && fi.Mode().Perm() != 0o755 {
			t.Errorf("%s: a has mode %v", filepath.Base(from), fi.Mode())
		}
	}
}

// Nothing is written outside of the copy, whatever an archive or an agent has put there.
func TestCopyStaysInside(t *testing.T) {
	for _, entries := range [][]entry{
		{{name: "../x", text: "x"}},
		{{name: "/x", text: "x"}},
		{{name: "l", link: "/etc"}},
		{{name: "d/l", link: "../../x"}},
	} {
		dir := t.TempDir()
		dst := filepath.Join(dir, "copy")
		if err := os.Mkdir(dst, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := copyInto(dst, makeTar(t, "r.tar", entries...)); err == nil || !strings.Contains(err.Error(), "out of the folder") {
			t.Errorf("%v: %v", entries, err)
		}
		if names, _ := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("%v: wrote %v", entries, names)
		}
	}
	// The agent has replaced a folder and a file by links.
	outside, dst, check := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"f": "mine"})
	write(t, check, map[string]string{"d/f": "new", "g": "new"})
	for name, to := range map[string]string{"d": outside, "g": filepath.Join(outside, "f")} {
		if err := os.Symlink(to, filepath.Join(dst, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyInto(dst, check); err == nil {
		t.Error("copied through a link that leads out of the folder")
	}
	if err := os.Remove(filepath.Join(dst, "d")); err != nil {
		t.Fatal(err)
	}
	if err := copyInto(dst, check); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(outside, "f")); string(text) != "mine" || err != nil {
		t.Errorf("the file outside has %q, %v", text, err)
	}
}

func TestPlanRuns(t *testing.T) {
	p := Plan{Policies: []string{"none", "auto"}, Seed: 3, Tasks: map[string]string{"a": "1", "b": "2", "c": "3"}}
	runs := p.Runs(4)
	if len(runs) != 24 {
		t.Fatalf("%d runs", len(runs))
	}
	seen := map[Run]bool{}
	first := map[string]int{}
	for i, r := range runs {
		if seen[r] {
			t.Errorf("%v is there twice", r)
		}
		seen[r] = true
		if i%2 == 0 {
			first[r.Policy]++
			if next := runs[i+1]; next.Task != r.Task || next.Number != r.Number || next.Policy == r.Policy {
				t.Errorf("%v is followed by %v", r, next)
			}
		}
	}
	if first["none"] == 0 || first["auto"] == 0 {
		t.Errorf("first policies of the tasks: %v", first)
	}
	if more := p.Runs(6); !slices.Equal(more[:24], runs) {
		t.Error("more rounds change the order of the first ones")
	}
	p.Seed = 4
	if slices.Equal(p.Runs(4), runs) {
		t.Error("another seed gives the same order")
	}
}

// shellTask is a task of a folder without repository.
func shellTask(t *testing.T, check string, limit time.Duration) []Task {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"t/task.yaml": fmt.Sprintf("instruction: do it\ncheck: |\n  %s\n", check)})
	tasks, err := LoadTasks(dir)
	if err != nil {
		t.Fatal(err)
	}
	tasks[0].TimeLimit = limit
	return tasks
}

// fakeGateway runs a shell command as the agent, and says that a request was made.
func fakeGateway(command string, cost float64) func(context.Context, GatewayRun, During) (Measures, error) {
	return func(ctx context.Context, g GatewayRun, during During) (Measures, error) {
		err := during(ctx, []string{"sh", "-c", command}, []string{"POLICY=" + g.Policy})
		return Measures{Requests: 1, Cost: cost}, err
	}
}

func open(t *testing.T, dir string, tasks []Task, policies ...string) *Results {
	t.Helper()
	p := Plan{Policies: policies, Command: []string{"x"}, Tasks: map[string]string{}}
	for _, one := range tasks {
		p.Tasks[one.Name] = one.Digest
	}
	r, err := OpenResults(dir, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestExecute(t *testing.T) {
	needs.Shell(t)
	t.Setenv("SECRET", "secret")
	tasks := shellTask(t, `test "$(cat policy)" = auto || { echo "policy $(cat policy)"; exit 7; }`, time.Minute)
	r := open(t, filepath.Join(t.TempDir(), "r"), tasks, "none", "auto")
	var order []Run
	err := Execute(t.Context(), r, &Options{
		Tasks: tasks, Rounds: 2, Budget: -1, Version: "v1", Keep: true,
		Gateway: fakeGateway(`cat >input; echo "$POLICY" >policy; env >"$HOME/env"; cp "$HOME/env" .; exit 5`, 0.5),
		Progress: func(p Progress) {
			if p.Result != nil {
				order = append(order, p.Run)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order, r.Plan.Runs(2)) {
		t.Errorf("ran %v", order)
	}
	for _, one := range r.List {
		want := Result{Run: one.Run, Outcome: Solved, AgentExit: 5, Version: "v1", Measures: Measures{Requests: 1, Cost: 0.5}, Started: one.Started, Seconds: one.Seconds}
		if one.Policy == "none" {
			want.Outcome, want.CheckExit, want.CheckOutput = Failed, 7, "policy none\n"
		}
		if fmt.Sprint(one) != fmt.Sprint(want) {
			t.Errorf("result %+v, want %+v", one, want)
		}
		kept := filepath.Join(r.RunDir(one.Run), "copy")
		if text, err := os.ReadFile(filepath.Join(kept, "input")); string(text) != "do it\n" || err != nil {
			t.Errorf("the agent got %q, %v", text, err)
		}
		env, err := os.ReadFile(filepath.Join(kept, "env"))
		if err != nil || strings.Contains(string(env), "secret") || !strings.Contains(string(env), "HOME="+os.TempDir()) {
			t.Errorf("the environment is\n%s, %v", env, err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.Dir, scratchFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the scratch folder is left: %v", err)
	}
}

// At the time limit the agent and what it has started are ended, and the check does not
// run.
func TestExecuteTimeLimit(t *testing.T) {
	needs.Shell(t)
	tasks := shellTask(t, "true", 300*time.Millisecond)
	r := open(t, filepath.Join(t.TempDir(), "r"), tasks, "none")
	marks := t.TempDir()
	start := time.Now()
	err := Execute(t.Context(), r, &Options{Tasks: tasks, Rounds: 1, Budget: -1,
		Gateway: fakeGateway(fmt.Sprintf(`trap "touch %[1]s/term; exit 0" TERM; (sleep 6; touch %[1]s/late) & while true; do sleep 0.1; done`, marks), 0)})
	if err != nil {
		t.Fatal(err)
	}
	if one := r.List[0]; one.Outcome != TimeLimit || one.CheckExit != -1 {
		t.Errorf("result %+v", one)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if _, err := os.Stat(filepath.Join(marks, "term")); err != nil {
		t.Errorf("the agent got no SIGTERM: %v", err)
	}
	time.Sleep(time.Until(start.Add(6500 * time.Millisecond)))
	if _, err := os.Stat(filepath.Join(marks, "late")); err == nil {
		t.Error("a process in the background went on")
	}
}

func TestExecuteBudget(t *testing.T) {
	needs.Shell(t)
	tasks := shellTask(t, "true", time.Minute)
	dir := filepath.Join(t.TempDir(), "r")
	r := open(t, dir, tasks, "none", "auto")
	o := &Options{Tasks: tasks, Rounds: 3, Budget: 2.5, Gateway: fakeGateway("true", 1)}
	err := Execute(t.Context(), r, o)
	budget := (*BudgetError)(nil)
	if !errors.As(err, &budget) || budget.Spent != 2 || budget.Left != 4 || len(r.List) != 2 {
		t.Fatalf("error %v after %d runs", err, len(r.List))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	// What was spent before counts, and finished runs do not run again.
	r = open(t, dir, tasks, "none", "auto")
	if err := Execute(t.Context(), r, o); !errors.As(err, &budget) || len(r.List) != 2 {
		t.Errorf("error %v after %d runs", err, len(r.List))
	}
	o.Budget = 6
	if err := Execute(t.Context(), r, o); err != nil || len(r.List) != 6 {
		t.Errorf("error %v after %d runs", err, len(r.List))
	}
}

// A run that cannot be measured is an error, is not recorded, and runs again.
func TestExecuteErrors(t *testing.T) {
	needs.Shell(t)
	tasks := shellTask(t, "true", time.Minute)
	r := open(t, filepath.Join(t.TempDir(), "r"), tasks, "none")
	o := &Options{Tasks: tasks, Rounds: 1, Budget: -1, Gateway: func(ctx context.Context, g GatewayRun, during During) (Measures, error) {
		return Measures{Unanswered: map[int]int{401: 2}}, during(ctx, []string{"sh", "-c", "printf 'one\\n\\033[2Jno key\\n'; exit 3"}, nil)
	}}
	if err := Execute(t.Context(), r, o); err == nil || !strings.Contains(err.Error(), "no request was answered (2 with status 401); the agent ended with exit code 3: \x1b[2Jno key (") {
		t.Errorf("error %v", err)
	}
	o.Gateway = func(ctx context.Context, g GatewayRun, during During) (Measures, error) {
		return Measures{}, during(ctx, []string{"true"}, nil)
	}
	if err := Execute(t.Context(), r, o); err == nil || !strings.Contains(err.Error(), "no request was recorded: the agent must use ANTHROPIC_BASE_URL") {
		t.Errorf("error %v", err)
	}
	tasks[0].Setup = "echo broken; exit 4"
	if err := Execute(t.Context(), r, o); err == nil || !strings.Contains(err.Error(), "setup: exit code 4: broken (") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tasks[0].Setup = ""
	o.Gateway = func(_ context.Context, g GatewayRun, during During) (Measures, error) {
		cancel()
		return Measures{Requests: 1}, during(ctx, []string{"sleep", "60"}, nil)
	}
	if err := Execute(ctx, r, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if len(r.List) != 0 {
		t.Errorf("recorded %v", r.List)
	}
}

func TestResults(t *testing.T) {
	tasks := shellTask(t, "true", time.Minute)
	dir := filepath.Join(t.TempDir(), "r")
	r := open(t, dir, tasks, "none")
	if err := r.append(&Result{Run: Run{"t", "none", 1}, Outcome: Solved}); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		if _, err := OpenResults(dir, r.Plan); !errors.Is(err, ErrLocked) {
			t.Errorf("opened twice: %v", err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	// A line that was being written when the process was killed is dropped.
	file := filepath.Join(dir, resultsFile)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(whole, `{"task":"t","pol`...), 0o600); err != nil {
		t.Fatal(err)
	}
	r = open(t, dir, tasks, "none")
	if len(r.List) != 1 || !r.Has(Run{"t", "none", 1}) {
		t.Errorf("results %v", r.List)
	}
	if err := r.append(&Result{Run: Run{"t", "none", 2}, Outcome: Failed}); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if read, err := ReadResults(dir); err != nil || len(read.List) != 2 {
		t.Errorf("results %v, %v", read, err)
	}
	for _, tt := range []struct {
		change func(*Plan)
		want   string
	}{
		{func(p *Plan) { p.Policies = []string{"auto"} }, "its policies are none, not auto"},
		{func(p *Plan) { p.Command = []string{"y"} }, "its agent command is x, not y"},
		{func(p *Plan) { p.Tasks = map[string]string{"t": "other"} }, "task t has changed since its first run"},
		{func(p *Plan) { p.Tasks = map[string]string{"u": "1"} }, "it has a task t, which the task set lacks"},
		{func(p *Plan) { p.Settings = map[string]string{"--window": "32k"} }, "--window differs"},
		{func(p *Plan) { p.Seed = 9 }, "its seed is 0, not 9"},
		{func(p *Plan) { p.Simulated = true }, "simulated"},
	} {
		p := r.Plan
		tt.change(&p)
		_, err := OpenResults(dir, p)
		if mismatch := (*MismatchError)(nil); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
	if err := os.WriteFile(file, []byte("{}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadResults(dir); err == nil || !strings.Contains(err.Error(), "invalid line 1") {
		t.Errorf("error %v", err)
	}
	other := t.TempDir()
	write(t, other, map[string]string{"x": ""})
	if _, err := OpenResults(other, r.Plan); err == nil || !strings.Contains(err.Error(), "has other files") {
		t.Errorf("error %v", err)
	}
	if _, err := ReadResults(other); err == nil || !strings.Contains(err.Error(), "is not a results folder") {
		t.Errorf("error %v", err)
	}
}

// Folders that are not writable are removed too.
func TestRemoveAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	write(t, dir, map[string]string{"a/b/c": ""})
	for _, name := range []string{"a/b", "a"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeAll(dir); err != nil {
		t.Error(err)
	}
}

func TestReport(t *testing.T) {
	r := &Results{Plan: Plan{Policies: []string{"auto", "none"}, Seed: 1, Tasks: map[string]string{"a": "1", "b": "2"}}}
	add := func(task, policy string, n int, outcome string, cost float64) {
		r.List = append(r.List, Result{Run: Run{task, policy, n}, Outcome: outcome, Version: "v", Measures: Measures{Requests: n, Cost: cost}})
	}
	for n := 1; n <= 4; n++ {
		add("a", "none", n, Solved, 2)
		add("a", "auto", n, Solved, 1)
		add("b", "none", n, Failed, 4)
		add("b", "auto", n, []string{Failed, Solved}[n%2], 2)
	}
	add("b", "auto", 5, TimeLimit, 2) // without its pair
	rep := NewReport(r, 5)
	if rep.Finished != 17 || rep.Wanted != 20 || rep.Cost != 38 {
		t.Errorf("finished %d of %d for %v", rep.Finished, rep.Wanted, rep.Cost)
	}
	auto := rep.Arms[0]
	if auto.Runs != 9 || auto.Solved != 6 || auto.TimeLimits != 1 || auto.TotalCost != 14 || auto.Interval != Wilson(6, 9) {
		t.Errorf("auto: %+v", auto)
	}
	if len(rep.Against) != 1 {
		t.Fatalf("comparisons %v", rep.Against)
	}
	c := rep.Against[0]
	if c.Policy != "auto" || c.Baseline != "none" || c.Pairs != (Pairs{4, 2, 0, 2}) || c.Difference.Rate != 0.25 {
		t.Errorf("comparison %+v", c)
	}
	if d := c.Difference; d.Bootstrap == nil || d.Interval.Low > min(d.Newcombe.Low, d.Bootstrap.Low) || d.Interval.High < max(d.Newcombe.High, d.Bootstrap.High) {
		t.Errorf("intervals %+v", d)
	}
	if c.CostRatio == nil || *c.CostRatio != 0.5 || c.CostInterval == nil || c.CostInterval.Low != 0.5 {
		t.Errorf("cost %v %v", c.CostRatio, c.CostInterval)
	}
	if !strings.Contains(rep.Noise[0], "When all runs are finished: with 5 runs of 2 tasks and about 59% solved, a difference below about 50 points cannot be told from chance") {
		t.Errorf("noise %q", rep.Noise)
	}
	if !slices.ContainsFunc(rep.Notes, func(s string) bool { return strings.HasPrefix(s, "3 runs not run yet") }) {
		t.Errorf("notes %q", rep.Notes)
	}
	if rep := NewReport(&Results{Plan: r.Plan, List: r.List[:16]}, 4); !strings.HasPrefix(rep.Noise[0], "With 4 runs of 2 tasks") || len(rep.Notes) > 0 {
		t.Errorf("all runs are finished: noise %q, notes %q", rep.Noise[0], rep.Notes)
	}
	r.List[0].Unpriced = 1
	if rep := NewReport(r, 5); rep.Against[0].CostRatio != nil {
		t.Error("a ratio of costs that are not known")
	}
}

// A mismatch shows the empty words of a command.
func TestMismatchShowsCommands(t *testing.T) {
	was := &Plan{Command: []string{"furl", "chat", "-p", "", "--yes"}}
	got := (&Plan{Command: []string{"furl", "chat", "-p", "do it"}}).differs(was)
	if want := `its agent command is furl chat -p "" --yes, not furl chat -p "do it"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The log of a process that prints without end is limited.
func TestLimitedLog(t *testing.T) {
	var b strings.Builder
	l := &limitedLog{w: &b}
	chunk := []byte(strings.Repeat("x", 1<<20))
	for range 20 {
		if n, err := l.Write(chunk); n != len(chunk) || err != nil {
			t.Fatal(n, err)
		}
	}
	if b.Len() < maxLog || b.Len() > maxLog+100 || !strings.HasSuffix(b.String(), "is not kept]\n") {
		t.Errorf("%d bytes kept", b.Len())
	}
}
