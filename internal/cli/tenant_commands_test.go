package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

const plantedSecret = "sk-ant-REDACTME0123456789abcdefghij"

// operator is the command line of somebody who operates a gateway with tenants, with an
// audit log.
type operator struct {
	t    *testing.T
	log  string
	seen int // lines of the log
}

// newOperator makes a store with sessions of several tenants. The first message of each
// has a secret.
func newOperator(t *testing.T, sessions map[furl.Tenant][]furl.SessionID) *operator {
	dir := t.TempDir()
	t.Setenv("FURL_DATA", dir)
	t.Setenv("FURL_STORE", filepath.Join(dir, "furl.db"))
	t.Setenv("FURL_CONFIG", filepath.Join(dir, "furl.yaml"))
	config := "audit: {file: audit.jsonl, required: true}\nretention: {age: 1d}\nencryption: {key_file: master.key}\n"
	for name, text := range map[string]string{"furl.yaml": config, "master.key": furlOutput(t, 0, "encryption", "new-key")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store, err := sqlite.Open(os.Getenv("FURL_STORE"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for tenant, ids := range sessions {
		for _, id := range ids {
			records := furltest.Session(furltest.SessionOptions{Messages: 1})[:1]
			records[0].Body = sessiontest.Message(t, furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "the key is " + plantedSecret})
			if err := store.Append(t.Context(), furl.SessionKey{Tenant: tenant, Session: id}, storage.Batch{Records: records, Meta: &storage.Meta{Title: "title of " + string(id)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return &operator{t: t, log: filepath.Join(dir, "audit.jsonl")}
}

// furlOutput returns the output of a command.
func furlOutput(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if got := Main(args, nil, strings.NewReader(""), &out, &out); got != code {
		t.Errorf("furl %s: exit code %d, want %d:\n%s", strings.Join(args, " "), got, code, &out)
	}
	return out.String()
}

// run runs a command, whose output must contain a text.
func (o *operator) run(code int, want string, args ...string) {
	o.t.Helper()
	if out := furlOutput(o.t, code, args...); !strings.Contains(out, want) {
		o.t.Errorf("furl %s says\n%swant %q", strings.Join(args, " "), out, want)
	}
}

// audited compares the new lines of the audit log, without the ones before an access. Each
// is "action tenant/session outcome".
func (o *operator) audited(want ...string) {
	o.t.Helper()
	data, err := os.ReadFile(o.log)
	if err != nil {
		o.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	var got []string
	for _, line := range lines[o.seen:] {
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			o.t.Fatal(err)
		}
		if e.Outcome != audit.Allowed {
			got = append(got, fmt.Sprintf("%s %s/%s %s", e.Action, e.Tenant, e.Session, e.Outcome))
		}
	}
	slices.Sort(got) // sessions of one moment have no order
	slices.Sort(want)
	if o.seen = len(lines); !slices.Equal(got, want) {
		o.t.Errorf("the audit log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The operator can read, export, redact and delete the sessions of a tenant. The audit log
// names each session that was changed or deleted.
func TestOperatorOfTenants(t *testing.T) {
	o := newOperator(t, map[furl.Tenant][]furl.SessionID{"": {"s1"}, "ann": {"a1", "a2", "a3", "a4"}})
	o.run(1, "no such session", "show", "a1")
	o.audited("read local/a1 not_found")
	o.run(0, "the key is", "show", "a1", "--tenant", "ann")
	o.run(0, "the key is", "get", "a1", "1.0", "--tenant", "ann")
	o.run(0, "the key is", "export", "a1", "--tenant", "ann")
	o.run(0, "", "context", "a1", "--tenant", "ann")
	o.audited("read ann/a1 done", "read ann/a1 done", "export ann/a1 done", "read ann/a1 done")

	o.run(0, "redacted a1", "redact", "a1", "--tenant", "ann", "--yes")
	o.run(0, "redacted s1", "redact", "--yes")
	o.audited("change ann/a1 done", "change local/s1 done", "change ann/a2 done", "change ann/a3 done", "change ann/a4 done", "change / done")

	o.run(0, "would delete in total 2 sessions", "delete", "a1", "a2", "--tenant", "ann", "--dry-run")
	o.run(0, "deleted in total 2 sessions", "delete", "a1", "a2", "--tenant", "ann", "--yes")
	o.audited("delete ann/ done", "delete ann/a1 done", "delete ann/a2 done", "delete ann/ done")
	o.run(2, "--all takes no sessions", "delete", "a3", "--all")
	o.run(0, "deleted in total 1 session", "delete", "a3", "--tenant", "ann", "--yes")
	o.run(0, "deleted in total 1 session", "delete", "--tenant", "ann", "--all", "--yes")
	o.audited("delete local/a3 failed", "delete ann/a3 done", "delete ann/a4 done", "delete ann/ done")
	o.run(0, "No sessions.", "delete", "--tenant", strings.Repeat("0f", 16), "--all", "--yes")
	o.run(0, "s1", "sessions")
}

// A tenant that is named by a person can be held before it has sessions. The beginning of a
// hash cannot, since it is more likely a mistake.
func TestTenantNamedOrNew(t *testing.T) {
	o := newOperator(t, map[furl.Tenant][]furl.SessionID{"ann": {"a1", "a2"}})
	o.run(2, `unknown tenant "41d0"`, "hold", "--tenant", "41d0", "--reason", "case")
	o.run(2, `unknown tenant "two words"`, "hold", "--tenant", "two words", "--reason", "case")
	o.run(2, `unknown tenant "bob"`, "tenants", "move", "ann", "bob")
	o.run(0, "holds all sessions of tenant bob", "hold", "--tenant", "bob", "--reason", "case")
	o.run(0, "holds all sessions of tenant ann", "hold", "--tenant", "ann", "--reason", "case")
	o.run(0, "kept a1, which is under legal hold", "delete", "--tenant", "ann", "--all", "--yes")
}

// What a command does to several tenants or sessions has a line for each, and the lines
// about a tenant name it.
func TestAuditNamesTenants(t *testing.T) {
	hash := furl.Tenant(strings.Repeat("0123456789abcdef", 2))
	o := newOperator(t, map[furl.Tenant][]furl.SessionID{"": {"s1", "s2"}, "ann": {"a1"}, hash: {"h1"}})
	o.run(0, "moved 1 session", "tenants", "move", "0123", "ann")
	o.run(0, "moved 2 sessions", "tenants", "move", "local", "ann")
	o.audited("change "+string(hash)+"/h1 done", "change "+string(hash)+"/ done", "change local/s1 done", "change local/s2 done", "change local/ done")
	o.run(0, "", "encryption", "enable")
	o.run(0, "1 tenant", "encryption", "rotate")
	o.run(0, "holds all", "hold", "--tenant", "ann", "--reason", "case")
	o.run(1, "under legal hold", "encryption", "destroy", "ann", "--yes")
	o.audited("operate / done", "operate ann/ done", "operate / done", "hold ann/ done", "delete ann/ refused")
	if data, err := os.ReadFile(o.log); err != nil || !strings.Contains(string(data), `"furl tenants move 0123 ann"`) {
		t.Errorf("the log does not name the new tenant: %v\n%s", err, data)
	}
}

// A hold on one session, or a tenant whose keys were destroyed, does not keep secrets of
// other sessions from being redacted.
func TestRedactAroundHolds(t *testing.T) {
	o := newOperator(t, map[furl.Tenant][]furl.SessionID{"": {"s1", "s2"}, "bob": {"b1"}})
	o.run(0, "", "encryption", "enable")
	o.run(0, "holds", "hold", "s1", "--reason", "case")
	o.run(0, "Destroyed", "encryption", "destroy", "bob", "--yes")
	o.run(0, "kept s1, which is under legal hold\nnot searched: 1 session whose encryption keys were destroyed", "redact", "--dry-run")
	o.run(0, "redacted s2: 1 text", "redact", "--yes")
	o.run(0, plantedSecret, "show", "s1")
	o.run(0, "[redacted]", "show", "s2")
	o.run(1, "under legal hold", "redact", "s1", "--yes")
	o.run(0, "deleted b1", "delete", "--tenant", "bob", "--all", "--yes")
}

// The beginning of a name stands for a tenant if the name is a hash. Other names can begin
// with the name of somebody else.
func TestTenantNamed(t *testing.T) {
	hash := strings.Repeat("ab", 16)
	newOperator(t, map[furl.Tenant][]furl.SessionID{"annette": {"a1"}, furl.Tenant(hash): {"h1"}})
	store, err := sqlite.Open(os.Getenv("FURL_STORE"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for word, want := range map[string]string{"annette": "annette", "ann": "", "abab": hash, hash: hash, "local": "local", "": ""} {
		got, err := tenants.Named(t.Context(), store, word)
		if word := tenants.Word(got); want == "" && err == nil || want != "" && cmp.Or(word, tenants.LocalName) != want {
			t.Errorf("%q is %q, %v; want %q", word, got, err, want)
		}
	}
}
