// Package web serves the page that shows a person what the model sees: the list of
// sessions, and for each session its transcript, the context as a strip to scale, and the
// actions on it.
//
// Pages are HTML from templates. Scripts, styles and fonts are embedded and served from
// the page's own host; a content security policy forbids all others, inline ones too.
// Everything from a transcript is untrusted text: templates escape it, Markdown is
// rendered without raw HTML, and invisible and direction-changing characters are made
// visible.
package web

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// Options are the options of a Page. The zero value is useful.
type Options struct {
	// Version is furl's version, which the page shows.
	Version string
	// Now is the clock, called by several goroutines at once. If nil, time.Now.
	Now func() time.Time
	// Logger logs failures, never message content. If nil, nothing is logged.
	Logger *slog.Logger
}

// Page is the web page. It implements gateway.Page. Use New to create one.
type Page struct {
	o        Options
	log      *slog.Logger
	mux      *http.ServeMux
	cache    *snapshots
	hubs     hubs
	outcomes outcomes     // of actions, for pages after redirects
	figures  *figureCache // what the list of sessions shows of their records
	replays  *replays
}

var _ gateway.Page = (*Page)(nil)

// New returns a page.
func New(opts *Options) *Page {
	p := &Page{
		mux: http.NewServeMux(), cache: newSnapshots(), figures: newFigureCache(), hubs: hubs{by: make(map[furl.SessionKey]*hub)},
	}
	if opts != nil {
		p.o = *opts
	}
	if p.o.Now == nil {
		p.o.Now = time.Now
	}
	p.log = p.o.Logger
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.replays = newReplays(p.log)
	p.routes()
	return p
}

// prefix is the path prefix of all pages but the list of sessions, which is at /.
const prefix = "/furl"

// routes registers all pages.
func (p *Page) routes() {
	p.page("GET /{$}", p.list)
	p.page("GET /furl/sessions", p.list)
	p.page("GET /furl/latest", p.latest)
	p.page("GET /furl/search", p.searchAll)
	p.page("GET /furl/money", p.money)
	p.page("GET /furl/usage", p.usage)
	p.page("GET /furl/sessions/{id}/spark", p.spark)
	p.session("GET /furl/sessions/{id}/hidden", p.showHidden)
	p.session("GET /furl/sessions/{id}/recall", p.recall)
	p.session("GET /furl/sessions/{id}/money", p.sessionMoney)
	p.session("GET /furl/sessions/{id}", p.showSession)
	p.session("GET /furl/sessions/{id}/messages", p.showMessages)
	p.session("GET /furl/sessions/{id}/chunk", p.chunkOf)
	p.session("GET /furl/sessions/{id}/markers", p.nextMarker)
	p.session("GET /furl/sessions/{id}/live", p.live)
	p.session("GET /furl/sessions/{id}/meter", p.showMeter)
	p.session("GET /furl/sessions/{id}/part", p.showPart)
	p.session("GET /furl/sessions/{id}/media", p.showMedia)
	p.session("GET /furl/sessions/{id}/original", p.original)
	p.session("GET /furl/sessions/{id}/inspect", p.inspect)
	p.session("GET /furl/sessions/{id}/picture", p.picture)
	p.session("GET /furl/sessions/{id}/peek", p.peek)
	p.session("GET /furl/sessions/{id}/transcript", p.moveTo)
	p.session("GET /furl/sessions/{id}/requests", p.listRequests)
	p.session("GET /furl/sessions/{id}/requests/{n}", p.showRequest)
	p.session("GET /furl/sessions/{id}/requests/{n}/body", p.sendBody)
	p.registerActions()
	p.session("GET /furl/sessions/{id}/export", p.export)
	p.session("GET /furl/sessions/{id}/whatif", p.whatIf)
	p.session("POST /furl/sessions/{id}/whatif", p.startWhatIf)
	p.session("GET /furl/sessions/{id}/whatif/progress", p.whatIfProgress)
	p.session("POST /furl/sessions/{id}/whatif/cancel", p.cancelWhatIf)
	p.session("POST /furl/sessions/{id}/whatif/apply", p.applyWhatIf)
	p.page("/", func(v *visit) error { return notFound("there is no page %.200q", v.r.URL.Path) })
}

// page registers a handler.
func (p *Page) page(pattern string, h func(*visit) error) {
	p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v := r.Context().Value(visitKey{}).(*visit)
		v.w, v.r = w, r
		v.finish(h(v))
	})
}

// session registers a handler of the session that the path names.
func (p *Page) session(pattern string, h func(*visit) error) {
	p.page(pattern, func(v *visit) error {
		name := v.r.PathValue("id")
		s, err := v.Sessions.Find(v.r.Context(), name)
		if errors.Is(err, storage.ErrNoSession) {
			p.forget(furl.SessionKey{Tenant: v.Sessions.Tenant(), Session: furl.SessionID(name)})
		}
		if err != nil {
			return err
		}
		if v.s = s; string(s.ID()) != name {
			return v.toSession(name)
		}
		return h(v)
	})
}

// toSession leads from the address of a session by another name, such as latest, to the
// one by its id. That name may be another session's by the time of the next request, so
// nothing can be changed by it.
func (v *visit) toSession(name string) error {
	if v.r.Method == http.MethodPost {
		return notFound("there is no session %.60q", name)
	}
	rest := strings.TrimPrefix(v.r.URL.EscapedPath(), prefix+"/sessions/")
	to := prefix + "/sessions/" + string(v.s.ID())
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		to += rest[i:]
	}
	if v.r.URL.RawQuery != "" {
		to += "?" + v.r.URL.RawQuery
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// forget drops what is in memory of a deleted session.
func (p *Page) forget(key furl.SessionKey) {
	p.cache.forget(key)
	p.figures.forget(key)
	p.outcomes.forget(key)
	p.replays.forget(key)
}

// visit is one request of a browser.
type visit struct {
	gateway.Visit
	p *Page
	w http.ResponseWriter
	r *http.Request
	s *session.Session // that the path names; nil if it names none
	// requests are the requests of the current path, if hasRequests is set.
	requests    []session.Request
	hasRequests bool
}

type visitKey struct{}
