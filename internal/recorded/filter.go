package recorded

import "time"

// Filter chooses recorded sessions by age and project. The zero value chooses all.
type Filter struct {
	After     time.Time
	InProject func(string) bool
	// Project identifies what InProject does, "" if it is nil.
	Project string
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

// keep returns which sessions of a recording are chosen, and whether it is. Sub-agents belong to the
// session that started them.
func (f Filter) keep(file string, sessions []outline) (kept []int, ok bool) {
	chosen := make(map[string]bool)
	for i := range sessions {
		s := &sessions[i]
		of, known := chosen[s.Parent]
		if s.Parent == "" || !known {
			of = f.chooses(file, s)
		}
		chosen[s.ID] = of
		if of {
			kept = append(kept, i)
		}
	}
	return kept, len(kept) > 0 || f.After.IsZero() && f.InProject == nil
}

func (f Filter) chooses(file string, s *outline) bool {
	if !s.InProject || f.After.IsZero() {
		return s.InProject
	}
	newest := s.Newest
	if newest.IsZero() {
		newest = ChangedAt(file)
	}
	return !newest.Before(f.After)
}
