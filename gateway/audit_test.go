package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/storage"
)

// auditLog keeps entries in memory, or fails.
type auditLog struct {
	mu      sync.Mutex
	entries []gateway.AuditEntry
	broken  bool
}

func (l *auditLog) Append(e gateway.AuditEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return errors.New("no space left on device")
	}
	l.entries = append(l.entries, e)
	return nil
}

// Each access to sessions has an entry before it is served, and one with its result after
// it. A refused one has one entry. No entry has content or a credential. If entries are required and cannot be written,
// the access is refused; requests to models go on.
func TestAuditLog(t *testing.T) {
	ann, annKey := key(t, "ann", "acme", access.Client, time.Time{})
	reader, readerKey := key(t, "reader", "acme", access.Read, time.Time{})
	log := &auditLog{}
	a := newAccessed(t, &gateway.Options{Keys: access.NewKeys([]access.Key{ann, reader}), TenantSecret: []byte("0123456789abcdef"), Audit: log, AuditRequired: true, Page: testPage{}})
	if code, body := a.do(t, "POST", "/v1/messages", question, "X-Furl-Key", annKey); code != 200 {
		t.Fatal(code, body)
	}
	id := ""
	for info, err := range a.store.Sessions(t.Context(), "acme", storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		id = string(info.Session)
	}
	one := "/furl/v1/sessions/" + id
	for _, r := range [][]string{
		{"GET", one + "/records", annKey}, {"GET", "/furl/v1/sessions/" + id[:4], annKey}, {"GET", "/furl/v1/sessions/none", annKey}, {"GET", one + "/search?q=furled", annKey}, {"POST", one + "/restore", annKey}, {"POST", one + "/settings", annKey},
		{"POST", one + "/settings", readerKey}, {"GET", one + "/view", "furl_planted"}, {"POST", "/v1/messages", readerKey},
		{"GET", "/furl/sessions/" + id, annKey}, {"POST", "/furl/sessions/" + id + "/delete", annKey}, {"GET", "/furl/v1/status", annKey},
	} {
		a.do(t, r[0], r[1], `{"rolling_context":"on"}`, "X-Furl-Key", r[2])
	}
	var got []string
	begun := ""
	for _, e := range log.entries {
		got = append(got, fmt.Sprintf("%s %s %s %s %s %s", e.Outcome, e.Via, e.Action, e.Who, e.Tenant, e.Session))
		switch e.Outcome {
		case "allowed":
			begun = e.ID
		case "refused":
			begun = ""
		}
		if e.ID != begun {
			t.Errorf("%+v does not belong to the entry before it", e)
		}
	}
	want := []string{
		"allowed api read ann acme " + id, "done api read ann acme " + id,
		"allowed api read ann acme " + id[:4], "done api read ann acme " + id,
		"allowed api read ann acme none", "not_found api read ann acme none",
		"allowed api search ann acme " + id, "done api search ann acme " + id,
		"allowed api restore ann acme " + id, "failed api restore ann acme " + id,
		"allowed api change ann acme " + id, "done api change ann acme " + id,
		"refused api change reader acme " + id, "refused api read   " + id, "refused proxy proxy reader acme ",
		"allowed page read ann acme " + id, "done page read ann acme " + id,
		"allowed page delete ann acme " + id, "done page delete ann acme " + id,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the entries are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	text, err := json.Marshal(log.entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{annKey, readerKey, "furl_planted", "furled", "rolling_context"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	log.mu.Lock()
	log.broken = true
	log.mu.Unlock()
	if code, body := a.do(t, "GET", one, "", "X-Furl-Key", annKey); code != 503 || !strings.Contains(body, "audit.required") {
		t.Errorf("without a log: %d %s", code, body)
	}
	if code, _ := a.do(t, "GET", "/furl/sessions/"+id, "", "X-Furl-Key", annKey); code != 503 {
		t.Errorf("the page without a log: %d", code)
	}
	if code, _ := a.do(t, "POST", "/v1/messages", question, "X-Furl-Key", annKey); code != 200 {
		t.Errorf("a request to a model without a log: %d", code)
	}
	// Somebody who guesses keys does not fill the disk.
	log.broken, log.entries = false, nil
	for range 200 {
		a.do(t, "GET", one, "", "X-Furl-Key", "furl_guess")
	}
	if n := len(log.entries); n > 61 {
		t.Errorf("200 refused requests have %d entries", n)
	}
}
