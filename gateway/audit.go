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
// refused. It returns an error for an accepted request whose entry cannot be written, if
// it must be.
func (g *Gateway) audited(r *http.Request, who *Identity, need Scopes, err error) error {
	if g.o.Audit == nil {
		return nil
	}
	e := AuditEntry{Outcome: audit.Allowed, Who: who.Name, By: string(who.By), Tenant: string(who.Tenant), Session: r.PathValue("id"), Target: r.Method + " " + upstream.Path(r.URL)}
	e.Via, e.Action = accessOf(r, need)
	if host, _, splitErr := net.SplitHostPort(r.RemoteAddr); splitErr == nil {
		e.From = host
	}
	if e.Session == "" {
		e.Session = pageSession(r.URL.Path)
	}
	if err == nil && (e.Action == "" || e.Action == "proxy") {
		return nil
	}
	if err != nil {
		var write bool
		if e.Others, write = g.refusals.next(g.o.Now()); !write {
			return nil
		}
		e.Outcome, e.Reason = audit.Refused, err.Error()
		if e.Action == "" {
			e.Action = "read"
		}
	}
	failure := g.o.Audit.Append(e)
	if failure == nil {
		return nil
	}
	g.metrics.unaudited.Inc()
	g.log.Error("audit log cannot be written", "error", failure)
	if err == nil && g.o.AuditRequired {
		return &statusError{http.StatusServiceUnavailable, errUnaudited}
	}
	return nil
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
