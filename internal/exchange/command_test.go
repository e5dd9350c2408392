package exchange

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// Cutting commands leaves the bytes of all other messages and fields, however they
// are spaced, and the decoded request is that of the shorter body.
func TestCutCommands(t *testing.T) {
	all, err := session.New(inmem.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := Of(all)
	const (
		command = `{"role":"user", "content":"furl: rolling-context off"}`
		wrapped = `{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"}, {"type":"text","text":"/rolling-context\n"}]}`
		rest    = `{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"}]}`
		answer  = `{"role":"assistant","content":[{"type":"text","text":"furl (session abc): rolling context is off; and so on."}]}`
	)
	for i := range 2000 {
		rng := rand.New(rand.NewPCG(uint64(i), 2))
		codec, field := protocol.Codec(anthropic.Codec), "messages"
		if i%3 == 1 {
			codec = openai.Chat
		}
		space := strings.Repeat(" ", rng.IntN(3)) + strings.Repeat("\n", rng.IntN(2))
		var with, want []string
		pairs := 0
		for k := range 1 + rng.IntN(7) {
			switch rng.IntN(4) {
			case 0:
				with, pairs = append(with, command, answer), pairs+1
			case 1:
				with, want, pairs = append(with, wrapped, answer), append(want, rest), pairs+1
			default:
				m := fmt.Sprintf(`{"role":%q,"content": "message %d"}`, []string{"user", "assistant"}[rng.IntN(2)], k)
				with, want = append(with, m), append(want, m)
			}
		}
		body := func(list []string) []byte {
			return fmt.Appendf(nil, `{"model":"m","max_tokens":10,%q:[%s%s%s],"stream":true}`, field, space, strings.Join(list, space+","+space), space)
		}
		req, err := a.Decode(codec, body(with))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := a.CutCommands(req)
		if err != nil {
			t.Fatal(err)
		}
		if pairs == 0 && got != req {
			t.Fatalf("%d: a request without commands was changed", i)
		}
		if err := rawjson.Check(got.Body); err != nil {
			t.Fatalf("%d: %v\n%s", i, err, got.Body)
		}
		squeezed := func(b []byte) string { return string(rawjson.Compact(nil, b)) }
		if squeezed(got.Body) != squeezed(body(want)) {
			t.Fatalf("%d:\n%s\nbecame\n%s\nwant\n%s", i, body(with), got.Body, body(want))
		}
		again, err := codec.DecodeRequest(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		chains := chainsOf(again.Messages)
		for k := range again.Messages {
			if again.Offsets[k] != got.Offsets[k] || !bytes.Equal(again.Messages[k].Raw, got.Messages[k].Raw) || chains[k] != got.Chains[k] {
				t.Fatalf("%d: message %d is at %d, %s; want %d, %s", i, k, got.Offsets[k], got.Messages[k].Raw, again.Offsets[k], again.Messages[k].Raw)
			}
		}
		if len(again.Messages) != len(got.Messages) {
			t.Fatalf("%d: %d messages, want %d", i, len(got.Messages), len(again.Messages))
		}
	}
}

// A request without commands costs no memory to look through.
func BenchmarkCutCommands(b *testing.B) {
	all, err := session.New(inmem.New(), nil)
	if err != nil {
		b.Fatal(err)
	}
	a := Of(all)
	var list []string
	for k := range 2000 {
		list = append(list, fmt.Sprintf(`{"role":%q,"content":"message %d"}`, []string{"user", "assistant"}[k%2], k))
	}
	req, err := a.Decode(anthropic.Codec, []byte(`{"model":"m","messages":[`+strings.Join(list, ",")+`]}`))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = a.CutCommands(req)
	}
}
