package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// manySessions makes a store in a home with sessions of 30 messages and a ledger.
func manySessions(tb testing.TB, home string, sessions int) {
	tb.Helper()
	store, err := sqlite.Open(home+"/data/furl.db", nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer store.Close()
	for i := range sessions {
		log := furl.NewLog()
		for j := range 30 {
			text := fmt.Sprintf("message %d of session %d %s", j, i, strings.Repeat("and more ", 100))
			m := &furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindText, Text: text, Tokens: 200}}}
			m.Seal()
			if _, err := log.Append(log.Head(), time.Now(), furl.Client, m); err != nil {
				tb.Fatal(err)
			}
		}
		ledger := &storage.Ledger{Size: 45_000, Hidden: 118_000}
		for day := range 3 {
			ledger.Add(fmt.Sprintf("2026-11-%02d", 21+day), "claude-sonnet-4-5", storage.Savings{Requests: 10, Tokens: 400_000, TokensWithout: 900_000, Cost: 1, CostWithout: 2})
		}
		meta := &storage.Meta{Title: fmt.Sprintf("Session %d", i), Client: "claude-cli", Hint: fmt.Sprintf("hint-%d", i), Model: "claude-sonnet-4-5", Format: furl.FormatAnthropic, Ledger: ledger}
		key := furl.SessionKey{Session: furl.SessionID(fmt.Sprintf("session%05d", i))}
		if err := store.Append(tb.Context(), key, storage.Batch{Records: log.Records(0), Meta: meta}); err != nil {
			tb.Fatal(err)
		}
	}
}

// statusLineOf runs furl status for Claude Code.
func statusLineOf(tb testing.TB, home, hint string) string {
	tb.Helper()
	cmd := furlCommand(home, "status", "--format", "claude")
	cmd.Stdin = strings.NewReader(`{"session_id":"` + hint + `"}`)
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// A status line is asked for several times a second, so it must not read sessions.
func TestStatusLine(t *testing.T) {
	home := t.TempDir()
	manySessions(t, home, 20)
	const want = "furl 45k of 200k (22%) · 118k hidden · 1.5M tokens saved (56%), list price $3.00\n"
	if got := statusLineOf(t, home, "hint-7"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	out, err := furlCommand(home, "usage", "--savings").CombinedOutput()
	if err != nil || strings.Count(string(out), "claude-sonnet-4-5") != 3 || !strings.Contains(string(out), "600 requests: 24,000,000 tokens sent instead of 54,000,000 (56% less); list price $60.00 instead of $120.00 (50% less)") {
		t.Errorf("%v: %s", err, out)
	}
}

// A store above a gigabyte is mentioned, unless its size is limited already.
func TestLargeStore(t *testing.T) {
	home := t.TempDir()
	manySessions(t, home, 1)
	// SQLite ignores what follows its pages. The file is sparse.
	if err := os.Truncate(home+"/data/furl.db", 1_200_000_000); err != nil {
		t.Fatal(err)
	}
	const advice = "The store takes up 1.2 GB. To delete old sessions now: furl delete --older-than 90d. To keep it small: set retention (age: 90d, or size: 2GB)"
	for _, name := range []string{"status", "stats"} {
		if out, err := furlCommand(home, name).CombinedOutput(); err != nil || !strings.Contains(string(out), advice) {
			t.Errorf("furl %s: %v: %s", name, err, out)
		}
		limited := furlCommand(home, name)
		if err := os.WriteFile(home+"/config.yaml", []byte("retention: {size: 2GB}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := limited.CombinedOutput(); err != nil || strings.Contains(string(out), "takes up") {
			t.Errorf("furl %s with a limit: %v: %s", name, err, out)
		}
	}
	if got := statusLineOf(t, home, "hint-0"); !strings.HasSuffix(got, " · store 1.2 GB, see furl stats\n") {
		t.Errorf("the status line is %q", got)
	}
}

// BenchmarkStatus measures furl status as a process, in a store of 1,000 sessions.
func BenchmarkStatus(b *testing.B) {
	home := b.TempDir()
	manySessions(b, home, 1000)
	for _, args := range []string{"status", "sessions", "usage --savings"} {
		b.Run(strings.ReplaceAll(args, " ", ""), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				if args == "status" {
					statusLineOf(b, home, "hint-500")
				} else if out, err := furlCommand(home, strings.Fields(args)...).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}
