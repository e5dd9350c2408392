package agents

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Successor is an agent that continues a session of another agent: furl writes the session where
// the agent keeps its own.
type Successor struct {
	Name   string // of its program
	Title  string // as in Homes
	Format string // the name of its format in package transcript
	// Import has the arguments of the program with which it takes a session from a file, whose
	// path follows. If nil, the agent finds the file of a session at its place.
	Import []string

	resume []string // arguments before the id of the session
	file   func(sessions, folder, id string, now time.Time) string
}

// successors has Claude Code first. The versions in package transcript find the files at these
// places, and the sessions by these arguments.
var successors = []Successor{
	{Name: "claude", Title: "Claude Code", Format: "claude-code", resume: []string{"--resume"}, file: func(sessions, folder, id string, _ time.Time) string {
		return filepath.Join(sessions, dashed(folder), id+".jsonl")
	}},
	{Name: "codex", Title: "Codex", Format: "codex", resume: []string{"resume"}, file: func(sessions, _, id string, now time.Time) string {
		return filepath.Join(sessions, now.Format("2006/01/02"), "rollout-"+now.Format("2006-01-02T15-04-05")+"-"+id+".jsonl")
	}},
	{Name: "opencode", Title: "opencode", Format: "opencode", resume: []string{"-s"}, Import: []string{"import"}},
	{Name: "pi", Title: "pi", Format: "pi", resume: []string{"--session"}, file: func(sessions, folder, id string, now time.Time) string {
		name := strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(strings.TrimPrefix(folder, "/"))
		return filepath.Join(sessions, "--"+name+"--", now.UTC().Format("2006-01-02T15-04-05-000Z")+"_"+id+".jsonl")
	}},
	{Name: "qwen", Title: "Qwen Code", Format: "qwen-code", resume: []string{"--resume"}, file: func(sessions, folder, id string, _ time.Time) string {
		return filepath.Join(sessions, dashed(folder), "chats", id+".jsonl")
	}},
}

// Successors lists the names of the agents.
func Successors() (names []string) {
	for _, s := range successors {
		names = append(names, s.Name)
	}
	return names
}

// SuccessorNamed finds an agent by its name or format.
func SuccessorNamed(name string) (Successor, bool) {
	for _, s := range successors {
		if name == s.Name || name == s.Format {
			return s, true
		}
	}
	return Successor{}, false
}

// File is where the agent looks for a session of a folder, an absolute path without links. It
// fails if the user's home folder is unknown, and for agents with Import.
func (s *Successor) File(folder, id string, now time.Time) (string, error) {
	if s.file == nil {
		return "", fmt.Errorf("%s has no files of sessions", s.Title)
	}
	for _, h := range Homes() {
		if h.Agent == s.Title {
			return s.file(h.Path, folder, id, now), nil
		}
	}
	return "", fmt.Errorf("no home folder, so the folder of the sessions of %s is unknown", s.Title)
}

// Resume is the command that continues a session.
func (s *Successor) Resume(id string) []string {
	return append(append([]string{s.Name}, s.resume...), id)
}

// dashed replaces all but letters and digits by dashes, as Claude Code and Qwen Code name the
// folder of a project's sessions.
func dashed(folder string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, folder)
}
