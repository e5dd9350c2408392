package exchange

import "github.com/furlhq/furl"

// A client whose history leaves the path begins a branch. What was hidden,
// shown again, kept and pinned on the branch it leaves still holds for the
// messages that it sends again: one record says so (furl.Takeover), and where
// these messages are on the new branch.

// takeOver records that what holds on the branch that ends at old holds on the
// current path too. What cannot be taken over is left out: it only saved
// something.
func (t *tx) takeOver(old furl.Seq) {
	body, err := t.Log().Takeover(old, movedFrom(t.Log().Path(old), t.Log().State()))
	if err == nil && body != nil {
		_, err = t.Append(furl.Furl, body)
	}
	if err != nil {
		t.all.Options().Logger.Debug("not taken over to a new branch", "session", t.s.ID(), "error", err)
	}
}

// movedFrom finds, in order, which messages of an old path are on the new one
// under other numbers.
func movedFrom(old []furl.Record, s *furl.State) []furl.Moved {
	left := messagesOf(old)
	at := 0 // of both
	for at < len(left) && at < s.Len() {
		if seq, _ := s.Message(at); seq != left[at].Seq {
			break
		}
		at++
	}
	left = left[at:]
	fresh := make(map[furl.Digest][]int) // messages of the new path alone
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
			if j < at || !same(m, now) {
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

// messagesOf gives the messages among records.
func messagesOf(records []furl.Record) []furl.Record {
	var list []furl.Record
	for _, r := range records {
		if _, ok := r.Body.(*furl.Message); ok {
			list = append(list, r)
		}
	}
	return list
}
