package cli

import (
	"os"
	"time"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/transcript"
)

// projectOf returns the folder that a recorded session's agent worked in: the known
// one, or else that which the first messages name; "" if there is none.
func projectOf(s *transcript.Session, known string) string {
	if folder := agents.Folder(known); folder != "" {
		return folder
	}
	return agents.WorkingFolder(firstTexts(s.Preamble, s.Log.Records(0)))
}

// changedAt returns when a file was changed, or zero if that is not known.
func changedAt(file string) time.Time {
	fi, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime().UTC()
}

// filter chooses recorded sessions by age and project. The zero value chooses all.
type filter struct {
	after     time.Time
	inProject func(string) bool
}

// filter returns the filter of --since and --project.
func (f *replayFlags) filter() (filter, error) {
	var out filter
	if f.since != "" {
		age, err := parseAge(f.since)
		if err != nil {
			return out, badUsage("--since %s: %w", f.since, err)
		}
		out.after = time.Now().Add(-age)
	}
	if f.project != "" {
		var err error
		if out.inProject, err = projectFilter(f.project); err != nil {
			return out, err
		}
	}
	return out, nil
}

// skip reports whether a file is too old to have a session that is chosen. Its
// newest record is not newer than the file.
func (f filter) skip(path string) bool {
	if f.after.IsZero() {
		return false
	}
	changed := changedAt(path)
	return !changed.IsZero() && changed.Before(f.after)
}

// keep removes the sessions that are not chosen from a recording, and reports whether
// it has others. Sub-agents belong to the session that started them.
func (f filter) keep(rec *transcript.Recording) bool {
	if f.after.IsZero() && f.inProject == nil {
		return true
	}
	chosen := make(map[string]bool)
	var kept []*transcript.Session
	for _, s := range rec.Sessions {
		of, known := chosen[s.Parent]
		if s.Parent == "" || !known {
			of = f.chooses(rec, s)
		}
		chosen[s.ID] = of
		if of {
			kept = append(kept, s)
		}
	}
	rec.Sessions = kept
	return len(kept) > 0
}

func (f filter) chooses(rec *transcript.Recording, s *transcript.Session) bool {
	meta := rec.Meta(s)
	if f.inProject != nil && !f.inProject(projectOf(s, meta.Project)) {
		return false
	}
	if f.after.IsZero() {
		return true
	}
	newest := newestOf(s.Log.Records(0))
	if newest.IsZero() {
		newest = changedAt(rec.File)
	}
	return !newest.Before(f.after)
}
