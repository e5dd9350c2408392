package recorded

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/packed"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

// item is a recording of a source. It was read, or the index knows it.
type item struct {
	path string // of the file, as it was named
	rec  *transcript.Recording
	sum  *summary
	from *openFile // nil: it is not in the index
	at   int       // its number in the file, from 0

	filter    *Filter
	usageOnly bool // see transcript.Reader
}

// links returns what ParentsFirst needs.
func (it *item) links() links {
	l := links{file: it.path, part: it.sum.Part}
	for i := range it.sum.Sessions {
		l.sessions = append(l.sessions, link{it.sum.Sessions[i].ID, it.sum.Sessions[i].ForkOf})
	}
	return l
}

// later returns how to get the recording again. Until then only its outline is kept.
func (it *item) later() func() (*item, error) {
	light := *it
	light.rec = nil
	return func() (*item, error) {
		if light.from != nil && len(light.from.read.Recordings) == 1 && light.from.ended {
			return &light, nil
		}
		rec, err := (&transcript.Reader{UsageOnly: light.usageOnly}).ReadFile(light.path)
		if err != nil {
			return nil, err
		}
		// This has all sessions of a database.
		sum := light.filter.summarize(rec)
		return &item{path: light.path, rec: rec, sum: &sum, filter: light.filter, usageOnly: light.usageOnly}, nil
	}
}

// rereader reads files that the index knows, because the outcome is not known. It reads the
// recordings of one file in order, once.
type rereader struct {
	path string
	at   int // of the next recording

	usageOnly bool // see transcript.Reader
	next      func() (*transcript.Recording, error, bool)
	stop      func()
}

// read returns a recording of a file, by its number.
func (r *rereader) read(path string, at int) (*transcript.Recording, error) {
	if r.stop == nil || r.path != path || at < r.at {
		r.close()
		r.path, r.at = path, 0
		r.next, r.stop = iter.Pull2((&transcript.Reader{UsageOnly: r.usageOnly}).Walk(path))
	}
	for {
		rec, err, ok := r.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%s changed while it was read", path)
		}
		if r.at++; r.at > at {
			return rec, nil
		}
	}
}

func (r *rereader) close() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// input returns what the recording is for a replay. ok is false if the filter chooses none of its sessions.
func (it *item) input(counted *once, options string, again *rereader) (in replay.Input, ok bool, err error) {
	m, ok := it.mark(counted)
	if !ok {
		return in, false, nil
	}
	if it.rec == nil {
		counts, copied := counts(pick(it.sum.Sessions, m.kept), m.repeated)
		if counts == 0 && copied > 0 && it.sum.Unreadable == 0 {
			return replay.Input{Repeated: copied}, true, nil
		}
		if rep := it.known(m.key(options)); rep != nil {
			return replay.Input{Report: rep, Repeated: copied}, true, nil
		}
	}
	rec, err := it.load(counted, &m, again)
	if rec == nil {
		return in, err != nil, err
	}
	rec.Sessions = pick(rec.Sessions, m.kept)
	for i, s := range rec.Sessions {
		s.Repeated = m.repeated[i]
	}
	in.Recording = rec
	for _, s := range rec.Sessions {
		if in.Project = ProjectOf(s, rec.Meta(s).Project); in.Project != "" {
			break
		}
	}
	if it.from != nil {
		in.Done = func(rep *replay.RecordingReport) { it.keep(m.key(options), rep) }
	}
	return in, true, nil
}

// load returns the recording, and reads it if that was not done. m is what mark has returned. It returns nil without an error
// if the file has changed, and the filter chooses none of its sessions any more.
func (it *item) load(counted *once, m *marked, again *rereader) (*transcript.Recording, error) {
	if rec := it.rec; rec != nil {
		it.rec = nil // it is not kept with those that come later
		return rec, nil
	}
	rec, err := again.read(it.path, it.at)
	if err != nil {
		counted.unmark(pick(it.sum.Sessions, m.kept), m.repeated)
		return nil, err
	}
	now := it.filter.summarize(rec)
	if bytes.Equal(packed.Marshal(now), packed.Marshal(*it.sum)) {
		return rec, nil
	}
	counted.unmark(pick(it.sum.Sessions, m.kept), m.repeated)
	it.sum, it.from = &now, nil
	var ok bool
	if *m, ok = it.mark(counted); !ok {
		return nil, nil
	}
	return rec, nil
}

// marked says which sessions are chosen, and which of their requests are counted elsewhere.
type marked struct {
	kept     []int
	repeated []map[furl.Seq]bool
}

// mark returns what counts of the recording. ok is false if the filter chooses none of its sessions.
func (it *item) mark(counted *once) (m marked, ok bool) {
	if m.kept, ok = it.filter.keep(it.path, it.sum.Sessions); ok {
		m.repeated = counted.mark(pick(it.sum.Sessions, m.kept))
	}
	return m, ok
}

func pick[T any](all []T, which []int) []T {
	out := make([]T, 0, len(which))
	for _, i := range which {
		out = append(out, all[i])
	}
	return out
}

// key identifies what decides the outcome of a replay besides the file.
func (m *marked) key(options string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %v", options, m.kept)
	for i := range m.repeated {
		var list []furl.Seq
		for seq := range m.repeated[i] {
			list = append(list, seq)
		}
		slices.Sort(list)
		fmt.Fprintf(h, " %v", list)
	}
	return string(h.Sum(nil))
}

// section is where the index has the outcomes of the recording.
func (it *item) section() string { return fmt.Sprintf("replay %d", it.at) }

// known returns the outcome that the index has, nil if it has none.
func (it *item) known(key string) *replay.RecordingReport {
	if it.from == nil {
		return nil
	}
	data, ok := it.from.file.Get(it.section(), key)
	rep := new(replay.RecordingReport)
	if !ok || packed.Unmarshal(data, rep) != nil {
		return nil
	}
	rep.File = it.path
	return rep
}

// keep puts an outcome into the index, unless it quotes the recording: the reasons of records that cannot be
// read, and of requests that a provider would refuse.
func (it *item) keep(key string, rep *replay.RecordingReport) {
	if it.from.failed || rep.SkippedRecords > 0 || slices.ContainsFunc(rep.Results, func(r replay.Result) bool { return r.FirstRefusal != "" }) {
		return
	}
	kept := *rep
	kept.File = ""
	it.from.file.Put(it.section(), key, packed.Marshal(kept))
	if it.from.ended {
		it.from.file.Save()
	}
}
