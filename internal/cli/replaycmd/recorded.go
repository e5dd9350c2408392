package replaycmd

import (
	"time"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/transcript"
)

// filter chooses recorded sessions by age and project. The zero value chooses all.
type filter struct {
	after     time.Time
	inProject func(string) bool
}

// filter returns the filter of --since and --project.
func (f *replayFlags) filter() (filter, error) {
	var out filter
	if f.since != "" {
		age, err := cmdline.ParseAge(f.since)
		if err != nil {
			return out, cmdline.BadUsage("--since %s: %w", f.since, err)
		}
		out.after = time.Now().Add(-age)
	}
	if f.project != "" {
		var err error
		if out.inProject, err = cmdline.ProjectFilter(f.project); err != nil {
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
	changed := cmdline.ChangedAt(path)
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
	if f.inProject != nil && !f.inProject(cmdline.ProjectOf(s, meta.Project)) {
		return false
	}
	if f.after.IsZero() {
		return true
	}
	newest := cmdline.NewestOf(s.Log.Records(0))
	if newest.IsZero() {
		newest = cmdline.ChangedAt(rec.File)
	}
	return !newest.Before(f.after)
}
