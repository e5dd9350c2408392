package sse

import (
	"bytes"
	"iter"
)

// Scanner cuts a stream into events. The zero value is ready to use. A
// Scanner serves one stream and one goroutine.
type Scanner struct {
	// Max bounds the bytes of one event, and so the memory of a Scanner. If
	// zero, DefaultMax.
	Max int

	buf   []byte // starts with the incomplete event
	start int64  // offset of buf in the stream
	seen  int    // of buf: everything before is complete lines
	look  int    // of buf: no line end between seen and here
	data  []byte // the joined data of an event with several data fields
	err   error
}

// Feed reads the next bytes of the stream and yields the events that they
// complete. An event's Raw and Data are valid until the next iteration; chunk
// is not kept. Leaving the loop early loses nothing: the next Feed or Close
// continues after the event that was yielded last.
//
// The only error wraps [ErrTooLarge]. It ends the sequence, and every later
// Feed yields it again.
func (s *Scanner) Feed(chunk []byte) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if s.err != nil {
			yield(Event{}, s.err)
			return
		}
		// Chunks mostly contain whole events, so the rest is small and is
		// moved to the front.
		s.buf = append(s.buf, chunk...)
		chunk = nil // a sequence that is run twice feeds once
		s.scan(false, yield)
	}
}

// Close reports the end of the stream and yields the rest, marked Open unless
// its blank line was read. The Scanner cannot be used afterwards.
func (s *Scanner) Close() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if s.err != nil {
			yield(Event{}, s.err)
			return
		}
		s.scan(true, yield)
	}
}

// Pending is the number of bytes that belong to no event yet.
func (s *Scanner) Pending() int { return len(s.buf) }

func (s *Scanner) scan(last bool, yield func(Event, error) bool) {
	at := 0 // everything before was yielded
	defer func() {
		if s.err != nil {
			return
		}
		if at > 0 { // an event without an end is not moved again for each piece
			s.buf = s.buf[:copy(s.buf, s.buf[at:])]
		}
		s.seen, s.look = max(s.seen-at, 0), max(s.look-at, 0)
		s.start += int64(at)
		if len(s.buf) == 0 && cap(s.buf) > keep {
			s.buf = nil
		}
	}()
	for {
		end, ok := s.blank(at, last)
		open := !ok
		if open {
			if end = len(s.buf); !last || end == at {
				break
			}
		}
		if end-at > s.most() {
			s.fail(at, yield)
			return
		}
		e := s.parse(s.buf[at:end:end], s.start+int64(at))
		e.Open = open
		at = end
		s.seen, s.look = at, at
		if !yield(e, nil) {
			return
		}
	}
	if len(s.buf)-at > s.most() {
		s.fail(at, yield)
	}
}

// keep is the largest empty buffer that is kept.
const keep = 64 << 10

func (s *Scanner) most() int {
	if s.Max > 0 {
		return s.Max
	}
	return DefaultMax
}

func (s *Scanner) fail(at int, yield func(Event, error) bool) {
	s.err = tooLarge(s.start+int64(at), s.most())
	s.buf, s.data = nil, nil
	yield(Event{}, s.err)
}

// blank finds the end of the blank line that ends the event at at. A CR as
// the last byte may be half of a line end, so the next byte is awaited:
// otherwise an event's bytes would depend on the chunks.
func (s *Scanner) blank(at int, last bool) (end int, ok bool) {
	for {
		n := bytes.IndexAny(s.buf[s.look:], "\r\n")
		if n < 0 {
			s.look = len(s.buf)
			return 0, false
		}
		text := s.look + n
		next := text + 1
		if s.buf[text] == '\r' {
			if next == len(s.buf) && !last {
				s.look = text
				return 0, false
			}
			if next < len(s.buf) && s.buf[next] == '\n' {
				next++
			}
		}
		empty := text == s.seen
		if s.start == 0 && s.seen == 0 && at == 0 {
			empty = len(withoutMark(s.buf[:text])) == 0
		}
		s.seen, s.look = next, next
		if empty {
			return next, true
		}
	}
}

// mark is the byte order mark that may start a stream.
var mark = []byte("\uFEFF")

func withoutMark(b []byte) []byte { return bytes.TrimPrefix(b, mark) }

// parse reads the fields of an event.
func (s *Scanner) parse(raw []byte, start int64) Event {
	e := Event{Raw: raw, Start: start}
	rest := raw
	if start == 0 {
		rest = withoutMark(rest)
	}
	fields := 0
	for len(rest) > 0 {
		var line []byte
		line, rest = cutLine(rest)
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "event":
			e.Type = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.ID = string(value)
			}
		case "data":
			e.HasData = true
			e.Data = s.join(e.Data, value, fields)
			fields++
		}
	}
	return e
}

// join appends a data field to the previous ones. The usual single one is not
// copied.
func (s *Scanner) join(data, value []byte, fields int) []byte {
	if fields == 0 {
		return value[:len(value):len(value)]
	}
	if fields == 1 {
		s.data = append(s.data[:0], data...)
	}
	s.data = append(append(s.data, '\n'), value...)
	return s.data
}

// cutLine removes the first line, and its line end.
func cutLine(b []byte) (line, rest []byte) {
	n := bytes.IndexAny(b, "\r\n")
	if n < 0 {
		return b, nil
	}
	if b[n] == '\r' && n+1 < len(b) && b[n+1] == '\n' {
		return b[:n], b[n+2:]
	}
	return b[:n], b[n+1:]
}
