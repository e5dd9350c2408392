package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

// words counts a token a word, so that sizes in tests can be seen.
type words struct{}

func (words) Count(text string) int { return len(strings.Fields(text)) }

// session builds a log in tests.
type session struct {
	t   testing.TB
	log *furl.Log
	at  time.Time
}

func newSession(t testing.TB) *session {
	return &session{t: t, log: furl.NewLog(), at: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
}

func (s *session) add(body furl.Body) furl.Record {
	s.t.Helper()
	if m, ok := body.(*furl.Message); ok {
		m.Measure(words{})
		m.Seal()
	}
	r, err := s.log.Append(s.log.Head(), s.at, furl.Client, body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.at = s.at.Add(time.Minute)
	return r
}

func (s *session) say(role furl.Role, text string) furl.Record {
	return s.add(furl.TextMessage(role, text))
}

// step adds an assistant message with one call of the tool per result, and a
// message with the results.
func (s *session) step(tool string, results ...string) {
	call := &furl.Message{Role: furl.RoleAssistant}
	res := &furl.Message{Role: furl.RoleUser}
	for i, text := range results {
		id := fmt.Sprintf("%s_%d_%d", tool, s.log.Len(), i)
		call.Blocks = append(call.Blocks, furl.Block{Kind: furl.KindCall, ID: id, Name: tool, Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, s.log.Len()))})
		res.Blocks = append(res.Blocks, furl.Block{Kind: furl.KindResult, ID: id, Text: text})
	}
	s.add(call)
	s.add(res)
}

// budget is what a plan for the session's head has to work with.
func (s *session) budget(window int) furl.Budget {
	return furl.Budget{Counter: words{}, Window: window, Size: s.log.State().View(furl.Model{}).Tokens, Recall: true}
}

// plan plans, and appends what was planned.
func (s *session) plan(p furl.Policy, b furl.Budget) *furl.Plan {
	s.t.Helper()
	plan, err := p.Plan(context.Background(), s.log.State(), b)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, red := range plan.Reductions {
		if _, err := s.log.Append(s.log.Head(), s.at, furl.Furl, red); err != nil {
			s.t.Fatal(err)
		}
	}
	return plan
}

func (s *session) view() *furl.View { return s.log.State().View(furl.Model{}) }

// text is n different words.
func text(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d ", i)
	}
	return strings.TrimSpace(b.String())
}

// must makes a policy by Options of presets and by Settings.
func must(t testing.TB, name string, with ...any) furl.Policy {
	t.Helper()
	p, err := made(name, with...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func made(name string, with ...any) (furl.Policy, error) {
	var options []Options
	var settings Settings
	var ofPreset string // its options as JSON
	for _, w := range with {
		switch w := w.(type) {
		case Options:
			options = append(options, w)
		case Settings:
			settings = w
		case string:
			ofPreset = w
		default:
			return nil, fmt.Errorf("%T is neither Options nor Settings", w)
		}
	}
	set := withAgents(NewSet(options...))
	if ofPreset != "" {
		if err := set.Configure(name, []byte(ofPreset)); err != nil {
			return nil, err
		}
	}
	return set.Policy(name, settings)
}

// withAgents adds the presets of package agents to a set. Only a test outside of this
// package can import that package.
var withAgents func(*Set) *Set

// SetAgents sets withAgents.
func SetAgents(add func(*Set) *Set) { withAgents = add }
