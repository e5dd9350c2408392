package exchange_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire/anthropic"
)

// A policy's warning is in the log once for a session, not with each request.
func TestWarnedOnce(t *testing.T) {
	store := inmem.New()
	t.Cleanup(func() { _ = store.Close() })
	var log strings.Builder
	sessions, err := session.New(store, &session.Options{Policy: "rolling", Window: 10_000, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	body := `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hi"}`
	for _, more := range []string{"", `,{"role":"assistant","content":"a"},{"role":"user","content":"b"}`, `,{"role":"assistant","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"},{"role":"user","content":"d"}`} {
		req, err := exchange.Of(sessions).Decode(anthropic.Codec, []byte(body+more+"]}"))
		if err != nil {
			t.Fatal(err)
		}
		x, err := exchange.Of(sessions).Begin(t.Context(), req, exchange.BeginOptions{Hints: protocol.Hints{Hint: "one"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.Drop()
	}
	if n := strings.Count(log.String(), "code=no_recall"); n != 1 {
		t.Errorf("it is told %d times:\n%s", n, log.String())
	}
}
