package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// recordsOfEachKind has every field of every body set to something.
func recordsOfEachKind(t testing.TB) []furl.Record {
	t.Helper()
	at := time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.FixedZone("", 3600))
	raw := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"line one\nline \"two\" \u00e9"},{"type":"text","text":"plain words that are long enough","cache_control":{"type":"ephemeral"}}]}`
	m, err := anthropic.Codec.DecodeMessage([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	call, err := openai.Chat.DecodeMessage([]byte(`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\": \"/a/b/c.go\", \"from\": 1}"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	m.Blocks[0].Media = []furl.Media{{Kind: furl.KindImage, Type: "image/png", Bytes: 12, Width: 3, Height: 4, Digest: furl.DigestOf([]byte("x"))}}
	m.Blocks[0].Tokens, m.Blocks[1].Signature = 77, 88
	observation := furl.TextMessage(furl.RoleUser, "output of a command")
	observation.Blocks[0].Observation, observation.Blocks[0].ErrorText, observation.Blocks[0].Fixed = true, true, true
	span := []furl.Span{{First: furl.Pos{Msg: 1, Block: 0}, Last: furl.Pos{Msg: 1, Block: 1}}}
	usage := furl.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, CacheWrite1h: 4, Output: 5, Reasoning: 6}
	bodies := []furl.Body{
		m, call, furl.TextMessage(furl.RoleUser, "without bytes of its own"), observation,
		&furl.Exchange{Model: "m", Preamble: furl.DigestOf(nil), View: furl.DigestOf([]byte("v")), Thinking: furl.Pos{Msg: 2, Block: 1},
			Usage: usage, ResponseID: "r", Stop: "end_turn", Estimated: 9,
			Plan: []furl.PlanStep{{Stage: "mask", Skipped: "no", Failed: true, Before: 3, After: 2, Hidden: 1}}},
		&furl.Reduction{Stage: "compact", Reason: "why", Before: 10, After: 5, Scale: 1.25, Copy: 3,
			Cost:    furl.Cost{Rewrite: 0.5, PerRequest: 0.25, Remaining: 12.5, Own: 0.125},
			Summary: &furl.Summary{Number: 2, Text: "sum", Messages: 3, Model: "s", Usage: usage, Request: "please"},
			Items: []furl.Item{
				{Spans: span, Show: furl.In{Text: "shown", Tokens: 4, Note: "old"}},
				{Spans: span, Show: furl.Mark{At: at, Messages: []*furl.Message{m, furl.TextMessage(furl.RoleUser, "[mark]")}}},
				{Spans: span, Show: furl.Gone{}},
			}},
		&furl.Restoration{Of: 4, Open: true, Spans: span, Hold: furl.Pin},
		&furl.Takeover{Branch: 5, Moved: []furl.Moved{{Old: 2, New: 300, Messages: 4}, {Old: 9, New: 400, Messages: 1}}},
		&furl.Head{From: 5},
		&furl.Exchange{Model: "m", Request: furl.RequestParts{
			Frame: furl.DigestOf([]byte("f")), System: furl.DigestOf([]byte("s")), Tools: furl.DigestOf([]byte("t")), Received: "\x00\xff\x80", Sent: "sent"}},
		&furl.Exchange{Model: "m", Request: furl.RequestParts{Frame: furl.DigestOf([]byte("f"))}},
		&furl.Exchange{Model: "m", Usage: usage, Passes: furl.Passes{{Kind: "advisor_message", Model: "a", Usage: usage}, {Kind: furl.PassMessage, Usage: usage}}},
		&furl.Exchange{Model: "m", Usage: usage, Terms: furl.Terms{Speed: "fast", Geo: "us", Tier: "batch", Tools: []furl.ToolUses{{Name: "web_fetch", Uses: 1}, {Name: "web_search", Uses: 300}}}},
		&furl.Exchange{Model: "m", Terms: furl.Terms{Tier: "flex"}},
	}
	records := make([]furl.Record, len(bodies))
	for i, b := range bodies {
		records[i] = furl.Record{Seq: furl.Seq(i + 1), Parent: furl.Seq(i), At: at.Add(time.Duration(i)), By: furl.Actor(i % 5), Body: b}
	}
	records[0].Chain = m.Extend(furl.Digest{})
	records[1].At = time.Time{}
	return records
}

func TestRoundTrip(t *testing.T) {
	for _, r := range recordsOfEachKind(t) {
		t.Run(fmt.Sprintf("%T", r.Body), func(t *testing.T) {
			head, body, err := record.Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			back, err := record.Decode(head, body)
			if err != nil {
				t.Fatal(err)
			}
			equalTimes := cmp.Comparer(func(a, b time.Time) bool {
				return a.Equal(b) && a.Format(time.RFC3339Nano) == b.Format(time.RFC3339Nano)
			})
			if diff := cmp.Diff(r, back, equalTimes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("encoded and decoded (-want +got):\n%s", diff)
			}
			again, _, _ := record.Encode(back)
			if !bytes.Equal(head, again) {
				t.Error("the decoded record encodes to other bytes")
			}
		})
	}
}

// The words of a message are in its body and not once more in its head,
// escaped or not.
func TestTextsOnce(t *testing.T) {
	words := strings.Repeat("a line of \"text\"\twith\\escapes\nand more\n", 1000)
	for name, codec := range map[string]protocol.Codec{"anthropic": anthropic.Codec, "chat": openai.Chat, "responses": openai.Responses} {
		m, err := codec.NewMessage(furl.RoleUser, []furl.Block{{Kind: furl.KindText, Text: words}})
		if err != nil {
			t.Fatal(err)
		}
		head, body, err := record.Encode(furl.Record{Seq: 1, Body: m})
		if err != nil {
			t.Fatal(err)
		}
		if len(head) > 300 {
			t.Errorf("%s: the head has %d bytes beside a body of %d", name, len(head), len(body))
		}
		back, err := record.Decode(head, body)
		if err != nil {
			t.Fatal(err)
		}
		if got := back.Body.(*furl.Message).Blocks[0].Text; got != words {
			t.Errorf("%s: the text came back as %.80q", name, got)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	head, body, err := record.Encode(recordsOfEachKind(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Clone(head)
	newer[0] = 99
	if _, err := record.Decode(newer, body); !errors.Is(err, record.ErrNewerFormat) {
		t.Errorf("a newer version: %v, want ErrNewerFormat", err)
	}
	for n := range head {
		if _, err := record.Decode(head[:n], body); !errors.Is(err, furl.ErrDamaged) {
			t.Errorf("the first %d of %d bytes: %v, want ErrDamaged", n, len(head), err)
		}
	}
	if _, err := record.Decode(append(bytes.Clone(head), 0), body); !errors.Is(err, furl.ErrDamaged) {
		t.Errorf("a byte too many: %v, want ErrDamaged", err)
	}
	if _, err := record.Decode(head, body[:10]); !errors.Is(err, furl.ErrDamaged) {
		t.Errorf("a body cut off: %v, want ErrDamaged", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, r := range recordsOfEachKind(f) {
		head, body, err := record.Encode(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(head, body)
	}
	f.Fuzz(func(t *testing.T, head, body []byte) {
		r, err := record.Decode(head, body)
		if err != nil {
			return
		}
		// What decodes encodes again, and then means the same.
		head2, body2, err := record.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		r2, err := record.Decode(head2, body2)
		if err != nil {
			t.Fatalf("decoded, encoded, and then: %v", err)
		}
		if m, ok := r.Body.(*furl.Message); ok {
			for i, b := range m.Blocks {
				if got := r2.Body.(*furl.Message).Blocks[i]; got.Text != b.Text || string(got.Args) != string(b.Args) {
					t.Fatalf("block %d changed: %q, %q", i, b.Text, got.Text)
				}
			}
		}
	})
}
