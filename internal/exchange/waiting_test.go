package exchange_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// lateProvider answers when it is told to.
type lateProvider struct {
	asked  sync.WaitGroup
	answer chan struct{} // closed: it answers
}

func (p *lateProvider) post(status int) exchange.SendOptions {
	p.asked.Add(1)
	return exchange.SendOptions{Post: func(context.Context, []byte) (*http.Response, error) {
		p.asked.Done()
		<-p.answer
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	}}
}

// onDisk is a store as furl serve has it.
func onDisk(t *testing.T) storage.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "furl.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	store := encrypted.New(s, nil)
	t.Cleanup(func() { store.Close() })
	return store
}

// SQLite has one writer: requests that wait for their provider must not have it. What they will
// append is prepared meanwhile, and what the provider refuses is nowhere.
func TestLateProvidersDelayNoAppend(t *testing.T) {
	const waiting = 200
	store := onDisk(t)
	all := reopen(t, store, session.Options{})
	p := &lateProvider{answer: make(chan struct{})}
	var sends sync.WaitGroup
	want := []furl.SessionID{"other"}
	for i := range waiting {
		c := newClient(t, all, fmt.Sprint("late", i))
		c.history = nil
		c.add(furl.RoleUser, text(fmt.Sprint("question ", i, strings.Repeat(" of many words", 500))))
		c.hints.Session = furl.SessionID(fmt.Sprint("late-", i))
		_, x := c.ask()
		status := http.StatusOK
		if i%4 == 3 {
			status = http.StatusForbidden
		} else {
			want = append(want, c.hints.Session)
		}
		o := p.post(status)
		sends.Go(func() {
			resp, err := x.Send(t.Context(), o)
			if err != nil || resp.StatusCode != status || x.Err != nil {
				t.Errorf("request %d: %v, %v", i, err, x.Err)
				return
			}
			resp.Body.Close()
		})
	}
	p.asked.Wait()

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var records []furl.Record
	for i := range 20 {
		records = append(records, furl.Record{Seq: furl.Seq(i + 1), Parent: furl.Seq(i), Body: furl.TextMessage(furl.RoleUser, fmt.Sprint("line ", i))})
		if err := store.Append(ctx, furl.SessionKey{Session: "other"}, storage.Batch{Records: records[i:]}); err != nil {
			t.Fatalf("while %d requests wait: %v", waiting, err)
		}
	}
	if got := stored(t, store); !slices.Equal(got, want[:1]) {
		t.Errorf("%d sessions are stored before a provider has accepted a request", len(got)-1)
	}
	close(p.answer)
	sends.Wait()
	slices.Sort(want)
	if got := stored(t, store); !slices.Equal(got, want) {
		t.Errorf("%d sessions are stored, want %d", len(got), len(want))
	}
}

// stored returns the sessions of a store.
func stored(t *testing.T, store storage.Store) (ids []furl.SessionID) {
	t.Helper()
	for info, err := range store.Sessions(t.Context(), "", storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.Session)
	}
	slices.Sort(ids)
	return ids
}

// What a request appends is prepared before its provider answers. If the session has changed
// since, it is made again.
func TestSessionChangesWhileProviderIsLate(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, c *client, s *session.Session){
		"nothing": func(*testing.T, *client, *session.Session) {},
		"title": func(t *testing.T, _ *client, s *session.Session) {
			if err := s.Set(t.Context(), "title", "by a person"); err != nil {
				t.Error(err)
			}
		},
		"another request": func(_ *testing.T, c *client, _ *session.Session) {
			other := *c
			other.name, other.history = "other", slices.Clone(c.history[:1])
			other.send(text("another reply"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := onDisk(t)
			all := reopen(t, store, session.Options{})
			c := newClient(t, all, "c")
			c.hints.Session = "s"
			c.step()
			s, err := all.Open(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			_, x := c.ask()
			p := &lateProvider{answer: make(chan struct{})}
			o, done := p.post(http.StatusOK), make(chan struct{})
			go func() {
				defer close(done)
				resp, err := x.Send(t.Context(), o)
				if err != nil || x.Err != nil {
					t.Error(err, x.Err)
					return
				}
				resp.Body.Close()
			}()
			p.asked.Wait()
			change(t, c, s)
			close(p.answer)
			<-done
			c.reply(x, text("the end"))

			again, err := reopen(t, store, session.Options{}).Open(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(path(t, again), ""); got != "uaua" {
				t.Errorf("the path is %s", got)
			}
			if title := again.Meta().Title; (title == "by a person") != (name == "title") {
				t.Errorf("the title is %q", title)
			}
		})
	}
}
