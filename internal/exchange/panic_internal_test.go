package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
	"github.com/furlhq/furl/wire/anthropic"
)

// panicking is an API whose requests or streams cannot be decoded without a panic.
type panicking struct {
	wire.API
	request bool
}

func (p panicking) DecodeRequest(body []byte) (*protocol.Request, error) {
	if p.request {
		panic("planted")
	}
	return p.API.DecodeRequest(body)
}

func (panicking) NewAssembler() protocol.Assembler { return panickingAssembler{} }

type panickingAssembler struct{}

func (panickingAssembler) Feed(string, []byte) error       { panic("planted") }
func (panickingAssembler) Reply() (*protocol.Reply, error) { return &protocol.Reply{}, nil }

// If decoding a reply panics, the caller gets the whole reply, and the exchange ends.
func TestPanicWhileDecoding(t *testing.T) {
	body := strings.Repeat("data: {}\n\n", 3)
	for _, later := range []bool{false, true} {
		all, err := session.New(inmem.New(), nil)
		if err != nil {
			t.Fatal(err)
		}
		x, err := Of(all).Receive(t.Context(), received(anthropic.Codec), BeginOptions{})
		if err != nil {
			t.Fatal(err)
		}
		x.api = panicking{API: x.api}
		ended := 0
		resp, err := x.Send(t.Context(), SendOptions{Later: later, Ended: func(*Exchange) { ended++ }, Post: func(context.Context, []byte) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if resp, err = x.Relay(resp); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != body {
			t.Errorf("%q, %v", got, err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if later {
			x.Finish()
		}
		if ended != 1 || len(x.Replies) != 1 || x.Replies[0].Reply == nil {
			t.Fatalf("ended %d times with %+v", ended, x.Replies)
		}
		if p, ok := errors.AsType[*session.PanicError](x.Replies[0].DecodeErr); !ok || strings.Contains(p.Error(), "planted") || len(p.Stack) == 0 {
			t.Errorf("%v", x.Replies[0].DecodeErr)
		}
	}
}

// If furl panics before it sends a request, the request is sent unchanged.
func TestPanicWhileReceiving(t *testing.T) {
	all, err := session.New(inmem.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := received(panicking{anthropic.Codec, true})
	x, err := Of(all).Receive(t.Context(), r, BeginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*session.PanicError](x.Err); !ok || x.Passed != session.PassedPanic || string(x.Body) != string(r.Body) || x.Session != nil {
		t.Errorf("%+v", x.Exchange)
	}
}

func received(api wire.API) *Received {
	return &Received{
		API: api, Path: "/v1/messages", Body: []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Hi."}]}`),
		Hints: func(*protocol.Request) protocol.Hints { return protocol.Hints{} },
	}
}
