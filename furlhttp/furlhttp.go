// Package furlhttp provides an http.RoundTripper that records the requests of a
// provider's SDK and reduces their context.
//
//	sessions, err := session.New(store, nil)
//	client := &http.Client{Transport: furlhttp.New(sessions, nil)}
//
// With anthropic-sdk-go and openai-go, pass the client with
// option.WithHTTPClient(client). The program sends its whole history with each
// request, as before.
//
// The path of a request to a model is in package internal/exchange:
//
//	receive → match → append → plan → view → encode → send → commit → relay and record the reply
//
// The formats are recognized by the end of the path. Other requests pass through
// unchanged. What no reduction covers is sent byte for byte as the caller wrote it.
//
// The transport fails open: if recording or planning fails, the request is sent
// anyway, as package session documents, and the header X-Furl-Note says so.
package furlhttp

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// Options are the settings of a Transport. The zero value is useful.
type Options struct {
	// Base sends the requests. If nil, http.DefaultTransport.
	Base http.RoundTripper
	// Session, if not empty, is the session of all requests, for programs with
	// one conversation at a time. Otherwise the session of a request is found by
	// its hints and its history.
	Session furl.SessionID
	// Hints returns the session hints of a request. If nil, defaults to HintsOf.
	Hints func(r *http.Request, req *protocol.Request) protocol.Hints
	// Recall adds recall tools to the requests of new sessions, and answers the
	// model's calls of them. The caller does not see these calls, and reads the
	// provider's replies joined into one.
	Recall bool
	// HourCache says when requests ask the provider for cache entries of one hour for
	// the caller's instructions and tools. They cost more to write. A provider that
	// refuses such a request gets it again without.
	HourCache protocol.HourCache
	// PassThreads forwards requests that create or continue a message thread of
	// Anthropic, in which the provider keeps the history. They are recorded, but
	// nothing in a request that continues a thread can be hidden. If false, they get
	// the error after which Anthropic's SDKs send the whole history, except in a dry
	// run, or if the policy of the request hides nothing.
	PassThreads bool
	// HoldBilling sends all requests of a session with the first system block of its
	// first request, where that block is Claude Code's x-anthropic-billing-header. It
	// changes with each request. Anthropic caches the prompt as if it were constant;
	// the caches of other providers miss. Set it only for these. Dry runs are sent
	// unchanged.
	HoldBilling bool
	// DryRun plans each request, reports what would be hidden, and sends it
	// unchanged.
	DryRun bool
	// MaxBody is the size in bytes above which a request is sent unchanged and
	// not recorded. If zero, 64 MiB.
	MaxBody int64
	// Finish is how long furl keeps reading a reply, to record it, after the
	// caller has closed it or cancelled the request. If zero, the request is
	// cancelled at once, and the part that has arrived is recorded.
	Finish time.Duration
	// Sent, if not nil, is called once for each request to a model: when the header of the
	// response has arrived, or with the error of the request.
	Sent func(x *session.Exchange, err error)
	// Ended, if not nil, is called once the last reply of a recorded exchange is recorded,
	// with all its replies. It runs on the goroutine that reads the reply and must not
	// block.
	Ended func(x *session.Exchange, replies []session.Reply)
}

// Transport is an http.RoundTripper. It is safe for concurrent use.
type Transport struct {
	sessions  *session.Sessions
	exchanges *exchange.Sessions
	o         Options
}

// New returns a Transport that records in sessions.
func New(sessions *session.Sessions, opts *Options) *Transport {
	t := &Transport{sessions: sessions, exchanges: exchange.Of(sessions)}
	if opts != nil {
		t.o = *opts
	}
	if t.o.Base == nil {
		t.o.Base = http.DefaultTransport
	}
	t.o.MaxBody = cmp.Or(t.o.MaxBody, 64<<20)
	if t.o.Hints == nil {
		t.o.Hints = func(r *http.Request, req *protocol.Request) protocol.Hints {
			return HintsOf(r.Header.Get, req)
		}
	}
	return t
}

// ErrUnrecorded is wrapped by the error of a request that could not be recorded
// although session.Options.Refuse is set.
var ErrUnrecorded = exchange.ErrUnrecorded

// ErrRecall is wrapped by the error of a reply that cannot be continued after the
// model has called a recall tool. If the provider refuses to continue it, the error is a
// *protocol.Refusal.
var ErrRecall = exchange.ErrRecall

// ErrBomb is the error of a compressed reply whose decompressed size is out of
// proportion.
var ErrBomb = exchange.ErrBomb

// RoundTrip sends a request with the reductions of its session applied. The
// headers of the response say what furl changed; see HeaderTokensBefore and the
// constants below it.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	api, at := APIOf(r)
	switch {
	case api == nil:
		return t.o.Base.RoundTrip(withoutOwnHeaders(r))
	case IsTrue(r.Header, HeaderBypass):
		return t.bypass(r, api)
	}
	body, whole, err := readBody(r, t.o.MaxBody)
	if err != nil {
		return nil, fmt.Errorf("read request body: %w", err)
	}
	if !whole {
		return t.pass(withReader(r, body), &session.Exchange{Passed: session.PassedTooLarge})
	}
	x, err := t.exchanges.Receive(r.Context(), &exchange.Received{
		API: api, Endpoint: at, Path: r.URL.Path, Body: body, PassThreads: t.o.PassThreads, Hints: func(req *protocol.Request) protocol.Hints {
			h := t.o.Hints(r, req)
			h.Session = cmp.Or(h.Session, t.o.Session)
			return h
		},
	}, t.beginOptions(r))
	switch {
	case err != nil:
		return nil, err
	case x.Local != nil:
		t.sent(&x.Exchange, nil)
		return localResponse(r, x), nil
	case x.Passed != 0:
		return t.pass(withBody(r, x.Body), &x.Exchange)
	}
	return t.send(r, x)
}

// APIOf returns the API of a request to a model by the end of its path, nil if it is none,
// and what its URL says.
func APIOf(r *http.Request) (api wire.API, e protocol.Endpoint) {
	if r.Method != http.MethodPost || r.Body == nil || r.Header.Get("Content-Encoding") != "" {
		return nil, e
	}
	return wire.ForPath(r.URL.Path, r.URL.RawQuery)
}

// IsTrue reports whether a header of a request is set to true.
func IsTrue(h http.Header, name string) bool {
	on, _ := strconv.ParseBool(h.Get(name))
	return on
}

func (t *Transport) beginOptions(r *http.Request) exchange.BeginOptions {
	o := exchange.BeginOptions{Recall: exchange.KeepRecall, DryRun: t.o.DryRun || IsTrue(r.Header, HeaderDryRun), HourCache: t.o.HourCache, HoldBilling: t.o.HoldBilling}
	if t.o.Recall {
		o.Recall = exchange.OfferRecall
	}
	return o
}

// pass sends a request unchanged.
func (t *Transport) pass(r *http.Request, x *session.Exchange) (*http.Response, error) {
	resp, err := t.o.Base.RoundTrip(r)
	t.sent(x, err)
	return resp, err
}

// send sends the request of an exchange and returns the response for the caller.
func (t *Transport) send(r *http.Request, x *exchange.Exchange) (*http.Response, error) {
	resp, err := x.Send(r.Context(), exchange.SendOptions{
		Finish: t.o.Finish,
		Post: func(ctx context.Context, body []byte) (*http.Response, error) {
			out := withBody(r, body).WithContext(ctx)
			if x.Reads() {
				out.Header.Set("Accept-Encoding", "identity")
			}
			return t.o.Base.RoundTrip(out)
		},
		Ended: func(x *exchange.Exchange) {
			if t.o.Ended != nil {
				t.o.Ended(&x.Exchange, x.Replies)
			}
		},
	})
	t.sent(&x.Exchange, err)
	if err != nil {
		return nil, err
	}
	Describe(resp.Header, &x.Exchange, r.Header.Get(HeaderSession))
	return x.Relay(resp)
}

func (t *Transport) sent(x *session.Exchange, err error) {
	if t.o.Sent != nil {
		t.o.Sent(x, err)
	}
}

// localResponse returns furl's answer to a request that is not sent.
func localResponse(r *http.Request, x *exchange.Exchange) *http.Response {
	l := x.Local
	h := http.Header{"Content-Type": {l.ContentType}, "Content-Length": {strconv.Itoa(len(l.Body))}}
	Describe(h, &x.Exchange, "")
	return &http.Response{
		Status: strconv.Itoa(l.Status) + " " + http.StatusText(l.Status), StatusCode: l.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(l.Body)), ContentLength: int64(len(l.Body)), Request: r,
	}
}

// bodyBytes is implemented by request bodies in memory, such as those that the
// gateway has read.
type bodyBytes interface{ Bytes() []byte }

// readBody reads and closes the body of a request. If the body is larger than
// limit, whole is false, data is its beginning, and the rest can still be read.
func readBody(r *http.Request, limit int64) (data []byte, whole bool, err error) {
	if b, ok := r.Body.(bodyBytes); ok && int64(len(b.Bytes())) <= limit {
		_ = r.Body.Close()
		return b.Bytes(), true, nil
	}
	data, err = io.ReadAll(io.LimitReader(r.Body, limit+1))
	if whole = int64(len(data)) <= limit; whole || err != nil {
		_ = r.Body.Close()
	}
	return data, whole, err
}

// withBody returns a copy of a request with another body and without furl's
// headers.
func withBody(r *http.Request, body []byte) *http.Request {
	out := withoutOwnHeaders(r)
	out.ContentLength = int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return &memoryBody{bytes.NewReader(body), body}, nil }
	out.Body, _ = out.GetBody()
	return out
}

// memoryBody is a body in memory.
type memoryBody struct {
	*bytes.Reader
	data []byte
}

// Bytes returns the whole body, also after it was read.
func (b *memoryBody) Bytes() []byte { return b.data }

// Close does nothing.
func (b *memoryBody) Close() error { return nil }

// withReader returns a copy of a request whose body starts with the bytes already
// read, without furl's headers.
func withReader(r *http.Request, read []byte) *http.Request {
	out := withoutOwnHeaders(r)
	out.Body = &splitBody{io.MultiReader(bytes.NewReader(read), r.Body), r.Body}
	return out
}

// splitBody is a body with separate reader and closer.
type splitBody struct {
	io.Reader
	io.Closer
}

// withoutOwnHeaders returns a copy of a request without furl's headers.
func withoutOwnHeaders(r *http.Request) *http.Request {
	out := new(http.Request)
	*out = *r
	out.Header = make(http.Header, len(r.Header)+1)
	for name, values := range r.Header {
		if !strings.HasPrefix(name, headerPrefix) {
			out.Header[name] = values
		}
	}
	return out
}
