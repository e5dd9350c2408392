package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
)

// A reply larger than the limit is not decoded, and its bytes are not kept. A
// stream keeps what it said before.
func TestReplyTooLarge(t *testing.T) {
	chunk := `data: {"id":"a","choices":[{"index":0,"delta":{"content":"hi"}}]}` + "\n\n"
	for _, tc := range []struct {
		name, contentType, body string
		stream                  bool
	}{
		{"in one piece", "application/json", `{"choices":[]}` + strings.Repeat(" ", 100), false},
		{"a stream", "text/event-stream", strings.Repeat(chunk, 10) + "data: [DONE]\n\n", true},
		{"signs of life", "text/event-stream", strings.Repeat(": ping\n\n", 100), true},
	} {
		for _, most := range []int{len(tc.body), len(tc.body) - 1} {
			r := NewReplyReader(For(furl.FormatChat), 200, tc.contentType)
			if r.most != MaxReply {
				t.Fatalf("the limit is %d", r.most)
			}
			r.most = int64(most)
			for i := range len(tc.body) {
				if n, err := r.Write([]byte(tc.body[i : i+1])); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
			if r.Stream() != tc.stream {
				t.Errorf("%s: stream %v", tc.name, r.Stream())
			}
			tooLarge := most < len(tc.body)
			reply, err := r.Reply(nil)
			if errors.Is(err, ErrReplyTooLarge) != tooLarge || tooLarge && (reply.Complete || r.body.Cap() > 0) || reply.Format != furl.FormatChat {
				t.Errorf("%s: at most %d of %d bytes: %+v, %v, %d bytes kept", tc.name, most, len(tc.body), reply, err, r.body.Cap())
			}
			if tc.name == "a stream" && (len(reply.Messages) != 1 || !strings.HasPrefix(reply.Messages[0].Blocks[0].Text, "hihi")) {
				t.Errorf("%s: %+v", tc.name, reply.Messages)
			}
		}
	}
	if got := ErrReplyTooLarge.Error(); !strings.Contains(got, "64 MiB") {
		t.Error(got)
	}
}

// An event larger than the scanner takes is an error of the reply, which keeps
// what was said before.
func TestEventTooLarge(t *testing.T) {
	r := NewReplyReader(For(furl.FormatAnthropic), 200, sse.ContentType)
	r.events.Max = 1000
	_, _ = r.Write([]byte("data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\ndata: "))
	for range 1001 {
		_, _ = r.Write([]byte("x"))
	}
	if reply, err := r.Reply(nil); !errors.Is(err, sse.ErrTooLarge) || reply.Complete || reply.ID != "m" {
		t.Errorf("%+v, %v", reply, err)
	}
}
