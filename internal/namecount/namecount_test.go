package namecount_test

import (
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/namecount"
)

func TestCounts(t *testing.T) {
	log := furl.NewLog()
	for _, m := range []*furl.Message{
		{Role: furl.RoleUser, Blocks: []furl.Block{{Text: "look at main.go"}}},
		{Role: furl.RoleAssistant, Blocks: []furl.Block{
			{Kind: furl.KindThinking, Text: "run_server is in there"},
			{Kind: furl.KindCall, ID: "a", Name: "read", Args: []byte(`{"path":"main.go"}`)},
		}},
		{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: "a", Text: "main.go: run_server, run_server"}}},
	} {
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, m); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string, blocks, own int) {
		t.Helper()
		if got := namecount.Blocks(log.State(), name); got != blocks {
			t.Errorf("%s is in %d blocks, want %d", name, got, blocks)
		}
		if got, ok := namecount.FirstUse(log.State(), name); got != own || ok != (own >= 0) {
			t.Errorf("the assistant uses %s first in message %d, %v; want %d", name, got, ok, own)
		}
	}
	check("main.go", 3, 1)
	check("run_server", 2, -1) // thinking does not count as use
	check("nowhere.go", 0, -1)
	if _, err := log.Append(log.Head(), time.Time{}, furl.Client, furl.TextMessage(furl.RoleAssistant, "run_server it is")); err != nil {
		t.Fatal(err)
	}
	check("run_server", 3, 3)
}
