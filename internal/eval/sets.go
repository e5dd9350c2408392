package eval

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// sets has a folder for each built-in task set, with a txtar archive for each task: its
// comment is a title, and its files are those of the task's folder.
//
//go:embed sets
var sets embed.FS

// SetNames lists the built-in task sets.
var SetNames = []string{"go", "python"}

// program is the command that the tasks of a set need, and the oldest version.
var program = map[string][2]string{"go": {"go", "Go 1.21"}, "python": {"python3", "Python 3.8"}}

// Listed describes a task of a built-in set.
type Listed struct {
	Set   string `json:"set"`
	Name  string `json:"name"`
	Title string `json:"title"`
	// Files and Bytes are those of the repository that the agent gets.
	Files int `json:"files"`
	Bytes int `json:"bytes"`
}

// List describes the tasks of the built-in sets, in their order.
func List() ([]Listed, error) {
	var list []Listed
	for _, set := range SetNames {
		archives, err := readSet(set)
		if err != nil {
			return nil, err
		}
		for _, a := range archives {
			one := Listed{Set: set, Name: a.name, Title: strings.TrimSpace(string(a.Comment))}
			for _, f := range a.Files {
				if strings.HasPrefix(f.Name, "repository/") {
					one.Files++
					one.Bytes += len(f.Data)
				}
			}
			list = append(list, one)
		}
	}
	return list, nil
}

// WriteSet writes the tasks of a built-in set into a folder, which may have those of
// another set. It is an error if the name is unknown or the set's language is not
// installed.
func WriteSet(dir, set string) error {
	if !slices.Contains(SetNames, set) {
		return fmt.Errorf("unknown task set %q: expected one of %s", set, strings.Join(SetNames, ", "))
	}
	if needs := program[set]; !found(needs[0]) {
		return fmt.Errorf("the tasks of the set %s need %s or newer: install it, so that the command %s is in PATH", set, needs[1], needs[0])
	}
	archives, err := readSet(set)
	if err != nil {
		return err
	}
	for _, a := range archives {
		if err := writeArchive(filepath.Join(dir, a.name), a.Archive); err != nil {
			return err
		}
	}
	return nil
}

func found(command string) bool {
	_, err := exec.LookPath(command)
	return err == nil
}

// named is the archive of a task.
type named struct {
	name string
	*txtar.Archive
}

func readSet(set string) ([]named, error) {
	folder := path.Join("sets", set)
	entries, err := sets.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var list []named
	for _, e := range entries {
		data, err := sets.ReadFile(path.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, named{strings.TrimSuffix(e.Name(), ".txtar"), txtar.Parse(data)})
	}
	return list, nil
}

// writeArchive writes the files of an archive into a folder, which it creates.
func writeArchive(dir string, a *txtar.Archive) error {
	for _, f := range a.Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
