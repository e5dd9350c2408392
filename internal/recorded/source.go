package recorded

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/demo"
	"github.com/furlhq/furl/internal/index"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

// Source is a sequence of recordings. Reading them collects the files and errors
// that were skipped.
type Source struct {
	Files    []string
	Unknown  []string // files in unknown formats
	Failed   []error
	Notes    []string
	Filter   Filter
	Progress *Progress    // nil without a terminal
	Index    *index.Index // nil: each file is read

	stdin     io.Reader
	machine   bool // Files are the places of agents
	usageOnly bool // see transcript.Reader
	filtered  int  // files without a session that passes the filter
}

// Nothing is the error for a source without recordings. todo is such as "replay".
func (s *Source) Nothing(todo string) error {
	switch {
	case s.filtered > 0:
		return fmt.Errorf("nothing to %s: no session in %s matches --since and --project", todo, numbers.Count(s.filtered, "file"))
	case len(s.Unknown) > 0:
		return fmt.Errorf("nothing to %s: skipped %s in unknown formats, such as %s", todo, numbers.Count(len(s.Unknown), "file"), s.Unknown[0])
	case len(s.Failed) > 0:
		return errors.New("nothing to " + todo)
	}
	return fmt.Errorf("nothing to %s: no files in %s", todo, strings.Join(s.Files, ", "))
}

// Sources returns the recordings in the named files and folders. Without names,
// they are the sessions of installed agents, or else the demo session.
func Sources(in io.Reader, args []string) (*Source, error) {
	s := &Source{Files: args, stdin: in}
	if len(args) == 0 {
		s.machine = true
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
	return s, nil
}

// Recordings reads all recordings.
func (s *Source) Recordings(yield func(*transcript.Recording) bool) {
	all := *s
	all.Index = nil
	defer func() { s.Unknown, s.Failed, s.Notes, s.filtered = all.Unknown, all.Failed, all.Notes, all.filtered }()
	for in := range all.Inputs("") {
		if !yield(in.Recording) {
			return
		}
	}
}

// Inputs yields the recordings for a replay: of files that the index knows, what a replay with the same
// options has made of them. options identifies all that decides the outcome besides the recordings and
// the build of the program.
func (s *Source) Inputs(options string) iter.Seq[replay.Input] {
	return func(yield func(replay.Input) bool) {
		var counted once
		var again rereader
		defer again.close()
		found := s.items(func(it *item) (ok, more bool, err error) {
			input, ok, err := it.input(&counted, options, &again)
			if !ok || err != nil {
				return ok, true, err
			}
			return true, yield(input), nil
		})
		if !found && s.filtered == 0 && s.machine {
			s.Notes = []string{"No recorded sessions found on this machine: replaying a generated session. Name files or folders to replay your own.",
				"Looked for sessions of " + agents.Known() + "; furl import says where."}
			yield(replay.Input{Recording: demo.Recording()})
		}
	}
}

// items calls use for each recording until it returns more as false. It collects what was skipped, and errors. ok
// is false if the filter chooses no session of it.
func (s *Source) items(use func(*item) (ok, more bool, err error)) (found bool) {
	for it, err := range parentsFirst(s.walk(), (*item).links, (*item).later) {
		if unknown := (*transcript.UnknownFilesError)(nil); errors.As(err, &unknown) {
			s.Unknown = append(s.Unknown, unknown.Files...)
			continue
		}
		if err != nil {
			s.Failed = append(s.Failed, err)
			continue
		}
		found = true
		ok, more, err := use(it)
		switch {
		case err != nil:
			s.Failed = append(s.Failed, err)
		case !ok:
			s.filtered++
		case !more:
			return true
		}
	}
	return found
}
