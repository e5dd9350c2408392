package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

type codec interface {
	protocol.Codec
	protocol.ReplyCodec
}

var codecs = []codec{anthropic.Codec, openai.Chat, openai.Responses}

// What the dummy answers is what the history goes on with, streamed or not, so
// that furl finds its way.
func TestAnswersAreTheHistory(t *testing.T) {
	for _, c := range codecs {
		h := newHistory(c.Format(), 1, 30<<10, "m")
		req, err := c.DecodeRequest(h.body(true))
		if err != nil {
			t.Fatal(c.Format(), err)
		}
		if !json.Valid(req.Body) || len(req.Messages) != len(h.list) {
			t.Fatalf("%s: %d messages of %d, valid %t", c.Format(), len(req.Messages), len(h.list), json.Valid(req.Body))
		}
		var want furl.Digest
		for _, raw := range assistant(c.Format(), 5) {
			m, err := c.DecodeMessage(raw)
			if err != nil {
				t.Fatal(c.Format(), err)
			}
			want = m.Extend(want)
		}
		for _, stream := range []bool{false, true} {
			first, rest := answer(c.Format(), stream, 5, "id", 100)
			reply := read(t, c, stream, slices.Concat(first, rest))
			if !reply.Complete || reply.Usage.Input+reply.Usage.CacheRead+reply.Usage.CacheWrite != 100 {
				t.Errorf("%s, streamed %t: complete %t, usage %+v", c.Format(), stream, reply.Complete, reply.Usage)
			}
			var got furl.Digest
			for _, m := range reply.Messages {
				got = m.Extend(got)
			}
			if got != want {
				t.Errorf("%s, streamed %t: the answer is not what the client sends back", c.Format(), stream)
			}
		}
	}
}

func read(t *testing.T, c codec, stream bool, body []byte) *protocol.Reply {
	t.Helper()
	if !stream {
		reply, err := c.DecodeReply(200, body)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	a, s := c.NewAssembler(), new(sse.Scanner)
	for e, err := range s.Feed(body) {
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Feed(e.Type, e.Data); err != nil {
			t.Fatal(err)
		}
	}
	reply, err := a.Reply()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// Only what a reduction may change may differ.
func TestCompare(t *testing.T) {
	h := newHistory(furl.FormatAnthropic, 1, 30<<10, "m")
	sent := h.body(true)
	for _, tt := range []struct {
		name     string
		from, to string
		wrong    bool
	}{
		{"nothing", "", "", false},
		{"an unknown field", `"x_unknown":9007199254740993`, `"x_unknown":9007199254740992`, true},
		{"what stands before the list", `"max_tokens":32000`, `"max_tokens":3200`, true},
		{"the id of a call", `"call_000003"`, `"call_900003"`, false}, // hidden, and new
	} {
		got := bytes.ReplaceAll(sent, []byte(tt.from), []byte(tt.to))
		if tt.from == "" {
			got = sent
		}
		d, err := compare(h, sent, got)
		if err != nil {
			t.Fatal(err)
		}
		if (len(d.wrong) > 0) != tt.wrong {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
}
