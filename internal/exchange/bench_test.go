package exchange_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
)

// BenchmarkBegin is what a request of a client costs that resends its history:
// a retry of the last one, so that the session does not grow.
func BenchmarkBegin(b *testing.B) {
	for _, n := range sessiontest.BenchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all, s := sessiontest.BenchSession(b, n)
			var list []json.RawMessage
			for _, r := range s.Records(0) {
				if m, ok := r.Body.(*furl.Message); ok {
					list = append(list, m.Raw)
				}
			}
			data, err := json.Marshal(list)
			if err != nil {
				b.Fatal(err)
			}
			body := fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":1000,"messages":%s}`, data)
			req, err := anthropic.Codec.DecodeRequest(body)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				x, err := exchange.Of(all).Begin(context.Background(), req, exchange.BeginOptions{})
				if err != nil || x.Err != nil {
					b.Fatal(err, x.Err)
				}
				x.Drop()
			}
		})
	}
}

// BenchmarkExchange is a whole request of a client that resends its history and
// adds a question: it is prepared, committed, and its reply recorded.
func BenchmarkExchange(b *testing.B) {
	for _, n := range sessiontest.BenchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all, s := sessiontest.BenchSession(b, n)
			var list []json.RawMessage
			for _, r := range s.Records(0) {
				if m, ok := r.Body.(*furl.Message); ok {
					list = append(list, m.Raw)
				}
			}
			system := strings.Repeat("A rule of the client's, and what it is for. ", 1000)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				list = append(list, message(b, furl.RoleUser, text(fmt.Sprint("question ", i))).Raw)
				data, err := json.Marshal(list)
				if err != nil {
					b.Fatal(err)
				}
				req, err := anthropic.Codec.DecodeRequest(fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":1000,"system":%q,"messages":%s}`, system, data))
				if err != nil {
					b.Fatal(err)
				}
				answer := message(b, furl.RoleAssistant, text(fmt.Sprint("answer ", i)))
				list = append(list, answer.Raw)
				reply := &protocol.Reply{Format: furl.FormatAnthropic, ID: fmt.Sprint("r", i), Model: "claude-sonnet-4-5", Messages: []*furl.Message{answer}, Usage: furl.Usage{Input: 90_000}, Complete: true}
				b.StartTimer()
				x, err := exchange.Of(all).Begin(context.Background(), req, exchange.BeginOptions{Hints: protocol.Hints{Session: s.ID()}})
				if err != nil || x.Err != nil {
					b.Fatal(err, x.Err)
				}
				if _, err := x.Commit(context.Background()); err != nil {
					b.Fatal(err)
				}
				if err := x.Done(context.Background(), reply); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
