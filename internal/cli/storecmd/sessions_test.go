package storecmd

import (
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sessionlist"
	"github.com/furlhq/furl/storage"
)

// The list keeps agent, model, messages and time at 80 columns.
func TestSessionsAt80Columns(t *testing.T) {
	info := storage.SessionInfo{SessionKey: furl.SessionKey{Session: "019ed893-d2a6-7c30"}, Meta: storage.Meta{Title: "title of 019ed893-d2a6-7c30", Project: "/home/u/project"}}
	info.Title, info.Client, info.Model, info.Messages = strings.Repeat("title ", 20), "claude-cli", "claude-sonnet-4-5-20250929", 12345
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	info.Updated = now.Add(-45 * time.Minute)
	var b strings.Builder
	table := sessionsTable(&b, sessionlist.NewList([]storage.SessionInfo{info}, []storage.SessionInfo{info}, false, 0), now)
	table.Cols = 80
	fitSessions(table)
	table.Print()
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"019ed893", "title title", "Claude Code", "sonnet-4-5", "12,345", "45 min ago"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
