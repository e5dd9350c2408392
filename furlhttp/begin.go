package furlhttp

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// modelRequest is a request to a model.
type modelRequest struct {
	*http.Request
	api wire.API
	// count is set for requests that count the tokens of a prompt. They are
	// reduced like others and not recorded.
	count     bool
	bypass    bool           // it has HeaderBypass
	replyBody *outlivingBody // of the latest reply; nil without Options.Finish
	body      []byte         // of the caller, without commands to furl
	answer    *http.Response // of furl to a command; nil: the request is sent
}

// modelRequestOf returns r as a request to a model, nil if it is none.
func modelRequestOf(r *http.Request) *modelRequest {
	if r.Method != http.MethodPost || r.Body == nil || r.Header.Get("Content-Encoding") != "" {
		return nil
	}
	api, count := wire.ForPath(r.URL.Path)
	if api == nil {
		return nil
	}
	return &modelRequest{Request: r, api: api, count: count, bypass: headerIsTrue(r, HeaderBypass)}
}

// compacts reports whether a request asks the provider for a compaction.
func (q *modelRequest) compacts(req *protocol.Request) bool {
	path := q.api.CompactPath()
	return path != "" && strings.HasSuffix(strings.TrimSuffix(q.URL.Path, "/"), path) || q.api.AsksCompaction(req)
}

// refusesThreads reports whether a request must have its whole history, so that it can be
// reduced.
func (t *Transport) refusesThreads(q *modelRequest, model string) bool {
	return !t.o.PassThreads && !t.o.DryRun && !headerIsTrue(q.Request, HeaderDryRun) && !t.sessions.HidesNothing(model, q.api.Format())
}

// headerIsTrue reports whether a header of a request is true.
func headerIsTrue(r *http.Request, name string) bool {
	on, _ := strconv.ParseBool(r.Header.Get(name))
	return on
}

// beginExchange decodes a request and begins its exchange. The exchange is nil
// if the request is sent unchanged: it cannot be decoded, or is auxiliary. If
// the error is not nil, the request must not be sent.
func (t *Transport) beginExchange(q *modelRequest, body []byte) (x *exchange.Exchange, err error) {
	defer t.recoverBegin(&x)
	req, err := t.exchanges.Decode(q.api, body)
	if err != nil {
		// The provider returns the better error message.
		t.o.Hooks.passed(PassedUndecoded, err)
		return nil, nil
	}
	req.Model = cmp.Or(req.Model, deployment(q.URL.Path))
	model := req.Model
	req, commands, err := t.exchanges.CutCommands(req)
	if refused, ok := errors.AsType[*protocol.Refusal](err); ok {
		q.answer = refusal(q, refused)
		return nil, nil
	}
	req.Model, q.body = model, req.Body
	if req.Ambiguous != "" {
		t.o.Logger.Warn("request sent unchanged and not recorded: a field is ambiguous", "path", upstream.Path(q.URL), "field", req.Ambiguous)
	}
	if th := q.api.Thread(req); th != nil && req.Ambiguous == "" && t.refusesThreads(q, model) {
		q.answer = refusal(q, th.Refusal)
		return nil, nil
	}
	t.o.Hooks.decoded(req)
	h := t.o.Hints(q.Request, req)
	h.Session = cmp.Or(h.Session, t.o.Session)
	if !q.count && req.Ambiguous == "" && (isAuxiliary(req, h) || t.exchanges.Quotes(req, h)) {
		t.o.Hooks.passed(PassedAuxiliary, nil)
		return nil, nil
	}
	o := exchange.BeginOptions{Hints: h, Commands: commands, Recall: exchange.KeepRecall, DryRun: t.o.DryRun || headerIsTrue(q.Request, HeaderDryRun), HourCache: t.o.HourCache, HoldBilling: t.o.HoldBilling, Peek: q.count, Compact: q.compacts(req)}
	if t.o.Recall {
		o.Recall = exchange.OfferRecall
	}
	if commands.Found() && !q.count && req.Ambiguous == "" {
		if err := t.answerCommand(q, req, o); err != nil || q.answer != nil {
			return nil, err
		}
	}
	x, err = t.exchanges.Begin(q.Context(), req, o)
	switch {
	case err == nil:
		t.o.Hooks.prepared(&x.Exchange)
		return x, nil
	case q.count:
		return nil, nil // tokens can be counted without a session
	case q.Context().Err() != nil:
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrUnrecorded, err)
}

// deployment returns the model in a path of Azure: /deployments/MODEL/….
func deployment(path string) string {
	_, rest, ok := strings.Cut(path, "/deployments/")
	if !ok {
		return ""
	}
	model, _, _ := strings.Cut(rest, "/")
	return model
}

// isAuxiliary reports whether a request is auxiliary, such as one for a title: it has the
// id of a conversation and is not part of it. Such requests have no tools, neither beside
// the messages nor defined in them, and no assistant message. A chat without tools also
// starts like this; it is recorded from its second request on, which repeats the first. A
// client's own request for a summary is not auxiliary if it has the history: it is a branch
// of the session and needs the session's reductions to fit.
func isAuxiliary(req *protocol.Request, h protocol.Hints) bool {
	if h.Hint == "" || h.Session != "" {
		return false
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role == furl.RoleAssistant || m.HasCompaction() || slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Fixed }) {
			return false
		}
	}
	for i := range req.Preamble {
		if req.Preamble[i].Kind == furl.KindOpaque {
			return false
		}
	}
	return true
}

// recoverBegin is deferred around the preparation of a request. After a panic the
// request is sent unchanged, as after any other failure of furl. Sessions in
// memory may be half changed, so they are dropped and read again.
func (t *Transport) recoverBegin(x **exchange.Exchange) {
	if t.o.Hooks.Panicked == nil {
		return
	}
	if p := recover(); p != nil {
		*x = nil
		t.sessions.Drop()
		t.o.Hooks.Panicked(p)
	}
}
