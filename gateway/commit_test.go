package gateway_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// guarded is a store whose appends go through a guard first.
type guarded struct {
	storage.Store
	guard func(furl.SessionKey, storage.Batch) error
}

func (s *guarded) Append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	if s.guard != nil {
		if err := s.guard(key, b); err != nil {
			return err
		}
	}
	return s.Store.Append(ctx, key, b)
}

// grace is how long something that must not happen yet is given to happen all
// the same: too little of it hides a defect, and never makes up one.
const grace = 100 * time.Millisecond

// impatient has the clients' answers end when they would, and not when they are
// recorded.
func (st *fixture) impatient(t *testing.T) {
	st.front = httptest.NewServer(st.gateway)
	t.Cleanup(st.front.Close)
}

// brings reports whether a batch holds words of the client.
func brings(b storage.Batch) bool {
	for _, r := range b.Records {
		if m, ok := r.Body.(*furl.Message); ok && m.Role == furl.RoleUser {
			return true
		}
	}
	return false
}

// ahead is a conversation of two questions through a gateway on a guarded
// store, of which the first is answered.
func ahead(t *testing.T, first string) (*fixture, *guarded, *agent) {
	t.Helper()
	store := &guarded{Store: inmem.New()}
	t.Cleanup(func() { store.Close() })
	st := newFixtureOn(t, store, &sim.Options{Player: script(t, "-- 1 --\ntext: One.\n-- 2 --\ntext: Two.\n-- 3 --\ntext: Three.\n")}, nil, nil)
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5", stream: true}
	a.say(first)
	a.step(t, st, output)
	a.say("second question")
	return st, store, a
}

// What a request brings is stored once the provider has accepted it, and the
// client gets nothing of the answer before that is done.
func TestStoredBeforeTheAnswer(t *testing.T) {
	st, store, a := ahead(t, "first question")
	st.impatient(t)
	storing, asked := make(chan struct{}), make(chan struct{})
	store.guard = func(_ furl.SessionKey, b storage.Batch) error {
		if brings(b) {
			close(storing)
			<-asked
		}
		return nil
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		a.step(t, st, output)
	}()
	<-storing
	for len(st.sim.Requests()) < 2 { // the provider has accepted it before it is stored
		select {
		case <-answered:
			t.Error("the client was answered before its request was stored")
			return
		default:
			runtime.Gosched()
		}
	}
	select {
	case <-answered:
		t.Error("the client was answered before its request was stored")
	case <-time.After(grace):
	}
	close(asked)
	<-answered
}

// Where the request cannot be stored, its client has the answer all the same,
// and the next request brings what is missing.
func TestStoredInVain(t *testing.T) {
	st, store, a := ahead(t, "first question")
	store.guard = func(furl.SessionKey, storage.Batch) error { return errors.New("no space left") }
	resp, answer := st.post(t, a.path(), a.body())
	if note := resp.Header.Get("X-Furl-Note"); resp.StatusCode != http.StatusOK || !strings.Contains(note, "recording or planning failed") || strings.Contains(note, "no space left") || resp.Header.Get("X-Furl-Session") != "" {
		t.Errorf("status %d, %v", resp.StatusCode, resp.Header)
	}
	if bytes.Count(answer, []byte("Two.")) != 1 {
		t.Errorf("the client has\n%s", answer)
	}
	store.guard = nil
	a.take(t, answer, output)
	a.say("third question")
	a.step(t, st, output)
	if n := len(st.sim.Requests()); n != 3 {
		t.Errorf("the provider was asked %d times", n)
	}
	if got := spoken(t, st); got != "first question|One.|second question|Two.|third question|Three." {
		t.Errorf("the transcript is %q", got)
	}
}

// slowDisk is a store that waits for its disk after each commit.
type slowDisk struct {
	storage.Store
	wait func() error
}

func (s *slowDisk) AppendEarly(ctx context.Context, key furl.SessionKey, b storage.Batch, committed func()) error {
	if err := s.Append(ctx, key, b); err != nil {
		return err
	}
	committed()
	return s.wait()
}

// What is committed outlives the process, and no client waits for the disk
// after that. A disk that fails then is counted, and loses nothing.
func TestAnsweredBeforeTheDisk(t *testing.T) {
	release := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Add(4) // requests and answers
	store := &slowDisk{inmem.New(), func() error {
		defer waiting.Done()
		<-release
		return errors.New("the disk is gone")
	}}
	defer store.Close()
	st := newFixtureOn(t, store, &sim.Options{Player: script(t, "-- 1 --\ntext: One.\n-- 2 --\ntext: Two.\n")}, nil, nil)
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5", stream: true}
	for _, words := range []string{"first question", "second question"} {
		a.say(words)
		a.step(t, st, output)
	}
	if got := spoken(t, st); got != "first question|One.|second question|Two." {
		t.Errorf("the transcript is %q", got)
	}
	close(release)
	waiting.Wait()
	for st.sessions.Stats().StoreErrors < 4 {
		runtime.Gosched()
	}
	if got := spoken(t, st); got != "first question|One.|second question|Two." {
		t.Errorf("the transcript is %q", got)
	}
}

// spoken is what is said in the newest session.
func spoken(t *testing.T, st *fixture) string {
	t.Helper()
	s, err := st.sessions.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the session: %v %v", problems, err)
	}
	var words []string
	for _, m := range s.View("claude-sonnet-4-5").Messages {
		for i := range m.Blocks {
			words = append(words, cmp.Or(m.Blocks[i].Text, m.Blocks[i].Block.Text))
		}
	}
	return strings.Join(words, "|")
}

// Where another process hides something in the session while the provider is
// asked, the provider is asked again for what is then right, and the client gets
// that answer alone.
func TestStoredAfterAnother(t *testing.T) {
	for _, hides := range []bool{false, true} {
		st, store, a := ahead(t, strings.Repeat("first question ", 100))
		store.guard = func(key furl.SessionKey, b storage.Batch) error {
			if !brings(b) {
				return nil
			}
			store.guard = nil
			for len(st.sim.Requests()) < 2 { // its answer is whole
				runtime.Gosched()
			}
			other, err := session.New(store.Store, nil)
			if err != nil {
				return err
			}
			s, err := other.Open(t.Context(), key.Session)
			if err != nil {
				return err
			}
			if hides {
				_, err = s.Reduce(t.Context(), session.ReduceOptions{Stage: hideFirst{}})
			} else {
				err = s.Hold(t.Context(), furl.Pin, furl.Span{First: furl.Pos{Msg: 1}, Last: furl.Pos{Msg: 1}})
			}
			return err
		}
		resp, answer := st.post(t, a.path(), a.body())
		if note := resp.Header.Get("X-Furl-Note"); note != "" {
			t.Errorf("hides=%v: %s", hides, note)
		}
		a.take(t, answer, output)
		list := st.sim.Requests()
		want := 2
		if hides {
			want = 3
		}
		if len(list) != want {
			t.Fatalf("hides=%v: the provider was asked %d times", hides, len(list))
		}
		if last := list[want-1]; bytes.Contains(last.Body, []byte("first question")) == hides {
			t.Errorf("hides=%v: the provider was asked\n%s", hides, last.Body)
		}
		said := map[bool]string{false: "Two.", true: "Three."}[hides]
		if strings.Count(string(answer), said) != 1 || hides && bytes.Contains(answer, []byte("Two.")) {
			t.Errorf("hides=%v: the client has\n%s", hides, answer)
		}
		if got := spoken(t, st); !strings.HasSuffix(got, "|second question|"+said) {
			t.Errorf("hides=%v: the transcript is %q", hides, got)
		}
	}
}

// hideFirst shows less of the first message.
type hideFirst struct{}

func (hideFirst) Name() string { return "first" }

func (hideFirst) Reduce(context.Context, *furl.View, furl.Budget) (*furl.Reduction, error) {
	return &furl.Reduction{Stage: "first", Reason: "test", Items: []furl.Item{{
		Spans: []furl.Span{furl.Span{First: furl.Pos{Msg: 1}, Last: furl.Pos{Msg: 1}}}, Show: furl.In{Text: "(less)", Tokens: 3},
	}}}, nil
}

// The client's answer ends before it is recorded; whoever looks at the session,
// and a request that goes on from the answer, wait for that.
func TestRecordedAfterTheAnswer(t *testing.T) {
	st, store, a := ahead(t, "first question")
	st.impatient(t)
	storing, release := make(chan struct{}), make(chan struct{})
	store.guard = func(_ furl.SessionKey, b storage.Batch) error {
		if !brings(b) {
			close(storing)
			<-release
		}
		return nil
	}
	_, answer := st.post(t, a.path(), a.body())
	<-storing
	a.take(t, answer, output)
	a.say("third question")
	var work sync.WaitGroup
	over := make(chan struct{}, 2)
	work.Go(func() {
		if _, got := st.post(t, a.path(), a.body()); !bytes.Contains(got, []byte("Three.")) {
			t.Errorf("the third answer is %s", got)
		}
		over <- struct{}{}
	})
	work.Go(func() {
		resp, err := st.front.Client().Get(st.front.URL + "/furl/v1/sessions/latest/records")
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Contains(got, []byte("Two.")) {
			t.Errorf("the records are %s, %v", got, err)
		}
		over <- struct{}{}
	})
	select {
	case <-over:
		t.Error("one of the two did not wait")
	case <-time.After(grace):
	}
	store.guard = nil
	close(release)
	work.Wait()
	st.gateway.Close()
	if got := spoken(t, st); got != "first question|One.|second question|Two.|third question|Three." {
		t.Errorf("the transcript is %q", got)
	}
}
