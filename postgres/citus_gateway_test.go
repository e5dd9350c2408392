package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// A gateway loses a worker of its store. Requests of sessions on other nodes are recorded as
// before, with encryption and without: the keys of tenants are read without the lost node.
func TestCitusGatewayLosesNode(t *testing.T) {
	key, err := encrypted.ParseMaster(encrypted.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, master := range map[string]encrypted.Master{"plain": nil, "encrypted": key} {
		t.Run(name, func(t *testing.T) {
			c, s := onCluster(t, Options{Retry: 15 * time.Second})
			sessions, err := session.New(encrypted.New(s, master), &session.Options{Policy: "none"})
			if err != nil {
				t.Fatal(err)
			}
			provider := httptest.NewServer(sim.New(&sim.Options{NoAuth: true, Player: sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
				return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindText, Text: "Done."}}}, nil
			})}))
			defer provider.Close()
			up, err := upstream.New(provider.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer up.Close()
			g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			ask := func(id furl.SessionID, messages ...string) (note string, took time.Duration) {
				t.Helper()
				var list []any
				for i, words := range messages {
					list = append(list, map[string]any{"role": []string{"user", "assistant"}[i%2], "content": words})
				}
				body, _ := json.Marshal(map[string]any{"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": list})
				r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(string(body)))
				r.Host = "localhost"
				for name, value := range map[string]string{"X-Furl-Session": string(id), "X-Api-Key": "k", "Anthropic-Version": "2023-06-01", "Content-Type": "application/json"} {
					r.Header.Set(name, value)
				}
				w := httptest.NewRecorder()
				began := time.Now()
				g.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					t.Fatalf("session %s: %d %s", id, w.Code, w.Body)
				}
				return w.Header().Get("X-Furl-Note"), time.Since(began)
			}
			var ids []furl.SessionID
			for i := range 12 {
				ids = append(ids, furl.SessionID(fmt.Sprint("talk-", i)))
				if note, _ := ask(ids[i], "Go."); note != "" {
					t.Fatal(note)
				}
			}
			g.Wait(t.Context())
			c.Kill(t, pgtest.Worker2)
			back := sync.OnceFunc(func() { c.Up(t, pgtest.Worker2) })
			defer back()
			lost, others := furl.SessionID(""), 0
			for _, id := range ids {
				if nodeOf(t, s, id) == c.Address(pgtest.Worker2) {
					lost = id
				}
			}
			if lost == "" {
				t.Skip("no session is on the lost node")
			}
			records := talk(t, "x", 1, 10)
			ended := make(chan struct{})
			go func() { // its node is lost: the store learns of it
				defer close(ended)
				_ = s.Append(t.Context(), furl.SessionKey{Session: lost}, storage.Batch{Records: records})
			}()
			time.Sleep(1500 * time.Millisecond) // keys that were read before are old
			for _, id := range ids {
				if nodeOf(t, s, id) == c.Address(pgtest.Worker2) {
					continue
				}
				others++
				if note, took := ask(id, "Go.", "Done.", "And now?"); note != "" || took > 5*time.Second {
					t.Errorf("a request of a session on another node took %v: %s", took, note)
				}
			}
			if others == 0 {
				t.Error("all sessions are on the lost node")
			}
			back()
			<-ended
			g.Wait(t.Context())
		})
	}
}
