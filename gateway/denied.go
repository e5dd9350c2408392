package gateway

import (
	"net/http"
	"sync"
	"time"

	"github.com/furlhq/furl/upstream"
)

// noted is an answer whose status is noted, and that is given up when the client
// does not take it.
type noted struct {
	http.ResponseWriter
	status int
	stall  time.Duration // how long the client may take for a piece; 0: for ever
	rc     *http.ResponseController
}

// control is what controls the client's connection. Not every writer can do what
// it offers.
func (n *noted) control() *http.ResponseController {
	if n.rc == nil {
		n.rc = http.NewResponseController(n.ResponseWriter)
	}
	return n.rc
}

// WriteHeader notes the status.
func (n *noted) WriteHeader(status int) {
	if n.status < 200 { // it may be preceded by informational ones
		n.status = status
	}
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Write(p []byte) (int, error) {
	if n.status < 200 {
		n.status = http.StatusOK
	}
	if n.stall > 0 {
		_ = n.control().SetWriteDeadline(time.Now().Add(n.stall))
	}
	return n.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// deniedEvery is how often the log says that somebody was denied: whoever tries
// keys is not to fill it.
const deniedEvery = time.Second

// denials are those that the log has not been told of.
type denials struct {
	mu     sync.Mutex
	next   time.Time
	unsaid int
}

// denied tells the log that a request which is none to a model was answered with
// 401 or 403, so that whoever runs the gateway sees why a client fails; by says
// whose answer it was. Requests to models are told of by call.end.
func (g *Gateway) denied(r *http.Request, status int, by string) {
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return
	}
	d := &g.denials
	d.mu.Lock()
	defer d.mu.Unlock()
	now := g.o.Now()
	if stillWaits(now, d.next, deniedEvery) {
		d.unsaid++
		return
	}
	attrs := []any{"path", upstream.Path(r.URL), "status", status, "by", by}
	if d.unsaid > 0 {
		attrs = append(attrs, "others", d.unsaid)
	}
	d.next, d.unsaid = now.Add(deniedEvery), 0
	g.log.Info("denied", attrs...)
}
