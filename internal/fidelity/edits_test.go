package fidelity

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/furlhq/furl"
)

func TestReplaced(t *testing.T) {
	patch := "*** Begin Patch\n*** Add File: a.go\n+package a\n*** Update File: b.go\n@@ func f()\n context\n-old line\n+new line\n*** End Patch\n"
	quoted, _ := json.Marshal(map[string]any{"cmd": []string{"apply_patch", patch}})
	tests := []struct {
		name, args string
		want       []string
	}{
		{"Claude Code", `{"file_path":"a.go","old_string":"one\ntwo","new_string":"three"}`, []string{"one\ntwo"}},
		{"opencode", `{"filePath":"a.go","oldString":"one","newString":"two"}`, []string{"one"}},
		{"several edits", `{"edits":[{"old_string":"one","new_string":"1"},{"old_string":"two","new_string":"2"}]}`, []string{"one", "two"}},
		{"a patch in a command", string(quoted), []string{"context\nold line\n"}},
		{"a patch as plain input", patch, []string{"context\nold line\n"}},
		{"a new file", `{"file_path":"a.go","content":"old_string"}`, nil},
		{"an insertion", `{"old_string":"","new_string":"x"}`, nil},
		{"not JSON", `{"old_string":`, nil},
		{"no text", `{"old_string":7}`, nil},
	}
	for _, tt := range tests {
		b := &furl.Block{Kind: furl.KindCall, Name: "edit", Args: json.RawMessage(tt.args)}
		if got := Replaced(b); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := Replaced(&furl.Block{Kind: furl.KindText, Text: `{"old_string":"x"}`}); got != nil {
		t.Errorf("a text replaces %q", got)
	}
}
