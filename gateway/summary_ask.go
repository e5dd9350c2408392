package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// summarizer is a policy.Summarizer that sends one request to the provider of a
// conversation, with the credentials of the client's request. They stay in memory
// only until the request ends.
type summarizer struct {
	g       *Gateway
	rt      *route
	session furl.SessionKey
	start   time.Time

	url        *url.URL
	header     http.Header
	body       []byte     // of the client's request, as it was sent
	model      furl.Model // of the conversation
	usage      furl.Usage // of that request
	otherModel string     // model that writes the summary; "": the conversation's model

	sent         bool   // a request was sent
	requestModel string // of the model that the request was sent to
	used         furl.Usage
	retry        time.Duration // how long the provider asks to wait before the next request
}

// perRequestHeaders are the headers that apply to the client's request only.
var perRequestHeaders = []string{"Content-Encoding", "Content-Length", "Content-Md5", "Digest", "Content-Digest", "Idempotency-Key", "X-Idempotency-Key"}

func (g *Gateway) newSummarizer(r *http.Request, rt *route, x *session.Exchange, reply *protocol.Reply) *summarizer {
	u := *r.URL
	a := &summarizer{
		g: g, rt: rt, session: x.Session.Info().SessionKey, start: g.o.Now(),
		url: &u, header: r.Header.Clone(), body: x.Body,
		model: x.Fit.Budget.Model, usage: reply.Usage, requestModel: x.Fit.Model,
	}
	for _, name := range perRequestHeaders {
		a.header.Del(name)
	}
	if m := g.summaries.o.Model; m != x.Fit.Model {
		a.otherModel = m
	}
	return a
}

// SummaryWindow returns the context window of the model that writes the summary,
// in tokens of the conversation's model. It is 0 if they are the same model.
func (a *summarizer) SummaryWindow() int {
	if a.otherModel == "" {
		return 0
	}
	m := a.g.sessions.Model(a.otherModel, a.rt.codec.Format())
	return int(float64(m.Window) * scaleOf(&a.model) / scaleOf(&m))
}

func scaleOf(m *furl.Model) float64 { return cmp.Or(m.TokenScale, 1) }

// Summarize requests a summary from the provider.
func (a *summarizer) Summarize(ctx context.Context, r policy.SummaryRequest) (policy.Summary, error) {
	a.sent = true
	a.g.summaries.requested.Add(1)
	body, model, err := a.request(r)
	if err != nil {
		return policy.Summary{}, err
	}
	a.requestModel = model
	reply, err := a.send(ctx, body)
	a.releaseRequest()
	if err != nil {
		return policy.Summary{}, err
	}
	sum := policy.Summary{Model: cmp.Or(reply.Model, model), Usage: reply.Usage}
	if a.otherModel != "" {
		m := a.g.sessions.Model(a.otherModel, a.rt.codec.Format())
		sum.Cost = price.OfRequest(&m, reply.Usage)
	}
	sum.Text, sum.CutOff, err = summaryFrom(reply)
	return sum, err
}

// cost returns the cost of the request in US dollars, 0 if prices are unknown.
func (a *summarizer) cost() float64 {
	m := a.model
	if a.otherModel != "" {
		m = a.g.sessions.Model(a.otherModel, a.rt.codec.Format())
	}
	return price.OfRequest(&m, a.used)
}

// releaseRequest releases the client's request.
func (a *summarizer) releaseRequest() { a.header, a.body, a.url = nil, nil, nil }

// send sends a request and decodes the response, streamed or not.
func (a *summarizer) send(ctx context.Context, body []byte) (answer *protocol.Reply, err error) {
	var reply *protocol.Reply
	var status int
	var t requestSpan
	ctx = t.startSummary(ctx, a, a.header)
	defer func() { t.endSummary(status, reply, err) }()
	a.header.Set("Accept-Encoding", "identity")
	out := (&http.Request{Method: http.MethodPost, URL: a.url, Header: a.header, ContentLength: int64(len(body))}).WithContext(ctx)
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, _ = out.GetBody()
	resp, err := a.rt.up.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	status = resp.StatusCode
	defer func() { _ = resp.Body.Close() }()
	a.retry = retryAfter(resp)
	reader := wire.NewReplyReader(a.rt.codec, status, resp.Header.Get("Content-Type"))
	_, err = io.Copy(reader, io.LimitReader(resp.Body, maxSummary))
	var unread error
	reply, unread = reader.Reply(err)
	a.used = reply.Usage // also if the response was cut off
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case reply.Refusal != nil:
		// The provider's message is not included: it may repeat the client's
		// content.
		return nil, fmt.Errorf("provider refused the request: status %d, %s", reply.Refusal.Status, reply.Refusal.Type)
	case unread != nil:
		return nil, unread
	}
	return reply, nil
}

// maxSummary is the largest response in bytes, with thinking and event framing.
const maxSummary = 16 << 20

// errCalled is the error for a model that continued the task.
var errCalled = errors.New("the model called a tool instead of writing a summary")

// summaryFrom returns the summary in a reply; cut is set if the reply did not end
// by itself. A reply with tool calls is an error, and its text is not a summary.
func summaryFrom(reply *protocol.Reply) (text string, cut bool, err error) {
	switch reply.Stop {
	case "end_turn", "stop_sequence", "stop", "completed", "":
		cut = !reply.Complete
	case "tool_use", "tool_calls", "function_call":
		return "", false, errCalled
	default:
		cut = true
	}
	var texts []string
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			if m.Blocks[i].Kind == furl.KindCall {
				return "", false, errCalled
			}
		}
		if said, err := policy.SummaryText(m); err == nil {
			texts = append(texts, said)
		}
	}
	if len(texts) == 0 {
		return "", cut, policy.ErrNoSummary
	}
	return strings.Join(texts, "\n\n"), cut, nil
}
