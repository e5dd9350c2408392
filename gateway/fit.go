package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/clients"
	"github.com/furlhq/furl/internal/fit"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

// withBody returns a handler for a request of furl's API whose body is as large as a
// request to a model: it counts toward the limits of the tenant, the memory for bodies and
// the concurrent requests as one of these.
func withBody[T any](g *Gateway, h func(c *call, r *http.Request, body []byte) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{statusWriter: statusWriter{ResponseWriter: w}, g: g, rt: &route{}, start: time.Now()}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		c.r = r
		g.inFlight.Add(1)
		defer func() {
			for _, f := range c.cleanups {
				defer f()
			}
			g.inFlight.Add(-1)
		}()
		answer(g, func(*http.Request) (value T, err error) {
			body, err := g.admitBody(c, r)
			if err != nil {
				return value, err
			}
			return h(c, r, body)
		})(c, r.Clone(r.Context())) // its limit of the body is smaller
	}
}

// admitBody reads the body of a request if the limits allow it.
func (g *Gateway) admitBody(c *call, r *http.Request) ([]byte, error) {
	end, refusal := g.begin(c.Header(), r)
	if refusal != nil {
		return nil, &statusError{refusal.Status, errors.New(refusal.Message)}
	}
	c.onEnd(func() { end(c.bytes()) })
	received, err := g.readBody(c, r)
	if err != nil {
		return nil, err
	}
	c.received = received
	select {
	case g.slots <- struct{}{}:
		c.onEnd(func() { <-g.slots })
	default:
		return nil, &statusError{http.StatusServiceUnavailable, errors.New("too many concurrent requests; try again later")}
	}
	c.onEnd(g.inFlightByTenant.begin(tenantOf(g.admissionOf(r))))
	return received.data, nil
}

// reserveParts acquires the memory of the decoded form of a request to a model, or of an object
// with its messages, until the call ends.
func (g *Gateway) reserveParts(r *http.Request, body []byte) error {
	n, parts := clients.MemoryOf(body)
	err := g.reserveDecoded(r.Context(), n, parts)
	if errors.Is(err, clients.ErrTooLarge) {
		err = &statusError{http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d parts, or needs too much memory", maxParts)}
	}
	return err
}

// maxFitRest is the largest size in bytes of a request to fit without the body.
const maxFitRest = 64 << 10

// fitBody serves POST /furl/v1/fit.
func (g *Gateway) fitBody(c *call, r *http.Request, data []byte) (rawJSON, error) {
	var in struct {
		Body    json.RawMessage `json:"body"`
		Format  furl.Format     `json:"format"`
		Policy  string          `json:"policy"`
		Model   string          `json:"model"`
		Budget  any             `json:"budget"`
		Usage   json.RawMessage `json:"usage"`
		Time    time.Time       `json:"time"`
		Session furl.SessionID  `json:"session"`
	}
	body, rest := cutField(data, "body")
	switch {
	case len(rest) > maxFitRest && body == nil:
		return nil, badRequest("invalid request body: it is not a JSON object with the field body")
	case len(rest) > maxFitRest:
		return nil, badRequest("the request is larger than %d bytes beside its body", maxFitRest)
	}
	if err := decodeJSON(rest, &in); err != nil {
		return nil, err
	}
	if err := g.reserveParts(r, body); err != nil {
		return nil, err
	}
	if string(in.Body) != "null" && len(body) > 0 {
		return nil, badRequest("invalid request body: field body occurs twice")
	}
	if len(body) == 0 {
		return nil, badRequest("missing field body: the request as you would send it to the provider")
	}
	q := &fit.Request{
		Body: body, Format: in.Format, Policy: in.Policy, Model: in.Model, Usage: in.Usage, Time: in.Time, Session: in.Session,
		HourCache: g.hourCache(r),
	}
	if string(in.Usage) == "null" {
		q.Usage = nil
	}
	switch budget := in.Budget.(type) {
	case nil:
	case string:
		q.Budget = budget
	case float64:
		q.Budget = fmt.Sprintf("%.0f", budget)
	default:
		return nil, badRequest("invalid budget: expected a number of tokens, or a text such as \"400000chars\"")
	}
	if in.Session != "" {
		q.Began = func(x *session.Exchange) error {
			if x.Session == nil {
				return nil
			}
			return limitReached(c.beginSession(r.Context(), x.Session))
		}
	}
	out, err := fit.Fit(r.Context(), g.sessionsOf(r), q)
	if wrong, ok := errors.AsType[*fit.Error](err); ok {
		return nil, badRequest("%w", wrong)
	}
	if err != nil {
		return nil, err
	}
	text, err := out.MarshalJSON()
	return rawJSON(append(text, '\n')), err
}

// cutField returns the value of a field of a JSON object, nil if it has none, and the object
// with null in its place. encoding/json would read a large value three times.
func cutField(object []byte, field string) (value, rest []byte) {
	r := rawjson.NewReader(object)
	if r.Kind() != '{' {
		return nil, object
	}
	var at rawjson.Span
	for name := range r.Fields() {
		if found := string(name) == field && at.Len() == 0; found {
			at = r.Skip()
		} else {
			r.Skip()
		}
	}
	if r.End() != nil || at.Len() == 0 {
		return nil, object
	}
	return object[at.Start:at.End], slices.Concat(object[:at.Start], []byte("null"), object[at.End:])
}

// limitReached returns the error of the API for a session beyond the limit of a tenant.
func limitReached(err error) error {
	if e, ok := errors.AsType[*protocol.Refusal](err); ok {
		return &statusError{e.Status, errors.New(e.Message)}
	}
	return err
}

type appended struct {
	Head    furl.Seq       `json:"head"`
	Records []furl.Seq     `json:"records"`
	Session furl.SessionID `json:"session"`
}

// appendMessages serves POST /furl/v1/sessions/{id}/append: it adds messages to a session
// without a provider, and creates it if it does not exist.
func (g *Gateway) appendMessages(c *call, r *http.Request, data []byte) (*appended, error) {
	var in struct {
		Messages []json.RawMessage `json:"messages"`
		Format   furl.Format       `json:"format"`
		After    *furl.Seq         `json:"after"`
	}
	if err := g.reserveParts(r, data); err != nil {
		return nil, err
	}
	if err := decodeJSON(data, &in); err != nil {
		return nil, err
	}
	if len(in.Messages) == 0 {
		return nil, badRequest("missing field messages: a list of messages, or of items of Responses")
	}
	all := g.sessionsOf(r)
	s, err := g.findSession(r, all)
	if id := furl.SessionID(r.PathValue("id")); errors.Is(err, storage.ErrNoSession) && storage.ValidID(id) {
		s, err = all.CreateAs(id, storage.Meta{Format: in.Format}), nil
	}
	if err != nil {
		return nil, err
	}
	format := cmp.Or(in.Format, s.Meta().Format)
	api := wire.For(format)
	if api == nil {
		return nil, badRequest("missing or unknown format %.40q: expected %s, %s or %s", format, furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses)
	}
	if err := limitReached(c.beginSession(r.Context(), s)); err != nil {
		return nil, err
	}
	msgs := make([]*furl.Message, len(in.Messages))
	for i, raw := range in.Messages {
		if msgs[i], err = api.DecodeMessage(raw); err != nil {
			return nil, badRequest("message %d: %w", i, err)
		}
	}
	var records []furl.Record
	if in.After != nil {
		records, err = s.AppendAfter(r.Context(), *in.After, msgs...)
	} else {
		records, err = s.Append(r.Context(), msgs...)
	}
	if errors.Is(err, furl.ErrOpenCall) {
		return nil, badRequest("%w", err)
	}
	if err != nil {
		return nil, err
	}
	seqs := make([]furl.Seq, len(records))
	for i := range records {
		seqs[i] = records[i].Seq
	}
	return &appended{s.Head(), seqs, s.ID()}, nil
}
