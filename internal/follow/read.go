package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// The limits of the time spent on a file that changes all the time (see Options.Pause).
const (
	pauseFactor = 20
	maxPause    = time.Minute
)

// read imports a file that has changed. The error is one of the target.
func (f *Follower) read(ctx context.Context, c candidate) error {
	begin := time.Now()
	held := begin.Sub(c.seen.at) < f.o.Settle
	c.seen.held = held
	done, err := f.readEnd(ctx, c, held)
	if err == nil && !done {
		err = f.readWhole(ctx, c, held)
	}
	if err != nil {
		return fmt.Errorf("import %s: %w", c.path, err)
	}
	f.state.set(c.path, c.seen)
	f.log.Debug("read a recording", "file", c.path, "end_only", done, "duration", time.Since(begin).Round(time.Millisecond))
	if pause := min(time.Duration(f.o.Pause)*time.Since(begin), maxPause); pause > f.o.Interval {
		f.next[c.path] = time.Now().Add(pause)
	} else {
		delete(f.next, c.path)
	}
	return nil
}

// readWhole imports a file from its start, or a folder.
func (f *Follower) readWhole(ctx context.Context, c candidate, held bool) error {
	delete(f.hot, c.path)
	if !c.folder && binary(c.path) {
		return nil
	}
	reader := transcript.Reader{Counter: f.o.Counter, Bodies: true}
	path := c.path
	for rec, err := range reader.Walk(path) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // not a recording, or too large
			f.log.Debug("cannot read a recording", "file", path, "error", err)
			continue
		}
		if held {
			holdBack(rec)
		}
		out, err := f.to.Import(ctx, rec)
		if err != nil {
			return err
		}
		if !c.folder {
			f.keepHot(c, rec, out)
		}
	}
	return nil
}

// binary reports whether a file is clearly no text and no compressed text.
func binary(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return true
	}
	defer file.Close()
	head := make([]byte, 512)
	n, _ := file.Read(head)
	head = head[:n]
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) || bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		return false
	}
	return bytes.IndexByte(bytes.TrimLeft(head, "\x00"), 0) >= 0
}

// holdBack removes the last step of each session.
func holdBack(rec *transcript.Recording) {
	if rec.Format == "furl" || rec.More {
		return // an export, not a file that an agent writes, or not its end
	}
	for _, s := range rec.Sessions {
		records := s.Log.Records(0)
		if n := heldBack(records); n < len(records) {
			log := furl.NewLog()
			if err := log.Load(records[:n]); err != nil {
				continue // cannot happen: they were loaded before
			}
			s.Log = log
		}
	}
	rec.Sessions = slices.DeleteFunc(rec.Sessions, func(s *transcript.Session) bool { return s.Log.Len() == 0 })
}

// heldBack returns how many records are before the newest exchange, and before the last
// message if there is no exchange after it. What follows an exchange may be incomplete:
// agents write replies in parts, and Codex writes the usage after the reply. It is 0 if no
// reply is among them: a gateway may have yet to record the request, and without a reply
// its session is not known for the same.
func heldBack(records []furl.Record) int {
	last := lastComplete(records)
	if !slices.ContainsFunc(records[:last], isReply) {
		return 0
	}
	return last
}

func isReply(r furl.Record) bool {
	m, ok := r.Body.(*furl.Message)
	return ok && m.Role == furl.RoleAssistant
}

// lastComplete returns how many records are before what may be incomplete.
func lastComplete(records []furl.Record) int {
	last := 0
	for i := len(records) - 1; i >= 0; i-- {
		switch records[i].Body.(type) {
		case *furl.Exchange:
			return i
		case *furl.Message:
			if last == 0 {
				last = i
			}
		}
	}
	return last
}

// hotFile is a large file that grows, and its session as it was imported.
type hotFile struct {
	key   furl.SessionKey
	id    string // of the session in the file
	title string
	log   *furl.Log
	size  int64 // of the file when it was last read
	used  time.Time
}

// Limits of files whose end is read.
const (
	hotFrom    = 256 << 10 // smaller ones are read whole
	hotBytes   = 192 << 20 // of all hot files
	hotFiles   = 8
	headBytes  = 64 << 10  // of the start of a file, for what describes its session
	tailBytes  = 128 << 10 // of the end that was read before
	tailFactor = 16        // more if that does not suffice
	minEqual   = 6         // records of the end that must equal those imported
)

// keepHot keeps the session of a large file that has just changed.
func (f *Follower) keepHot(c candidate, rec *transcript.Recording, out []Imported) {
	if c.seen.size < hotFrom || len(rec.Sessions) != 1 || len(out) != 1 || !out[0].Same || rec.Format == "furl" || filepath.Ext(c.path) != ".jsonl" || time.Since(c.seen.at) > time.Hour {
		return
	}
	s := rec.Sessions[0]
	f.hot[c.path] = &hotFile{key: out[0].Key, id: s.ID, title: s.Title, log: s.Log, size: c.seen.size, used: time.Now()}
	for {
		var sum int64
		oldest := ""
		for path, h := range f.hot {
			sum += h.size
			if oldest == "" || h.used.Before(f.hot[oldest].used) {
				oldest = path
			}
		}
		if len(f.hot) <= hotFiles && sum <= hotBytes {
			return
		}
		delete(f.hot, oldest)
	}
}

// readEnd imports the end of a file that was read before. It reports false if the file
// must be read whole.
func (f *Follower) readEnd(ctx context.Context, c candidate, held bool) (bool, error) {
	h := f.hot[c.path]
	if h == nil || c.seen.size < h.size {
		return false, nil
	}
	for _, before := range []int64{tailBytes, tailBytes * tailFactor} {
		if h.size <= before+headBytes {
			return false, nil
		}
		s := f.parseEnd(c.path, h.size-before, c.seen.size)
		if s == nil || s.ID != h.id || s.Title != "" && s.Title != h.title {
			return false, nil
		}
		fresh, ok := following(h.log, s.Log)
		if !ok {
			continue
		}
		if held {
			fresh = fresh[:heldBack(fresh)]
		}
		return f.appendEnd(ctx, h, fresh, c)
	}
	return false, nil
}

// appendEnd appends records to the session of a file.
func (f *Follower) appendEnd(ctx context.Context, h *hotFile, fresh []furl.Record, c candidate) (bool, error) {
	had := furl.Seq(h.log.Len())
	for _, r := range fresh {
		if _, err := h.log.Append(h.log.Head(), r.At, r.By, r.Body); err != nil {
			return false, nil
		}
	}
	if len(fresh) > 0 {
		err := f.to.Append(ctx, h.key, h.log.Records(had))
		if errors.Is(err, furl.ErrConflict) {
			return false, nil // somebody has changed the session
		}
		if err != nil {
			delete(f.hot, c.path)
			return false, err
		}
	}
	h.size, h.used = c.seen.size, time.Now()
	return true, nil
}

// parseEnd reads the whole lines at the start of a file, and those after an offset. It
// returns nil unless they are one session.
func (f *Follower) parseEnd(path string, from, size int64) *transcript.Session {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	head := make([]byte, headBytes)
	n, _ := file.ReadAt(head, 0)
	head = head[:bytes.LastIndexByte(head[:n], '\n')+1]
	tail := make([]byte, size-from)
	n, _ = file.ReadAt(tail, from)
	tail = tail[:n]
	tail = tail[bytes.IndexByte(tail, '\n')+1:]
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1]
	reader := transcript.Reader{Counter: f.o.Counter, Bodies: true}
	rec, err := reader.Read(path, bytes.NewReader(slices.Concat(head, tail)))
	if err != nil || len(rec.Sessions) != 1 {
		return nil
	}
	return rec.Sessions[0]
}

// following returns the records of a log that follow those of another: the last records
// of the other are in it, and after them are only messages and exchanges, in a row.
func following(log, end *furl.Log) (fresh []furl.Record, ok bool) {
	known, records := log.Records(0), end.Records(0)
	if len(known) < minEqual {
		return nil, false
	}
	last := known[len(known)-1]
	for at := len(records) - 1; at >= minEqual-1; at-- {
		if !equal(last, records[at]) {
			continue
		}
		for i := range minEqual {
			if !equal(known[len(known)-1-i], records[at-i]) {
				return nil, false
			}
		}
		fresh = records[at+1:]
		for i, r := range fresh {
			switch r.Body.(type) {
			case *furl.Message, *furl.Exchange:
			default:
				return nil, false
			}
			if r.Parent != records[at+i].Seq {
				return nil, false
			}
		}
		return fresh, true
	}
	return nil, false
}

// equal compares messages and exchanges, without their numbers.
func equal(a, b furl.Record) bool {
	if !a.At.Equal(b.At) || a.By != b.By {
		return false
	}
	switch body := a.Body.(type) {
	case *furl.Message:
		other, ok := b.Body.(*furl.Message)
		return ok && body.Raw != nil && body.Role == other.Role && bytes.Equal(body.Raw, other.Raw)
	case *furl.Exchange:
		other, ok := b.Body.(*furl.Exchange)
		return ok && body.Model == other.Model && body.Usage == other.Usage && body.ResponseID == other.ResponseID && body.Stop == other.Stop
	}
	return false
}
