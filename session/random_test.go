package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

// TestSessionIsALog holds a session against a plain furl.Log over random
// operations, made by two processes with a cache that is dropped at any time:
// records and views are the same.
func TestSessionIsALog(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newTwin(t)
		rt.Repeat(map[string]func(*rapid.T){
			"user":    m.user,
			"step":    m.step,
			"reduce":  m.reduce,
			"policy":  m.policy,
			"lift":    m.lift,
			"open":    m.open,
			"hold":    m.hold,
			"rewind":  m.rewind,
			"drop":    func(*rapid.T) { m.procs[0].Drop() },
			"restart": func(*rapid.T) { m.procs[1] = m.process() },
			"":        m.check,
		})
	})
}

// twin is a session and the log that it should be.
type twin struct {
	t     *testing.T
	store storage.Store
	procs [2]*session.Sessions
	log   *furl.Log
	calls int
}

func newTwin(t *testing.T) *twin {
	m := &twin{t: t, store: inmem.New(), log: furl.NewLog()}
	m.procs = [2]*session.Sessions{m.process(), m.process()}
	msg := message(t, furl.RoleUser, text("hi"))
	s, err := m.procs[0].Import(t.Context(), "twin", furl.NewLog(), storage.Meta{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, []*furl.Message{msg})
	m.both(furl.Client, msg)
	return m
}

func (m *twin) process() *session.Sessions {
	return reopen(m.t, m.store, session.Options{Policy: "rolling-mask-5", Window: 5000, Now: still})
}

// session is what one of the processes has of it, which need not be new.
func (m *twin) session(rt *rapid.T) *session.Session {
	s, err := m.procs[rapid.IntRange(0, 1).Draw(rt, "process")].Open(context.Background(), "twin")
	if err != nil {
		rt.Fatal(err)
	}
	return s
}

func (m *twin) both(by furl.Actor, body furl.Body) {
	m.t.Helper()
	if _, err := m.log.Append(m.log.Head(), still(), by, body); err != nil {
		m.t.Fatal(err)
	}
}

func (m *twin) append(rt *rapid.T, role furl.Role, blocks ...furl.Block) {
	msg := message(m.t, role, blocks...)
	if _, err := m.session(rt).Append(context.Background(), msg); err != nil {
		rt.Fatal(err)
	}
	by := furl.Client
	if role == furl.RoleAssistant {
		by = furl.Upstream
	}
	m.both(by, msg)
}

func (m *twin) user(rt *rapid.T) {
	m.append(rt, furl.RoleUser, text(fmt.Sprint("words ", m.log.Len())))
}

func (m *twin) step(rt *rapid.T) {
	m.calls++
	id := fmt.Sprintf("toolu_%d", m.calls)
	m.append(rt, furl.RoleAssistant, call(id, "read", fmt.Sprintf(`{"n":%d}`, m.calls)))
	m.append(rt, furl.RoleUser, result(id, strings.Repeat(fmt.Sprint("line ", m.calls, " "), 50)))
}

func (m *twin) reduce(rt *rapid.T) {
	s := m.session(rt)
	st := rapid.SampledFrom([]policy.Stage{&policy.Mask{KeepResults: 1}, &policy.Truncate{}, &policy.Extract{}, &policy.Clip{}}).Draw(rt, "stage")
	before := s.Head()
	preview, err := s.Reduce(context.Background(), session.ReduceOptions{Stage: st, DryRun: true})
	if err != nil || s.Head() != before {
		rt.Fatalf("preview: head %d of %d, %v", s.Head(), before, err)
	}
	got, err := s.Reduce(context.Background(), session.ReduceOptions{Stage: st})
	if err != nil {
		rt.Fatal(err)
	}
	if len(got.Planned) != len(preview.Planned) || got.After != preview.After {
		rt.Fatalf("the preview (X3) said %+v, what came was %+v", preview, got)
	}
	for _, p := range got.Planned {
		r := s.Records(p.Record - 1)[0]
		m.both(furl.Person, r.Body)
	}
}

// policy applies a policy, and again: the second time nothing is hidden.
func (m *twin) policy(rt *rapid.T) {
	s := m.session(rt)
	o := session.ReduceOptions{Policy: rapid.SampledFrom(m.procs[0].Options().Policies.Names()).Draw(rt, "policy")}
	got, err := s.Reduce(context.Background(), o)
	if err != nil {
		rt.Fatal(err)
	}
	for _, p := range got.Planned {
		m.both(furl.Person, s.Records(p.Record - 1)[0].Body)
	}
	if again, err := s.Reduce(context.Background(), o); err != nil || len(again.Planned) > 0 {
		rt.Fatalf("%s has made %+v, and then %+v, %v", o.Policy, got, again, err)
	}
}

// addsUp checks that what is visible and what is hidden are what is recorded, block by block.
func (m *twin) addsUp(rt *rapid.T, s *session.Session) {
	st, v := m.log.State(), s.View("m")
	shown := make(map[furl.Pos]int)
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			if sb := &v.Messages[i].Blocks[j]; v.Messages[i].Index >= 0 {
				shown[sb.Pos] = min(sb.Tokens, sb.Block.Tokens)
			}
		}
	}
	recorded, visible := 0, 0
	for i := range st.Len() {
		seq, msg := st.Message(i)
		for j := range msg.Blocks {
			recorded += msg.Blocks[j].Tokens
			visible += shown[furl.Pos{Msg: seq, Block: j}]
		}
	}
	u := s.Context("m")
	if u.Visible+u.Hidden != u.Recorded || u.Recorded != recorded || u.Visible != visible {
		rt.Fatalf("%d visible and %d hidden of %d; want %d of %d", u.Visible, u.Hidden, u.Recorded, visible, recorded)
	}
}

func (m *twin) lift(rt *rapid.T) {
	seq := furl.Seq(rapid.IntRange(1, m.log.Len()).Draw(rt, "reduction"))
	_, err := m.session(rt).Restore(context.Background(), session.RestoreOptions{Reduction: seq})
	_, want := m.log.Append(m.log.Head(), still(), furl.Person, &furl.Restoration{Of: seq})
	sameError(rt, err, want)
}

func (m *twin) open(rt *rapid.T) {
	at := furl.Pos{Msg: furl.Seq(rapid.IntRange(1, m.log.Len()).Draw(rt, "message"))}
	sp := furl.Span{First: at, Last: at}
	_, err := m.session(rt).Restore(context.Background(), session.RestoreOptions{Spans: []furl.Span{sp}})
	_, want := m.log.Append(m.log.Head(), still(), furl.Person, &furl.Restoration{Open: true, Spans: []furl.Span{sp}})
	sameError(rt, err, want)
}

func (m *twin) hold(rt *rapid.T) {
	at := furl.Pos{Msg: furl.Seq(rapid.IntRange(1, m.log.Len()).Draw(rt, "message"))}
	sp := furl.Span{First: at, Last: at}
	h := rapid.SampledFrom([]furl.Hold{furl.Pin, furl.Keep, furl.Release}).Draw(rt, "hold")
	err := m.session(rt).Hold(context.Background(), h, sp)
	_, want := m.log.Append(m.log.Head(), still(), furl.Person, &furl.Restoration{Spans: []furl.Span{sp}, Hold: h})
	sameError(rt, err, want)
}

func (m *twin) rewind(rt *rapid.T) {
	to := furl.Seq(rapid.IntRange(0, m.log.Len()).Draw(rt, "to"))
	got, err := m.session(rt).Rewind(context.Background(), to)
	r, want := m.log.Rewind(to, still(), furl.Person)
	sameError(rt, err, want)
	if got.To != r.Parent {
		rt.Fatalf("the rewind went to %d, want %d", got.To, r.Parent)
	}
}

func sameError(rt *rapid.T, got, want error) {
	if (got == nil) != (want == nil) || errors.Is(got, furl.ErrNotOnPath) != errors.Is(want, furl.ErrNotOnPath) {
		rt.Fatalf("got %v, want %v", got, want)
	}
}

func (m *twin) check(rt *rapid.T) {
	s, err := m.procs[rapid.IntRange(0, 1).Draw(rt, "process")].Open(context.Background(), "twin")
	if err != nil {
		rt.Fatal(err)
	}
	got, want := s.Records(0), m.log.Records(0)
	if len(got) != len(want) || s.Head() != m.log.Head() {
		rt.Fatalf("%d records and head %d, want %d and %d", len(got), s.Head(), len(want), m.log.Head())
	}
	m.addsUp(rt, s)
	for i := range got {
		h1, b1, err1 := record.Encode(got[i])
		h2, b2, err2 := record.Encode(want[i])
		if err := errors.Join(err1, err2); err != nil || string(h1) != string(h2) || string(b1) != string(b2) {
			rt.Fatalf("record %d is %+v, want %+v (%v)", i+1, got[i], want[i], err)
		}
	}
	if got, want := encoded(m.t, s.View("m")), encoded(m.t, m.log.State().View(modelOf(s, "m"))); got != want {
		rt.Fatalf("the view is\n%s\nwant\n%s", got, want)
	}
	if problems, err := s.Check(context.Background()); err != nil || len(problems) > 0 {
		rt.Fatalf("the check found %v, %v", problems, err)
	}
}

// All methods may be called at the same time; nothing is lost, and what is
// there in the end passes its check.
func TestConcurrentUse(t *testing.T) {
	store := inmem.New()
	all := reopen(t, store, session.Options{Policy: "rolling-mask-5", Window: 5000, Now: still, Keep: 1})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 10, 300))
	var wg sync.WaitGroup
	ctx := t.Context()
	for i := range 4 {
		wg.Go(func() {
			for n := range 20 {
				own, err := all.Open(ctx, s.ID())
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := own.Append(ctx, message(t, furl.RoleAssistant, text(fmt.Sprint("answer ", i, " ", n))), message(t, furl.RoleUser, text("go on"))); err != nil {
					t.Error(err)
				}
				fit, err := own.Fit(ctx, "m")
				if err != nil {
					t.Error(err)
					continue
				}
				if _, err := wire.For(furl.FormatAnthropic).EncodeView(fit.View); err != nil {
					t.Error(err)
				}
				reply := &protocol.Reply{ID: fmt.Sprint(i, n), Usage: furl.Usage{Input: 1000 + n}, Messages: []*furl.Message{message(t, furl.RoleAssistant, text(fmt.Sprint("reply ", i, " ", n)))}}
				if err := own.Observe(ctx, fit, reply); err != nil {
					t.Error(err)
				}
				own.Reductions()
				own.Branches()
				own.Context("m")
				if _, err := own.Requests(); err != nil {
					t.Error(err)
				}
				if _, err := own.Search(ctx, "marker_2", session.SearchOptions{Scope: session.Everywhere}); err != nil {
					t.Error(err)
				}
				all.Create(storage.Meta{}) // has others dropped from memory
			}
		})
	}
	wg.Wait()
	own, err := all.Open(ctx, s.ID())
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, r := range own.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok && m.Role == furl.RoleAssistant && strings.HasPrefix(m.Blocks[0].Text, "answer") {
			said++
		}
	}
	if said != 80 {
		t.Errorf("%d of 80 appends are there", said)
	}
	checked(t, own)
}

// A store that fails after it has stored what it was given: the append is made
// again, and is there once.
func TestFailureAfterStoring(t *testing.T) {
	store := &lossy{Store: inmem.New()}
	s := reopen(t, store, session.Options{}).Create(storage.Meta{})
	msgs := steps(t, 1, 10)
	store.lose = true
	if _, err := s.AppendAfter(t.Context(), 0, msgs...); err == nil {
		t.Fatal("the store's error is gone")
	}
	store.lose = false
	if _, err := s.AppendAfter(t.Context(), 0, msgs...); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Records(0)); n != 3 {
		t.Errorf("there are %d records, want 3", n)
	}
	checked(t, s)
}

// lossy stores what it is given and loses the answer.
type lossy struct {
	storage.Store
	lose bool
}

func (l *lossy) Append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	err := l.Store.Append(ctx, key, b)
	if err == nil && l.lose {
		return errDown
	}
	return err
}
