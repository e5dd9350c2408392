package gateway

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/upstream"
)

// AuditEntry is what is written down about one access.
type AuditEntry = audit.Entry

// AuditLog is where the gateway writes down who has read or changed what, and who was
// refused. Requests to models are not written down: their sessions are. It is safe for
// concurrent use.
type AuditLog interface {
	// Append returns nil when the entry is stored.
	Append(e AuditEntry) error
}

// errUnaudited is the error for a request that must not be served without an entry.
var errUnaudited = errors.New("the audit log cannot be written; request refused (audit.required is set)")

// audited writes down the decision about a request that needs a scope; err is why it is
// refused. It returns the entry of an accepted request, nil if it has none, for its result.
// It returns an error for an accepted request whose entry cannot be written, if it must
// be.
func (g *Gateway) audited(r *http.Request, who *Identity, need Scopes, err error) (*AuditEntry, error) {
	if g.o.Audit == nil {
		return nil, nil
	}
	e := AuditEntry{Who: who.Name, By: string(who.By), Tenant: string(who.Tenant), Session: r.PathValue("id"), Target: r.Method + " " + upstream.Path(r.URL)}
	e.Via, e.Action = accessOf(r, need)
	if host, _, splitErr := net.SplitHostPort(r.RemoteAddr); splitErr == nil {
		e.From = host
	}
	if e.Session == "" {
		e.Session = pageSession(r.URL.Path)
	}
	switch {
	case err != nil:
		var write bool
		if e.Others, write = g.refusals.next(g.o.Now()); !write {
			return nil, nil
		}
		e.Outcome, e.Reason = audit.Refused, err.Error()
		if e.Action == "" {
			e.Action = "read"
		}
		g.writeDown(e)
		return nil, nil
	case e.Action == "" || e.Action == "proxy":
		return nil, nil
	case e.Action == "login": // is done with the decision
		e.Outcome = audit.Done
	default:
		e = e.Allow()
	}
	if !g.writeDown(e) && g.o.AuditRequired {
		return nil, &statusError{http.StatusServiceUnavailable, errUnaudited}
	}
	return &e, nil
}

// writeDown reports whether an entry is stored.
func (g *Gateway) writeDown(e AuditEntry) bool {
	err := g.o.Audit.Append(e)
	if err != nil {
		g.metrics.unaudited.Inc()
		g.log.Error("audit log cannot be written", "error", err)
	}
	return err == nil
}

// serveAudited calls h, and then writes down the result of an access that has an entry.
func (g *Gateway) serveAudited(e *AuditEntry, w http.ResponseWriter, h func(http.ResponseWriter)) {
	if e == nil {
		h(w)
		return
	}
	noted, finished := &statusWriter{ResponseWriter: w}, false
	defer func() { // also after a panic
		result := e.Result(resultOf(noted.status))
		if result.Status = noted.status; !finished {
			result.Outcome = audit.Failed
		}
		g.writeDown(result)
	}()
	h(noted)
	finished = true
}

// resultOf returns the result of an access with an HTTP status; 0 is one that no handler
// has set.
func resultOf(status int) string {
	switch {
	case status < http.StatusBadRequest && status != http.StatusMultipleChoices:
		return audit.Done
	case status == http.StatusNotFound || status == http.StatusGone:
		return audit.NotFound
	case status == http.StatusForbidden || status == http.StatusConflict:
		return audit.Refused
	}
	return audit.Failed
}

// accessOf returns where a request comes in, and what it does. The action is "" for
// requests that read no session.
func accessOf(r *http.Request, need Scopes) (via, action string) {
	path := r.URL.Path
	last := path[strings.LastIndexByte(path, '/')+1:]
	api := strings.HasPrefix(path, apiPrefix+"/")
	switch {
	case need == access.Proxy:
		return "proxy", "proxy"
	case api:
		via = "api"
	case path == "/metrics":
		return "api", ""
	default:
		via = "page"
	}
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case api && (last == "status" || strings.HasPrefix(path, apiPrefix+"/echo")):
		return via, ""
	case last == "reload":
		return via, "operate"
	case last == "export" || last == "search" || last == "delete" && !safe:
		return via, last
	case last == "restore" && !safe:
		return via, "restore"
	case last == "login" || last == "logout":
		return via, "login"
	case safe:
		return via, "read"
	}
	return via, "change"
}

// pageSession returns the session in a path of the page.
func pageSession(path string) string {
	_, rest, _ := strings.Cut(path, "/furl/sessions/")
	id, _, _ := strings.Cut(rest, "/")
	return id
}

// refusals limits the entries about refused requests, so that nobody can fill the disk
// with them.
type refusals struct {
	mu         sync.Mutex
	until      time.Time
	written    int
	suppressed int
}

// Each minute has at most so many entries about refused requests; the next entry counts
// the others.
const maxRefusals = 60

func (r *refusals) next(now time.Time) (others int, write bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !stillWaiting(now, r.until, time.Minute) {
		r.until, r.written = now.Add(time.Minute), 0
	}
	if r.written >= maxRefusals {
		r.suppressed++
		return 0, false
	}
	others, r.suppressed = r.suppressed, 0
	r.written++
	return others, true
}
