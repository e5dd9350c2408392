package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire/anthropic"
)

// pieces are a reply as it arrives.
var pieces = []string{
	"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hel\"}}\n\n",
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"lo.\"}}\n\n",
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
}

// sendLater sends a request whose reply comes from in, and returns the response for the client.
func sendLater(t *testing.T, ctx context.Context, in io.ReadCloser, finish time.Duration) (*Exchange, io.ReadCloser) {
	t.Helper()
	all, err := session.New(inmem.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Of(all).Receive(ctx, received(anthropic.Codec), BeginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := x.Send(ctx, SendOptions{Later: true, Finish: finish, Post: func(ctx context.Context, _ []byte) (*http.Response, error) {
		context.AfterFunc(ctx, func() { _ = in.Close() })
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: in}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err = x.Relay(resp); err != nil {
		t.Fatal(err)
	}
	return x, resp.Body
}

func recordedReply(t *testing.T, x *Exchange) string {
	t.Helper()
	if len(x.Replies) != 1 || x.Replies[0].RecordErr != nil || x.Replies[0].DecodeErr != nil {
		t.Fatalf("%+v", x.Replies)
	}
	v := x.Session.View("claude-sonnet-4-5")
	last := v.Messages[len(v.Messages)-1].Msg
	var text strings.Builder
	for i := range last.Blocks {
		text.WriteString(last.Blocks[i].Text)
	}
	return string(last.Role) + ": " + text.String()
}

// With Later, nothing is recorded before Finish, and everything by it, also if the client
// has left within the reply.
func TestLater(t *testing.T) {
	t.Run("read", func(t *testing.T) {
		x, body := sendLater(t, t.Context(), io.NopCloser(strings.NewReader(strings.Join(pieces, ""))), 0)
		if got, err := io.ReadAll(body); err != nil || string(got) != strings.Join(pieces, "") {
			t.Errorf("%q, %v", got, err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
		if len(x.Replies) != 0 {
			t.Error("the reply was recorded before Finish")
		}
		x.Finish()
		x.Finish()
		if got := recordedReply(t, x); got != "assistant: Hello." || !x.Replies[0].Complete || x.Replies[0].CutErr != nil {
			t.Errorf("%q %+v", got, x.Replies[0])
		}
		if n, err := body.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("a closed body gave %d bytes, %v", n, err)
		}
	})
	for _, finish := range []time.Duration{0, time.Hour} {
		for at := range len(pieces) + 1 {
			ctx, cancel := context.WithCancel(t.Context())
			in, out := io.Pipe()
			sent := make(chan struct{})
			go func() {
				for i, piece := range pieces {
					if i == at {
						close(sent)
					}
					_, _ = io.WriteString(out, piece)
				}
				if at == len(pieces) {
					close(sent)
				}
				_ = out.Close()
			}()
			x, body := sendLater(t, ctx, in, finish)
			var both sync.WaitGroup
			both.Go(func() { _, _ = io.Copy(io.Discard, body) })
			both.Go(func() {
				<-sent
				cancel() // the client leaves
				_ = body.Close()
			})
			both.Wait()
			x.Finish()
			got := recordedReply(t, x)
			if finish > 0 && (got != "assistant: Hello." || !x.Replies[0].Complete) {
				t.Errorf("left at %d, finished: %q %+v", at, got, x.Replies[0])
			}
			if reply := x.Replies[0]; !reply.Complete && reply.CutErr == nil || errors.Is(reply.CutErr, io.EOF) {
				t.Errorf("left at %d: %+v", at, reply)
			}
			_ = in.Close()
		}
	}
}
