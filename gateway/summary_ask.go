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

// asker is a policy.Summarizer that asks the provider of a conversation once,
// with the credentials of the client's own request. They are in memory for
// that long, and nowhere else.
type asker struct {
	g       *Gateway
	rt      *route
	session furl.SessionKey
	begun   time.Time

	url    *url.URL
	header http.Header
	body   []byte     // of the client's request, as it was sent
	model  furl.Model // of the conversation
	usage  furl.Usage // of that request
	other  string     // who else is to write it; "": the same model

	asked bool
	name  string // of the model that was asked
	used  furl.Usage
	retry time.Duration // how long the provider wants to be left alone
}

// ownHeaders are about one request of the client's and no other.
var ownHeaders = []string{"Content-Encoding", "Content-Length", "Content-Md5", "Digest", "Content-Digest", "Idempotency-Key", "X-Idempotency-Key"}

func (g *Gateway) newAsker(r *http.Request, rt *route, x *session.Exchange, reply *protocol.Reply) *asker {
	u := *r.URL
	a := &asker{
		g: g, rt: rt, session: x.Session.Info().SessionKey, begun: g.o.Now(),
		url: &u, header: r.Header.Clone(), body: x.Body,
		model: x.Fit.Budget.Model, usage: reply.Usage, name: x.Fit.Model,
	}
	for _, name := range ownHeaders {
		a.header.Del(name)
	}
	if m := g.summaries.o.Model; m != x.Fit.Model {
		a.other = m
	}
	return a
}

// SummaryWindow is the window of the model that is to write, in the tokens of
// the conversation's.
func (a *asker) SummaryWindow() int {
	if a.other == "" {
		return 0
	}
	m := a.g.sessions.Model(a.other, a.rt.codec.Format())
	return int(float64(m.Window) * scaleOf(&a.model) / scaleOf(&m))
}

func scaleOf(m *furl.Model) float64 { return cmp.Or(m.TokenScale, 1) }

// Summarize asks the provider.
func (a *asker) Summarize(ctx context.Context, r policy.SummaryRequest) (policy.Summary, error) {
	a.asked = true
	a.g.summaries.asked.Add(1)
	body, model, err := a.request(r)
	if err != nil {
		return policy.Summary{}, err
	}
	a.name = model
	reply, err := a.ask(ctx, body)
	a.drop()
	if err != nil {
		return policy.Summary{}, err
	}
	sum := policy.Summary{Model: cmp.Or(reply.Model, model), Usage: reply.Usage}
	if a.other != "" {
		m := a.g.sessions.Model(a.other, a.rt.codec.Format())
		sum.Cost = price.OfRequest(&m, reply.Usage)
	}
	sum.Text, sum.CutOff, err = summaryIn(reply)
	return sum, err
}

// cost is what the answer cost, in US dollars, 0 without a price.
func (a *asker) cost() float64 {
	m := a.model
	if a.other != "" {
		m = a.g.sessions.Model(a.other, a.rt.codec.Format())
	}
	return price.OfRequest(&m, a.used)
}

// drop forgets the client's request.
func (a *asker) drop() { a.header, a.body, a.url = nil, nil, nil }

// ask sends a request and understands the answer, streamed or not.
func (a *asker) ask(ctx context.Context, body []byte) (answer *protocol.Reply, err error) {
	var reply *protocol.Reply
	var status int
	var t traced
	ctx = t.beginSummary(ctx, a, a.header)
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
	a.used = reply.Usage // also of one that was cut off
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case reply.Refusal != nil:
		// The provider's words may repeat the client's.
		return nil, fmt.Errorf("the provider refused it: status %d, %s", reply.Refusal.Status, reply.Refusal.Type)
	case unread != nil:
		return nil, unread
	}
	return reply, nil
}

// maxSummary bounds an answer in bytes, thinking and events included.
const maxSummary = 16 << 20

// errCalled is returned for a model that went on working.
var errCalled = errors.New("the model called a tool instead")

// summaryIn is the summary in a reply. One that did not come to its own end is
// cut off; calls are not for execution, and what is said beside one is no
// summary.
func summaryIn(reply *protocol.Reply) (text string, cut bool, err error) {
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
