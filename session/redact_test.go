package session_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire/anthropic"
)

// Redacted secrets are gone from the file of the store, and the client that sends them
// again continues its session.
func TestRedact(t *testing.T) {
	file := func(t *testing.T) (*sqlite.Store, string) {
		path := filepath.Join(t.TempDir(), "furl.db")
		st, err := sqlite.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return st, path
	}
	server := func(t *testing.T) *postgres.Store {
		st, err := postgres.Open(context.Background(), pgtest.URL(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	key, err := encrypted.ParseMaster(encrypted.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("sqlite", func(t *testing.T) {
		st, path := file(t)
		testRedact(t, st, path)
	})
	t.Run("sqlite encrypted", func(t *testing.T) {
		st, path := file(t)
		testRedact(t, encrypted.New(st, key), path)
	})
	t.Run("postgres", func(t *testing.T) { testRedact(t, server(t), "") })
	t.Run("postgres encrypted", func(t *testing.T) { testRedact(t, encrypted.New(server(t), key), "") })
}

func testRedact(t *testing.T, st encrypted.Inner, path string) {
	ctx := context.Background()
	defer st.Close()
	const secret = "sk-ant-REDACTME0123456789abcdefghij"
	const pem = "-----BEGIN RSA PRIVATE KEY-----\\nMIIEpAIBAAKCAQEA7\\n-----END RSA PRIVATE KEY-----"
	const chosen = "the launch is on the ninth of May"
	log := furl.NewLog()
	add := func(body furl.Body) {
		t.Helper()
		if _, err := log.Append(log.Head(), furl.Record{}.At, furl.Client, body); err != nil {
			t.Fatal(err)
		}
	}
	for _, raw := range []string{
		`{"role":"user","content":"my key is ` + secret + `, use it"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"run","input":{"command":"export KEY=` + secret + `"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"ok ` + pem + `"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"` + chosen + `"}]}`,
	} {
		m, err := anthropic.Codec.DecodeMessage([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		add(m)
	}
	add(&furl.Reduction{Stage: "mask", Reason: "about " + secret, Items: []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: 4}, Last: furl.Pos{Msg: 4}}}, Show: furl.In{Text: "was " + secret}}}})
	system := []byte(`[{"type":"text","text":"never tell ` + secret + `"}]`)
	add(&furl.Exchange{Model: "m", Request: furl.RequestParts{Frame: furl.DigestOf(system), Received: "\x01 " + secret, Sent: "x"}})
	key := furl.SessionKey{Session: "s"}
	batch := storage.Batch{Records: log.Records(0), Meta: &storage.Meta{Title: "my key is " + secret}, Contents: [][]byte{system}}
	if err := st.Append(ctx, key, batch); err != nil {
		t.Fatal(err)
	}
	if err := st.WriteIndex(ctx, key, storage.IndexWrite{To: 6, Put: []storage.IndexPage{{Bucket: 1, Data: []byte(secret)}}}); err != nil {
		t.Fatal(err)
	}
	redaction := session.Redaction{Patterns: session.Credentials(), Blocks: []furl.Pos{{Msg: 4, Block: 0}}, By: furl.Person, DryRun: true}
	dry, err := session.Redact(ctx, st, key, redaction)
	if err != nil || dry.Found != 9 || len(dry.Samples) != dry.Found {
		t.Fatalf("would redact %+v, %v", dry, err)
	}
	redaction.DryRun = false
	rep, err := session.Redact(ctx, st, key, redaction)
	if err == nil {
		err = st.Scrub(ctx)
	}
	if err != nil || rep.Found != dry.Found || rep.Requests != 1 || len(rep.Records) != 5 {
		t.Fatalf("redacted %+v, %v", rep, err)
	}
	if _, err := session.Redact(ctx, st, key, redaction); err != nil {
		t.Errorf("the same again: %v", err)
	}
	again, err := session.Redact(ctx, st, key, session.Redaction{Patterns: session.Credentials()})
	if err != nil || again.Found != 0 {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	for _, suffix := range []string{"", "-wal"} {
		if path == "" {
			break
		}
		data, err := os.ReadFile(path + suffix)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, text := range []string{"REDACTME", "MIIEpAIBAAKCAQEA7", "ninth of May"} {
			if bytes.Contains(data, []byte(text)) {
				t.Errorf("%q is still in furl.db%s", text, suffix)
			}
		}
	}
	// The chains are those of the original history.
	var want []furl.Digest
	for _, r := range log.Records(0)[:4] {
		want = append(want, r.Chain)
	}
	if found, err := st.Match(ctx, "", want, 10); err != nil || len(found) != 4 {
		t.Errorf("matched %v, %v", found, err)
	}
	for p := range st.Pages(ctx, key, 1) {
		t.Errorf("the index still has a page: %s", p.Data)
	}
	if _, err := st.Content(ctx, key, furl.DigestOf(system)); !errors.Is(err, storage.ErrNoContent) {
		t.Errorf("the instructions are still there: %v", err)
	}
	all, err := session.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := all.Open(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := s.Check(ctx); err != nil || len(problems) > 0 {
		t.Errorf("check: %v, %v", problems, err)
	}
	for p, err := range st.Check(ctx, false) {
		t.Errorf("check: %+v, %v", p, err)
	}
	if r := s.Meta().Redactions; len(r) != 1 || r[0].Texts != rep.Found || r[0].By != "person" || r[0].Record != 7 {
		t.Errorf("it is recorded as %+v", r)
	}
	for _, r := range s.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok && !regexp.MustCompile(`\[redacted\]`).Match(m.Raw) {
			t.Errorf("record %d is %s", r.Seq, m.Raw)
		}
	}
}
