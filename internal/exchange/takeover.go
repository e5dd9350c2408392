package exchange

import "github.com/furlhq/furl"

// A request whose history differs from the current path starts a branch. The
// reductions, restorations and pins of the old branch still apply to the messages
// that the request repeats. One record (furl.Takeover) refers to them, and maps the
// repeated messages to the new branch.

// takeOver applies the reductions and pins of the branch that ends at old to the
// current path. Failures are only logged, because reductions are optional.
func (t *tx) takeOver(old furl.Seq) {
	body, err := t.Log().Takeover(old, movedMessages(t.Log().Path(old), t.Log().State()))
	if err == nil && body != nil {
		_, err = t.Append(furl.Furl, body)
	}
	if err != nil {
		t.all.Options().Logger.Debug("reductions not carried over to the new branch", "session", t.s.ID(), "error", err)
	}
}

// movedMessages returns which messages of an old path are on the new one under
// other record numbers, in order.
func movedMessages(old []furl.Record, s *furl.State) []furl.Moved {
	left := messagesOf(old)
	at := 0 // number of common messages at the start
	for at < len(left) && at < s.Len() {
		if seq, _ := s.Message(at); seq != left[at].Seq {
			break
		}
		at++
	}
	left = left[at:]
	fresh := make(map[furl.Digest][]int) // messages only on the new path
	for i := at; i < s.Len(); i++ {
		_, m := s.Message(i)
		fresh[m.Digest] = append(fresh[m.Digest], i)
	}
	var moved []furl.Moved
	lastOld, lastNew := -2, -2
	for i, rec := range left {
		m := rec.Body.(*furl.Message)
		for list := fresh[m.Digest]; len(list) > 0; list = fresh[m.Digest] {
			j := list[0]
			fresh[m.Digest] = list[1:]
			seq, now := s.Message(j)
			if j < at || !sameMessage(m, now) {
				continue
			}
			if i == lastOld+1 && j == lastNew+1 {
				moved[len(moved)-1].Messages++
			} else {
				moved = append(moved, furl.Moved{Old: rec.Seq, New: seq, Messages: 1})
			}
			lastOld, lastNew, at = i, j, j+1
			break
		}
	}
	return moved
}

// messagesOf returns the records that are messages.
func messagesOf(records []furl.Record) []furl.Record {
	var list []furl.Record
	for _, r := range records {
		if _, ok := r.Body.(*furl.Message); ok {
			list = append(list, r)
		}
	}
	return list
}
