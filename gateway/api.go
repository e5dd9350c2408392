package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/nextinput"
	"github.com/furlhq/furl/internal/operation"
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
	get := func(path string, h http.HandlerFunc) {
		g.mux.HandleFunc("GET "+apiPrefix+path, g.authorized(access.Read, h))
	}
	post := func(path string, h http.HandlerFunc) {
		g.mux.HandleFunc("POST "+apiPrefix+path, g.authorized(access.Change, h))
	}
	g.mux.HandleFunc("GET "+apiPrefix+"/status", g.authorized(access.Read|access.Operate, answer(g, g.status)))
	g.mux.HandleFunc("POST "+apiPrefix+"/reload", g.authorized(access.Operate, answer(g, g.reload)))
	g.mux.HandleFunc("GET "+apiPrefix+"/echo", g.authorized(access.Client|access.Operate, g.echo))
	g.mux.HandleFunc("POST "+apiPrefix+"/echo/{word}", g.authorized(access.Client|access.Operate, g.echoReceived))
	get("/savings", forTenant(g, g.savings))
	get("/sessions", forTenant(g, listSessions))
	get("/search", forTenant(g, searchAll))
	get("/sessions/{id}", forSession(g, oneSession))
	get("/sessions/{id}/records", forSession(g, listRecords))
	get("/sessions/{id}/view", forSession(g, showView))
	get("/sessions/{id}/context", forSession(g, g.showContext))
	get("/sessions/{id}/reductions", forSession(g, listReductions))
	get("/sessions/{id}/lost", forSession(g, listLost))
	get("/sessions/{id}/branches", forSession(g, listBranches))
	get("/sessions/{id}/search", forSession(g, searchSession))
	get("/sessions/{id}/blocks/{handle}", forSession(g, oneBlock))
	get("/sessions/{id}/settings", forSession(g, listSettings))
	get("/sessions/{id}/summary", forSession(g, showSummaries))
	for _, o := range operation.All() {
		if o.On(operation.API) {
			post("/sessions/{id}/"+o.Path, forTenant(g, g.operate(o)))
		}
	}
	post("/sessions/{id}/append", withBody(g, g.appendMessages))
	g.mux.HandleFunc("POST "+apiPrefix+"/fit", g.authorized(access.Proxy, withBody(g, g.fitBody)))
	get("/sessions/{id}/events", g.events)
	g.mux.HandleFunc(apiPrefix+"/", g.authorized(access.Client, func(w http.ResponseWriter, r *http.Request) {
		g.apiFailed(w, r, &statusError{http.StatusNotFound, errors.New("unknown path of furl's API; docs/operate/api.md lists all")})
	}))
}

// answer returns a handler that encodes the result of h as JSON.
func answer[T any](g *Gateway, h func(*http.Request) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		value, err := h(r)
		if err != nil {
			g.apiFailed(w, r, err)
			return
		}
		writeAPIHeader(w, http.StatusOK)
		// A write error means that the client has disconnected.
		if ready, ok := any(value).(rawJSON); ok {
			_, _ = w.Write(ready)
			return
		}
		_ = json.NewEncoder(w).Encode(value)
	}
}

// forTenant is answer for a function of the tenant's sessions.
func forTenant[T any](g *Gateway, h func(*http.Request, *session.Sessions) (T, error)) http.HandlerFunc {
	return answer(g, func(r *http.Request) (T, error) { return h(r, g.sessionsOf(r)) })
}

// forSession is answer for a function of the session that the path names.
func forSession[T any](g *Gateway, h func(*http.Request, *session.Session) (T, error)) http.HandlerFunc {
	return answer(g, func(r *http.Request) (value T, err error) {
		s, err := g.findSession(r, g.sessionsOf(r))
		if err != nil {
			return value, err
		}
		return h(r, s)
	})
}

// apiFailed writes and logs the error of a request.
func (g *Gateway) apiFailed(w http.ResponseWriter, r *http.Request, err error) {
	status, message := apiStatus(err), err.Error()
	g.logDenied(r, status, "furl")
	if status == http.StatusInternalServerError {
		// The error may contain the store's address or user.
		message = "internal error; see the gateway's log"
		g.log.Error("API request failed", "path", r.URL.Path, "error", err)
	}
	apiError(w, status, message)
}

// apiStatus returns the HTTP status for an error of the API.
func apiStatus(err error) int {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	if _, ok := errors.AsType[*session.AmbiguousError](err); ok {
		return http.StatusMultipleChoices
	}
	if _, ok := errors.AsType[operation.Invalid](err); ok {
		return http.StatusBadRequest
	}
	if _, ok := errors.AsType[operation.Refusal](err); ok {
		return http.StatusConflict
	}
	if _, ok := errors.AsType[*storage.HeldError](err); ok {
		return http.StatusConflict
	}
	switch {
	case errors.Is(err, storage.ErrNoSession), errors.Is(err, furl.ErrNotOnPath):
		return http.StatusNotFound
	case errors.Is(err, storage.ErrDestroyed):
		return http.StatusGone
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
func (g *Gateway) findSession(r *http.Request, all *session.Sessions) (*session.Session, error) {
	s, err := all.Find(r.Context(), r.PathValue("id"))
	if a := g.admissionOf(r); a != nil && err == nil {
		a.Found(s.ID())
	}
	return s, err
}

func badRequest(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// The answers of the API have their fields in the order of their names in JSON.

type sessionList struct {
	Sessions []listedSession `json:"sessions"`
}

// listedSession has what the session was billed in US dollars, nil if that is unknown or
// was not asked for: it is computed from the records.
type listedSession struct {
	sessionjson.Session
	Billed *float64 `json:"billed,omitempty"`
}

func listSessions(r *http.Request, all *session.Sessions) (*sessionList, error) {
	limit, err := intParam(r, "limit", 100)
	if err != nil {
		return nil, err
	}
	q := storage.SessionQuery{Prefix: r.FormValue("prefix"), Hint: r.FormValue("hint"), Limit: limit}
	list, bill := []listedSession{}, r.FormValue("billed") == "true"
	for info, err := range all.List(r.Context(), q) {
		if err != nil {
			return nil, err
		}
		one := listedSession{Session: sessionjson.Of(info)}
		if bill {
			models := func(name string) furl.Model { return all.Model(name, info.Format) }
			if one.Billed, err = billed.Stored(r.Context(), all.Store(), &info, models); err != nil {
				return nil, err
			}
		}
		list = append(list, one)
	}
	return &sessionList{list}, nil
}

// savings serves GET /furl/v1/savings.
func (g *Gateway) savings(r *http.Request, all *session.Sessions) (*storage.SavingsReport, error) {
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

type sessionInfo struct {
	listedSession
	Head furl.Seq `json:"head"`
}

func oneSession(_ *http.Request, s *session.Session) (*sessionInfo, error) {
	info := s.Info()
	b := billed.Sum(billed.OfStored(info.Session, &info.Meta, s.Records(0), s.Model))
	return &sessionInfo{listedSession{sessionjson.Of(info), b.Known()}, s.Head()}, nil
}

// contextReply is a context with what the input of the next message costs, in dollars and in
// words; left out if that is unknown.
type contextReply struct {
	session.Usage
	Next  *storage.NextInput `json:"next_input,omitempty"`
	Words string             `json:"next_input_text,omitempty"`
}

func (g *Gateway) showContext(r *http.Request, s *session.Session) (contextReply, error) {
	next, err := s.NextInput(r.Context())
	return contextReply{s.Context(r.FormValue("model")), next, nextinput.Words(next, g.o.Now())}, err
}

type reductionList struct {
	Reductions []session.Recorded `json:"reductions"`
}

func listReductions(_ *http.Request, s *session.Session) (*reductionList, error) {
	return &reductionList{append([]session.Recorded{}, s.Reductions()...)}, nil
}

type lostList struct {
	Compactions []*session.Loss `json:"compactions"`
}

func listLost(_ *http.Request, s *session.Session) (*lostList, error) {
	list, err := s.Lost()
	return &lostList{append([]*session.Loss{}, list...)}, err
}

type branchList struct {
	Branches []session.Branch `json:"branches"`
}

func listBranches(_ *http.Request, s *session.Session) (*branchList, error) {
	return &branchList{s.Branches()}, nil
}

func oneBlock(r *http.Request, s *session.Session) (*session.Original, error) {
	if _, err := recall.ParseHandle(r.PathValue("handle")); err != nil {
		return nil, badRequest("%w", err)
	}
	return s.Get(r.PathValue("handle"))
}

// maxRecords is the largest number of records in one response.
const maxRecords = 1000

// listRecords returns records encoded by package record, which keeps the
// original bytes of messages. encoding/json would reformat them.
func listRecords(r *http.Request, s *session.Session) (rawJSON, error) {
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

type viewAnswer struct {
	Head     furl.Seq      `json:"head"`
	Messages []viewMessage `json:"messages"`
	Request  int           `json:"request,omitempty"` // 0: as the model sees it now
	Requests int           `json:"requests,omitempty"`
	Tokens   int           `json:"tokens"`
}

type viewMessage struct {
	Record furl.Seq    `json:"record,omitempty"`
	Role   furl.Role   `json:"role"`
	By     furl.Seq    `json:"shown_by,omitempty"`
	Blocks []viewBlock `json:"blocks"`
}

type viewBlock struct {
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

// showView returns the messages that the model sees, or saw at a request.
func showView(r *http.Request, s *session.Session) (*viewAnswer, error) {
	out := &viewAnswer{Head: s.Head(), Messages: []viewMessage{}}
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
		v, out.Request, out.Requests = seen.View, seen.Number, seen.Requests
	}
	for i := range v.Messages {
		sh := &v.Messages[i]
		m := viewMessage{Record: sh.Seq, Role: sh.Msg.Role, By: sh.By, Blocks: []viewBlock{}}
		for j := range sh.Blocks {
			b := &sh.Blocks[j]
			out := viewBlock{Kind: b.Block.Kind.String(), Tool: b.Block.Name, Text: b.Words(), Tokens: b.Tokens, Own: b.Block.Own}
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
		out.Messages = append(out.Messages, m)
	}
	out.Tokens = v.Tokens
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

type hitList struct {
	Hits []session.Hit `json:"hits"`
}

func searchSession(r *http.Request, s *session.Session) (*hitList, error) {
	query, o, err := searchOptions(r)
	if err != nil {
		return nil, err
	}
	hits, err := s.Search(r.Context(), query, o)
	return &hitList{append([]session.Hit{}, hits...)}, err
}

func searchAll(r *http.Request, all *session.Sessions) (*hitList, error) {
	query, o, err := searchOptions(r)
	if err != nil {
		return nil, err
	}
	hits, err := all.Search(r.Context(), query, o)
	return &hitList{append([]session.Hit{}, hits...)}, err
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

// operate returns the handler of an operation. The body of a request is its input.
func (g *Gateway) operate(o *operation.Operation) func(*http.Request, *session.Sessions) (json.RawMessage, error) {
	return func(r *http.Request, all *session.Sessions) (json.RawMessage, error) {
		in := o.Input()
		if err := decodeBody(r, in); err != nil {
			return nil, err
		}
		s, err := g.findSession(r, all)
		if err != nil {
			return nil, err
		}
		call := &operation.Call{Context: r.Context(), Sessions: all, Session: s, Compactor: g.compactorFor()}
		done, err := o.Do(call, in)
		if err != nil {
			return nil, err
		}
		return done.JSON(call)
	}
}

// apiError writes an error of furl's API.
func apiError(w http.ResponseWriter, status int, message string) {
	writeAPIHeader(w, status)
	var out struct {
		Error struct {
			Message string `json:"message"`
			Status  int    `json:"status"`
		} `json:"error"`
	}
	out.Error.Message, out.Error.Status = message, status
	_ = json.NewEncoder(w).Encode(out) // fails only if the client has disconnected
}

// writeAPIHeader writes the header of a JSON response.
func writeAPIHeader(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}
