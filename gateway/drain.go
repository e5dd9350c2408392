package gateway

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// What a client still sends of a request that was answered already is read and
// thrown away, within these bounds. Most clients write all of a request before
// they read anything: they would see a broken connection instead of the answer.
const (
	maxDrain  = 256 << 20
	drainTime = 30 * time.Second
)

// unread is a request's body that knows whether all of it was read.
type unread struct {
	io.ReadCloser
	begun, ended atomic.Bool
}

func (u *unread) Read(b []byte) (int, error) {
	u.begun.Store(true)
	n, err := u.ReadCloser.Read(b)
	if err != nil {
		u.ended.Store(true)
	}
	return n, err
}

// withDrain calls serve with the request, and drains its body afterwards. The
// answer reaches the client when withDrain returns, since refusals fit into the
// server's buffer. The request has given back its slot and its memory before.
func withDrain(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	if r.Body == nil || r.Body == http.NoBody || r.ProtoMajor > 1 {
		serve(w, r) // HTTP/2 clients read while they write
		return
	}
	body := &unread{ReadCloser: r.Body}
	again := *r
	again.Body = body
	serve(w, &again)
	switch {
	case body.ended.Load(), r.ContentLength > maxDrain:
		return
	case !body.begun.Load() && r.Header.Get("Expect") != "":
		return // it waits for the answer before it sends anything
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(drainTime)) // not every writer has deadlines
	if n, err := io.CopyN(io.Discard, body.ReadCloser, maxDrain); err == io.EOF && n < maxDrain {
		_ = rc.SetReadDeadline(time.Time{})
	}
}
