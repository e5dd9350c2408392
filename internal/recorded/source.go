package recorded

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/demo"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/transcript"
)

// Source is a sequence of recordings. Reading them collects the files and errors
// that were skipped.
type Source struct {
	Files      []string
	Recordings func(func(*transcript.Recording) bool)
	Unknown    []string // files in unknown formats
	Failed     []error
	Notes      []string
	Filter     Filter
	filtered   int       // files without a session that passes the filter
	Progress   *Progress // nil without a terminal
}

// Nothing is the error for a source without recordings.
func (s *Source) Nothing() error {
	switch {
	case s.filtered > 0:
		return fmt.Errorf("nothing to replay: no session in %s matches --since and --project", numbers.Count(s.filtered, "file"))
	case len(s.Unknown) > 0:
		return fmt.Errorf("nothing to replay: skipped %s in unknown formats, such as %s", numbers.Count(len(s.Unknown), "file"), s.Unknown[0])
	case len(s.Failed) > 0:
		return errors.New("nothing to replay")
	}
	return fmt.Errorf("nothing to replay: no files in %s", strings.Join(s.Files, ", "))
}

// walk reads standard input for "-", then files and folders.
func (s *Source) walk(in io.Reader) iter.Seq2[*transcript.Recording, error] {
	reader := transcript.Reader{Skip: func(path string) bool {
		if s.Filter.Skip(path) {
			s.filtered++
			return true
		}
		s.Progress.next(path)
		return false
	}}
	return func(yield func(*transcript.Recording, error) bool) {
		if slices.Contains(s.Files, "-") && !yield(transcript.Read(Stdin, in)) {
			return
		}
		for _, path := range s.Files {
			if path == "-" {
				continue
			}
			s.Progress.next(path)
			for rec, err := range reader.Walk(path) {
				if !yield(rec, err) {
					return
				}
			}
		}
	}
}

// again reads a file a second time.
func again(path string) (*transcript.Recording, error) { return new(transcript.Reader).ReadFile(path) }

// Sources returns the recordings in the named files and folders. Without names,
// they are the sessions of installed agents, or else the demo session.
func Sources(in io.Reader, args []string) (*Source, error) {
	s := &Source{Files: args}
	if len(args) == 0 {
		s.Files = agents.Places()
		s.Notes = []string{"Sessions found on this machine: " + strings.Join(s.Files, ", ")}
	}
	for _, path := range args {
		if path == "-" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return nil, NoFile(err)
		}
	}
	s.Recordings = func(yield func(*transcript.Recording) bool) {
		found := false
		var counted once
		for rec, err := range ParentsFirst(s.walk(in), again) {
			if unknown := (*transcript.UnknownFilesError)(nil); errors.As(err, &unknown) {
				s.Unknown = append(s.Unknown, unknown.Files...)
				continue
			}
			if err != nil {
				s.Failed = append(s.Failed, err)
				continue
			}
			found = true
			if !s.Filter.keep(rec) {
				s.filtered++
				continue
			}
			counted.mark(rec)
			if !yield(rec) {
				return
			}
		}
		if !found && s.filtered == 0 && len(args) == 0 {
			s.Notes = []string{"No recorded sessions found on this machine: replaying a generated session. Name files or folders to replay your own.",
				"Looked for sessions of " + agents.Known() + "; furl import says where."}
			yield(demo.Recording())
		}
	}
	return s, nil
}
