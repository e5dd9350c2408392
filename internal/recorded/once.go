package recorded

import (
	"iter"
	"maps"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// once finds the requests that several recordings have: forks, resumed sessions and copies of
// files. Each is counted in the session that was read first.
type once struct{ known map[transcript.ReplyID]bool }

// mark sets which requests of a recording were in one before.
func (o *once) mark(rec *transcript.Recording) {
	if o.known == nil {
		o.known = make(map[transcript.ReplyID]bool)
	}
	for _, s := range rec.Sessions {
		s.Repeated = nil
		var own []transcript.ReplyID
		for seq, id := range s.Replies() {
			if !o.known[id] {
				own = append(own, id)
				continue
			}
			if s.Repeated == nil {
				s.Repeated = make(map[furl.Seq]bool)
			}
			s.Repeated[seq] = true
		}
		for _, id := range own {
			o.known[id] = true
		}
	}
}

// Recordings is a sequence of recordings, and the errors of those that cannot be read.
type Recordings = iter.Seq2[*transcript.Recording, error]

// ParentsFirst yields recordings in order, but those of forks after those of the sessions that they
// are forks of, if these are among them. It keeps no recording: again reads a file a second
// time. A file that is read in parts does not wait.
func ParentsFirst(all Recordings, again func(path string) (*transcript.Recording, error)) Recordings {
	return func(yield func(*transcript.Recording, error) bool) {
		read := make(map[string]bool)     // the ids of sessions
		later := make(map[string]waiting) // by the file
		for rec, err := range all {
			if err == nil {
				if w := waitingFor(rec, read); len(w.of) > 0 && rec.Part == 0 {
					later[rec.File] = w
					continue
				}
				note(rec, read)
			}
			if !yield(rec, err) {
				return
			}
		}
		for len(later) > 0 {
			file := nextOf(later, read)
			delete(later, file)
			rec, err := again(file)
			if err == nil {
				note(rec, read)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// waiting is a file that is read later: its sessions, and those that they are forks of.
type waiting struct{ ids, of []string }

// waitingFor returns which sessions a recording must wait for.
func waitingFor(rec *transcript.Recording, read map[string]bool) (w waiting) {
	if rec.File == Stdin || rec.Part > 0 { // it cannot be read again at once
		return w
	}
	for _, s := range rec.Sessions {
		w.ids = append(w.ids, s.ID)
	}
	for _, s := range rec.Sessions {
		if s.ForkOf != "" && !read[s.ForkOf] && !slices.Contains(w.ids, s.ForkOf) {
			w.of = append(w.of, s.ForkOf)
		}
	}
	return w
}

func note(rec *transcript.Recording, read map[string]bool) {
	for _, s := range rec.Sessions {
		read[s.ID] = true
	}
}

// nextOf returns a file that waits for none of the others, or the first one by name.
func nextOf(later map[string]waiting, read map[string]bool) string {
	coming := make(map[string]bool)
	for _, w := range later {
		for _, id := range w.ids {
			coming[id] = true
		}
	}
	files := slices.Sorted(maps.Keys(later))
	for _, file := range files {
		if !slices.ContainsFunc(later[file].of, func(id string) bool { return coming[id] && !read[id] }) {
			return file
		}
	}
	return files[0]
}
