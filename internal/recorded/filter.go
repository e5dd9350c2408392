package recorded

import (
	"time"

	"github.com/furlhq/furl/transcript"
)

// Filter chooses recorded sessions by age and project. The zero value chooses all.
type Filter struct {
	After     time.Time
	InProject func(string) bool
}

// Skip reports whether a file is too old to have a session that is chosen. Its
// newest record is not newer than the file.
func (f Filter) Skip(path string) bool {
	if f.After.IsZero() {
		return false
	}
	changed := ChangedAt(path)
	return !changed.IsZero() && changed.Before(f.After)
}

// keep removes the sessions that are not chosen from a recording, and reports whether
// it has others. Sub-agents belong to the session that started them.
func (f Filter) keep(rec *transcript.Recording) bool {
	if f.After.IsZero() && f.InProject == nil {
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

func (f Filter) chooses(rec *transcript.Recording, s *transcript.Session) bool {
	meta := rec.Meta(s)
	if f.InProject != nil && !f.InProject(ProjectOf(s, meta.Project)) {
		return false
	}
	if f.After.IsZero() {
		return true
	}
	newest := NewestOf(s.Log.Records(0))
	if newest.IsZero() {
		newest = ChangedAt(rec.File)
	}
	return !newest.Before(f.After)
}
