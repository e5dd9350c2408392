package admission

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/upstream"
)

// AuditLog records accesses. It is safe for concurrent use.
type AuditLog interface {
	// Append returns nil when the entry is stored.
	Append(e audit.Entry) error
}

// errUnaudited is the error for a request that must not be served without an entry.
var errUnaudited = &Error{http.StatusServiceUnavailable, errors.New("the audit log cannot be written; request refused (audit.required is set)")}

// Refuse records that a request is refused before its client is identified. need are the
// scopes of which the request needs one.
func (g *Guard) Refuse(r *http.Request, need access.Scopes, why error) {
	a := &Admission{g: g, Refused: why}
	_ = a.record(r, need) // it is refused in any case
}

// record records the decision about a request that needs a scope. It returns why the
// request is refused: the reason of the decision, or that it must be recorded and the
// audit log failed.
func (a *Admission) record(r *http.Request, need access.Scopes) error {
	g := a.g
	if g.o.Audit == nil {
		return a.Refused
	}
	e := audit.Entry{Who: a.Who.Name, By: string(a.Who.By), Tenant: string(a.Who.Tenant), Session: r.PathValue("id"), Target: r.Method + " " + upstream.Path(r.URL)}
	e.Via, e.Action = accessOf(r, need)
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		e.From = host
	}
	if e.Session == "" {
		e.Session = pageSession(r.URL.Path)
	}
	switch {
	case a.Refused != nil:
		var write bool
		if e.Others, write = g.env.State.refusals.next(g.env.Now()); !write {
			return a.Refused
		}
		e.Outcome, e.Reason = audit.Refused, a.Refused.Error()
		if e.Action == "" {
			e.Action = "read"
		}
		g.write(e)
		return a.Refused
	case e.Action == "" || e.Action == "proxy":
		return nil
	case e.Action == "login": // is done with the decision
		e.Outcome = audit.Done
	default:
		e = e.Allow()
	}
	if !g.write(e) && g.o.AuditRequired {
		return errUnaudited
	}
	a.entry = &e
	return nil
}

// write reports whether an entry is stored.
func (g *Guard) write(e audit.Entry) bool {
	err := g.o.Audit.Append(e)
	if err != nil {
		g.env.Unaudited()
		g.env.Log.Error("audit log cannot be written", "error", err)
	}
	return err == nil
}

// Audited reports whether the access has an entry that waits for its result.
func (a *Admission) Audited() bool { return a.entry != nil }

// Found sets the session that the access is about.
func (a *Admission) Found(id furl.SessionID) {
	if a.entry != nil {
		a.entry.Session = string(id)
	}
}

// Finish records the result of an access that is audited: the HTTP status of the
// response, 0 if no handler has set it. failed reports that the handler has panicked.
func (a *Admission) Finish(status int, failed bool) {
	result := a.entry.Result(resultOf(status))
	if result.Status = status; failed {
		result.Outcome = audit.Failed
	}
	a.g.write(result)
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

// accessOf returns the part of the gateway that a request is for, and its action, "" for
// requests that read no session.
func accessOf(r *http.Request, need access.Scopes) (via, action string) {
	path := r.URL.Path
	last := path[strings.LastIndexByte(path, '/')+1:]
	api := strings.HasPrefix(path, "/furl/v1/")
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
	case api && (last == "status" || strings.HasPrefix(path, "/furl/v1/echo")):
		return via, ""
	case last == "reload":
		return via, "operate"
	case last == "export" || last == "search" || last == "delete" && !safe:
		return via, last
	case (last == "restore" || last == "expand" || last == "undo") && !safe: // the page has two names for it
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

// refusals limits the entries about refused requests, so that they do not fill the disk.
type refusals struct {
	mu         sync.Mutex
	until      time.Time
	written    int
	suppressed int
}

// maxRefusals is the largest number of entries about refused requests in a minute. The
// next entry has the number of the others.
const maxRefusals = 60

func (r *refusals) next(now time.Time) (others int, write bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := r.until.Sub(now); left <= 0 || left > time.Minute { // over, or the clock was set back
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
