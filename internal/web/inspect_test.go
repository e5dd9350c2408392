package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// An empty result is said to be empty, and the inspector shows the images of a result.
func TestInspectResults(t *testing.T) {
	const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	file := filepath.Join(t.TempDir(), "request.json")
	err := os.WriteFile(file, []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[
		{"role":"user","content":"start"},
		{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"bash","input":{}},{"type":"tool_use","id":"b","name":"read","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":""},
			{"type":"tool_result","tool_use_id":"b","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+png+`"}}]}]}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := transcript.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := sessiontest.Open(t, session.Options{})
	s, err := all.Import(t.Context(), "", rec.Sessions[0].Log, storage.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	state := stateOf(t, s)
	last, _ := state.Message(state.Len() - 1)
	page, at := serve(t, all, nil)+"/furl/sessions/"+string(s.ID()), fmt.Sprint(last)
	for path, want := range map[string]string{
		"":                         `<span class="first"><bdi>empty</bdi></span>`,
		"/inspect?at=" + at + ".0": `<p class="soft">Empty.</p>`,
		"/inspect?at=" + at + ".1": `alt="image/png image, 1 × 1 pixels"`,
	} {
		if status, text := get(t, page+path); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: status %d, lacks %s", path, status, want)
		}
	}
}
