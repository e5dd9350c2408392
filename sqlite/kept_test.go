package sqlite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

var newSessions = flag.Bool("new-sessions", false, "write testdata/sessions-N.db and .want of the newest format, if they are not there")

// Sessions that clients have used over earlier formats, with requests in all
// wire formats and reductions, are read as they were, and can be continued.
// TestFormats has records of all kinds; these have logs that make sense.
func TestKeptSessions(t *testing.T) {
	if *newSessions {
		writeSessions(t)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "sessions-*.db"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(strings.TrimSuffix(file, ".db") + ".want")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "furl.db")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			s := openAt(t, path, nil)
			defer closeStore(t, s)
			if diff := cmp.Diff(string(want), views(t, s)); diff != "" {
				t.Errorf("the sessions differ (-want +got):\n%s", diff)
			}
			sound(t, s)
			for _, format := range keptFormats {
				c := newKeptClient(t, s, format)
				c.resume()
				c.step(100)
			}
			sound(t, s)
			for _, format := range keptFormats {
				if err := s.Delete(t.Context(), key(string(format))); err != nil {
					t.Error(err)
				}
			}
			sound(t, s)
		})
	}
}

var keptFormats = []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}

func writeSessions(t *testing.T) {
	base := filepath.Join("testdata", fmt.Sprintf("sessions-%d", sqlite.Format))
	if _, err := os.Stat(base + ".db"); err == nil {
		t.Fatalf("%s.db is there already, and stays as it is", base)
	}
	s := openAt(t, base+".db", nil)
	for _, format := range keptFormats {
		c := newKeptClient(t, s, format)
		for n := range 12 {
			c.step(n)
		}
	}
	want := views(t, s)
	closeStore(t, s)
	if err := os.WriteFile(base+".want", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// views describes the sessions of a store by the messages and what is shown
// of them.
func views(t *testing.T, store storage.Store) string {
	t.Helper()
	all, err := session.New(store, &keptOptions)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, format := range keptFormats {
		s, err := all.Open(t.Context(), furl.SessionID(format))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "session %s: %d records, head %d\n", s.ID(), len(s.Records(0)), s.Head())
		for _, r := range s.Records(0) {
			fmt.Fprintf(&out, "  %s\n", describe(r))
			x, ok := r.Body.(*furl.Exchange)
			if !ok {
				continue
			}
			for i, name := range []string{"received", "sent"} {
				body, err := []func(context.Context, furl.Seq) ([]byte, error){s.ReceivedBody, s.SentBody}[i](t.Context(), r.Seq)
				if x.Request.Received == "" {
					if !errors.Is(err, rebuild.ErrNotRecorded) {
						t.Errorf("record %d: %v, want ErrNotRecorded", r.Seq, err)
					}
					continue
				}
				fmt.Fprintf(&out, "    %s: %d bytes %v, %v\n", name, len(body), furl.DigestOf(body), err)
			}
		}
		list, err := wire.For(format).EncodeView(s.View("m"))
		if err != nil {
			t.Fatal(err)
		}
		for _, elem := range list {
			fmt.Fprintf(&out, "  sees %s\n", elem)
		}
	}
	return out.String()
}

var keptOptions = session.Options{Policy: "tool-age", Window: 3000}

// keptClient is an agent that sends all it has with each request.
type keptClient struct {
	t       *testing.T
	all     *session.Sessions
	api     wire.API
	history []json.RawMessage
}

func newKeptClient(t *testing.T, store storage.Store, format furl.Format) *keptClient {
	t.Helper()
	all, err := session.New(store, &keptOptions)
	if err != nil {
		t.Fatal(err)
	}
	return &keptClient{t: t, all: all, api: wire.For(format)}
}

func (c *keptClient) id() furl.SessionID { return furl.SessionID(c.api.Format()) }

// resume takes the history from the store.
func (c *keptClient) resume() {
	c.t.Helper()
	s, err := c.all.Open(c.t.Context(), c.id())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range s.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			c.history = append(c.history, m.Raw)
		}
	}
}

func (c *keptClient) message(role furl.Role, blocks ...furl.Block) *furl.Message {
	c.t.Helper()
	m, err := c.api.NewMessage(role, blocks)
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

func (c *keptClient) body() []byte {
	list, err := json.Marshal(c.history)
	if err != nil {
		c.t.Fatal(err)
	}
	tool := c.api.Tool("read", "Read a file.", `{"type":"object"}`)
	system := `"system":[{"type":"text","text":"You help.","cache_control":{"type":"ephemeral"}}],"max_tokens":1000`
	switch c.api.Format() {
	case furl.FormatChat:
		system = `"stream":false`
	case furl.FormatResponses:
		system = `"instructions":"You help.","store":false`
	}
	return fmt.Appendf(nil, `{"model":"m",%s,"tools":[%s], %q : %s,"x":1.10}`, system, tool, c.api.List(), list)
}

// step is a question and an answer that calls a tool, or one without.
func (c *keptClient) step(n int) *exchange.Exchange {
	c.t.Helper()
	if len(c.history) == 0 && c.api.Format() == furl.FormatChat {
		c.history = append(c.history, json.RawMessage(`{"role":"system","content":"You help."}`))
	}
	if n%4 == 0 {
		c.history = append(c.history, c.message(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: fmt.Sprintf("Question %d", n)}).Raw)
	}
	req, err := c.api.DecodeRequest(c.body())
	if err != nil {
		c.t.Fatal(err)
	}
	x, err := exchange.Of(c.all).Begin(c.t.Context(), req, exchange.BeginOptions{Hints: protocol.Hints{Session: c.id()}})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := x.Commit(c.t.Context()); err != nil || x.Err != nil {
		c.t.Fatal(err, x.Err)
	}
	id := fmt.Sprintf("call_%d", n)
	blocks := []furl.Block{{Kind: furl.KindText, Text: fmt.Sprintf("Answer %d", n)}}
	if n%4 != 3 {
		blocks = append(blocks, furl.Block{Kind: furl.KindCall, ID: id, Name: "read", Args: fmt.Appendf(nil, `{"path":"file%d"}`, n)})
	}
	reply := &protocol.Reply{Format: c.api.Format(), ID: fmt.Sprintf("r%d", n), Model: "m", Usage: furl.Usage{Input: len(x.Body) / 4, Output: 20}, Complete: true}
	if c.api.Format() == furl.FormatResponses { // one item for each block
		for _, b := range blocks {
			reply.Messages = append(reply.Messages, c.message(furl.RoleAssistant, b))
		}
	} else {
		reply.Messages = append(reply.Messages, c.message(furl.RoleAssistant, blocks...))
	}
	if err := x.Done(c.t.Context(), reply); err != nil {
		c.t.Fatal(err)
	}
	for _, m := range reply.Messages {
		// The client writes what it got in its own way.
		c.history = append(c.history, bytes.Replace(m.Raw, []byte(`{`), []byte(`{ `), 1))
	}
	if n%4 == 3 {
		return x
	}
	results, err := c.api.ToolResults([]furl.Block{{Kind: furl.KindResult, ID: id, Text: strings.Repeat(fmt.Sprintf("line of file %d\n", n), 120)}})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, m := range results {
		c.history = append(c.history, m.Raw)
	}
	return x
}
