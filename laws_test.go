package furl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/racetest"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/namecount"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/record"
)

// TestLaws holds the laws of the package documentation over random sequences
// of everything that can happen to a session, in each wire family. A failure
// shrinks to the shortest sequence that breaks a law and prints it.
func TestLaws(t *testing.T) {
	racetest.FewerChecks(t, 30)
	for _, f := range families {
		t.Run(string(f.codec.Format()), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := newMachine(t, f)
				t.Repeat(map[string]func(*rapid.T){
					"":            func(t *rapid.T) { m.check(t) },
					"user":        m.user,
					"step":        m.step,
					"recall":      m.recall,
					"hosted":      m.hosted,
					"open step":   m.openStep,
					"result":      m.result,
					"unknown":     m.unknown,
					"policy":      m.plan,
					"mask":        m.mask,
					"mark":        m.mark,
					"hide":        m.hide,
					"forget":      m.forget,
					"lift":        m.lift,
					"open":        m.open,
					"hold":        m.hold,
					"rewind":      m.rewind,
					"diverge":     m.diverge,
					"prepare":     m.prepare,
					"commit":      m.commit,
					"edit":        m.edit,
					"client edit": m.clientEdit,
					"repeat":      m.repeat,
					"draft":       m.draft,
					"bad":         m.bad,
				})
			})
		})
	}
}

// machine is a session to which anything may happen.
type machine struct {
	family
	log   *furl.Log
	calls int
	heads []furl.Seq // where the conversation once stood
	// prepared is a summary made of the view at the record preparedAt, not yet committed.
	prepared   *furl.Reduction
	preparedAt furl.Seq
	// signed holds, per thinking block, what a provider would bind it to.
	signed map[furl.Pos]signature
	// last view, if nothing but appends came since.
	sent   []json.RawMessage
	copied []furl.Record
	bodies []string
}

// signature is the double of a provider's signed thinking: the rendered prefix
// without thinking, and the thinking block before it.
type signature struct {
	prefix string
	before furl.Pos
}

func newMachine(t *rapid.T, f family) *machine {
	m := &machine{family: f, log: furl.NewLog(), signed: make(map[furl.Pos]signature)}
	m.user(t)
	return m
}

// add appends a record and fails the test if it is refused.
func (m *machine) add(t *rapid.T, by furl.Actor, body furl.Body) furl.Record {
	t.Helper()
	fixed := m.fixed()
	r, err := m.log.Append(m.log.Head(), clock(m.log.Len()), by, body)
	if err != nil {
		t.Fatalf("append %T: %v", body, err)
	}
	if _, ok := body.(*furl.Reduction); ok && by != furl.Client {
		for _, p := range fixed {
			if by := m.log.State().ShownBy(p); by != 0 {
				t.Fatalf("understanding: reduction %d hides %v, in a unit that furl does not understand", by, p)
			}
		}
	}
	if _, ok := body.(*furl.Message); !ok {
		if _, ok := body.(*furl.Exchange); !ok {
			m.sent = nil // the view may change from here on
		}
	}
	return r
}

func clock(n int) time.Time { return time.Unix(1_700_000_000+int64(n)*60, 0).UTC() }

func (m *machine) message(t *rapid.T, role furl.Role, blocks ...furl.Block) *furl.Message {
	t.Helper()
	msg, err := m.codec.NewMessage(role, blocks)
	if err != nil {
		t.Fatalf("new message: %v", err)
	}
	for i := range blocks {
		if blocks[i].Own {
			msg.Blocks[i].Own = true
		}
	}
	msg.Measure(letters{})
	return msg
}

func (m *machine) user(t *rapid.T) {
	if len(m.log.State().OpenCalls()) > 0 {
		_, err := m.log.Append(m.log.Head(), time.Time{}, furl.Client, m.message(t, furl.RoleUser, text("too early")))
		if !errors.Is(err, furl.ErrOpenCall) {
			t.Fatalf("a user message after an open call gave %v, want ErrOpenCall", err)
		}
		return
	}
	m.answerHosted(t)
	m.add(t, furl.Client, m.message(t, furl.RoleUser, text(words.Draw(t, "user says"))))
}

// reply appends what the model answers to the current view.
// Of its calls those are furl's own for which own says so.
func (m *machine) reply(t *rapid.T, calls int, own ...func(call int) bool) {
	m.answerHosted(t)
	view := m.view()
	m.add(t, furl.Furl, &furl.Exchange{Model: "double", View: view.Prefix(), Thinking: view.LastThinking})
	var blocks []furl.Block
	thinks := m.thinking && rapid.Bool().Draw(t, "thinks")
	if thinks {
		blocks = append(blocks, furl.Block{Kind: furl.KindThinking, Text: "hm", Signature: 40})
	}
	if calls == 0 || rapid.Bool().Draw(t, "speaks") {
		blocks = append(blocks, text(words.Draw(t, "assistant says")))
	}
	for n := range calls {
		m.calls++
		id := fmt.Sprintf("call_%d", m.calls)
		args := fmt.Sprintf(`{"path":"src/file_%d.go","n":%d}`, m.calls%5, m.calls)
		blocks = append(blocks, furl.Block{Kind: furl.KindCall, ID: id, Name: "read", Args: json.RawMessage(args), Own: len(own) > 0 && own[0](n)})
	}
	prefix := prefixOf(m.render(t, view), len(view.Messages))
	for _, msg := range m.split(t, furl.RoleAssistant, blocks) {
		r := m.add(t, furl.Upstream, msg)
		for i := range msg.Blocks {
			if msg.Blocks[i].Kind == furl.KindThinking {
				m.signed[furl.Pos{Msg: r.Seq, Block: i}] = signature{prefix, view.LastThinking}
			}
		}
	}
}

func (m *machine) step(t *rapid.T) {
	if len(m.log.State().OpenCalls()) > 0 {
		m.result(t)
		return
	}
	m.reply(t, rapid.IntRange(0, 3).Draw(t, "calls"))
	for len(m.log.State().OpenCalls()) > 0 {
		m.result(t)
	}
}

// recall is a step in which the model calls a tool of furl's own, perhaps beside
// others, perhaps again and again, and then goes on. Where all its calls were
// furl's the answer belongs to the same message of the client's.
func (m *machine) recall(t *rapid.T) {
	if len(m.log.State().OpenCalls()) > 0 {
		return
	}
	for more := true; more; {
		m.reply(t, rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "calls"), func(call int) bool { return call == 0 })
		own := m.log.State().OpenCalls()[0]
		for _, msg := range m.split(t, furl.RoleTool, []furl.Block{{Kind: furl.KindResult, ID: own, Text: "found src/file_2.go"}}) {
			msg.Blocks[0].Own = true
			m.add(t, furl.Furl, msg)
		}
		more = len(m.log.State().OpenCalls()) == 0 && rapid.Bool().Draw(t, "asks again")
	}
	if len(m.log.State().OpenCalls()) == 0 {
		m.reply(t, rapid.IntRange(0, 1).Draw(t, "calls at last"))
	}
}

// hosted is a reply with calls that the provider runs. One is answered in the
// reply itself, at the start of the next one, after the client's results, or in a
// later one, while its program calls tools of the client (programmatic tool
// calling).
func (m *machine) hosted(t *rapid.T) {
	if m.family.hosted == nil || len(m.log.State().OpenCalls()) > 0 {
		return
	}
	pending := m.waiting()
	answered := rapid.IntRange(0, len(pending)).Draw(t, "answered")
	goesOn := answered == 0 && len(pending) > 0 // with calls of a program
	parts := m.answers(pending[:answered])
	pending = pending[answered:]
	if rapid.Bool().Draw(t, "speaks") {
		parts = append(parts, m.family.says("here, in src/file_2.go"))
	}
	if len(parts) == 0 && !goesOn || rapid.Bool().Draw(t, "one more") {
		m.calls++
		id := fmt.Sprintf("srv_%d", m.calls)
		call, answer := m.family.hosted(id)
		if parts = append(parts, call); rapid.IntRange(0, 2).Draw(t, "answered at once") == 0 {
			parts = append(parts, answer)
		} else {
			pending = append(pending, id)
		}
	}
	if len(pending) > 0 && (goesOn || rapid.Bool().Draw(t, "its program calls")) {
		for _, id := range pending { // the provider forgets no program that it runs
			for range rapid.IntRange(1, 2).Draw(t, "calls") {
				m.calls++
				parts = append(parts, m.family.calls(fmt.Sprintf("call_%d", m.calls), id))
			}
		}
	}
	m.addReply(t, parts)
	for rapid.Bool().Draw(t, "results") && len(m.log.State().OpenCalls()) > 0 {
		m.result(t)
	}
}

// answers are the answers to calls that the provider runs.
func (m *machine) answers(ids []string) (parts []string) {
	for _, id := range ids {
		_, answer := m.family.hosted(id)
		parts = append(parts, answer)
	}
	return parts
}

// replyOf makes the messages of a reply of these parts.
func (m *machine) replyOf(t *rapid.T, parts []string) (list []*furl.Message) {
	if !m.single {
		parts = []string{`{"role":"assistant","content":[` + strings.Join(parts, ",") + `]}`}
	}
	for _, raw := range parts {
		msg, err := m.codec.DecodeMessage([]byte(raw))
		if err != nil {
			t.Fatalf("decode %s: %v", raw, err)
		}
		msg.Measure(letters{})
		list = append(list, msg)
	}
	return list
}

// addReply appends a reply of these parts to the current view.
func (m *machine) addReply(t *rapid.T, parts []string) {
	view := m.view()
	m.add(t, furl.Furl, &furl.Exchange{Model: "double", View: view.Prefix(), Thinking: view.LastThinking})
	for _, msg := range m.replyOf(t, parts) {
		m.add(t, furl.Upstream, msg)
	}
}

// answerHosted has the provider answer all its calls.
func (m *machine) answerHosted(t *rapid.T) {
	if !m.log.State().AwaitsProvider() {
		return
	}
	m.addReply(t, m.answers(m.waiting()))
	if m.log.State().AwaitsProvider() {
		t.Fatal("the provider has answered its calls and is still waited for")
	}
}

// waiting lists the calls of the path that the provider has not answered.
func (m *machine) waiting() (ids []string) {
	for i := range m.log.State().Len() {
		_, msg := m.log.State().Message(i)
		for j := range msg.Blocks {
			switch b := &msg.Blocks[j]; b.Half {
			case furl.HalfCall:
				ids = append(ids, b.ID)
			case furl.HalfAnswer:
				ids = slices.DeleteFunc(ids, func(id string) bool { return id == b.ID })
			}
		}
	}
	return ids
}

// openStep leaves calls without results, to come late.
func (m *machine) openStep(t *rapid.T) {
	if len(m.log.State().OpenCalls()) == 0 {
		m.reply(t, rapid.IntRange(1, 3).Draw(t, "calls"))
	}
}

// result answers some of the open calls, with words of the user after them
// at times, where the family allows it.
func (m *machine) result(t *rapid.T) {
	open := m.log.State().OpenCalls()
	if len(open) == 0 {
		return
	}
	n := rapid.IntRange(1, len(open)).Draw(t, "answers")
	var blocks []furl.Block
	for _, id := range open[:n] {
		body := rapid.SampledFrom([]string{"ok", "error: no such file", strings.Repeat("line of output\n", 20), "found src/file_3.go:12"}).Draw(t, "result")
		blocks = append(blocks, furl.Block{Kind: furl.KindResult, ID: id, Text: body, Error: strings.HasPrefix(body, "error")})
	}
	if m.mixed && n == len(open) && !m.log.State().AwaitsProvider() && rapid.Bool().Draw(t, "words behind") {
		blocks = append(blocks, text("and another thing"))
	}
	for _, msg := range m.split(t, furl.RoleTool, blocks) {
		m.add(t, furl.Client, msg)
	}
}

// unknown is a message of the client or the model with something that furl does not
// understand, or that defines tools.
func (m *machine) unknown(t *rapid.T) {
	raw := rapid.SampledFrom(unknowns[m.codec.Format()]).Draw(t, "unknown")
	if len(m.log.State().OpenCalls()) > 0 {
		if !m.single || strings.Contains(raw, `"message"`) {
			return // nothing may be between a call and its result
		}
	}
	if !m.single || strings.Contains(raw, `"message"`) {
		m.answerHosted(t) // or between a call of the provider and its answer
	}
	if _, last := m.log.State().Message(m.log.State().Len() - 1); last.HasOwn() {
		return // the client has what follows an answered call as one message
	}
	m.calls++
	msg, err := m.codec.DecodeMessage(fmt.Appendf(nil, raw, m.calls, max(1, m.calls-rapid.IntRange(1, 4).Draw(t, "refers to"))))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(msg.Blocks, func(b furl.Block) bool { return b.Fixed }) {
		t.Fatalf("nothing in it is fixed: %s", raw)
	}
	msg.Measure(letters{})
	m.add(t, furl.Client, msg)
}

// unknowns are messages of which furl understands only a part: %[1]d is a new number,
// %[2]d that of an earlier call.
var unknowns = map[furl.Format][]string{
	furl.FormatAnthropic: {
		`{"role":"user","content":[{"type":"hologram","id":"h_%[1]d","beam":{"of":"light %[2]d"}}]}`,
		`{"role":"user","content":[{"type":"text","text":"see %[2]d"},{"type":"hologram","tool_use_id":"call_%[2]d","beam":[%[1]d]}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"so %[2]d"},{"type":"hologram_use","id":"h_%[1]d"}]}`,
		`{"role":"user","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"t_%[1]d_%[2]d"}}}]}`,
		`{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"hologram_%[1]d","text":"%[2]d"}]}}]}`,
	},
	furl.FormatChat: {
		`{"role":"user","content":[{"type":"text","text":"see %[2]d"},{"type":"hologram","beam":%[1]d}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"so %[2]d"},{"type":"hologram","beam":"%[1]d"}]}`,
	},
	furl.FormatResponses: {
		`{"type":"hologram","id":"h_%[1]d","beam":"%[2]d"}`,
		`{"type":"hologram_output","call_id":"call_%[2]d","beam":%[1]d}`,
		`{"type":"hologram","role":"developer","beam":"%[1]d %[2]d"}`,
		`{"type":"additional_tools","role":"developer","id":"at_%[1]d","tools":[{"type":"function","name":"f_%[2]d"}]}`,
		`{"type":"agent_message","id":"am_%[1]d","author":"/main/a%[2]d","recipient":"/main","content":[{"type":"input_text","text":"done"}]}`,
		`{"type":"message","role":"user","content":[{"type":"hologram","beam":%[1]d},{"type":"input_text","text":"%[2]d"}]}`,
	},
}

// fixed gives the blocks in units that furl does not understand and that are shown as
// recorded.
func (m *machine) fixed() (list []furl.Pos) {
	s := m.log.State()
	for _, sp := range s.Fixed() {
		i, _ := s.Find(sp.First.Msg)
		for ; i < s.Len(); i++ {
			seq, msg := s.Message(i)
			for n := range msg.Blocks {
				if p := (furl.Pos{Msg: seq, Block: n}); covers([]furl.Span{sp}, p) && s.ShownBy(p) == 0 {
					list = append(list, p)
				}
			}
			if seq >= sp.Last.Msg {
				break
			}
		}
	}
	return list
}

// understood: what furl does not understand is sent as recorded and in order.
func (m *machine) understood(t *rapid.T, sent [][]json.RawMessage) {
	s, all, at := m.log.State(), slices.Concat(sent...), 0
	for i := range s.Len() {
		seq, msg := s.Message(i)
		for n := range msg.Blocks {
			b := &msg.Blocks[n]
			if !b.Fixed {
				continue
			}
			if by := s.ShownBy(furl.Pos{Msg: seq, Block: n}); by != 0 {
				t.Fatalf("understanding: reduction %d hides message %d block %d: %s", by, seq, n, msg.Raw)
			}
			want := msg.Raw
			if b.End > b.Start {
				want = msg.Raw[b.Start:b.End]
			}
			for at < len(all) && !bytes.Contains(all[at], want) {
				at++
			}
			if at == len(all) {
				t.Fatalf("understanding: message %d block %d is not sent, or not in its place: %s", seq, n, want)
			}
		}
	}
}

// split makes the messages of a family: one each for OpenAI's results.
func (m *machine) split(t *rapid.T, role furl.Role, blocks []furl.Block) []*furl.Message {
	if role == furl.RoleTool && m.mixed {
		return []*furl.Message{m.message(t, furl.RoleUser, blocks...)}
	}
	if role == furl.RoleAssistant && !m.single {
		return []*furl.Message{m.message(t, role, blocks...)}
	}
	var out []*furl.Message
	for _, b := range blocks {
		out = append(out, m.message(t, role, b))
	}
	return out
}

// plan runs a preset and appends what it decides.
func (m *machine) plan(t *rapid.T) {
	summary := policy.SummaryOptions{
		Summary:       rapid.SampledFrom([]*bool{nil, new(true), new(false)}).Draw(t, "summary"),
		SummaryLevels: rapid.IntRange(0, 2).Draw(t, "levels"),
	}
	text := rapid.SampledFrom([]string{"", "[{tool} {target} {names:40} {handle}]"}).Draw(t, "text")
	policies := policy.NewSet(
		policy.ToolAge{MaxAge: rapid.IntRange(0, 2).Draw(t, "max age"), MinTokens: 1, Text: text},
		policy.SlidingWindow{SummaryOptions: summary},
		policy.Compaction{SummaryOptions: summary},
		policy.Auto{SummaryOptions: summary},
		policy.Graduated{Text: text},
		policy.RollingMask{Text: text},
		policy.Clear100k{Text: text},
	)
	policies.AddPolicy(&policy.Pipeline{Label: "inputs", Stages: []policy.Stage{&policy.Shorten{LongerThan: 8, MinGain: 1}}})
	name := rapid.SampledFrom(policies.Names()).Draw(t, "policy")
	if rapid.IntRange(0, 5).Draw(t, "inputs too") == 0 {
		name = "inputs"
	}
	p, err := policies.Policy(name, policy.Settings{
		Summarizer:     brief{},
		RollingContext: rapid.SampledFrom([]*bool{nil, new(true)}).Draw(t, "rolling context"),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := m.log.State()
	view := m.view()
	b := furl.Budget{
		Counter: letters{}, Size: view.Tokens, Now: clock(m.log.Len()), Model: m.model,
		Window: max(1, view.Tokens*rapid.IntRange(20, 150).Draw(t, "window, % of the view")/100), Recall: true,
	}
	one, err := p.Plan(context.Background(), s, b)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	two, _ := p.Plan(context.Background(), s, b)
	if a, b := printPlan(one), printPlan(two); a != b {
		t.Fatalf("%s plans differently the second time:\n%s\n%s", name, a, b)
	}
	pinned := m.pinned()
	for _, red := range one.Reductions {
		m.add(t, furl.Furl, red)
	}
	after := m.view()
	if len(one.Reductions) > 0 && after.Tokens >= view.Tokens {
		t.Fatalf("%s: progress: reduced %d tokens to %d", name, view.Tokens, after.Tokens)
	}
	if name != "none" && after.Tokens > b.Window && !one.Impossible {
		t.Fatalf("%s: progress: view has %d tokens, window %d, and the plan does not say why", name, after.Tokens, b.Window)
	}
	for _, p := range pinned {
		if m.log.State().ShownBy(p) != 0 {
			t.Fatalf("%s hid the pinned block %v", name, p)
		}
	}
}

// pinned gives the visible blocks that are pinned.
func (m *machine) pinned() []furl.Pos {
	var out []furl.Pos
	for _, sh := range m.view().Messages {
		for _, b := range sh.Blocks {
			if b.Hold == furl.Pin && b.By == 0 && b.Pos.Msg != 0 {
				out = append(out, b.Pos)
			}
		}
	}
	return out
}

// mask shows another text for some blocks, whatever shows them now.
func (m *machine) mask(t *rapid.T) { m.inPlace(t, furl.Furl) }

// clientEdit is the client's own clearing of an old result.
func (m *machine) clientEdit(t *rapid.T) { m.inPlace(t, furl.Client) }

func (m *machine) inPlace(t *rapid.T, by furl.Actor) {
	var items []furl.Item
	for range rapid.IntRange(1, 3).Draw(t, "blocks") {
		p, b := m.anyBlock(t)
		if b.Kind == furl.KindThinking || b.Kind == furl.KindOpaque || b.Fixed && by == furl.Client || slices.ContainsFunc(items, func(it furl.Item) bool { return it.Spans[0].First == p }) {
			continue
		}
		shown := "[hidden]"
		if b.Kind == furl.KindCall {
			shown = `{"shortened":true}`
		}
		items = append(items, furl.Item{Spans: []furl.Span{{First: p, Last: p}}, Show: furl.In{Text: shown, Tokens: 2}})
	}
	if len(items) > 0 {
		m.add(t, by, &furl.Reduction{Stage: "mask", Items: items})
	}
}

// mark hides a random run of units.
func (m *machine) mark(t *rapid.T) {
	if red := m.markOf(t, m.view()); red != nil {
		m.add(t, furl.Furl, red)
	}
}

func (m *machine) markOf(t *rapid.T, v *furl.View) *furl.Reduction {
	from := rapid.IntRange(0, len(v.Units)-1).Draw(t, "first unit")
	to := rapid.IntRange(from, len(v.Units)-1).Draw(t, "last unit")
	units := slices.DeleteFunc(slices.Clone(v.Units[from:to+1]), func(u furl.Unit) bool { return u.Protected })
	if len(units) == 0 {
		return nil
	}
	note := furl.TextMessage(furl.RoleUser, fmt.Sprintf("[%d units hidden]", len(units)))
	note.Measure(letters{})
	return &furl.Reduction{Stage: "summary", Items: []furl.Item{{Spans: v.Spans(units...), Show: furl.Mark{Messages: []*furl.Message{note}}}}}
}

// hide hides what a person has selected, or repeats an undone reduction.
func (m *machine) hide(t *rapid.T) {
	p, _ := m.anyBlock(t)
	last, _ := m.anyBlock(t)
	if last.Msg < p.Msg || last.Msg == p.Msg && last.Block < p.Block {
		p, last = last, p
	}
	h := &policy.Hide{Spans: []furl.Span{{First: p, Last: last}}, Steps: rapid.Bool().Draw(t, "steps")}
	for red := range m.log.State().Reductions() {
		if red.Undone && rapid.Bool().Draw(t, "again") {
			h.Again = red.Seq
		}
	}
	s := m.log.State()
	plan, err := (&policy.Pipeline{Label: "hide", Stages: []policy.Stage{h}, NoBackstop: true}).Plan(context.Background(), s, m.budget())
	if err != nil {
		t.Fatal(err)
	}
	pinned := make(map[furl.Pos]bool)
	for i := range m.view().Messages {
		for _, sb := range m.view().Messages[i].Blocks {
			pinned[sb.Pos] = sb.Hold == furl.Pin && sb.By == 0
		}
	}
	for _, red := range plan.Reductions {
		m.add(t, furl.Person, red)
	}
	for pos, is := range pinned {
		if is && pos.Msg != 0 && m.log.State().ShownBy(pos) != 0 {
			t.Fatalf("block %v was pinned, and a person hid it", pos)
		}
	}
}

// forget drops old thinking.
func (m *machine) forget(t *rapid.T) {
	s := m.log.State()
	for i := range s.Len() {
		seq, msg := s.Message(i)
		for n := range msg.Blocks {
			p := furl.Pos{Msg: seq, Block: n}
			if msg.Blocks[n].Kind == furl.KindThinking && s.ShownBy(p) == 0 && rapid.Bool().Draw(t, "forgets") {
				m.add(t, furl.Furl, &furl.Reduction{Stage: "mask", Items: []furl.Item{{Spans: []furl.Span{{First: p, Last: p}}, Show: furl.Gone{}}}})
				return
			}
		}
	}
}

func (m *machine) lift(t *rapid.T) {
	var active []furl.Seq
	for red := range m.log.State().Reductions() {
		if !red.Undone {
			active = append(active, red.Seq)
		}
	}
	if len(active) == 0 {
		return
	}
	of := rapid.SampledFrom(active).Draw(t, "lift")
	m.add(t, furl.Person, &furl.Restoration{Of: of})
	for i := range m.log.State().Len() {
		seq, msg := m.log.State().Message(i)
		for n := range msg.Blocks {
			if m.log.State().ShownBy(furl.Pos{Msg: seq, Block: n}) == of {
				t.Fatalf("reduction %d still shows message %d block %d after it was lifted", of, seq, n)
			}
		}
	}
}

func (m *machine) open(t *rapid.T) {
	p, _ := m.anyBlock(t)
	m.add(t, furl.Person, &furl.Restoration{Open: true, Spans: []furl.Span{{First: p, Last: p}}})
	if m.log.State().ShownBy(p) != 0 {
		t.Fatalf("block %v was opened and does not show", p)
	}
}

func (m *machine) hold(t *rapid.T) {
	p, _ := m.anyBlock(t)
	h := rapid.SampledFrom([]furl.Hold{furl.Keep, furl.Pin, furl.Release}).Draw(t, "hold")
	m.add(t, furl.Person, &furl.Restoration{Spans: []furl.Span{{First: p, Last: p}}, Hold: h})
}

func (m *machine) anyBlock(t *rapid.T) (furl.Pos, *furl.Block) {
	s := m.log.State()
	seq, msg := s.Message(rapid.IntRange(0, s.Len()-1).Draw(t, "message"))
	n := rapid.IntRange(0, len(msg.Blocks)-1).Draw(t, "block")
	return furl.Pos{Msg: seq, Block: n}, &msg.Blocks[n]
}

// rewind goes to any record, or back to a branch left earlier.
func (m *machine) rewind(t *rapid.T) {
	m.heads = append(m.heads, m.log.Head())
	to := furl.Seq(rapid.IntRange(1, m.log.Len()).Draw(t, "rewind to"))
	if rapid.Bool().Draw(t, "switch back") {
		to = rapid.SampledFrom(m.heads).Draw(t, "branch")
	}
	if _, err := m.log.Rewind(to, clock(m.log.Len()), furl.Person); err != nil {
		t.Fatal(err)
	}
	if open := m.log.State().OpenCalls(); len(open) > 0 {
		t.Fatalf("rewind to %d went to %d, inside a step: open calls %v", to, m.log.Head(), open)
	}
	m.sent = nil
	if m.log.State().Len() == 0 {
		m.user(t)
	}
}

// diverge is a client that goes on from an earlier record and sends again what
// came after it, or a part of that. What was hidden is taken over.
func (m *machine) diverge(t *rapid.T) {
	old, path := m.log.Head(), m.log.Path(m.log.Head())
	before, err := furl.Fold(m.log, old)
	if err != nil {
		t.Fatal(err)
	}
	m.heads = append(m.heads, old)
	if _, err := m.log.Rewind(path[rapid.IntRange(0, len(path)-1).Draw(t, "diverge at")].Seq, clock(m.log.Len()), furl.Client); err != nil {
		t.Fatal(err)
	}
	m.sent = nil
	var left []furl.Record // messages of the old branch alone
	for _, r := range path {
		if msg, ok := r.Body.(*furl.Message); ok && r.Seq > m.log.Head() {
			if slices.ContainsFunc(msg.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindThinking }) {
				break // it would be bound to another place
			}
			left = append(left, r)
		}
	}
	if m.log.State().AwaitsProvider() {
		left = nil // the answers are on the old branch alone
		m.answerHosted(t)
	}
	if len(left) > 0 {
		left = left[:rapid.IntRange(0, len(left)).Draw(t, "sent again")]
	}
	var moved []furl.Moved
	if rapid.Bool().Draw(t, "something stands before") || m.log.State().Len()+len(left) == 0 {
		m.add(t, furl.Client, m.message(t, furl.RoleUser, text("before that")))
	}
	for i, r := range left {
		now := m.add(t, r.By, r.Body)
		if i == 0 {
			moved = []furl.Moved{{Old: r.Seq, New: now.Seq}}
		}
		moved[0].Messages++
	}
	for len(m.log.State().OpenCalls()) > 0 {
		m.result(t)
	}
	take, err := m.log.Takeover(old, moved)
	if err != nil {
		t.Fatalf("take over branch %d: %v", old, err)
	}
	if take == nil {
		return
	}
	m.add(t, furl.Furl, take)
	m.takenOver(t, before, left, moved)
}

// takenOver: what is shown for a message that was sent again is what was shown
// for it on the branch that was left, unless some of what that branch hid names
// messages that were not sent again.
func (m *machine) takenOver(t *rapid.T, before *furl.State, left []furl.Record, moved []furl.Moved) {
	now := m.log.State()
	for red := range before.Reductions() {
		if _, ok := now.Reduction(red.Seq); !ok && !red.Undone {
			return
		}
	}
	for i, r := range left {
		at := moved[0].New + furl.Seq(i)
		for n := range r.Body.(*furl.Message).Blocks {
			was, is := before.ShownBy(furl.Pos{Msg: r.Seq, Block: n}), now.ShownBy(furl.Pos{Msg: at, Block: n})
			old, here := furl.Pos{Msg: r.Seq, Block: n}, furl.Pos{Msg: at, Block: n}
			if covers(now.Fixed(), here) || covers(before.Fixed(), old) {
				continue // its unit stays on one branch, perhaps because of a message that is not on the other
			}
			if was != is {
				t.Fatalf("takeover: message %d block %d was shown by %d, as message %d it is by %d", r.Seq, n, was, at, is)
			}
		}
	}
}

// prepare makes a summary of the view as it is; commit records it later, if
// what it covers is still on the path.
func (m *machine) prepare(t *rapid.T) {
	m.preparedAt = m.log.Head()
	if !rapid.Bool().Draw(t, "by a policy") {
		m.prepared = m.markOf(t, m.view())
		return
	}
	m.prepared, _ = (&policy.Compact{Summarizer: brief{}}).Prepare(t.Context(), m.log.State(), m.budget())
}

// onPath reports whether a record is on the current branch.
func (m *machine) onPath(seq furl.Seq) bool {
	return slices.ContainsFunc(m.log.Path(m.log.Head()), func(r furl.Record) bool { return r.Seq == seq })
}

func (m *machine) budget() furl.Budget {
	return furl.Budget{Counter: letters{}, Size: m.view().Tokens, Now: clock(m.log.Len()), Model: m.model}
}

// brief writes a summary of a few words.
type brief struct{}

func (brief) Summarize(context.Context, policy.SummaryRequest) (policy.Summary, error) {
	return policy.Summary{Text: "a few words", Model: "double"}, nil
}

func (m *machine) commit(t *rapid.T) {
	if m.prepared == nil {
		return
	}
	red := m.prepared
	m.prepared, m.sent = nil, nil
	if red.Summary != nil && rapid.Bool().Draw(t, "with care") {
		pinned, before := m.pinned(), m.view().Tokens
		late, err := policy.Commit(m.log.State(), m.budget(), red)
		if err != nil {
			return // it says why
		}
		m.add(t, furl.Furl, late)
		if after := m.view().Tokens; after >= before {
			t.Fatalf("a summary prepared earlier makes %d tokens of %d", after, before)
		}
		for _, p := range pinned {
			if m.log.State().ShownBy(p) != 0 {
				t.Fatalf("a summary prepared earlier hides %v, which is pinned", p)
			}
		}
		return
	}
	_, err := m.log.Append(m.log.Head(), clock(m.log.Len()), furl.Furl, red)
	// After a rewind, another reply may have continued the last step that it covers.
	if err != nil && !errors.Is(err, furl.ErrNotOnPath) && m.onPath(m.preparedAt) {
		t.Fatalf("commit a summary prepared earlier: %v", err)
	}
}

// edit puts other words in the place of a summary that is shown.
func (m *machine) edit(t *rapid.T) {
	for _, c := range policy.Compactions(m.log.State()) {
		if c.Shown {
			red, err := policy.Edit(m.log.State(), m.budget(), c.Seq, "other words")
			if err != nil {
				t.Fatalf("edit %+v: %v", c, err)
			}
			m.add(t, furl.Person, red)
			return
		}
	}
}

// repeat appends again what is already there.
func (m *machine) repeat(t *rapid.T) {
	path := m.log.Path(m.log.Head())
	r := rapid.SampledFrom(path).Draw(t, "repeated")
	before := m.log.Len()
	got, err := m.log.Append(r.Parent, r.At, r.By, r.Body)
	if err != nil || got.Seq != r.Seq || m.log.Len() != before {
		t.Fatalf("repeating record %d gave record %d, %v, and a log of %d records where %d were", r.Seq, got.Seq, err, m.log.Len(), before)
	}
	if r.Seq != m.log.Head() && r.Parent != m.log.Head() {
		_, err = m.log.Append(r.Parent, r.At, r.By, furl.TextMessage(furl.RoleUser, "something else"))
		if !errors.Is(err, furl.ErrConflict) {
			t.Fatalf("appending something else after %d gave %v, want ErrConflict", r.Parent, err)
		}
	}
}

// bad tries what must be refused and change nothing.
func (m *machine) bad(t *rapid.T) {
	off := furl.Pos{Msg: furl.Seq(m.log.Len() + 7)}
	p, b := m.anyBlock(t)
	bodies := []furl.Body{
		&furl.Reduction{Items: []furl.Item{{Spans: []furl.Span{{First: off, Last: off}}, Show: furl.In{Text: "x"}}}},
		&furl.Restoration{Of: off.Msg},
		&furl.Restoration{},
		&furl.Takeover{},
		&furl.Takeover{Branch: off.Msg},
		&furl.Takeover{Branch: m.log.Head(), Moved: []furl.Moved{{Old: p.Msg, New: p.Msg, Messages: 1}}},
		&furl.Reduction{Items: []furl.Item{{Show: furl.Gone{}}}},
		&furl.Reduction{Items: []furl.Item{{Spans: []furl.Span{{First: p, Last: furl.Pos{Msg: p.Msg, Block: -1}}}, Show: furl.In{Text: "x"}}}},
	}
	if b.Kind != furl.KindThinking {
		bodies = append(bodies, &furl.Reduction{Items: []furl.Item{{Spans: []furl.Span{{First: p, Last: p}}, Show: furl.Gone{}}}})
	}
	n := m.log.Len()
	body := rapid.SampledFrom(bodies).Draw(t, "bad record")
	if _, err := m.log.Append(m.log.Head(), time.Time{}, furl.Person, body); err == nil || m.log.Len() != n {
		t.Fatalf("%+v was accepted", body)
	}
}

// draft has things happen to a draft of the log. The log is what it was before
// until they are loaded into it, and then what the draft was.
func (m *machine) draft(t *rapid.T) {
	before := *m
	before.signed = maps.Clone(m.signed)
	if rapid.Bool().Draw(t, "names are counted") {
		namecount.Blocks(m.log.State(), "anything")
	}
	m.log = m.log.Draft()
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		change := rapid.SampledFrom([]func(*rapid.T){m.user, m.step, m.hosted, m.openStep, m.result, m.plan, m.mask, m.mark, m.lift, m.open, m.hold, m.rewind, m.clientEdit}).Draw(t, "change")
		change(t)
		m.named(t)
	}
	m.check(t)
	draft := *m
	*m = before
	m.calls = draft.calls
	m.check(t)
	m.named(t)
	if !rapid.Bool().Draw(t, "loaded") {
		return
	}
	drafted := m.render(t, draft.view())
	if err := before.log.Load(slices.Clone(draft.log.Records(furl.Seq(before.log.Len())))); err != nil {
		t.Fatalf("load what a draft has: %v", err)
	}
	*m = draft
	m.log = before.log
	if got := m.render(t, m.view()); !slices.EqualFunc(got, drafted, func(a, b []json.RawMessage) bool { return string(join(a)) == string(join(b)) }) {
		t.Fatalf("a draft shows\n%s\nand the log that loaded it\n%s", drafted, got)
	}
	m.named(t)
}

// named holds the counts of names against those of a state of its own.
func (m *machine) named(t *rapid.T) {
	fresh, err := furl.Fold(m.log, m.log.Head())
	if err != nil {
		t.Fatal(err)
	}
	st := m.log.State()
	for i := range st.Len() {
		_, msg := st.Message(i)
		for j := range msg.Blocks {
			for name := range lexer.Names(msg.Blocks[j].Text) {
				first, own := namecount.FirstUse(st, name)
				wantFirst, wantOwn := namecount.FirstUse(fresh, name)
				if got, want := namecount.Blocks(st, name), namecount.Blocks(fresh, name); got != want || first != wantFirst || own != wantOwn {
					t.Fatalf("%q is in %d blocks, first %d %v; want %d, %d %v", name, got, first, own, want, wantFirst, wantOwn)
				}
			}
		}
	}
}

func (m *machine) view() *furl.View { return m.log.State().View(m.model) }

// check holds every law on the session as it is.
func (m *machine) check(t *rapid.T) {
	view := m.view()
	sent := m.render(t, view)
	m.appendOnly(t)
	m.pairing(t, sent)
	m.understood(t, sent)
	m.deterministic(t, sent)
	m.cover(t)
	m.reversible(t)
	m.chained(t)
	if m.thinking {
		m.bound(t, view, sent)
	}
	flat := slices.Concat(sent...)
	if m.sent != nil {
		if len(flat) < len(m.sent) || !slices.EqualFunc(m.sent, flat[:len(m.sent)], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("prefix stability: nothing was reduced or restored, and\n%s\nbecame\n%s", join(m.sent), join(flat))
		}
	}
	m.sent = flat
}

// render gives the wire elements of each shown message.
func (m *machine) render(t *rapid.T, v *furl.View) [][]json.RawMessage {
	t.Helper()
	out := make([][]json.RawMessage, len(v.Messages))
	for i := range v.Messages {
		raws, err := m.codec.EncodeMessage(v.Messages[i])
		if err != nil {
			t.Fatalf("encode message %d: %v", i, err)
		}
		out[i] = raws
		if sh := v.Messages[i]; sh.Index >= 0 && sh.AsRecorded() && (len(raws) != 1 || !bytes.Equal(raws[0], sh.Msg.Raw)) {
			t.Fatalf("message %d is shown as recorded, but its bytes are\n%s\nwere\n%s", sh.Seq, join(raws), sh.Msg.Raw)
		}
	}
	return out
}

func (m *machine) appendOnly(t *rapid.T) {
	for i := len(m.bodies); i < m.log.Len(); i++ {
		r := m.log.At(furl.Seq(i + 1))
		m.copied, m.bodies = append(m.copied, r), append(m.bodies, printRecord(r))
	}
	for i, want := range m.bodies {
		if got := printRecord(m.log.At(furl.Seq(i + 1))); got != want {
			t.Fatalf("append-only: record %d was\n%s\nis\n%s", i+1, want, got)
		}
	}
}

// pairing: what is sent is a request the provider accepts, once no call is open.
func (m *machine) pairing(t *rapid.T, sent [][]json.RawMessage) {
	req := protocol.Request{Format: m.codec.Format()}
	for _, raw := range slices.Concat(sent...) {
		msg, err := m.codec.DecodeMessage(raw)
		if err != nil {
			t.Fatalf("decode what was encoded: %v\n%s", err, raw)
		}
		req.Messages = append(req.Messages, *msg)
	}
	if open := m.log.State().OpenCalls(); len(open) > 0 {
		// A request is sent when all results are there.
		var blocks []furl.Block
		for _, id := range open {
			blocks = append(blocks, furl.Block{Kind: furl.KindResult, ID: id, Text: "late"})
		}
		for _, msg := range m.split(t, furl.RoleTool, blocks) {
			req.Messages = append(req.Messages, *msg)
		}
	}
	if m.log.State().AwaitsProvider() {
		for _, msg := range m.replyOf(t, m.answers(m.waiting())) {
			req.Messages = append(req.Messages, *msg)
		}
	}
	if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == furl.RoleAssistant {
		req.Messages = append(req.Messages, *m.message(t, furl.RoleUser, text("go on")))
	}
	if err := m.codec.Validate(&req, m.model); err != nil {
		t.Fatalf("pairing: the provider refuses the view: %v\n%s", err, join(slices.Concat(sent...)))
	}
}

// chained: what the client has of the path, which is all but furl's own, gives
// the path's chain of digests.
func (m *machine) chained(t *rapid.T) {
	st := m.log.State()
	var client []furl.Message
	run := -1 // the client's message that goes on after furl's answers
	for i := range st.Len() {
		_, msg := st.Message(i)
		theirs := *msg
		theirs.Blocks = nil
		calls := false
		for _, b := range msg.Blocks {
			if !b.Own {
				theirs.Blocks = append(theirs.Blocks, b)
				calls = calls || b.Kind == furl.KindCall
			}
		}
		switch {
		case msg.Role != furl.RoleAssistant && msg.HasOwn():
			continue
		case msg.Role == furl.RoleAssistant && run >= 0 && m.codec.Format() == furl.FormatChat:
			client[run].Blocks = joinWords(client[run].Blocks, theirs.Blocks)
		default:
			client, run = append(client, theirs), len(client)
		}
		if !msg.HasOwn() || calls {
			run = -1
		}
	}
	var chain furl.Digest
	for i := range client {
		chain = client[i].Extend(chain)
	}
	if want := st.Chain(st.Len()); chain != want {
		t.Fatalf("chained: the client's history ends the chain %v, the path ends %v", chain, want)
	}
}

// joinWords puts the blocks of two messages of Chat Completions into one, the
// words of both in one text before all calls.
func joinWords(a, b []furl.Block) []furl.Block {
	var words, calls []furl.Block
	for _, blk := range slices.Concat(a, b) {
		switch {
		case blk.Kind != furl.KindText:
			calls = append(calls, blk)
		case len(words) > 0:
			words[0].Text += furl.BetweenWords + blk.Text
		default:
			words = append(words, blk)
		}
	}
	return append(words, calls...)
}

// deterministic: the records, stored and read back, give the same bytes as the
// state that grew with them.
func (m *machine) deterministic(t *rapid.T, sent [][]json.RawMessage) {
	stored := m.log.Records(0)
	records := make([]furl.Record, len(stored))
	for i, r := range stored {
		head, body, err := record.Encode(r)
		if err != nil {
			t.Fatalf("store: %v", err)
		}
		if records[i], err = record.Decode(head, body); err != nil {
			t.Fatalf("reload: %v", err)
		}
	}
	log := furl.NewLog()
	if err := log.Load(records); err != nil {
		t.Fatalf("reload: %v", err)
	}
	again := m.render(t, log.State().View(m.model))
	if a, b := join(slices.Concat(sent...)), join(slices.Concat(again...)); a != b {
		t.Fatalf("determinism: the view was\n%s\nafter a reload it is\n%s", a, b)
	}
}

// cover: each block is shown as recorded, or by the newest active reduction
// that covers it.
func (m *machine) cover(t *rapid.T) {
	s := m.log.State()
	for i := range s.Len() {
		seq, msg := s.Message(i)
		for n := range msg.Blocks {
			p := furl.Pos{Msg: seq, Block: n}
			want := m.newest(p)
			if got := s.ShownBy(p); !slices.Contains(want, got) {
				t.Fatalf("cover: message %d block %d is shown by %d, want %d", seq, n, got, want)
			}
		}
	}
}

// newest finds, the slow way, who shows a block: the newest active reduction
// or opening that covers it, where a text in place does not bring back what a
// mark hides. After the opening of another block, which may have been widened
// to this one, there are two answers.
func (m *machine) newest(p furl.Pos) []furl.Seq {
	type answer struct {
		by     furl.Seq
		marked bool
	}
	s, may := m.log.State(), []answer{{}}
	fixed := covers(s.Fixed(), p) // perhaps since a later message
	seen := make(map[furl.Seq]bool)
	for _, r := range m.layers() {
		switch b := r.Body.(type) {
		case *furl.Reduction:
			if red, ok := s.Reduction(r.Seq); red.Undone || !ok || seen[r.Seq] {
				continue
			}
			seen[r.Seq] = true
			for _, it := range b.Items {
				if !covers(it.Spans, p) {
					continue
				}
				_, marked := it.Show.(furl.Mark)
				for i := range may {
					if fixed && r.By != furl.Client {
						may = append(may, may[i])
					}
					if marked || !may[i].marked {
						may[i] = answer{r.Seq, marked}
					}
				}
			}
		case *furl.Restoration:
			switch {
			case b.Open && covers(b.Spans, p):
				may = []answer{{}}
			case b.Open && !slices.Contains(may, answer{}):
				may = append(may, answer{})
			}
		}
	}
	var out []furl.Seq
	for _, a := range may {
		out = append(out, a.by)
	}
	return out
}

// layers gives the reductions and restorations of the path, those taken over
// from other branches where they were.
func (m *machine) layers() (list []furl.Record) {
	for _, r := range m.log.Path(m.log.Head()) {
		take, ok := r.Body.(*furl.Takeover)
		if !ok {
			list = append(list, r)
			continue
		}
		for seq, body := range take.Taken() {
			list = append(list, furl.Record{Seq: seq, By: m.log.At(seq).By, Body: body})
		}
	}
	return list
}

func covers(spans []furl.Span, p furl.Pos) bool {
	return slices.ContainsFunc(spans, func(sp furl.Span) bool {
		after := p.Msg > sp.First.Msg || p.Msg == sp.First.Msg && p.Block >= sp.First.Block
		before := p.Msg < sp.Last.Msg || p.Msg == sp.Last.Msg && p.Block <= sp.Last.Block
		return after && before
	})
}

// reversible: with every reduction lifted, the view is the transcript.
func (m *machine) reversible(t *rapid.T) {
	s, err := furl.Fold(m.log, m.log.Head())
	if err != nil {
		t.Fatal(err)
	}
	next := furl.Seq(m.log.Len() + 1)
	for red := range s.Reductions() {
		r := furl.Record{Seq: next, Parent: s.Head(), Body: &furl.Restoration{Of: red.Seq}}
		if err := s.Apply(r); err != nil {
			t.Fatalf("lift %d: %v", red.Seq, err)
		}
		next++
	}
	view := s.View(furl.Model{})
	if len(view.Messages) != s.Len() {
		t.Fatalf("reversibility: all is lifted, and %d of %d messages show", len(view.Messages), s.Len())
	}
	for i := range view.Messages {
		if sh := view.Messages[i]; sh.Index != i || !sh.AsRecorded() {
			t.Fatalf("reversibility: all is lifted, and message %d shows as %+v", i, sh)
		}
	}
}

// bound: a provider that binds thinking to its prefix accepts what is shown.
func (m *machine) bound(t *rapid.T, v *furl.View, sent [][]json.RawMessage) {
	var last furl.Pos
	for i := range v.Messages {
		for _, b := range v.Messages[i].Blocks {
			if b.Block.Kind != furl.KindThinking || b.Pos.Msg == 0 {
				continue
			}
			sig := m.signed[b.Pos]
			start := i
			for start > 0 && v.Messages[start-1].Index >= 0 && v.Messages[start-1].Msg.Role == furl.RoleAssistant && m.sameReply(v.Messages[start-1].Seq, v.Messages[i].Seq) {
				start--
			}
			if got := prefixOf(sent, start); got != sig.prefix {
				t.Fatalf("thinking in message %d is bound to\n%s\nand stands behind\n%s", b.Pos.Msg, sig.prefix, got)
			}
			if last != (furl.Pos{}) && last != sig.before && last.Msg != b.Pos.Msg {
				t.Fatalf("thinking in message %d follows %v, was written after %v", b.Pos.Msg, last, sig.before)
			}
			last = b.Pos
		}
	}
}

func (m *machine) sameReply(a, b furl.Seq) bool {
	for seq := b; seq > a; seq = m.log.At(seq).Parent {
		if _, ok := m.log.At(seq).Body.(*furl.Exchange); ok {
			return false
		}
	}
	return true
}

// Whatever happens to a session, its log comes back from JSON.
func TestJSONOfAnySession(t *testing.T) {
	for _, f := range families {
		t.Run(string(f.codec.Format()), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				m := newMachine(rt, f)
				rt.Repeat(map[string]func(*rapid.T){
					"user": m.user, "step": m.step, "hosted": m.hosted, "open step": m.openStep, "unknown": m.unknown, "policy": m.plan, "mask": m.mask,
					"mark": m.mark, "forget": m.forget, "lift": m.lift, "open": m.open, "hold": m.hold,
					"rewind": m.rewind, "diverge": m.diverge, "client edit": m.clientEdit,
				})
				for _, r := range m.log.Records(0) {
					checkJSON(rt, f.codec, r)
				}
			})
		})
	}
}

// checkJSON checks that a record comes back from its JSON as a store would
// keep it, to the byte, with and without the blocks that its bytes decode to.
func checkJSON(t *rapid.T, codec protocol.Codec, r furl.Record) {
	head, body, err := record.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]record.JSON{"whole": {}, "short": {Codec: func(furl.Format) protocol.Codec { return codec }}} {
		line, err := form.Append(nil, r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := form.Parse(line)
		if err != nil {
			t.Fatalf("%s: %v in %s", name, err, line)
		}
		head2, body2, err := record.Encode(back)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(head, head2) || !bytes.Equal(body, body2) {
			t.Fatalf("%s: the record came back changed from %s", name, line)
		}
	}
}
