package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/sessionjson"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// apiPrefix is the path prefix of furl's API, which docs/operate/api.md
// describes.
const apiPrefix = "/furl/v1"

// apiRoutes registers the handlers of furl's API. Each returns a value to encode as
// JSON, or an error; apiStatus maps errors to statuses.
func (g *Gateway) apiRoutes() {
	get := func(path string, h func(*http.Request, *session.Sessions) (any, error)) {
		g.mux.HandleFunc("GET "+apiPrefix+path, g.authorized(access.Read, g.tenantHandler(h)))
	}
	postSession := func(path string, h func(*http.Request, *session.Session) (any, error)) {
		g.mux.HandleFunc("POST "+apiPrefix+path, g.authorized(access.Change, g.tenantHandler(func(r *http.Request, all *session.Sessions) (any, error) {
			s, err := findSession(r, all)
			if err != nil {
				return nil, err
			}
			return h(r, s)
		})))
	}
	getSession := func(path string, h func(*http.Request, *session.Session) (any, error)) {
		get(path, func(r *http.Request, all *session.Sessions) (any, error) {
			s, err := findSession(r, all)
			if err != nil {
				return nil, err
			}
			return h(r, s)
		})
	}
	g.mux.HandleFunc("GET "+apiPrefix+"/status", g.authorized(access.Read|access.Operate, g.jsonHandler(g.status)))
	g.mux.HandleFunc("POST "+apiPrefix+"/reload", g.authorized(access.Operate, g.jsonHandler(g.reload)))
	g.mux.HandleFunc("GET "+apiPrefix+"/echo", g.authorized(access.Client|access.Operate, g.echo))
	g.mux.HandleFunc("POST "+apiPrefix+"/echo/{word}", g.authorized(access.Client|access.Operate, g.echoReceived))
	get("/savings", g.savings)
	get("/sessions", listSessions)
	get("/search", searchAll)
	getSession("/sessions/{id}", oneSession)
	getSession("/sessions/{id}/records", listRecords)
	getSession("/sessions/{id}/view", showView)
	getSession("/sessions/{id}/context", func(r *http.Request, s *session.Session) (any, error) {
		return s.Context(r.FormValue("model")), nil
	})
	getSession("/sessions/{id}/reductions", func(_ *http.Request, s *session.Session) (any, error) {
		return map[string]any{"reductions": append([]session.Recorded{}, s.Reductions()...)}, nil
	})
	getSession("/sessions/{id}/branches", func(_ *http.Request, s *session.Session) (any, error) {
		return map[string]any{"branches": s.Branches()}, nil
	})
	getSession("/sessions/{id}/search", searchSession)
	getSession("/sessions/{id}/blocks/{handle}", func(r *http.Request, s *session.Session) (any, error) {
		if _, err := recall.ParseHandle(r.PathValue("handle")); err != nil {
			return nil, badRequest("%w", err)
		}
		return s.Get(r.PathValue("handle"))
	})
	getSession("/sessions/{id}/settings", listSettings)
	postSession("/sessions/{id}/settings", changeSettings)
	getSession("/sessions/{id}/summary", showSummaries)
	postSession("/sessions/{id}/summary/approve", decideSummary(true))
	postSession("/sessions/{id}/summary/refuse", decideSummary(false))
	postSession("/sessions/{id}/summary/edit", editSummary)
	postSession("/sessions/{id}/reduce", reduce)
	postSession("/sessions/{id}/restore", restore)
	postSession("/sessions/{id}/pin", holdHandler(furl.Pin))
	postSession("/sessions/{id}/release", holdHandler(furl.Release))
	g.mux.HandleFunc("POST "+apiPrefix+"/sessions/{id}/fork", g.authorized(access.Change, g.tenantHandler(fork)))
	g.mux.HandleFunc("POST "+apiPrefix+"/sessions/{id}/append", g.authorized(access.Change, g.withBody(g.appendMessages)))
	g.mux.HandleFunc("POST "+apiPrefix+"/fit", g.authorized(access.Proxy, g.withBody(g.fitBody)))
	g.mux.HandleFunc("GET "+apiPrefix+"/sessions/{id}/events", g.authorized(access.Read, g.events))
	g.mux.HandleFunc(apiPrefix+"/", g.authorized(access.Client, g.tenantHandler(func(r *http.Request, _ *session.Sessions) (any, error) {
		return nil, &statusError{http.StatusNotFound, errors.New("unknown path of furl's API; docs/operate/api.md lists all")}
	})))
}

// tenantHandler returns a handler that calls h with the tenant's sessions and
// encodes its result as JSON.
func (g *Gateway) tenantHandler(h func(*http.Request, *session.Sessions) (any, error)) http.HandlerFunc {
	return g.jsonHandler(func(r *http.Request) (any, error) {
		return h(r, g.sessionsOf(r))
	})
}

// jsonHandler returns a handler that encodes the result of h as JSON.
func (g *Gateway) jsonHandler(h func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		value, err := h(r)
		status := http.StatusOK
		if err != nil {
			status = apiStatus(err)
			value = apiErrorJSON(status, err.Error())
			g.logDenied(r, status, "furl")
			if status == http.StatusInternalServerError {
				// The error may contain the store's address or user.
				value = apiErrorJSON(status, "internal error; see the gateway's log")
				g.log.Error("API request failed", "path", r.URL.Path, "error", err)
			}
		}
		writeAPIHeader(w, status)
		// A write error means that the client has disconnected.
		if ready, ok := value.(rawJSON); ok {
			_, _ = w.Write(ready)
			return
		}
		_ = json.NewEncoder(w).Encode(value)
	}
}

// apiStatus returns the HTTP status for an error of the API.
func apiStatus(err error) int {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	if _, ok := errors.AsType[*session.AmbiguousError](err); ok {
		return http.StatusMultipleChoices
	}
	if _, ok := errors.AsType[*storage.HeldError](err); ok {
		return http.StatusConflict
	}
	switch {
	case errors.Is(err, storage.ErrNoSession), errors.Is(err, furl.ErrNotOnPath):
		return http.StatusNotFound
	case errors.Is(err, session.ErrMemory):
		return http.StatusServiceUnavailable
	case errors.Is(err, furl.ErrConflict):
		return http.StatusConflict
	case errors.Is(err, session.ErrInvalid), errors.Is(err, policy.ErrNoSummary):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// findSession returns the session that a request names, and notes its id for the audit
// log.
func findSession(r *http.Request, all *session.Sessions) (*session.Session, error) {
	s, err := all.Find(r.Context(), r.PathValue("id"))
	if entry := admittedOf(r.Context()).entry; entry != nil && err == nil {
		entry.Session = string(s.ID())
	}
	return s, err
}

func badRequest(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

func listSessions(r *http.Request, all *session.Sessions) (any, error) {
	limit, err := intParam(r, "limit", 100)
	if err != nil {
		return nil, err
	}
	q := storage.SessionQuery{Prefix: r.FormValue("prefix"), Hint: r.FormValue("hint"), Limit: limit}
	list := []sessionjson.Session{}
	for info, err := range all.List(r.Context(), q) {
		if err != nil {
			return nil, err
		}
		list = append(list, sessionjson.Of(info))
	}
	return map[string]any{"sessions": list}, nil
}

// savings serves GET /furl/v1/savings.
func (g *Gateway) savings(r *http.Request, all *session.Sessions) (any, error) {
	since := r.FormValue("since")
	if days, ok := strings.CutSuffix(since, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 0 || n > 100_000 {
			return nil, badRequest("invalid parameter since=%q: expected a number of days such as 7d, or a date such as 2026-11-23", since)
		}
		since = g.o.Now().AddDate(0, 0, -n).Format(time.DateOnly)
	} else if _, err := time.Parse(time.DateOnly, since); err != nil && since != "" {
		return nil, badRequest("invalid parameter since=%q: expected a number of days such as 7d, or a date such as 2026-11-23", since)
	}
	return storage.ReportSavings(r.Context(), all.Store(), all.Tenant(), since, agents.Name)
}

func oneSession(_ *http.Request, s *session.Session) (any, error) {
	return struct {
		sessionjson.Session
		Head furl.Seq `json:"head"`
	}{sessionjson.Of(s.Info()), s.Head()}, nil
}

// maxRecords is the largest number of records in one response.
const maxRecords = 1000

// listRecords returns records encoded by package record, which keeps the
// original bytes of messages. encoding/json would reformat them.
func listRecords(r *http.Request, s *session.Session) (any, error) {
	after, err := intParam(r, "after", 0)
	if err != nil {
		return nil, err
	}
	records := s.Records(furl.Seq(after))
	more := len(records) > maxRecords
	out := []byte(`{"records":[`)
	for i, rec := range records[:min(len(records), maxRecords)] {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = (record.JSON{}).Append(out, rec); err != nil {
			return nil, err
		}
	}
	return rawJSON(fmt.Appendf(out, `],"more":%v,"head":%d}`, more, s.Head())), nil
}

// rawJSON is encoded JSON.
type rawJSON []byte

// showView returns the messages that the model sees, or saw at a request.
func showView(r *http.Request, s *session.Session) (any, error) {
	type block struct {
		Handle string   `json:"handle,omitempty"`
		Kind   string   `json:"kind"`
		Tool   string   `json:"tool,omitempty"`
		Text   string   `json:"text"`
		Tokens int      `json:"tokens"`
		By     furl.Seq `json:"hidden_by,omitempty"`
		Was    int      `json:"original_tokens,omitempty"`
		Hold   string   `json:"hold,omitempty"`
		Own    bool     `json:"own,omitempty"`
	}
	type message struct {
		Record furl.Seq  `json:"record,omitempty"`
		Role   furl.Role `json:"role"`
		By     furl.Seq  `json:"shown_by,omitempty"`
		Blocks []block   `json:"blocks"`
	}
	list := []message{}
	out := map[string]any{"head": s.Head()}
	v := s.View(r.FormValue("model"))
	if r.FormValue("request") != "" {
		n, err := intParam(r, "request", 0)
		switch {
		case err != nil:
			return nil, err
		case n == 0:
			return nil, badRequest("invalid parameter request=0: requests are numbered from 1")
		case r.FormValue("model") != "":
			return nil, badRequest("set either model or request: a request has its own model")
		}
		seen, err := s.ViewAtRequest(r.Context(), n)
		if err != nil {
			return nil, err
		}
		v, out["request"], out["requests"] = seen.View, seen.Number, seen.Requests
	}
	for i := range v.Messages {
		sh := &v.Messages[i]
		m := message{Record: sh.Seq, Role: sh.Msg.Role, By: sh.By, Blocks: []block{}}
		for j := range sh.Blocks {
			b := &sh.Blocks[j]
			out := block{Kind: b.Block.Kind.String(), Tool: b.Block.Name, Text: b.Words(), Tokens: b.Tokens, Own: b.Block.Own}
			if b.Pos.Msg != 0 {
				out.Handle = recall.HandleOf(b.Pos).String()
			}
			if b.By != 0 {
				out.By, out.Was = b.By, b.Block.Tokens
			}
			switch b.Hold {
			case furl.Keep:
				out.Hold = "keep"
			case furl.Pin:
				out.Hold = "pin"
			}
			m.Blocks = append(m.Blocks, out)
		}
		list = append(list, m)
	}
	out["tokens"], out["messages"] = v.Tokens, list
	return out, nil
}

func searchOptions(r *http.Request) (query string, o session.SearchOptions, err error) {
	if query = r.FormValue("q"); query == "" {
		return "", o, badRequest("missing parameter q: set it to the text to search for")
	}
	if o.Limit, err = intParam(r, "limit", 10); err != nil {
		return "", o, err
	}
	o.Limit = min(o.Limit, 100)
	if o.Context, err = intParam(r, "context", 0); err != nil {
		return "", o, err
	}
	o.Context = min(o.Context, 4096)
	switch in := r.FormValue("in"); in {
	case "":
	case "hidden":
		o.Scope = session.Hidden
	case "visible":
		o.Scope = session.Visible
	case "path":
		o.Scope = session.Path
	case "branches":
		o.Scope = session.OffPath
	case "everywhere":
		o.Scope = session.Everywhere
	default:
		return "", o, badRequest("invalid parameter in=%q: expected hidden, visible, path, branches or everywhere", in)
	}
	if roles := r.FormValue("role"); roles != "" {
		for role := range strings.SplitSeq(roles, ",") {
			o.Roles = append(o.Roles, furl.Role(role))
		}
	}
	if tools := r.FormValue("tool"); tools != "" {
		o.Tools = strings.Split(tools, ",")
	}
	return query, o, nil
}

func searchSession(r *http.Request, s *session.Session) (any, error) {
	query, o, err := searchOptions(r)
	if err != nil {
		return nil, err
	}
	hits, err := s.Search(r.Context(), query, o)
	return map[string]any{"hits": append([]session.Hit{}, hits...)}, err
}

func searchAll(r *http.Request, all *session.Sessions) (any, error) {
	query, o, err := searchOptions(r)
	if err != nil {
		return nil, err
	}
	hits, err := all.Search(r.Context(), query, o)
	return map[string]any{"hits": append([]session.Hit{}, hits...)}, err
}

// intParam returns a query parameter as a non-negative integer, or the default.
func intParam(r *http.Request, name string, defaultValue int) (int, error) {
	v := r.FormValue(name)
	if v == "" {
		return defaultValue, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, badRequest("invalid parameter %s=%q: expected a non-negative integer", name, v)
	}
	return n, nil
}

// decodeBody decodes the JSON body of a request. Unknown fields are errors; an
// empty body is not.
func decodeBody(r *http.Request, to any) error { return decodeFrom(r.Body, to) }

// decodeJSON is decodeBody for a body that was read.
func decodeJSON(body []byte, to any) error { return decodeFrom(bytes.NewReader(body), to) }

func decodeFrom(body io.Reader, to any) error {
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	err := dec.Decode(to)
	if err == io.EOF {
		return nil // empty
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return badRequest("invalid request body: field %s cannot be of type %s", wrong.Field, wrong.Value)
	} else if ok {
		return badRequest("invalid request body: expected a JSON object, got %s", wrong.Value)
	}
	if err != nil {
		return badRequest("invalid request body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); err != io.EOF {
		return badRequest("invalid request body: data after the JSON object")
	}
	return nil
}

func reduce(r *http.Request, s *session.Session) (any, error) {
	var in struct {
		Policy string `json:"policy"`
		Model  string `json:"model"`
		DryRun bool   `json:"dry_run"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	return s.Reduce(r.Context(), session.ReduceOptions{Policy: in.Policy, Model: in.Model, DryRun: in.DryRun})
}

func restore(r *http.Request, s *session.Session) (any, error) {
	var in struct {
		Reduction furl.Seq `json:"reduction_id"`
		Handles   []string `json:"handles"`
		DryRun    bool     `json:"dry_run"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if (in.Reduction == 0) == (len(in.Handles) == 0) {
		return nil, badRequest("set either reduction_id or handles")
	}
	spans, err := spansOf(in.Handles)
	if err != nil {
		return nil, err
	}
	return s.Restore(r.Context(), session.RestoreOptions{Reduction: in.Reduction, Spans: spans, DryRun: in.DryRun})
}

func spansOf(handles []string) ([]furl.Span, error) {
	var spans []furl.Span
	for _, h := range handles {
		p, err := recall.ParseHandle(h)
		if err != nil {
			return nil, badRequest("%w", err)
		}
		spans = append(spans, furl.Span{First: p.Pos(), Last: p.Pos()})
	}
	return slices.Clip(spans), nil
}

// apiError writes an error of furl's API.
func apiError(w http.ResponseWriter, status int, message string) {
	writeAPIHeader(w, status)
	_ = json.NewEncoder(w).Encode(apiErrorJSON(status, message)) // fails only if the client has disconnected
}

func apiErrorJSON(status int, message string) any {
	return map[string]any{"error": map[string]any{"message": message, "status": status}}
}

// writeAPIHeader writes the header of a JSON response.
func writeAPIHeader(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}
