package exchange

import (
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/gist"
)

// Some clients keep a message of context at the end of the list and move it on
// with each request (openclaw): what stood last in one request is not in the
// next. Once a session's client is seen to do so, such messages are recorded
// beside the path, each on a branch of its own, and the path goes on from what
// is before them. Otherwise each request would be a divergence.

// settingVolatile counts the messages at the end that a session's client moves
// on. It is learned from requests, and cannot be set.
const settingVolatile = "volatile_tail"

// maxVolatile is the most messages at the end of a list that are taken to move.
const maxVolatile = 3

// moving is how many messages at the end of a list the session's client moves
// on.
func (t *tx) moving(msgs []furl.Message) int {
	n, _ := strconv.Atoi(t.Meta().Settings[settingVolatile])
	n = min(n, maxVolatile, len(msgs))
	tail := 0
	for tail < n && gist.OnlyWords(&msgs[len(msgs)-1-tail]) {
		tail++
	}
	return tail
}

// learnTail notes in in.tail how many messages at the end move on, as it is
// seen when a history leaves the path after place pl: the path has words of
// the user there, and then the message with which the history goes on.
func (t *tx) learnTail(in *arrival, pl place) {
	st := t.Log().State()
	at, ok := st.Find(pl.message)
	msgs := in.req.Messages
	if !ok || pl.matched == len(msgs) {
		return
	}
	next := &msgs[pl.matched]
	for gone := 1; gone <= maxVolatile && at+gone+1 < st.Len(); gone++ {
		seq, was := st.Message(at + gone)
		if !gist.OnlyWords(was) {
			break
		}
		if t.answeredBy(seq, at+gone+1, next) {
			in.learned, in.tail = strconv.Itoa(gone), 0
			for in.tail < gone && in.tail < len(msgs)-pl.matched && gist.OnlyWords(&msgs[len(msgs)-1-in.tail]) {
				in.tail++
			}
			return
		}
	}
	// The other way round: what was taken to move has stayed.
	if in.tail > 0 && gist.OnlyWords(next) && pl.matched+1 < len(msgs) && at+1 < st.Len() {
		if t.answeredBy(pl.message, at+1, &msgs[pl.matched+1]) {
			in.learned, in.tail = "0", 0
		}
	}
}

// answeredBy reports whether the answer after a message of the path, which
// begins with message i of it, is the client's message m, in whatever words and
// with whatever ids.
func (t *tx) answeredBy(seq furl.Seq, i int, m *furl.Message) bool {
	_, then := t.Log().State().Message(i)
	return then.Role == furl.RoleAssistant && (same(then, m) || t.answeredAs(seq, m, gist.OtherIDs) != 0)
}

// aside records what moves on beside the path, and goes back to it.
func (t *tx) aside(tail []furl.Message, c furl.Counter) error {
	head := t.Log().Head()
	for i := range tail {
		if _, err := t.AppendMessage(keepable(&tail[i]), c); err != nil {
			return err
		}
	}
	if t.Log().Head() == head {
		return nil
	}
	_, err := t.Rewind(head, furl.Furl)
	return err
}
