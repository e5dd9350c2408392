package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire/anthropic"
)

// benchSizes are sessions of so many messages, of about 2 KB each.
var benchSizes = []int{2000, 10_000}

func benchSession(b *testing.B, n int) (*session.Sessions, *session.Session) {
	b.Helper()
	all := reopen(b, inmem.New(), session.Options{Policy: "auto", Window: 200_000})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	if _, err := s.Append(b.Context(), steps(b, n/2, 3000)[:n-1]...); err != nil {
		b.Fatal(err)
	}
	fit, err := s.Fit(b.Context(), "claude-sonnet-4-5")
	if err != nil {
		b.Fatal(err)
	}
	reply := &protocol.Reply{ID: "r", Usage: furl.Usage{Input: fit.Budget.Size}, Messages: []*furl.Message{message(b, furl.RoleAssistant, text("done"))}}
	if err := s.Observe(b.Context(), fit, reply); err != nil {
		b.Fatal(err)
	}
	return all, s
}

// BenchmarkOpenCached opens a session that is in memory and gives its view.
func BenchmarkOpenCached(b *testing.B) { benchOpen(b, false) }

// BenchmarkOpenCold reads and folds it first.
func BenchmarkOpenCold(b *testing.B) { benchOpen(b, true) }

func benchOpen(b *testing.B, drop bool) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all, s := benchSession(b, n)
			for b.Loop() {
				if drop {
					all.Drop()
				}
				s, err := all.Open(context.Background(), s.ID())
				if err != nil {
					b.Fatal(err)
				}
				s.View("claude-sonnet-4-5")
			}
		})
	}
}

// BenchmarkContext sizes the next request of a session that was just opened:
// its meter is made anew.
func BenchmarkContextCold(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all, s := benchSession(b, n)
			for b.Loop() {
				b.StopTimer()
				all.Drop()
				s, err := all.Open(context.Background(), s.ID())
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				s.Context("claude-sonnet-4-5")
			}
		})
	}
}

// BenchmarkBegin is what a request of a client costs that resends its history:
// a retry of the last one, so that the session does not grow.
func BenchmarkBegin(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all, s := benchSession(b, n)
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
				x, err := all.Begin(context.Background(), req, session.BeginOptions{})
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
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all, s := benchSession(b, n)
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
				x, err := all.Begin(context.Background(), req, session.BeginOptions{Hints: session.Hints{Session: s.ID()}})
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
