package session_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/furlhq/furl/internal/dev/sessiontest"
)

// BenchmarkOpenCached opens a session that is in memory and gives its view.
func BenchmarkOpenCached(b *testing.B) { benchOpen(b, false) }

// BenchmarkOpenCold reads and folds it first.
func BenchmarkOpenCold(b *testing.B) { benchOpen(b, true) }

func benchOpen(b *testing.B, drop bool) {
	for _, n := range sessiontest.BenchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all, s := sessiontest.BenchSession(b, n)
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
	for _, n := range sessiontest.BenchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all, s := sessiontest.BenchSession(b, n)
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
