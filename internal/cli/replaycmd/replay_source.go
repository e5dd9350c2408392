package replaycmd

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/demo"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/transcript"
)

// source is a sequence of recordings. Reading them collects the files and errors
// that were skipped.
type source struct {
	files      []string
	recordings func(func(*transcript.Recording) bool)
	unknown    []string // files in unknown formats
	failed     []error
	notes      []string
	filter     filter
	filtered   int           // files without a session that passes the filter
	progress   *fileProgress // nil without a terminal
}

// nothing is the error for a source without recordings.
func (s *source) nothing() error {
	switch {
	case s.filtered > 0:
		return fmt.Errorf("nothing to replay: no session in %s matches --since and --project", numbers.Count(s.filtered, "file"))
	case len(s.unknown) > 0:
		return fmt.Errorf("nothing to replay: skipped %s in unknown formats, such as %s", numbers.Count(len(s.unknown), "file"), s.unknown[0])
	case len(s.failed) > 0:
		return errors.New("nothing to replay")
	}
	return fmt.Errorf("nothing to replay: no files in %s", strings.Join(s.files, ", "))
}

// walk reads standard input for "-", then files and folders.
func (s *source) walk(in io.Reader) iter.Seq2[*transcript.Recording, error] {
	reader := transcript.Reader{Skip: func(path string) bool {
		if s.filter.skip(path) {
			s.filtered++
			return true
		}
		s.progress.next(path)
		return false
	}}
	return func(yield func(*transcript.Recording, error) bool) {
		if slices.Contains(s.files, "-") && !yield(transcript.Read(cmdline.Stdin, in)) {
			return
		}
		for _, path := range s.files {
			if path == "-" {
				continue
			}
			s.progress.next(path)
			for rec, err := range reader.Walk(path) {
				if !yield(rec, err) {
					return
				}
			}
		}
	}
}

// sources returns the recordings in the named files and folders. Without names,
// they are the sessions of installed agents, or else the demo session.
func sources(in io.Reader, args []string) (*source, error) {
	s := &source{files: args}
	if len(args) == 0 {
		s.files = agents.Places()
		s.notes = []string{"Sessions found on this machine: " + strings.Join(s.files, ", ")}
	}
	for _, path := range args {
		if path == "-" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return nil, cmdline.NoFile(err)
		}
	}
	s.recordings = func(yield func(*transcript.Recording) bool) {
		found := false
		for rec, err := range s.walk(in) {
			if unknown := (*transcript.UnknownFilesError)(nil); errors.As(err, &unknown) {
				s.unknown = append(s.unknown, unknown.Files...)
				continue
			}
			if err != nil {
				s.failed = append(s.failed, err)
				continue
			}
			found = true
			if !s.filter.keep(rec) {
				s.filtered++
				continue
			}
			if !yield(rec) {
				return
			}
		}
		if !found && s.filtered == 0 && len(args) == 0 {
			s.notes = []string{"No recorded sessions found on this machine: replaying a generated session. Name files or folders to replay your own.",
				"Looked for sessions of " + agents.Known() + "; furl import says where."}
			yield(demo.Recording())
		}
	}
	return s, nil
}
