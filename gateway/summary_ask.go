package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/summary"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
)

// summarizer is a policy.Summarizer that sends one request to the provider of a
// conversation, with the credentials of the client's request. They stay in memory
// only until the request ends.
type summarizer struct {
	g       *Gateway
	rt      *route
	session furl.SessionKey
	start   time.Time

	url    *url.URL
	header http.Header
	of     summary.Conversation

	sent         bool   // a request was sent
	requestModel string // of the model that the request was sent to
	used         furl.Usage
	retry        time.Duration // how long the provider asks to wait before the next request
}

// perRequestHeaders are the headers that apply to the client's request only.
var perRequestHeaders = []string{"Content-Encoding", "Content-Length", "Content-Md5", "Digest", "Content-Digest", "Idempotency-Key", "X-Idempotency-Key"}

func (g *Gateway) newSummarizer(r *http.Request, rt *route, x *session.Exchange, reply *protocol.Reply) *summarizer {
	callOf(r.Context()).lent = true
	u := *r.URL
	a := &summarizer{
		g: g, rt: rt, session: x.Session.Info().SessionKey, start: g.o.Now(),
		url: &u, header: r.Header.Clone(),
		requestModel: x.Fit.Model,
		of:           summary.Conversation{API: rt.codec, Body: x.Body, Name: x.Fit.Model, Model: x.Fit.Budget.Model, Usage: reply.Usage},
	}
	for _, name := range perRequestHeaders {
		a.header.Del(name)
	}
	if m := g.summaries.o.Model; m != "" && m != x.Fit.Model {
		a.of.Other = &summary.Other{Name: m, Model: g.sessions.Model(m, rt.codec.Format())}
	}
	return a
}

// SummaryWindow implements policy.SummaryWindower.
func (a *summarizer) SummaryWindow() int { return a.of.Window() }

// Summarize requests a summary from the provider.
func (a *summarizer) Summarize(ctx context.Context, r policy.SummaryRequest) (policy.Summary, error) {
	s, err := a.g.sessions.For(a.session.Tenant).Open(ctx, a.session.Session)
	if err != nil {
		return policy.Summary{}, err
	}
	if err := a.g.checkSpendingOf(ctx, s); err != nil {
		return policy.Summary{}, err
	}
	a.sent = true
	a.g.summaries.requested.Add(1)
	body, model := a.of.Request(r)
	a.requestModel = model
	reply, err := a.send(ctx, body)
	a.releaseRequest()
	if err != nil {
		return policy.Summary{}, err
	}
	return a.of.Summary(reply, model, a.g.wallClock())
}

// cost returns the cost of the request in US dollars, 0 if prices are unknown.
func (a *summarizer) cost() float64 { return a.of.Cost(a.used, a.start) }

// releaseRequest releases the client's request.
func (a *summarizer) releaseRequest() { a.header, a.of.Body, a.url = nil, nil, nil }

// send sends a request and decodes the response, streamed or not.
func (a *summarizer) send(ctx context.Context, body []byte) (answer *protocol.Reply, err error) {
	var reply *protocol.Reply
	var status int
	var t requestSpan
	ctx = t.startSummary(ctx, a, a.header)
	defer func() { t.endSummary(status, reply, err) }()
	a.header.Set("Accept-Encoding", "identity")
	to := *a.url
	if to.Path = a.rt.codec.WithModel(to.Path, a.requestModel); to.Path != a.url.Path {
		to.RawPath = ""
	}
	x := exchange.Plain(a.rt.codec, a.requestModel, body)
	resp, err := x.Send(ctx, exchange.SendOptions{Post: a.rt.postTo(&to, a.header)})
	if err != nil {
		return nil, err
	}
	status = resp.StatusCode
	a.retry = retryAfter(resp)
	var cut, unread error
	reply, cut, unread = x.Read(resp, maxSummary, nil)
	a.used = reply.Passes.Sum(reply.Usage) // also if the response was cut off
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case cut != nil:
		return nil, cut
	case reply.Refusal != nil:
		// The provider's message is not included: it may repeat the client's
		// content.
		return nil, fmt.Errorf("provider refused the request: status %d, %s", reply.Refusal.Status, reply.Refusal.Type)
	case unread != nil:
		return nil, unread
	}
	return reply, nil
}

// postTo returns a function that posts bodies to the route's provider, as SendOptions.Post.
func (rt *route) postTo(u *url.URL, header http.Header) func(context.Context, []byte) (*http.Response, error) {
	return func(ctx context.Context, body []byte) (*http.Response, error) {
		out := (&http.Request{Method: http.MethodPost, URL: u, Header: header, ContentLength: int64(len(body))}).WithContext(ctx)
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		out.Body, _ = out.GetBody()
		return rt.up.RoundTrip(out)
	}
}

// maxSummary is the largest response in bytes, with thinking and event framing.
const maxSummary = 16 << 20
