package exchange

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// AskOptions say how a request is sent whose reply the caller needs as a whole.
type AskOptions struct {
	// Post is SendOptions.Post.
	Post func(ctx context.Context, body []byte) (*http.Response, error)
	// Notify, if not nil, is called with each piece of the reply when it arrives. The
	// text of a reply that is not streamed is one piece.
	Notify func(protocol.Delta)
	// Retries is how often each body is sent again after a temporary failure. Before that,
	// Retry is called with the number of the retry, the wait and the error. What was
	// passed to Notify is then void.
	Retries int
	Retry   func(attempt int, wait time.Duration, err error)
}

// Ask sends the request of an exchange and reads the reply to its end. After an error, the
// reply has what was received. A refusal is a *protocol.Refusal.
func (x *Exchange) Ask(ctx context.Context, o AskOptions) (*protocol.Reply, error) {
	for attempt := 1; ; attempt++ {
		sent := x.Body
		reply, wait, err := x.ask(ctx, &o)
		if err == nil {
			return reply, nil
		}
		if !bytes.Equal(sent, x.Body) {
			attempt = 1
		}
		if ctx.Err() != nil || wait < 0 || attempt > o.Retries {
			return reply, err
		}
		if wait == 0 {
			wait = backoff(attempt)
		}
		o.Retry(attempt, wait, err)
		if !sleep(ctx, wait) {
			return &protocol.Reply{Format: x.api.Format()}, err
		}
	}
}

// ask sends the request and reads the reply. After an error, wait is how long to wait
// before the request is sent again: 0 for a default, negative if it must not be sent
// again.
func (x *Exchange) ask(ctx context.Context, o *AskOptions) (reply *protocol.Reply, wait time.Duration, err error) {
	resp, err := x.Send(ctx, SendOptions{Post: o.Post})
	if err != nil {
		return &protocol.Reply{Format: x.api.Format()}, 0, err
	}
	reply, cut, err := x.Read(resp, 0, o.Notify)
	switch {
	case reply.Refusal != nil:
		if wait = -1; temporary(reply.Refusal.Status) {
			wait = retryAfter(resp.Header, time.Now())
		}
		return reply, wait, fmt.Errorf("model %s: status %d: %w", x.req.Model, reply.Refusal.Status, reply.Refusal)
	case beyondBounds(err), beyondBounds(cut): // it would be as large again, and is paid for each time
		return reply, -1, fmt.Errorf("read the reply of %s: %w", x.req.Model, cmp.Or(err, cut))
	case err != nil:
		return reply, 0, fmt.Errorf("read the reply of %s: %w", x.req.Model, err)
	case !reply.Complete:
		return reply, 0, fmt.Errorf("read the reply of %s: %w", x.req.Model, cmp.Or(cut, io.ErrUnexpectedEOF))
	}
	return reply, 0, nil
}

// beyondBounds reports whether a reply was not read because it is too large.
func beyondBounds(err error) bool {
	return errors.Is(err, wire.ErrReplyTooLarge) || errors.Is(err, sse.ErrTooLarge) || errors.Is(err, ErrBomb)
}

// Read reads a response of Send to its end, or to limit bytes; 0 is the size that furl decodes. The reply is
// never nil and has what was received. cut is the error that cut it off; err says that it is
// not in the API's format.
func (x *Exchange) Read(resp *http.Response, limit int64, notify func(protocol.Delta)) (reply *protocol.Reply, cut, err error) {
	defer func() { _ = resp.Body.Close() }() // read only
	if limit == 0 {
		limit = wire.MaxReply + 1 // more is not decoded
	}
	body := io.LimitReader(resp.Body, limit)
	reader := wire.NewReplyReader(x.api, resp.StatusCode, resp.Header.Get("Content-Type"))
	reader.Notify(notify)
	_, cut = io.Copy(reader, body)
	reply, err = reader.Reply(cut)
	if notify != nil && !reader.Stream() && err == nil && reply.Complete && reply.Refusal == nil {
		notify(protocol.Delta{Text: TextOf(reply)})
	}
	return reply, cut, err
}

// TextOf returns the text of a reply.
func TextOf(reply *protocol.Reply) string {
	var texts []string
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindText && b.Text != "" {
				texts = append(texts, b.Text)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}
