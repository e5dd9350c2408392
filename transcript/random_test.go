package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/storage"
)

// randomSession is a session in a wire format with everything that can happen
// in one: steps with parallel and late results, every policy, markers,
// placeholders, restorations, expanded messages, pins, rewinds and branches.
func randomSession(t testing.TB, wire furl.Format, seed uint64, n int) *Session {
	t.Helper()
	g := &generator{t: t, rng: rand.New(rand.NewPCG(7, seed)), codec: codecOf(wire), log: furl.NewLog()}
	g.user()
	for range n {
		switch g.rng.IntN(14) {
		case 0, 1:
			g.user()
		case 2, 3, 4, 5, 6:
			g.step()
		case 7, 8:
			g.plan()
		case 9:
			g.mark()
		case 10:
			g.lift()
		case 11:
			g.restore()
		case 12:
			g.forget()
		default:
			if g.rng.IntN(3) == 0 {
				g.rewind()
			}
		}
	}
	return &Session{
		ID: fmt.Sprintf("random-%d", seed), Title: "anything <may> happen", Model: "a-model", Wire: wire, Log: g.log,
		Meta: storage.Meta{Client: "test", Hint: "h", Policy: "auto", Source: "nowhere", ForkOf: "other", ForkAt: 3, Settings: map[string]string{"a": "b"}},
		Preamble: []furl.Block{{Kind: furl.KindText, Text: "You are a <system> text."},
			{Kind: furl.KindOpaque, Name: "tool", Text: `{"name":"read"}`, Tokens: 9}},
	}
}

type generator struct {
	t     testing.TB
	rng   *rand.Rand
	codec protocol.Codec
	log   *furl.Log
	calls int
}

func (g *generator) pick(of ...string) string { return of[g.rng.IntN(len(of))] }

// at returns a later time; a few are zero or in unusual zones.
func (g *generator) at() time.Time {
	at := time.Unix(1_700_000_000+int64(g.log.Len())*60, int64(g.rng.IntN(1000))*1e6+int64(g.rng.IntN(2)))
	switch g.rng.IntN(8) {
	case 0:
		return time.Time{}
	case 1:
		return at.In(time.FixedZone("", -7*3600-30*60))
	case 2:
		return at.In(time.FixedZone("", 3208))
	}
	return at.UTC()
}

func (g *generator) add(by furl.Actor, body furl.Body) bool {
	_, err := g.log.Append(g.log.Head(), g.at(), by, body)
	return err == nil
}

func (g *generator) message(role furl.Role, blocks ...furl.Block) {
	g.t.Helper()
	groups := [][]furl.Block{blocks}
	anthropic := g.codec.Format() == furl.FormatAnthropic
	switch {
	case role == furl.RoleTool && anthropic:
		role = furl.RoleUser
	case role == furl.RoleTool, g.codec.Format() == furl.FormatResponses:
		groups = nil
		for i := range blocks {
			groups = append(groups, blocks[i:i+1])
		}
	}
	for _, one := range groups {
		m, err := g.codec.NewMessage(role, one)
		if err != nil {
			g.t.Fatal(err)
		}
		m.Measure(byteCounter{})
		by := furl.Client
		if role == furl.RoleAssistant {
			by = furl.Upstream
		}
		if !g.add(by, m) {
			return
		}
	}
}

func (g *generator) words() string {
	return g.pick("hi", "please fix src/parser.go:12", strings.Repeat("a long story. ", 40)+"end", "ünïcode ✓ \"quoted\"\n\tand more",
		"```\nfence\n````\n</pre><script>alert(1)</script>", "[link](javascript:alert(1)) <img src=x onerror=alert(1)>\x1b[31m\u202e")
}

func (g *generator) user() {
	if len(g.log.State().OpenCalls()) == 0 {
		g.message(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: g.words()})
	}
}

func (g *generator) step() {
	if open := g.log.State().OpenCalls(); len(open) > 0 {
		var blocks []furl.Block
		for _, id := range open[:1+g.rng.IntN(len(open))] {
			text := g.words()
			blocks = append(blocks, furl.Block{Kind: furl.KindResult, ID: id, Text: text, Error: g.rng.IntN(4) == 0})
		}
		g.message(furl.RoleTool, blocks...)
		return
	}
	v := g.log.State().View(furl.Model{})
	g.add(furl.Furl, &furl.Exchange{
		Model: "a-model", View: v.Prefix(), Thinking: v.LastThinking, Preamble: furl.DigestOf([]byte("p")),
		Usage:      furl.Usage{Input: g.rng.IntN(9000), CacheRead: g.rng.IntN(5000), CacheWrite: 10, Output: 7, Reasoning: 1},
		ResponseID: fmt.Sprintf("resp_%d", g.log.Len()), Stop: "tool_use", Estimated: v.Tokens,
		Plan: []furl.PlanStep{{Stage: "mask", Skipped: "nothing to hide"}},
	})
	var blocks []furl.Block
	if g.codec.Format() == furl.FormatAnthropic && g.rng.IntN(2) == 0 {
		blocks = append(blocks, furl.Block{Kind: furl.KindThinking, Text: "hm <b>", Signature: 40})
	}
	blocks = append(blocks, furl.Block{Kind: furl.KindText, Text: g.words()})
	for range g.rng.IntN(4) {
		g.calls++
		args, _ := json.Marshal(map[string]string{"path": fmt.Sprintf("src/file_%d.go", g.calls%5), "body": g.words()})
		blocks = append(blocks, furl.Block{Kind: furl.KindCall, ID: fmt.Sprintf("call_%d", g.calls), Name: "read", Args: args})
	}
	g.message(furl.RoleAssistant, blocks...)
}

func (g *generator) plan() {
	names := policy.NewSet().Names()
	name := names[g.rng.IntN(len(names))]
	p, err := policy.NewSet(policy.ToolAge{MinTokens: 1, MaxAge: g.rng.IntN(3)}).Policy(name, policy.Settings{RollingContext: new(true)})
	if err != nil {
		g.t.Fatal(err)
	}
	if g.rng.IntN(3) == 0 {
		g.planBy(&policy.Pipeline{Label: "inputs", NoBackstop: true, Stages: []policy.Stage{&policy.Shorten{LongerThan: 8, MinGain: 1}}})
	}
	g.planBy(p)
}

func (g *generator) planBy(p furl.Policy) {
	v := g.log.State().View(furl.Model{})
	plan, err := p.Plan(context.Background(), g.log.State(), furl.Budget{
		Counter: byteCounter{}, Size: v.Tokens, Now: g.at(), Recall: true, Window: max(1, v.Tokens*(20+g.rng.IntN(130))/100),
	})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, red := range plan.Reductions {
		g.add(furl.Furl, red)
	}
}

// mark replaces some units by a summary, at times one with bytes of its own.
func (g *generator) mark() {
	v := g.log.State().View(furl.Model{})
	units := v.Units[:g.rng.IntN(len(v.Units))]
	units = slices.DeleteFunc(slices.Clone(units), func(u furl.Unit) bool { return u.Open })
	if len(units) == 0 {
		return
	}
	m := furl.TextMessage(furl.RoleUser, "[summary] "+g.words())
	if g.rng.IntN(2) == 0 {
		var err error
		if m, err = g.codec.NewMessage(furl.RoleUser, []furl.Block{{Kind: furl.KindText, Text: g.words()}}); err != nil {
			g.t.Fatal(err)
		}
	}
	m.Measure(byteCounter{})
	g.add(furl.Furl, &furl.Reduction{
		Stage: "compact", Reason: "the window is full", Before: v.Tokens, After: v.Tokens / 2, Scale: 1.1,
		Cost:    furl.Cost{Rewrite: 0.1, PerRequest: 0.02, Remaining: 10.5, Own: 0.003},
		Summary: &furl.Summary{Number: 1, Text: "it went well", Messages: 3, Model: "small", Usage: furl.Usage{Input: 5}, Request: "sum up"},
		Items:   []furl.Item{{Spans: v.Spans(units...), Show: furl.Mark{Messages: []*furl.Message{m}, At: g.at()}}},
	})
}

// forget drops some thinking.
func (g *generator) forget() {
	v := g.log.State().View(furl.Model{})
	for _, sh := range v.Messages {
		for _, b := range sh.Blocks {
			if b.Block.Kind == furl.KindThinking && b.Pos.Msg != 0 {
				g.add(furl.Furl, &furl.Reduction{Stage: "forget", Items: []furl.Item{{Spans: []furl.Span{{First: b.Pos, Last: b.Pos}}, Show: furl.Gone{}}}})
				return
			}
		}
	}
}

func (g *generator) lift() {
	var seqs []furl.Seq
	for red := range g.log.State().Reductions() {
		seqs = append(seqs, red.Seq)
	}
	if len(seqs) > 0 {
		g.add(furl.Person, &furl.Restoration{Of: seqs[g.rng.IntN(len(seqs))], Hold: furl.Hold(g.rng.IntN(4))})
	}
}

func (g *generator) restore() {
	s := g.log.State()
	seq, _ := s.Message(g.rng.IntN(s.Len()))
	pos := furl.Pos{Msg: seq}
	g.add(furl.Person, &furl.Restoration{Open: g.rng.IntN(2) == 0, Spans: []furl.Span{{First: pos, Last: pos}}, Hold: furl.Hold(1 + g.rng.IntN(3))})
}

func (g *generator) rewind() {
	if _, err := g.log.Rewind(furl.Seq(1+g.rng.IntN(g.log.Len())), g.at(), furl.Person); err != nil {
		g.t.Fatal(err)
	}
	if g.log.State().Len() == 0 {
		g.user()
	}
}
