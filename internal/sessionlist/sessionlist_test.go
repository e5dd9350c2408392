package sessionlist

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/storage"
)

// A shortened id has at least eight characters and as many as tell it from the ids of
// all others, and from the ids that agents have for them.
func TestShortIDs(t *testing.T) {
	all := []storage.SessionInfo{
		sessionInfo("019ed893-d2a6-7c30", "019ed893-d2a6-7c30", "", ""),
		sessionInfo("019ed893-d2b0-0000", "", "", ""),
		sessionInfo("s1", "", "", ""),
		sessionInfo("s1.2", "", "", ""),
		sessionInfo("abcdefghijkl", "", "", ""),
		sessionInfo("zyxwvutsrqpo", "abcdefghiZ", "", ""),
		sessionInfo(strings.Repeat("long-id.", 10), "", "", ""),
	}
	got := ShortIDs(all)
	for id, want := range map[furl.SessionID]string{
		"019ed893-d2a6-7c30": "019ed893-d2a", "019ed893-d2b0-0000": "019ed893-d2b", "s1": "s1", "s1.2": "s1.2",
		"abcdefghijkl": "abcdefghij", "zyxwvutsrqpo": "zyxwvuts", furl.SessionID(strings.Repeat("long-id.", 10)): "long-id.",
	} {
		if got[id] != want {
			t.Errorf("%s is shortened to %q, want %q", id, got[id], want)
		}
	}
}

// Sub-agents are counted, or listed below the session that started them.
func TestSubAgentRows(t *testing.T) {
	all := []storage.SessionInfo{
		sessionInfo("furl1", "agent1/a", "", ""), // of an earlier version
		sessionInfo("main", "agent1", "", ""),
		sessionInfo("b", "b", "agent1", ""),
		sessionInfo("c", "c", "b", ""),       // of a sub-agent
		sessionInfo("d", "d", "unknown", ""), // its session is not in the store
		sessionInfo("e", "e", "f", ""),       // in a circle
		sessionInfo("f", "f", "e", ""),
	}
	text := func(nest bool, limit int) string {
		var b strings.Builder
		for _, r := range NewList(all, all, nest, limit).Rows {
			if r.Depth > 0 {
				b.WriteString("+")
			}
			b.WriteString(string(r.Info.Session) + " ")
		}
		return b.String()
	}
	if got, want := text(false, 0), "main d e f "; got != want {
		t.Errorf("the list is %s, want %s", got, want)
	}
	if got, want := text(true, 1), "main +furl1 +b +c "; got != want {
		t.Errorf("the list is %s, want %s", got, want)
	}
	if l := NewList(all, all, false, 1); l.Hidden != 3 || l.Rows[0].SubAgents != 3 {
		t.Errorf("%d hidden, %d of the session, want 3", l.Hidden, l.Rows[0].SubAgents)
	}
}

// Forks are below their original, at the place of the newest of them.
func TestForkRows(t *testing.T) {
	fork := func(id, of string) storage.SessionInfo {
		info := sessionInfo(id, id, "", "")
		info.ForkOf = furl.SessionID(of)
		return info
	}
	all := []storage.SessionInfo{
		fork("f2", "f1"), // newest first
		fork("x", ""),
		fork("f1", "p"),
		fork("f3", "p"),
		fork("gone", "deleted"),
		sessionInfo("sub", "sub", "f1", ""),
		fork("p", ""),
		fork("c1", "c2"), // in a circle
		fork("c2", "c1"),
		fork("self", "self"),
	}
	text := func(nest bool, limit int) string {
		var b strings.Builder
		for _, r := range NewList(all, all, nest, limit).Rows {
			b.WriteString(strings.Repeat("+", r.Depth))
			if r.Fork {
				b.WriteString("fork:")
			}
			b.WriteString(string(r.Info.Session) + " ")
		}
		return b.String()
	}
	if got, want := text(false, 0), "p +fork:f1 ++fork:f2 +fork:f3 x gone c2 +fork:c1 self "; got != want {
		t.Errorf("the list is %s, want %s", got, want)
	}
	if got, want := text(true, 1), "p +fork:f1 ++sub ++fork:f2 +fork:f3 "; got != want {
		t.Errorf("the list is %s, want %s", got, want)
	}
}

func TestProjects(t *testing.T) {
	names := shortProjects([]storage.SessionInfo{sessionInfo("1", "", "", "/a/x/cli"), sessionInfo("2", "", "", "/a/y/cli"), sessionInfo("3", "", "", "/a/y/web"), sessionInfo("4", "", "", "/cli"), sessionInfo("5", "", "", `C:\u\p`)})
	for project, want := range map[string]string{"/a/x/cli": "x/cli", "/a/y/cli": "y/cli", "/a/y/web": "web", "/cli": "/cli", `C:\u\p`: "u/p"} {
		if names[project] != want {
			t.Errorf("%s is called %q, want %q", project, names[project], want)
		}
	}
	for _, tt := range []struct {
		want, project string
		is            bool
	}{
		{"", "", true}, {"cli", "/a/x/cli", true}, {"x", "/a/x/cli", true}, {"li", "/a/x/cli", false},
		{"/a/x", "/a/x/cli", true}, {"/a/x/", "/a/x", true}, {"/a/x", "/a/xy", false}, {"/a", "", false}, {`C:\u`, `C:\u\p`, true},
	} {
		filter, err := recorded.ProjectFilter(tt.want)
		if err != nil {
			t.Fatal(err)
		}
		if filter(tt.project) != tt.is {
			t.Errorf("--project %q and %q: %v, want %v", tt.want, tt.project, !tt.is, tt.is)
		}
	}
}

func sessionInfo(id, hint, parent, project string) storage.SessionInfo {
	return storage.SessionInfo{
		SessionKey: furl.SessionKey{Session: furl.SessionID(id)},
		Meta:       storage.Meta{Title: "title of " + id, Hint: hint, Parent: parent, Project: project},
	}
}
