// Package furlhttp gives a program that talks to a model through an
// http.Client all that furl does, without a gateway: its requests are recorded
// in a session, kept within the model's window, and their replies observed.
//
//	all, err := session.New(store, nil)
//	client := &http.Client{Transport: furlhttp.New(all, nil)}
//
// The client goes into whichever SDK the program is built on: with
// anthropic-sdk-go it is option.WithHTTPClient(client), and so it is with
// openai-go. Nothing else changes: the program sends its whole history with
// each request as before, and what is hidden in it is hidden on the way.
//
// Requests to Anthropic Messages, Chat Completions and Responses are known by
// the end of their path. All others pass through untouched, and so does what
// furl cannot read. Where furl's own part fails, the request goes on as
// session.Sessions.Begin says.
package furlhttp

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// Options say how a Transport works. The zero value is useful.
type Options struct {
	// Base sends the requests. If nil, http.DefaultTransport.
	Base http.RoundTripper
	// Session, if not empty, is the session of all requests. A program that
	// has one conversation at a time names it; otherwise requests find
	// theirs by hint and history.
	Session furl.SessionID
	// Hints reads what a request says about its session. If nil,
	// session.HintsOf.
	Hints func(r *http.Request, req *furl.Request) session.Hints
	// Recall adds recall tools to the requests of sessions that begin from now
	// on, and answers the model's calls of them: the program never sees those,
	// and gets one answer where there were several.
	Recall bool
	// MaxBody is the size in bytes above which a request passes through
	// untouched. If zero, 64 MiB.
	MaxBody int64
	// Begun, if not nil, is called with each exchange before it is sent, and
	// Ended after its reply was recorded; the reply is nil if none could be
	// read. They must not block.
	Begun func(x *session.Exchange)
	Ended func(x *session.Exchange, reply *furl.Reply)
	// Logger is told what could not be recorded. If nil, nothing is logged.
	Logger *slog.Logger
}

// Transport is an http.RoundTripper. It is safe for concurrent use.
type Transport struct {
	all *session.Sessions
	o   Options
}

// New returns a Transport that keeps sessions.
func New(all *session.Sessions, opts *Options) *Transport {
	t := &Transport{all: all}
	if opts != nil {
		t.o = *opts
	}
	if t.o.Base == nil {
		t.o.Base = http.DefaultTransport
	}
	t.o.MaxBody = cmp.Or(t.o.MaxBody, 64<<20)
	if t.o.Logger == nil {
		t.o.Logger = slog.New(slog.DiscardHandler)
	}
	if t.o.Hints == nil {
		t.o.Hints = func(r *http.Request, req *furl.Request) session.Hints {
			return session.HintsOf(r.Header.Get, req)
		}
	}
	return t
}

// RoundTrip sends a request, as the session shows it.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	codec := codecOf(r)
	if codec == nil || r.Body == nil {
		return t.o.Base.RoundTrip(r)
	}
	body, whole, err := readBody(r.Body, t.o.MaxBody)
	if err != nil {
		_ = r.Body.Close()
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if !whole {
		// Too large to be looked at: what was read goes in front of the rest.
		return t.o.Base.RoundTrip(withReader(r, body))
	}
	_ = r.Body.Close()
	req, err := t.all.Decode(codec, body)
	if err != nil {
		t.o.Logger.Warn("a request could not be read", "path", r.URL.Path, "error", err)
		return t.o.Base.RoundTrip(withBody(r, body))
	}
	if req.Ambiguous != "" {
		t.o.Logger.Warn("a request has an ambiguous field, and is passed on unchanged and not recorded", "path", r.URL.Path, "field", req.Ambiguous)
	}
	h := t.o.Hints(r, req)
	h.Session = cmp.Or(h.Session, t.o.Session)
	h.Answers, h.Recall = true, h.Recall || t.o.Recall
	x, err := t.all.Begin(r.Context(), req, h)
	if err != nil {
		return nil, err
	}
	if t.o.Begun != nil {
		t.o.Begun(x)
	}
	return t.send(r, codec, x)
}

// send sends an exchange.
func (t *Transport) send(r *http.Request, codec wire.API, x *session.Exchange) (*http.Response, error) {
	resp, l, refused, err := t.try(r, codec.Format(), x)
	switch {
	case err != nil:
		x.Drop()
		return nil, err
	case l == nil:
		x.Drop()
	case resp.StatusCode >= 300:
		x.Drop()
		t.ended(x, refused)
	case x.Offered():
		return t.recall(r, codec, x, resp, l)
	default:
		resp.Body = &observed{t: t, ctx: r.Context(), x: x, listener: l, body: resp.Body}
	}
	return resp, nil
}

// try sends what an exchange has to send, and again if its prompt was refused as
// too long or others have made it wrong in the meantime. What the request brought
// is committed once the provider has accepted it, before the caller gets any of
// the answer. It gives a Listener for the answer, nil if its bytes are not
// furl's business, and what was understood of a refusal.
func (t *Transport) try(r *http.Request, format furl.Format, x *session.Exchange) (*http.Response, *session.Listener, *furl.Reply, error) {
	for {
		resp, err := t.o.Base.RoundTrip(withBody(r, x.Body))
		if err != nil {
			return nil, nil, nil, err
		}
		l := listen(format, resp)
		var reply *furl.Reply
		if l != nil && resp.StatusCode >= 400 {
			if reply = refusal(l, resp); reply != nil && reply.Overflow != nil && x.Overflow(r.Context(), reply.Overflow) {
				_ = resp.Body.Close()
				continue
			}
		}
		if resp.StatusCode >= 300 {
			return resp, l, reply, nil
		}
		resend, err := x.Commit(r.Context())
		if err == nil && !resend {
			return resp, l, nil, nil
		}
		_ = resp.Body.Close() // its answer is discarded
		if err != nil {
			return nil, nil, nil, fmt.Errorf("record the request: %w", err)
		}
	}
}

func (t *Transport) ended(x *session.Exchange, reply *furl.Reply) {
	if t.o.Ended != nil {
		t.o.Ended(x, reply)
	}
}

// listen gives a Listener for an answer, nil if its bytes are encoded in a way
// that is not furl's business.
func listen(format furl.Format, resp *http.Response) *session.Listener {
	if e := resp.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil
	}
	return session.Listen(format, resp.StatusCode, resp.Header.Get("Content-Type"))
}

// maxRefusal bounds what is read of a refusal before it is passed on.
const maxRefusal = 1 << 20

// refusal reads an answer that refuses the request. Its body can be read again
// afterwards.
func refusal(l *session.Listener, resp *http.Response) *furl.Reply {
	data, whole, err := readBody(resp.Body, maxRefusal)
	if err != nil || !whole {
		resp.Body = &joined{io.MultiReader(bytes.NewReader(data), rest(resp.Body, err)), resp.Body}
		return nil
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(data))
	_, _ = l.Write(data)
	reply, err := l.Reply()
	if err != nil {
		return nil
	}
	return reply
}

// rest is what is left of a body, or the error that ended it.
func rest(body io.Reader, err error) io.Reader {
	if err != nil {
		return failing{err}
	}
	return body
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// joined reads from one place and closes another.
type joined struct {
	io.Reader
	io.Closer
}

// observed is the body of a reply. The caller gets the bytes; when the reply is
// over, or given up, it is recorded.
type observed struct {
	t        *Transport
	ctx      context.Context // of the request, for what it carries
	x        *session.Exchange
	listener *session.Listener
	body     io.ReadCloser

	mu   sync.Mutex // a body may be closed while it is read
	over bool
}

func (o *observed) Read(p []byte) (int, error) {
	n, err := o.body.Read(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return n, err
	}
	_, _ = o.listener.Write(p[:n])
	// Recorded before the caller learns of the end, so that its next request
	// finds the reply.
	if err != nil || o.listener.Ended() {
		o.record()
	}
	return n, err
}

func (o *observed) Close() error {
	o.mu.Lock()
	o.record()
	o.mu.Unlock()
	return o.body.Close()
}

// record records the reply, once. The lock is held.
func (o *observed) record() {
	if o.over {
		return
	}
	o.over = true
	defer o.x.Drop()
	reply, err := o.listener.Reply()
	if err != nil {
		o.t.o.Logger.Warn("a reply could not be read", "error", err)
	}
	if err := o.x.Done(o.ctx, reply); err != nil {
		o.t.o.Logger.Warn("a reply could not be recorded", "error", err)
	}
	o.t.ended(o.x, reply)
}

// codecOf knows the provider's format by the end of a request's path.
func codecOf(r *http.Request) wire.API {
	if r.Method != http.MethodPost || r.Header.Get("Content-Encoding") != "" {
		return nil
	}
	return wire.ForPath(r.URL.Path)
}

// readBody reads a body up to a limit, and says whether that was all.
func readBody(body io.Reader, limit int64) (data []byte, whole bool, err error) {
	data, err = io.ReadAll(io.LimitReader(body, limit+1))
	return data, int64(len(data)) <= limit, err
}

// withBody gives the request with another body, and without what is furl's own.
func withBody(r *http.Request, body []byte) *http.Request {
	out := r.Clone(r.Context())
	out.Header.Del(session.HeaderSession)
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.ContentLength = int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return out
}

// withReader gives the request with what was read of its body in front again.
func withReader(r *http.Request, read []byte) *http.Request {
	out := r.Clone(r.Context())
	out.Header.Del(session.HeaderSession)
	out.Body = &joined{io.MultiReader(bytes.NewReader(read), r.Body), r.Body}
	return out
}
