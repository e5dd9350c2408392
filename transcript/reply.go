package transcript

import (
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/furlhq/furl"
)

// ReplyID identifies a reply of a model in all recordings that have it: a fork, a resumed
// session and a copy of a file repeat the replies of another session.
type ReplyID furl.Digest

// Replies yields the requests of a session, by the records of their exchanges, and what identifies
// their replies: the provider's id and the time; without an id the time and the text.
// Rollouts of Codex before 0.171 have no ids, and a fork changes their times. There, and in
// recordings without times, it is all messages so far and the session that the first
// of them is from. In recordings without times whose forks do not name that session, as those of
// Continue, a call among these messages takes its place, because its id is unique.
func (s *Session) Replies() iter.Seq2[furl.Seq, ReplyID] { return s.RepliesIn(s.Log) }

// RepliesIn yields the requests of another log as Replies does. A request of both logs has the same
// id in both.
func (s *Session) RepliesIn(log *furl.Log) iter.Seq2[furl.Seq, ReplyID] {
	origin := s.root
	if origin == "" {
		origin = s.ID
	}
	return func(yield func(furl.Seq, ReplyID) bool) {
		records := log.Records(0)
		chain, alone := furl.DigestOf([]byte(origin)), furl.DigestOf(nil)
		called := false // so alone identifies the messages without the session
		for i, r := range records {
			switch b := r.Body.(type) {
			case *furl.Message:
				alone = furl.DigestOf(append(alone[:], b.Digest[:]...))
				if chain = furl.DigestOf(append(chain[:], b.Digest[:]...)); called {
					chain = alone
				}
			case *furl.Exchange:
				at, said := r.At, furl.Digest{}
				if i+1 < len(records) {
					if m, ok := records[i+1].Body.(*furl.Message); ok && m.Role == furl.RoleAssistant {
						at, said = records[i+1].At, m.Digest
						if !called && s.root == "" && slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindCall && len(b.ID) >= minUnique }) {
							called, chain = true, alone
						}
					}
				}
				if s.root != "" && b.ResponseID == "" {
					at = time.Time{}
				}
				if !yield(r.Seq, replyID(b, at, said, chain)) {
					return
				}
			}
		}
	}
}

// minUnique is the length from which on the id of a call is taken for unique.
const minUnique = 16

func replyID(ex *furl.Exchange, at time.Time, said, before furl.Digest) ReplyID {
	key := append([]byte(ex.ResponseID), 0)
	if !at.IsZero() {
		key = strconv.AppendInt(key, at.UnixMilli(), 10)
	} else if ex.ResponseID == "" {
		key = append(key, before[:]...)
	}
	if ex.ResponseID == "" {
		key = append(append(key, said[:]...), ex.Model...)
	}
	if said.IsZero() { // no reply, or thinking first
		key = strconv.AppendInt(append(key, ' '), int64(ex.Usage.Prompt()), 10)
		key = strconv.AppendInt(append(key, ' '), int64(ex.Usage.Output), 10)
	}
	return ReplyID(furl.DigestOf(key))
}
