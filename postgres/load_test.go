package postgres

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/storage"
)

// numbered is the record seq of a session of a load test. Its text names the
// session and the number.
func numbered(id furl.SessionID, seq furl.Seq) furl.Record {
	text := fmt.Sprintf("%s/%d %s", id, seq, strings.Repeat("words ", 50+int(seq)%100))
	m := furl.TextMessage(furl.RoleUser, text)
	m.Raw = []byte(`{"role":"user","content":"` + text + `"}`)
	m.Seal()
	return furl.Record{Seq: seq, Parent: seq - 1, At: time.Unix(int64(seq), 0), Body: m, Chain: m.Digest}
}

// load appends to its own sessions and records what was acknowledged.
type load struct {
	s     *Store
	acks  atomic.Int64
	mu    sync.Mutex
	acked map[furl.SessionID]furl.Seq
}

// run appends to one session, one to three records at once, until ctx ends.
func (l *load) run(ctx context.Context, id furl.SessionID, acked func(furl.Seq)) error {
	key := furl.SessionKey{Tenant: "load", Session: id}
	next := furl.Seq(1)
	for r, err := range l.s.Read(ctx, key, 0) {
		if err != nil {
			break // no such session yet
		}
		next = r.Seq + 1
	}
	for {
		var b storage.Batch
		for range 1 + next%3 {
			b.Records = append(b.Records, numbered(id, next))
			next++
		}
		if ctx.Err() != nil {
			return nil
		}
		// A started append is finished even if the test ends.
		if err := l.s.Append(context.WithoutCancel(ctx), key, b); err != nil {
			return err
		}
		acked(next - 1)
	}
}

// start runs n sessions. The returned function stops them and waits.
func (l *load) start(t *testing.T, n int) (stop func()) {
	t.Helper()
	l.acked = map[furl.SessionID]furl.Seq{}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range n {
		id := furl.SessionID(fmt.Sprint("load-", i))
		all.Go(func() {
			err := l.run(ctx, id, func(seq furl.Seq) {
				l.mu.Lock()
				l.acked[id] = seq
				l.mu.Unlock()
				l.acks.Add(1)
			})
			if err != nil {
				t.Errorf("session %s: %v", id, err)
			}
		})
	}
	return sync.OnceFunc(func() { cancel(); all.Wait() })
}

// more waits until n more appends have been acknowledged.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	want, deadline := l.acks.Load()+n, time.Now().Add(time.Minute)
	for l.acks.Load() < want {
		if time.Now().After(deadline) {
			t.Fatal("no appends are acknowledged any more")
		}
		time.Sleep(time.Millisecond)
	}
}

// kept fails the test unless every session has all acknowledged records, each
// once and in its place.
func kept(t *testing.T, s *Store, acked map[furl.SessionID]furl.Seq) {
	t.Helper()
	for id, last := range acked {
		records := read(t, s, furl.SessionKey{Tenant: "load", Session: id}, 0)
		if furl.Seq(len(records)) < last {
			t.Errorf("session %s has %d records, %d were acknowledged", id, len(records), last)
		}
		for i, r := range records {
			if want := numbered(id, furl.Seq(i)+1); encoded(t, r) != encoded(t, want) {
				t.Fatalf("session %s: record %d is not the one that was appended", id, i+1)
			}
		}
	}
	healthy(t, s)
}

// appendForever is the process that TestKilledClient kills: it appends to
// four sessions and prints what was acknowledged.
func appendForever(url string) {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s, err := Open(context.Background(), url, &Options{MaxConns: 4})
	if err != nil {
		fail(err)
	}
	l := &load{s: s}
	for i := range 4 {
		id := furl.SessionID(fmt.Sprint("killed-", i))
		go func() {
			fail(l.run(context.Background(), id, func(seq furl.Seq) { fmt.Printf("%s %d\n", id, seq) }))
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // the end of the test ends it too
	os.Exit(1)
}

// When a process is killed at any moment under load, every acknowledged
// record exists, no record is torn, and the next process continues.
func TestKilledClient(t *testing.T) {
	url := pgtest.URL(t)
	s := reopen(t, url, nil)
	acked := map[furl.SessionID]furl.Seq{}
	for round := range rounds(t, 15) {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), childEnv+"="+url)
		cmd.Stderr = os.Stderr
		hold, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		// After a random number of appends, and once before any.
		for n := 0; lines.Scan(); n++ {
			var id furl.SessionID
			var seq furl.Seq
			if _, err := fmt.Sscan(lines.Text(), &id, &seq); err != nil {
				t.Fatalf("the process printed %q", lines.Text())
			}
			acked[id] = max(acked[id], seq)
			if n == round*7%50 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = hold.Close()
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the process ended by itself: %v", err)
		}
	}
	if len(acked) != 4 {
		t.Errorf("appends to %d sessions were acknowledged, want 4", len(acked))
	}
	kept(t, s, acked)
}

// rounds is how often a process is killed: n times, or FURL_KILL_ROUNDS.
func rounds(t *testing.T, n int) int {
	t.Helper()
	if text := os.Getenv("FURL_KILL_ROUNDS"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatalf("FURL_KILL_ROUNDS: %v", err)
		}
	}
	return n
}

// When the server is killed at any moment under load, appends wait until it
// is back, and no acknowledged record is lost.
func TestKilledServer(t *testing.T) {
	server := pgtest.Start(t)
	l := &load{s: reopen(t, server.URL("postgres"), &Options{Retry: time.Minute})}
	stop := l.start(t, 8)
	defer stop()
	for round := range 3 {
		l.more(t, int64(20+30*round))
		if round%2 == 0 {
			server.Crash()
		} else if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	l.more(t, 20)
	stop()
	kept(t, l.s, l.acked)
}

// When the server is lost and its synchronous standby takes over, appends
// continue there, and no acknowledged record is lost.
func TestFailOver(t *testing.T) {
	primary := pgtest.Start(t)
	standby := primary.Standby(t)
	l := &load{s: reopen(t, primary.URL("postgres", standby), &Options{Retry: time.Minute})}
	stop := l.start(t, 8)
	defer stop()
	l.more(t, 100)
	primary.Crash()
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	l.more(t, 100)
	stop()
	kept(t, l.s, l.acked)
}
