package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// The page says which commands have no limit where a session is larger than the memory for
// sessions.
func TestSessionLargerThanMemory(t *testing.T) {
	store := inmem.New()
	all, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := all.Create(storage.Meta{})
	for i := range 40 {
		if _, err := s.Append(t.Context(), furl.TextMessage(furl.RoleUser, fmt.Sprintf("%d %s", i, strings.Repeat("word ", 100)))); err != nil {
			t.Fatal(err)
		}
	}
	small, err := session.New(store, &session.Options{MaxMemory: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	status, text := get(t, serve(t, small, nil)+"/furl/sessions/"+string(s.ID()))
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "furl export and furl delete have no such limit") {
		t.Errorf("%d %s", status, text)
	}
}
