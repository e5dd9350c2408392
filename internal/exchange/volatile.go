package exchange

import (
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
)

// Some clients (openclaw) end each request with a context message that is not in
// the next request: a volatile tail. Once this is detected for a session, these
// messages are recorded on side branches, and the path continues from the message
// before them. Otherwise each request would start a new branch.

// settingVolatile is the setting with the number of messages in a session's
// volatile tail. It is detected from requests, and cannot be set by users.
const settingVolatile = "volatile_tail"

// maxVolatile is the largest number of messages in a volatile tail.
const maxVolatile = 3

// volatileTail returns the number of messages in the volatile tail of a request.
func (t *tx) volatileTail(msgs []furl.Message) int {
	n, _ := strconv.Atoi(t.Meta().Settings[settingVolatile])
	n = min(n, maxVolatile, len(msgs))
	tail := 0
	for tail < n && fingerprint.IsUserText(&msgs[len(msgs)-1-tail]) {
		tail++
	}
	return tail
}

// detectTail detects a volatile tail, and sets in.tailLen and in.newVolatile. It is called
// when a history differs from the path after pl. There is a tail if the path has
// user messages there, followed by the message with which the history continues.
func (t *tx) detectTail(in *incoming, pl position) {
	st := t.Log().State()
	at, ok := st.Find(pl.lastMatched)
	msgs := in.req.Messages
	if !ok || pl.matched == len(msgs) {
		return
	}
	next := &msgs[pl.matched]
	for gone := 1; gone <= maxVolatile && at+gone+1 < st.Len(); gone++ {
		seq, was := st.Message(at + gone)
		if !fingerprint.IsUserText(was) {
			break
		}
		if t.replyFollows(seq, at+gone+1, next) {
			in.newVolatile, in.tailLen = strconv.Itoa(gone), 0
			for in.tailLen < gone && in.tailLen < len(msgs)-pl.matched && fingerprint.IsUserText(&msgs[len(msgs)-1-in.tailLen]) {
				in.tailLen++
			}
			return
		}
	}
	// The opposite: what was recorded as a volatile tail is in the history.
	if in.tailLen > 0 && fingerprint.IsUserText(next) && pl.matched+1 < len(msgs) && at+1 < st.Len() {
		if t.replyFollows(pl.lastMatched, at+1, &msgs[pl.matched+1]) {
			in.newVolatile, in.tailLen = "0", 0
		}
	}
}

// replyFollows reports whether message i of the path, which follows the record seq,
// starts a reply that is the client's message m, reworded or with other ids or not.
func (t *tx) replyFollows(seq furl.Seq, i int, m *furl.Message) bool {
	_, then := t.Log().State().Message(i)
	return then.Role == furl.RoleAssistant && (sameMessage(then, m) || t.findReworded(seq, m, fingerprint.OtherIDs) != 0)
}

// recordOnSideBranch records the volatile tail on a side branch, and rewinds to
// the path.
func (t *tx) recordOnSideBranch(tail []furl.Message, c furl.Counter) error {
	head := t.Log().Head()
	for i := range tail {
		if _, err := t.AppendMessage(cloneMessage(&tail[i]), c); err != nil {
			return err
		}
	}
	if t.Log().Head() == head {
		return nil
	}
	_, err := t.Rewind(head, furl.Furl)
	return err
}
