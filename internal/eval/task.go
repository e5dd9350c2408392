package eval

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/strictyaml"
)

// TaskFile is the name of the file that describes a task.
const TaskFile = "task.yaml"

// Defaults and limits of a task.
const (
	DefaultTimeLimit      = 30 * time.Minute
	DefaultCheckTimeLimit = 5 * time.Minute
	maxTimeLimit          = 24 * time.Hour
	maxTaskFile           = 1 << 20 // bytes
)

// Task is a task of an evaluation. Paths are absolute.
type Task struct {
	// Name is the name of the task's folder.
	Name string
	// Instruction is the text that the agent gets.
	Instruction string
	// Repository is the folder or archive (.tar, .tar.gz, .tgz, .zip) with the files
	// that the agent works on. If empty, the agent starts in an empty folder.
	Repository string
	// Setup is a command line that runs in the copy before the agent. It may be empty.
	Setup string
	// Check is a command line that runs in the copy after the agent. Exit code 0
	// means that the task is solved.
	Check string
	// CheckFiles is a folder whose files are copied over the copy before the check.
	// The agent does not see them. It may be empty.
	CheckFiles string
	// Script has the replies of the simulated provider, see sim.ParseScript. It may be
	// empty.
	Script string
	// TimeLimit is the time of the agent, CheckTimeLimit that of setup and of check.
	TimeLimit, CheckTimeLimit time.Duration
	// Digest identifies the task: its fields and the contents of its files.
	Digest string
}

// LoadTasks reads the tasks of a folder: the folder itself if it has a task.yaml, else
// each of its subfolders. The errors of all tasks are joined.
func LoadTasks(dir string) ([]Task, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(dir, TaskFile)); err == nil {
		t, err := loadTask(dir, filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		return []Task{t}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the task set: %w", err)
	}
	var tasks []Task
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !isDir(filepath.Join(dir, e.Name())) {
			continue
		}
		t, err := loadTask(filepath.Join(dir, e.Name()), filepath.Join(filepath.Base(dir), e.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		tasks = append(tasks, t)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("no tasks in %s: expected a %s, or subfolders that have one", dir, TaskFile)
	}
	return tasks, nil
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// taskName is what the name of a task's folder may be. It becomes part of paths.
var taskName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// loadTask reads the task of a folder. label names the folder in errors.
func loadTask(dir, label string) (Task, error) {
	t := Task{Name: filepath.Base(dir), TimeLimit: DefaultTimeLimit, CheckTimeLimit: DefaultCheckTimeLimit}
	if !taskName.MatchString(t.Name) {
		return t, fmt.Errorf("invalid name %q of a task: expected at most 64 letters, digits, and . _ -", t.Name)
	}
	name := filepath.Join(label, TaskFile)
	data, err := os.ReadFile(filepath.Join(dir, TaskFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, fmt.Errorf("%s: no such file: each folder of a task set is a task", name)
	case err != nil:
		return t, fmt.Errorf("%s: %w", name, err)
	case len(data) > maxTaskFile:
		return t, fmt.Errorf("%s is too large: at most 1 MB", name)
	}
	if err := strictyaml.Parse(name, data, func(root strictyaml.Value) { t.read(dir, root) }); err != nil {
		return t, err
	}
	if t.Digest, err = t.digest(); err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// read sets the fields from the file and reports what is wrong in it.
func (t *Task) read(dir string, root strictyaml.Value) {
	words := func(to *string, expected string) func(strictyaml.Value) {
		return func(v strictyaml.Value) {
			text, ok := v.Text(expected)
			if *to = strings.TrimSpace(text); ok && *to == "" {
				v.Expected(expected)
			}
		}
	}
	root.Require("instruction", "the text that the agent gets")
	root.Require("check", "a command line that exits with 0 if the task is solved")
	for read, v := range strictyaml.Object(root, map[string]func(strictyaml.Value){
		"instruction":      words(&t.Instruction, "a text"),
		"setup":            words(&t.Setup, "a command line"),
		"check":            words(&t.Check, "a command line"),
		"repository":       t.path(&t.Repository, dir, "a folder or an archive (.tar, .tar.gz, .tgz, .zip) of the task"),
		"check_files":      t.path(&t.CheckFiles, dir, "a folder of the task"),
		"script":           t.path(&t.Script, dir, "a file of the task"),
		"time_limit":       limit(&t.TimeLimit),
		"check_time_limit": limit(&t.CheckTimeLimit),
	}) {
		read(v)
	}
}

// path returns a reader of a path in the task's folder that exists.
func (t *Task) path(to *string, dir, expected string) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		text, ok := v.Text(expected)
		if !ok {
			return
		}
		name := filepath.FromSlash(text)
		if text == "" || text == "." || !filepath.IsLocal(name) {
			v.Expected(expected + ", as a relative path")
			return
		}
		path := filepath.Join(dir, name)
		fi, err := os.Stat(path)
		switch folder := err == nil && fi.IsDir(); {
		case errors.Is(err, fs.ErrNotExist):
			v.Report("invalid "+v.String(), "no such file in the folder of the task")
		case err != nil:
			v.Report("invalid "+v.String(), err.Error())
		case to == &t.Script && folder, to == &t.CheckFiles && !folder, to == &t.Repository && !folder && archiveOf(path) == nil:
			v.Expected(expected)
		default:
			*to = path
		}
	}
}

// limit returns a reader of a time limit.
func limit(to *time.Duration) func(strictyaml.Value) {
	const expected = "a duration from 1s to 24h, such as 90s, 10m or 1h"
	return func(v strictyaml.Value) {
		text, ok := v.Text(expected)
		if !ok {
			return
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second || d > maxTimeLimit {
			v.Expected(expected)
			return
		}
		*to = d
	}
}
