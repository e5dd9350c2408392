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

// mark returns which requests of each session were in a recording before.
func (o *once) mark(sessions []outline) []map[furl.Seq]bool {
	if o.known == nil {
		o.known = make(map[transcript.ReplyID]bool)
	}
	repeated := make([]map[furl.Seq]bool, len(sessions))
	for i := range sessions {
		var own []transcript.ReplyID
		for _, r := range sessions[i].Replies {
			if !o.known[r.ID] {
				own = append(own, r.ID)
				continue
			}
			if repeated[i] == nil {
				repeated[i] = make(map[furl.Seq]bool)
			}
			repeated[i][r.Seq] = true
		}
		for _, id := range own {
			o.known[id] = true
		}
	}
	return repeated
}

// unmark undoes mark for a recording that could not be read.
func (o *once) unmark(sessions []outline, repeated []map[furl.Seq]bool) {
	for i := range sessions {
		for _, r := range sessions[i].Replies {
			if !repeated[i][r.Seq] {
				delete(o.known, r.ID)
			}
		}
	}
}

// Recordings is a sequence of recordings, and the errors of those that cannot be read.
type Recordings = iter.Seq2[*transcript.Recording, error]

// ParentsFirst yields recordings in order, but those of forks after those of the sessions that they
// are forks of, if these are among them. It keeps no recording: again reads a file a second
// time. A file that is read in parts does not wait.
func ParentsFirst(all Recordings, again func(path string) (*transcript.Recording, error)) Recordings {
	return parentsFirst(all, func(rec *transcript.Recording) links {
		l := links{file: rec.File, part: rec.Part}
		for _, s := range rec.Sessions {
			l.sessions = append(l.sessions, link{s.ID, s.ForkOf})
		}
		return l
	}, func(rec *transcript.Recording) func() (*transcript.Recording, error) {
		path := rec.File
		return func() (*transcript.Recording, error) { return again(path) }
	})
}

// links are the sessions of a recording, and those that they are forks of.
type links struct {
	file     string
	part     int
	sessions []link
}

type link struct{ id, forkOf string }

// parentsFirst is ParentsFirst for what stands for a recording. later returns how to get it again without
// keeping it.
func parentsFirst[T any](all iter.Seq2[T, error], of func(T) links, later func(T) func() (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		read := make(map[string]bool)     // the ids of sessions
		waits := make(map[string]waiting) // by the file
		again := make(map[string]func() (T, error))
		for rec, err := range all {
			if err == nil {
				l := of(rec)
				if w := l.waitsFor(read); len(w.of) > 0 {
					waits[l.file], again[l.file] = w, later(rec)
					continue
				}
				l.note(read)
			}
			if !yield(rec, err) {
				return
			}
		}
		for len(waits) > 0 {
			file := nextOf(waits, read)
			delete(waits, file)
			rec, err := again[file]()
			if err == nil {
				of(rec).note(read)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// waiting is a file that is read later: its sessions, and those that they are forks of.
type waiting struct{ ids, of []string }

// waitsFor returns which sessions a recording must wait for.
func (l links) waitsFor(read map[string]bool) (w waiting) {
	if l.file == Stdin || l.part > 0 { // it cannot be read again at once
		return w
	}
	for _, s := range l.sessions {
		w.ids = append(w.ids, s.id)
	}
	for _, s := range l.sessions {
		if s.forkOf != "" && !read[s.forkOf] && !slices.Contains(w.ids, s.forkOf) {
			w.of = append(w.of, s.forkOf)
		}
	}
	return w
}

func (l links) note(read map[string]bool) {
	for _, s := range l.sessions {
		read[s.id] = true
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
