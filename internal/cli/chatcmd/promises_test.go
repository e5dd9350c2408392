package chatcmd_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/session"
)

// fullDisk is an audit log that cannot be written.
type fullDisk struct{}

func (fullDisk) Append(audit.Entry) error { return errors.New("no space left on device") }

// Each promise of docs/operate/security.md about who may change a session holds for each operation, by the
// API and on the page: the request is refused, and the session is as before.
func TestRefusedOnAllSurfaces(t *testing.T) {
	newKey := func(name, tenant string, s access.Scopes, expires time.Time) (access.Key, string) {
		k, secret, err := access.NewKey(name, tenant, s, time.Now(), expires)
		if err != nil {
			t.Fatal(err)
		}
		return k, secret
	}
	owner, ownerKey := newKey("owner", "", access.Client, time.Time{})
	other, otherKey := newKey("other", "", access.Client, time.Time{})
	reader, readerKey := newKey("reader", "owner", access.Read, time.Time{})
	agent, agentKey := newKey("agent", "owner", access.Proxy, time.Time{})
	operator, operatorKey := newKey("operator", "", access.Operate, time.Time{})
	old, oldKey := newKey("old", "owner", access.Client, time.Now().Add(-time.Second))
	keyed := func() *gateway.Options {
		return &gateway.Options{Keys: access.NewKeys([]access.Key{owner, other, reader, agent, operator, old}), TenantSecret: []byte("0123456789abcdef")}
	}
	local := func() *gateway.Options { return &gateway.Options{} }
	with := func(headers ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				if headers[i] == "Host" {
					r.Host = headers[i+1]
					continue
				}
				r.Header.Set(headers[i], headers[i+1])
			}
		}
	}
	promises := []struct {
		name    string
		Options func() *gateway.Options
		change  func(*http.Request)
		says    string // in the response's body, or empty
		allowed bool
	}{
		{"the owner", keyed, with("X-Furl-Key", ownerKey), "", true},
		{"this machine", local, nil, "", true},
		{"another tenant", keyed, with("X-Furl-Key", otherKey), "", false},
		{"a key that reads", keyed, with("X-Furl-Key", readerKey), "", false},
		{"a key of an agent", keyed, with("X-Furl-Key", agentKey), "", false},
		{"a key of an operator", keyed, with("X-Furl-Key", operatorKey), "", false},
		{"an expired key", keyed, with("X-Furl-Key", oldKey), "", false},
		{"no key", keyed, nil, "", false},
		{"another site", local, with("Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), "", false},
		{"another port of this machine", local, with("Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"), "", false},
		{"a name that points to this machine", local, with("Host", "evil.example"), "", false},
		{"an audit log that is full", func() *gateway.Options {
			return &gateway.Options{Audit: fullDisk{}, AuditRequired: true}
		}, nil, "audit", false},
	}
	folder := t.TempDir()
	provideSummaries(t)
	// prepared returns a store whose session is a tenant's, with a summary that waits or without.
	prepared := func(tenant furl.Tenant, waits bool) string {
		place := filepath.Join(folder, fmt.Sprintf("%s-%v.db", tenant, waits))
		if _, err := os.Stat(place); err != nil {
			prepareOperated(t, place, tenant)
			if waits {
				prepareSummary(t, place, tenant)
			}
		}
		return place
	}
	for _, o := range operation.All() {
		c := operatedCases[o.Name]
		for _, p := range promises {
			for _, on := range []operation.Surface{operation.API, operation.Page} {
				if !o.On(on) {
					continue
				}
				options, tenant := p.Options(), furl.Tenant("")
				if options.Keys != nil {
					tenant = "owner"
				}
				place := filepath.Join(folder, "tried.db")
				copyTo(t, prepared(tenant, strings.Contains(o.Path, "summary/")), place)
				before := stateOf(t, place, tenant)
				var status int
				var text string
				withSessions(t, place, func(all *session.Sessions) {
					status, text = requestOperation(t, all, on, o, &c, options, p.change)
				})
				changed := stateOf(t, place, tenant) != before
				if o.Name == "compact" && p.allowed && tenant != "" { // a tenant's summary waits for the next request
					changed = status < 400
				}
				if changed != p.allowed || !p.allowed && status < 400 && status != http.StatusSeeOther || !strings.Contains(text, p.says) {
					t.Errorf("%s on %s by %s: %d, changed: %v: %.300s", o.Name, on, p.name, status, changed, text)
				}
			}
		}
	}
}
