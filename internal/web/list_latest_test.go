package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/web"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// After an import, the figures of sessions are not known. The list asks for the newest session
// with hidden content then. A session that was imported and reduced is not live.
func TestLatestAfterImport(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{Policy: "rolling-mask-10"})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5", Title: "Imported and reduced", Client: "claude-cli", Imported: 1, Recorded: time.Now().Add(-time.Hour)})
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 40, 600))
	if _, err := s.Reduce(t.Context(), session.ReduceOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 40 { // newer ones without hidden content, such as short chats
		short := all.Create(storage.Meta{Title: "Short", Client: "claude-cli", Imported: 1})
		sessiontest.AppendAll(t, short, sessiontest.Steps(t, 1, 10)[:1])
	}
	url := serve(t, all, nil)
	// If that takes long, the browser asks again.
	clock := time.Now()
	slow := serve(t, all, &web.Options{Now: func() time.Time { clock = clock.Add(2 * time.Second); return clock }}) + "/furl/latest"
	for _, tt := range []struct{ query, want string }{
		{"", "/furl/latest?again=1"}, {"?again=1", "/furl/latest?again=2"}, {"?again=2", "/furl/latest?again=3"}, {"?again=3", "Imported and reduced"},
	} {
		if _, text := get(t, slow+tt.query, "HX-Request", "true"); !strings.Contains(text, tt.want) {
			t.Errorf("%q: no %s: %s", tt.query, tt.want, text)
		}
	}
	_, page := get(t, url+"/")
	if !strings.Contains(page, `hx-get="/furl/latest"`) {
		t.Error("the list does not ask for the newest session with hidden content")
	}
	if strings.Contains(page, "Live now") {
		t.Error("an imported session is live")
	}
	if status, text := get(t, url+"/furl/latest", "HX-Request", "true"); status != 200 || !strings.Contains(text, "Imported and reduced") || !strings.Contains(text, "tokens hidden") {
		t.Errorf("status %d: %s", status, text)
	}
	if _, page := get(t, url+"/"); strings.Contains(page, "/furl/latest") || !strings.Contains(page, "Hidden last") {
		t.Error("the list does not know what it has read")
	}
}
