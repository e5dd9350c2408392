package token_test

import (
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/token"
)

func block(k furl.Kind, tokens int) furl.Block { return furl.Block{Kind: k, Tokens: tokens} }

func message(r furl.Role, blocks ...furl.Block) *furl.Message {
	return &furl.Message{Role: r, Blocks: blocks}
}

// The next prompt is the last one reported, its reply as reported, and an
// estimate of everything added since.
func TestMeterEstimate(t *testing.T) {
	m := token.NewMeter(&furl.Model{})
	m.Message(message(furl.RoleUser, block(furl.KindText, 100)))
	if got := m.Estimate(); got != 100 {
		t.Errorf("before any report: %d tokens, want the counted 100", got)
	}
	m.Report(furl.Usage{Input: 3, CacheRead: 9000, CacheWrite: 1097}, nil)
	if got := m.Estimate(); got != 10_100 {
		t.Errorf("after a report of 10,100: %d tokens", got)
	}
	m.Message(message(furl.RoleAssistant, block(furl.KindText, 50), block(furl.KindCall, 30)))
	m.Report(furl.Usage{}, nil) // a report without usage
	m.Message(message(furl.RoleTool, block(furl.KindResult, 400)))
	if got, want := m.Estimate(), 10_100+50+30+12+400+12; got != want {
		t.Errorf("output unknown: %d tokens, want %d", got, want)
	}
}

func TestMeterUsesTheReportedOutput(t *testing.T) {
	for _, tt := range []struct {
		name   string
		output int
		want   int
	}{
		{"as reported", 95, 95},
		{"more than counted, with hidden reasoning", 700, 700},
		{"of a reply that had only begun", 3, 92},
	} {
		m := token.NewMeter(&furl.Model{})
		m.Report(furl.Usage{Input: 10_000, Output: tt.output}, nil)
		m.Message(message(furl.RoleAssistant, block(furl.KindText, 50), block(furl.KindCall, 30)))
		if got := m.Estimate(); got != 10_000+tt.want {
			t.Errorf("%s: %d tokens, want %d", tt.name, got, 10_000+tt.want)
		}
		if got := m.Reply(); got != tt.want {
			t.Errorf("%s: a reply of %d tokens, want %d", tt.name, got, tt.want)
		}
	}
}

// Reported reasoning is part of the next prompt if the client sends it back,
// and, if the provider drops it then, only until the next user message.
func TestMeterReasoning(t *testing.T) {
	keeps, drops := &furl.Model{}, &furl.Model{Thinking: furl.Thinking{LastOnly: true}}
	call := message(furl.RoleAssistant, block(furl.KindCall, 50))
	thoughtful := message(furl.RoleAssistant, block(furl.KindThinking, 4), block(furl.KindCall, 50))
	result := message(furl.RoleTool, block(furl.KindResult, 88))
	answer := message(furl.RoleAssistant, block(furl.KindThinking, 4), block(furl.KindText, 50))
	user := message(furl.RoleUser, block(furl.KindText, 10))
	aside := message(furl.RoleUser, block(furl.KindResult, 88), block(furl.KindText, 10))
	for _, tt := range []struct {
		name  string
		model *furl.Model
		reply *furl.Message
		next  *furl.Message
		want  int
	}{
		{"not sent back", keeps, call, result, 10_000 + 62 + 100},
		{"sent back", keeps, thoughtful, result, 10_000 + 562 + 100},
		{"kept beyond the loop", keeps, answer, user, 10_000 + 562 + 10},
		{"dropped after the loop", drops, answer, user, 10_000 + 62 + 10},
		{"kept within the loop", drops, thoughtful, result, 10_000 + 562 + 100},
		{"kept if text comes with results", drops, thoughtful, aside, 10_000 + 562 + 110},
	} {
		m := token.NewMeter(tt.model)
		m.Report(furl.Usage{Input: 10_000, Output: 562, Reasoning: 500}, nil)
		m.Message(tt.reply)
		m.Message(tt.next)
		if got := m.Estimate(); got != tt.want {
			t.Errorf("%s: %d tokens, want %d", tt.name, got, tt.want)
		}
	}
}

// Thinking that was counted but not reported is dropped as counted.
func TestMeterDropsCountedThinking(t *testing.T) {
	m := token.NewMeter(&furl.Model{Thinking: furl.Thinking{LastOnly: true}})
	m.Message(message(furl.RoleUser, block(furl.KindText, 100)))
	m.Report(furl.Usage{Input: 100}, nil)
	m.Message(message(furl.RoleAssistant, block(furl.KindThinking, 70), block(furl.KindCall, 30)))
	m.Message(message(furl.RoleUser, block(furl.KindResult, 50)))
	if got := m.Estimate(); got != 250+2*12 {
		t.Errorf("within the loop: %d tokens, want 274", got)
	}
	m.Report(furl.Usage{Input: 274}, nil)
	m.Message(message(furl.RoleAssistant, block(furl.KindThinking, 20), block(furl.KindText, 40)))
	m.Message(message(furl.RoleUser, block(furl.KindText, 10)))
	if got := m.Estimate(); got != 274+40+10-70 {
		t.Errorf("after it: %d tokens, want 254", got)
	}
	if got, want := m.Whole(), (token.Part{Tokens: 230, Items: 2}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	m.Report(furl.Usage{Input: 254}, nil)
	if got := m.Estimate(); got != 254 {
		t.Errorf("after the next report: %d tokens, want 254", got)
	}
}

// What an edit hides is subtracted from the last report, as a plan of it expects, and what
// comes later is added. Of reported reasoning, the share that is left counts.
func TestMeterEdit(t *testing.T) {
	m := token.NewMeter(&furl.Model{})
	m.Report(furl.Usage{Input: 10_000, Output: 562, Reasoning: 500}, nil)
	m.Message(message(furl.RoleUser, block(furl.KindText, 3000)))
	m.Report(furl.Usage{Input: 15_000, Output: 562, Reasoning: 500}, nil)
	m.Message(message(furl.RoleAssistant, block(furl.KindThinking, 400), block(furl.KindCall, 50)))
	before := token.Part{Tokens: 3050, Thinking: 400, Items: 1}
	size, added := m.Estimate(), m.Calibration().Added
	hidden := token.Part{Tokens: 2000, Thinking: 400}
	m.Edit(before.Minus(hidden))
	want := size - added(hidden)
	if got := m.Estimate(); got != want {
		t.Errorf("%d tokens after an edit, want %d", got, want)
	}
	if got := m.Whole(); got != (token.Part{Tokens: 1050, Items: 1}) {
		t.Errorf("the prompt is %+v", got)
	}
	m.Message(message(furl.RoleTool, block(furl.KindResult, 100)))
	m.Edit(before.Plus(token.Part{Tokens: 100, Items: 1})) // the edit is undone
	if got := m.Estimate(); got != size+added(token.Part{Tokens: 100, Items: 1}) {
		t.Errorf("%d tokens after it was undone, were %d", got, size)
	}
}

// After a reduction the last report no longer applies; the fit does.
func TestMeterRebase(t *testing.T) {
	m := token.NewMeter(&furl.Model{})
	m.Message(message(furl.RoleUser, block(furl.KindText, 50_000)))
	m.Report(furl.Usage{Input: 62_000, Output: 5}, nil)
	before := m
	m.Rebase(token.Part{Tokens: 10_000})
	if got := m.Estimate(); got != 22_000 {
		t.Errorf("after the reduction: %d tokens, want 10,000 and an overhead of 12,000", got)
	}
	m.Message(message(furl.RoleUser, block(furl.KindText, 500)))
	if got := m.Estimate(); got != 22_500 {
		t.Errorf("a message later: %d tokens, want 22,500", got)
	}
	m.Report(furl.Usage{Input: 23_000}, nil)
	if got := m.Estimate(); got != 23_000 {
		t.Errorf("after a report: %d tokens, want 23,000", got)
	}
	if got := before.Estimate(); got != 62_005 {
		t.Errorf("the copy: %d tokens, want 62,005", got)
	}
}

// After a switch of models the overhead is converted by the ratio of the
// models' tokens.
func TestMeterSwitch(t *testing.T) {
	m := token.NewMeter(&furl.Model{TokenScale: 1})
	m.Message(message(furl.RoleUser, block(furl.KindText, 10_000)))
	m.Report(furl.Usage{Input: 30_000}, nil)
	m.Switch(&furl.Model{TokenScale: 1.5})
	if got := m.Estimate(); got != 45_000 {
		t.Errorf("%d tokens, want 45,000", got)
	}
}

func TestPartOfView(t *testing.T) {
	user := furl.TextMessage(furl.RoleUser, "go on")
	reply := &furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{
		{Kind: furl.KindThinking, Text: "hm"}, {Kind: furl.KindCall, ID: "c", Name: "Read", Args: []byte("{}")},
	}}
	result := &furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: "c", Text: "text"}}}
	answer := &furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindThinking, Text: "oh"}, {Text: "done"}}}
	log := furl.NewLog()
	for _, m := range []*furl.Message{user, reply, result, answer, furl.TextMessage(furl.RoleUser, "thanks")} {
		m.Seal()
		m.Measure(token.O200k())
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, m); err != nil {
			t.Fatal(err)
		}
	}
	keeps, drops := furl.Model{}, furl.Model{Thinking: furl.Thinking{LastOnly: true}}
	view := log.State().View(keeps)
	all := token.PartOfView(view)
	if all.Tokens+all.Thinking != view.Tokens || all.Items != 2 || all.Thinking == 0 {
		t.Errorf("counted %+v of a view of %d tokens", all, view.Tokens)
	}
	view = log.State().View(drops)
	if got := token.PartOfView(view); got.Thinking != 0 || got.Tokens != all.Tokens {
		t.Errorf("counted %+v where old thinking is dropped", got)
	}
	meter := token.NewMeter(&drops)
	for _, r := range log.Path(log.Head()) {
		meter.Record(r)
	}
	if got, want := meter.Whole(), token.PartOfView(view); got != want {
		t.Errorf("the meter counted %+v, the view %+v", got, want)
	}
}

// The prompt of a later pass has the earlier part of the reply, with the result of the
// provider's tool: it does not count twice.
func TestMeterPasses(t *testing.T) {
	asked := message(furl.RoleUser, block(furl.KindText, 10_000))
	found := block(furl.KindOpaque, 50_000)
	first := furl.Usage{Input: 10_000, Output: 40}
	for _, test := range []struct {
		name   string
		last   furl.Usage
		passes furl.Passes
		want   int
	}{
		{"as reported", furl.Usage{Input: 60_000, Output: 200}, nil, 60_200},
		{"an output count of the start of the reply", furl.Usage{Input: 60_000, Output: 1}, nil, 60_200},
		{"after a compaction", furl.Usage{Input: 3_000, Output: 200}, furl.Passes{{Kind: furl.PassCompaction, Usage: furl.Usage{Input: 10_000, Output: 40}}}, 3_200},
	} {
		m := token.NewMeter(&furl.Model{})
		m.Message(asked)
		if test.passes == nil {
			test.passes = furl.Passes{{Kind: furl.PassMessage, Usage: first}}
		}
		m.Report(test.last, append(test.passes, furl.Pass{Kind: furl.PassMessage, Usage: test.last}))
		m.Message(message(furl.RoleAssistant, block(furl.KindText, 40), found, block(furl.KindText, 200)))
		if got := m.Estimate(); got < test.want*95/100 || got > test.want*105/100 {
			t.Errorf("%s: the next prompt is estimated at %d tokens, want about %d", test.name, got, test.want)
		}
		if scale := m.Calibration().Scale(); scale < 0.8 || scale > 1.25 {
			t.Errorf("%s: %.2f tokens of the provider for one that is counted", test.name, scale)
		}
	}
}
