package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/transcript"
	"github.com/furlhq/furl/wire"
)

// toys are models whose prices make costs easy to compute by hand: a token of
// uncached input costs a tenth of a cent.
const toys = `
models:
  - id: toy
    format: anthropic
    window: 10000
    max_output: 1000
    prices: {input: 1000, cache_read: 100, cache_write: 1250, output: 5000}
    caching: {explicit: true, min_prefix: 100, lifetime: 5m, lookback: 20, max_marks: 4}
  - id: toy-forgets
    format: anthropic
    window: 10000
    prices: {input: 1000, cache_read: 100, cache_write: 1250, output: 5000}
    caching: {explicit: true, min_prefix: 100, lifetime: 5m, lookback: 20, max_marks: 4}
    thinking: {last_only: true, removable: true}
  - id: toy-binds
    format: anthropic
    window: 10000
    prices: {input: 1000, cache_read: 100, cache_write: 1250, output: 5000}
    caching: {explicit: true, min_prefix: 100, lifetime: 5m, lookback: 20, max_marks: 4}
    thinking: {binds: true, removable: true}
  - id: toy-hour
    format: anthropic
    window: 10000
    prices: {input: 1000, cache_read: 100, cache_write: 1250, cache_write_1h: 2000, output: 5000}
    caching: {explicit: true, min_prefix: 100, lifetime: 5m, lookback: 20, max_marks: 4}
  - id: toy-auto
    format: openai-chat
    window: 10000
    prices: {input: 1000, cache_read: 500, output: 5000}
    caching: {min_prefix: 256, granule: 64, lifetime: 5m}
`

func toyCatalog(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse("toys.yaml", []byte(toys))
	if err == nil {
		c, err = new(catalog.Catalog).Merge(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tape builds a recorded session. Sizes in tokens: words(n) has n, a text n+4, and
// a call or a result 35 more in Anthropic's format (token.Prior), 12 in others.
type tape struct {
	t     testing.TB
	s     *transcript.Session
	codec protocol.Codec
	at    time.Time
}

func newTape(t testing.TB, model string, format furl.Format) *tape {
	return &tape{
		t:     t,
		s:     &transcript.Session{ID: "s", Model: model, Wire: format, Log: furl.NewLog()},
		codec: wire.For(format),
		at:    start,
	}
}

func (b *tape) recording(sub ...*tape) *transcript.Recording {
	r := &transcript.Recording{File: "small.jsonl", Format: "test", Agent: "Tester", Sessions: []*transcript.Session{b.s}}
	for _, s := range sub {
		s.s.Parent = b.s.ID
		r.Sessions = append(r.Sessions, s.s)
	}
	return r
}

// preamble adds recorded instructions.
func (b *tape) preamble(text string) {
	b.s.Preamble = append(b.s.Preamble, furl.Block{Kind: furl.KindText, Text: text})
}

func (b *tape) add(body furl.Body) furl.Seq {
	b.t.Helper()
	r, err := b.s.Log.Append(b.s.Log.Head(), b.at, furl.Import, body)
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Seq
}

func (b *tape) message(role furl.Role, blocks ...furl.Block) furl.Seq {
	b.t.Helper()
	m, err := b.codec.NewMessage(role, blocks)
	if err != nil {
		b.t.Fatal(err)
	}
	b.s.Messages++
	return b.add(m)
}

func (b *tape) user(text string) furl.Seq {
	return b.message(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: text})
}

func (b *tape) says(text string) furl.Seq {
	return b.message(furl.RoleAssistant, furl.Block{Kind: furl.KindText, Text: text})
}

// step is a call and its result.
func (b *tape) calls(id, tool, args string) furl.Seq {
	return b.message(furl.RoleAssistant, furl.Block{Kind: furl.KindCall, ID: id, Name: tool, Args: json.RawMessage(args)})
}

func (b *tape) result(id, text string) furl.Seq {
	role := furl.RoleUser
	if b.s.Wire != furl.FormatAnthropic {
		role = furl.RoleTool
	}
	return b.message(role, furl.Block{Kind: furl.KindResult, ID: id, Text: text})
}

// asks records a request to the session's model, at this time after the start.
func (b *tape) asks(at string, usage ...furl.Usage) furl.Seq {
	b.at = after(b.t, at)
	ex := &furl.Exchange{Model: b.s.Model}
	for _, u := range usage {
		ex.Usage = u
	}
	return b.add(ex)
}

func (b *tape) rewind(to furl.Seq) {
	b.t.Helper()
	if _, err := b.s.Log.Rewind(to, b.at, furl.Import); err != nil {
		b.t.Fatal(err)
	}
}

// words is a text of n tokens.
func words(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }

// script is a policy that makes a given reduction before the request with that
// number, from 1.
type script map[int]func(*furl.State, furl.Budget) *furl.Reduction

// candidate makes a policy of the script, one for each session.
func (s script) candidate(name string) Candidate {
	return Candidate{Name: name, New: func(policy.Summarizer) (furl.Policy, error) { return &scripted{name: name, script: s}, nil }}
}

type scripted struct {
	name     string
	script   script
	requests int
	budgets  []furl.Budget
}

func (p *scripted) Name() string { return p.name }

func (p *scripted) Plan(_ context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	p.requests++
	p.budgets = append(p.budgets, b)
	plan := &furl.Plan{Before: b.Size, After: b.Size, View: s.View(b.Model)}
	if reduce := p.script[p.requests]; reduce != nil {
		plan.Reductions = []*furl.Reduction{reduce(s, b)}
		after, err := s.With(plan.Reductions[0])
		if err != nil {
			return nil, err
		}
		plan.View = after.View(b.Model)
	}
	return plan, nil
}

// hide replaces the first block of message i of the path by a text. tokens includes
// the envelope of the block.
func hide(i int, text string, tokens int) func(*furl.State, furl.Budget) *furl.Reduction {
	return func(s *furl.State, _ furl.Budget) *furl.Reduction {
		seq, _ := s.Message(i)
		at := furl.Pos{Msg: seq}
		return &furl.Reduction{Stage: "mask", Items: []furl.Item{{
			Spans: []furl.Span{{First: at, Last: at}},
			Show:  furl.In{Text: text, Tokens: tokens},
		}}}
	}
}

// play replays recordings with the toy catalogue and policy none first.
func play(t *testing.T, o Options, recs ...*transcript.Recording) *Report {
	t.Helper()
	o.Catalog = toyCatalog(t)
	r, err := Run(context.Background(), slices.Values(recs), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func presets(t *testing.T, names ...string) []Candidate {
	t.Helper()
	c, err := Candidates(nil, names...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// money rounds dollars to the precision of sums computed by hand.
func money(x float64) string { return fmt.Sprintf("%.6f", x) }

// A session without records has no requests.
func TestEmptySession(t *testing.T) {
	rec := &transcript.Recording{File: "empty", Sessions: []*transcript.Session{{ID: "s", Wire: furl.FormatAnthropic, Log: furl.NewLog()}}}
	rep := replayAll(t, Options{}, rec)
	if n := rep.Recordings[0].Requests; n != 0 {
		t.Errorf("%d requests", n)
	}
}
