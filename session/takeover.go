package session

import "github.com/furlhq/furl"

// takeover gives what a new branch takes over from the path it leaves: its
// active reductions, and what was opened, kept and pinned there, as far as all
// blocks that they name recur unchanged on the new path. old is the path that
// is left, s the new one, of which the first shared messages are the old's own.
func takeover(old []furl.Record, s *furl.State, shared furl.Seq) []furl.Body {
	r := recurring(old, s, shared)
	lifted := make(map[furl.Seq]bool)
	for _, rec := range old {
		if res, ok := rec.Body.(*furl.Restoration); ok && res.Of != 0 {
			lifted[res.Of] = true
		}
	}
	var out []furl.Body
	for _, rec := range old {
		if r.onPath(rec.Seq) {
			continue
		}
		switch b := rec.Body.(type) {
		case *furl.Reduction:
			if lifted[rec.Seq] || b.Stage == stageClient {
				continue // what the client itself changed it shows again
			}
			items, ok := r.items(b.Items)
			if !ok {
				continue
			}
			red := *b
			red.Items, red.Copy = items, rec.Seq
			out = append(out, &red)
		case *furl.Restoration:
			if spans, ok := r.spans(b.Spans); ok && b.Of == 0 {
				out = append(out, &furl.Restoration{Open: b.Open, Spans: spans, Hold: b.Hold})
			}
		}
	}
	return out
}

// recurrence maps messages of an old path to the same ones on a new path.
type recurrence struct {
	s   *furl.State
	to  map[furl.Seq]furl.Seq // by record
	old map[furl.Seq]int      // index among the messages of the old path
	cut furl.Seq              // records of the old path up to here are on the new one
}

func (r *recurrence) onPath(seq furl.Seq) bool { return seq <= r.cut }

// recurring finds, in order, which messages of the old path are on the new.
func recurring(old []furl.Record, s *furl.State, shared furl.Seq) *recurrence {
	r := &recurrence{s: s, to: make(map[furl.Seq]furl.Seq), old: make(map[furl.Seq]int), cut: shared}
	at := 0
	if i, ok := s.Find(lastMessage(old, shared)); ok {
		at = i + 1
	}
	fresh := make(map[furl.Digest][]int) // messages of the new path alone
	for i := at; i < s.Len(); i++ {
		_, m := s.Message(i)
		fresh[m.Digest] = append(fresh[m.Digest], i)
	}
	n := 0
	for _, rec := range old {
		m, ok := rec.Body.(*furl.Message)
		if !ok {
			continue
		}
		r.old[rec.Seq] = n
		n++
		if rec.Seq <= shared {
			r.to[rec.Seq] = rec.Seq
			continue
		}
		for list := fresh[m.Digest]; len(list) > 0; list = fresh[m.Digest] {
			i := list[0]
			fresh[m.Digest] = list[1:]
			if seq, now := s.Message(i); i >= at && same(m, now) {
				r.to[rec.Seq], at = seq, i+1
				break
			}
		}
	}
	return r
}

// lastMessage is the newest message of a path at or before a record.
func lastMessage(path []furl.Record, upto furl.Seq) furl.Seq {
	var last furl.Seq
	for _, rec := range path {
		if rec.Seq > upto {
			break
		}
		if _, ok := rec.Body.(*furl.Message); ok {
			last = rec.Seq
		}
	}
	return last
}

func (r *recurrence) items(items []furl.Item) ([]furl.Item, bool) {
	out := make([]furl.Item, len(items))
	for i, it := range items {
		spans, ok := r.spans(it.Spans)
		if !ok {
			return nil, false
		}
		out[i] = furl.Item{Spans: spans, Show: it.Show}
	}
	return out, true
}

// spans carries spans over: of each, all messages must recur one behind the
// other.
func (r *recurrence) spans(spans []furl.Span) ([]furl.Span, bool) {
	out := make([]furl.Span, len(spans))
	for i, sp := range spans {
		first, ok1 := r.to[sp.First.Msg]
		last, ok2 := r.to[sp.Last.Msg]
		if !ok1 || !ok2 {
			return nil, false
		}
		a, _ := r.s.Find(first)
		b, _ := r.s.Find(last)
		if b-a != r.old[sp.Last.Msg]-r.old[sp.First.Msg] {
			return nil, false
		}
		out[i] = furl.Span{First: furl.Pos{Msg: first, Block: sp.First.Block}, Last: furl.Pos{Msg: last, Block: sp.Last.Block}}
	}
	return out, len(spans) > 0
}
