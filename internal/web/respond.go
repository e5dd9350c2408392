package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// securityPolicy allows scripts, styles, images and connections of the page's own host
// only, and no inline script or style.
const securityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServePage implements gateway.Page.
func (p *Page) ServePage(w http.ResponseWriter, r *http.Request, v gateway.Visit) {
	setHeaders(w)
	in := &visit{Visit: v, p: p}
	p.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, in)))
}

// ServeLogin implements gateway.Page.
func (p *Page) ServeLogin(w http.ResponseWriter, r *http.Request, status int, to, message string) {
	setHeaders(w)
	v := &visit{p: p, w: w, r: r}
	v.render(status, "login.tmpl", map[string]any{"To": to, "Message": message, "Fields": gateway.LoginFieldsOf(r)})
}

// ServeError implements gateway.Page.
func (p *Page) ServeError(w http.ResponseWriter, r *http.Request, status int, message string) {
	setHeaders(w)
	v := &visit{p: p, w: w, r: r}
	v.fail(status, message)
}

func setHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", securityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// problem is an error with an HTTP status, whose text a person reads.
type problem struct {
	status int
	text   string
}

func (e *problem) Error() string { return e.text }

func notFound(format string, args ...any) error {
	return &problem{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return &problem{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// finish responds to an error of a handler, if there is one.
func (v *visit) finish(err error) {
	if err == nil || v.r.Context().Err() != nil {
		return
	}
	status, text := http.StatusInternalServerError, "furl could not do this; its log has the reason"
	if e, ok := errors.AsType[*problem](err); ok {
		status, text = e.status, e.text
	} else if _, ok := errors.AsType[*session.AmbiguousError](err); ok {
		status, text = http.StatusMultipleChoices, err.Error()
	} else {
		switch {
		case errors.Is(err, storage.ErrNoSession), errors.Is(err, furl.ErrNotOnPath):
			status, text = http.StatusNotFound, err.Error()
		case errors.Is(err, session.ErrMemory):
			status, text = http.StatusServiceUnavailable, err.Error()+". The commands furl show, furl export and furl delete have no such limit."
		case errors.Is(err, furl.ErrConflict), errors.Is(err, furl.ErrOpenCall):
			status, text = http.StatusConflict, err.Error()
		case errors.Is(err, session.ErrInvalid):
			status, text = http.StatusBadRequest, err.Error()
		default:
			v.p.log.Error("page request failed", "path", v.r.URL.Path, "error", err)
		}
	}
	v.fail(status, text)
}

// isFragment reports whether the request wants a part of a page.
func (v *visit) isFragment() bool { return v.r.Header.Get("HX-Request") == "true" }

// fail responds with an error: a page, or a notice if the request wants a part of a page.
func (v *visit) fail(status int, text string) {
	name := "error.tmpl"
	if v.isFragment() {
		name = "notice"
	}
	v.render(status, name, map[string]any{"Status": status, "Name": sentenceCase(http.StatusText(status)), "Text": text})
}

// sentenceCase returns a status such as "Not Found" as "Not found".
func sentenceCase(s string) string {
	if s == "" {
		return s
	}
	return s[:1] + strings.ToLower(s[1:])
}

// render responds with a template. It is executed before the first byte is sent, so that
// an error in it is reported.
func (v *visit) render(status int, name string, data any) {
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, name, &frame{visit: v, Data: data}); err != nil {
		v.p.log.Error("page template failed", "template", name, "error", err)
		http.Error(v.w, "furl could not write this page; its log has the reason", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.send(status, b.Bytes())
}

// json responds with a value as JSON.
func (v *visit) json(value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.send(http.StatusOK, b)
	return nil
}

// send writes a response, compressed if it is worth it.
func (v *visit) send(status int, body []byte) {
	if len(body) > 2048 && strings.Contains(v.r.Header.Get("Accept-Encoding"), "gzip") {
		body = compress(body)
		v.w.Header().Set("Content-Encoding", "gzip")
		v.w.Header().Add("Vary", "Accept-Encoding")
	}
	v.w.WriteHeader(status)
	_, _ = v.w.Write(body) // an error means that the browser has disconnected
}

// frame is what every template gets: the visit and the data of the page.
type frame struct {
	visit *visit
	Data  any
}

// Assets is the folder of scripts and styles, which changes with their content.
func (f *frame) Assets() string { return assets().path }

// Version is furl's version.
func (f *frame) Version() string { return f.visit.p.o.Version }

// LoggedIn reports whether a log-out button makes sense.
func (f *frame) LoggedIn() bool { return f.visit.LoggedIn }
