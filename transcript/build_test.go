package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
)

// lineCodec is a minimal wire format: a message is a JSON array of a role and
// blocks such as "text:hi", "call:a" and "result:a".
type lineCodec struct{}

func (lineCodec) Format() furl.Format { return furl.FormatAnthropic }

func (lineCodec) DecodeMessage(raw []byte) (*furl.Message, error) {
	var words []string
	if err := json.Unmarshal(raw, &words); err != nil || len(words) == 0 {
		return nil, fmt.Errorf("invalid message: %s", raw)
	}
	m := &furl.Message{Role: furl.Role(words[0]), Format: furl.FormatAnthropic, Raw: raw}
	for _, w := range words[1:] {
		kind, word, _ := strings.Cut(w, ":")
		switch kind {
		case "call":
			m.Blocks = append(m.Blocks, furl.Block{Kind: furl.KindCall, ID: word, Name: "run", Args: []byte("{}")})
		case "result":
			m.Blocks = append(m.Blocks, furl.Block{Kind: furl.KindResult, ID: word, Text: "done"})
		default:
			m.Blocks = append(m.Blocks, furl.Block{Kind: furl.KindText, Text: strings.TrimPrefix(w, "text:")})
		}
	}
	m.Seal()
	return m, nil
}

func (c lineCodec) NewMessage(role furl.Role, blocks []furl.Block) (*furl.Message, error) {
	words := []string{string(role)}
	for _, b := range blocks {
		switch b.Kind {
		case furl.KindCall:
			words = append(words, "call:"+b.ID)
		case furl.KindResult:
			words = append(words, "result:"+b.ID)
		default:
			words = append(words, "text:"+b.Text)
		}
	}
	raw, _ := json.Marshal(words)
	m, err := c.DecodeMessage(raw)
	if err == nil {
		m.Blocks = blocks
		m.Seal()
	}
	return m, err
}

func (c lineCodec) EncodeMessage(s furl.Shown) ([]json.RawMessage, error) {
	var blocks []furl.Block
	for _, b := range s.Blocks {
		blocks = append(blocks, *b.Block)
	}
	m, err := c.NewMessage(s.Msg.Role, blocks)
	if err != nil {
		return nil, err
	}
	return []json.RawMessage{m.Raw}, nil
}

func (lineCodec) DecodeRequest([]byte) (*protocol.Request, error) { return nil, errors.ErrUnsupported }
func (lineCodec) EncodeRequest(*protocol.Request, *furl.View) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
func (lineCodec) Validate(*protocol.Request, furl.Model) error { return errors.ErrUnsupported }

// script drives a builder: "user …" and "assistant …" add messages. Each
// assistant message follows an exchange unless it starts with "+". "cut a-b"
// hides entries; "rewind n" goes back to the n-th message.
func script(t *testing.T, steps ...string) (*Session, *Recording) {
	t.Helper()
	in := &input{bounds: unbounded, rec: &Recording{File: "script"}, counter: byteCounter{}}
	b := newBuilder(in, lineCodec{})
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var msgs []ref
	for n, step := range steps {
		at = at.Add(time.Minute)
		verb, rest, _ := strings.Cut(step, " ")
		switch verb {
		case "rewind":
			var to int
			fmt.Sscan(rest, &to)
			b.rewind(at, msgs[to-1])
			continue
		case "cut":
			var from, to int
			if _, err := fmt.Sscanf(rest, "%d-%d", &from, &to); err != nil {
				t.Fatal(err)
			}
			b.compact(at, n+1, compaction{
				hide: msgs[from-1 : to], stage: "compact", before: 10, after: 5,
				show: []*furl.Message{furl.TextMessage(furl.RoleUser, "summary")}, summary: &furl.Summary{Text: "summary"},
			})
			continue
		case "assistant":
			b.reply(at, furl.Exchange{Model: "m", ResponseID: step})
		}
		words := append([]string{strings.TrimPrefix(verb, "+")}, strings.Fields(rest)...)
		raw, _ := json.Marshal(words)
		msgs = append(msgs, b.raw(at, n+1, raw))
	}
	s := b.finish()
	in.summarize()
	return s, in.rec
}

type byteCounter struct{}

func (byteCounter) Count(text string) int { return len(text) }

// shown describes what the model sees at the end of the current branch.
func shown(s *Session) string {
	var out []string
	v := s.Log.State().View(furl.Model{})
	for i := range v.Messages {
		var line strings.Builder
		line.WriteString(string(v.Messages[i].Msg.Role))
		for _, b := range v.Messages[i].Blocks {
			switch word := b.Words(); b.Block.Kind {
			case furl.KindCall:
				line.WriteString(" call:" + b.Block.ID)
			case furl.KindResult:
				if word == noResult {
					line.WriteString(" none:" + b.Block.ID)
				} else {
					line.WriteString(" result:" + b.Block.ID)
				}
			default:
				line.WriteString(" " + word)
			}
		}
		out = append(out, line.String())
	}
	return strings.Join(out, " | ")
}

func TestPairRepair(t *testing.T) {
	tests := []struct {
		name    string
		steps   []string
		want    string
		skipped int
		note    string
	}{
		{"whole", []string{"user hi", "assistant call:a", "user result:a", "assistant bye"},
			"user hi | assistant call:a | user result:a | assistant bye", 0, ""},
		{"open at the end", []string{"user hi", "assistant call:a"},
			"user hi | assistant call:a", 0, ""},
		{"aborted", []string{"user hi", "assistant call:a", "user stop", "assistant ok"},
			"user hi | assistant call:a | user none:a | user stop | assistant ok", 0, "the missing result"},
		{"one of two", []string{"user hi", "assistant call:a call:b", "user result:a", "assistant ok"},
			"user hi | assistant call:a call:b | user result:a | user none:b | assistant ok", 0, "the missing result"},
		{"one of two, with text after it", []string{"user hi", "assistant call:a call:b", "user result:a more", "assistant ok"},
			"user hi | assistant call:a call:b | user none:b | user result:a more | assistant ok", 0, "the missing result"},
		{"late", []string{"user hi", "assistant call:a", "user wait", "user result:a", "assistant ok"},
			"user hi | assistant call:a | user result:a | user wait | assistant ok", 0, "moved 1 result"},
		{"late, after a reply", []string{"user hi", "assistant call:a", "assistant hm", "user result:a"},
			"user hi | assistant call:a | user result:a | assistant hm", 0, "moved 1 result"},
		{"in order of recording", []string{"user hi", "assistant call:a call:b", "user result:b", "user result:a", "assistant ok"},
			"user hi | assistant call:a call:b | user result:b | user result:a | assistant ok", 0, ""},
		{"one reply in pieces", []string{"user hi", "assistant call:a", "+assistant call:b", "user result:a", "user result:b"},
			"user hi | assistant call:a | assistant call:b | user result:a | user result:b", 0, ""},
		{"no call", []string{"user hi", "user result:z", "assistant ok"},
			"user hi | assistant ok", 1, ""},
		{"no call, but words", []string{"user hi", "user result:z more", "assistant ok"},
			"user hi | user more | assistant ok", 1, ""},
		{"second result", []string{"user hi", "assistant call:a", "user result:a", "user result:a", "assistant ok"},
			"user hi | assistant call:a | user result:a | assistant ok", 1, ""},
		{"second call", []string{"user hi", "assistant call:a", "user result:a", "assistant call:a x", "user result:a"},
			"user hi | assistant call:a | user result:a | assistant x", 2, ""},
		{"rewound", []string{"user hi", "assistant call:a", "user result:a", "rewind 1", "assistant no"},
			"user hi | assistant no", 0, ""},
		{"rewound into a step", []string{"user hi", "assistant call:a call:b", "user result:a", "user result:b", "rewind 3", "user go", "assistant ok"},
			"user hi | assistant call:a call:b | user result:a | user none:b | user go | assistant ok", 0, "the missing result"},
		{"the same call on two branches", []string{"user hi", "assistant call:a", "user result:a", "rewind 1", "assistant call:a", "user result:a", "assistant ok"},
			"user hi | assistant call:a | user result:a | assistant ok", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, rec := script(t, tt.steps...)
			if got := shown(s); got != tt.want {
				t.Errorf("the model sees\n%s, want\n%s", got, tt.want)
			}
			if len(rec.Skipped) != tt.skipped {
				t.Errorf("skipped %v, want %d", rec.Skipped, tt.skipped)
			}
			if notes := strings.Join(rec.Notes, "\n"); (tt.note == "") != (notes == "") || !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want one with %q", notes, tt.note)
			}
		})
	}
}

func TestBuilderCompactions(t *testing.T) {
	tests := []struct {
		name  string
		steps []string
		want  string
	}{
		{"all", []string{"user hi", "assistant call:a", "user result:a", "cut 1-3", "assistant ok"}, "user summary | assistant ok"},
		{"a tail", []string{"user hi", "assistant yes", "user go", "cut 1-2", "assistant ok"}, "user summary | user go | assistant ok"},
		{"whole steps", []string{"user hi", "assistant call:a", "user result:a", "cut 2-2", "assistant ok"}, "user hi | user summary | assistant ok"},
		{"text after a hidden call", []string{"user hi", "assistant call:a", "user result:a more", "cut 2-2", "assistant ok"}, "user hi | user summary | user more | assistant ok"},
		{"twice", []string{"user hi", "assistant yes", "cut 1-2", "user go", "assistant no", "cut 1-4", "user so"}, "user summary | user so"},
		{"an open call", []string{"user hi", "assistant call:a", "cut 1-2", "user so"}, "user summary | user so"},
		{"rewound", []string{"user hi", "assistant yes", "user go", "cut 1-3", "user so", "rewind 2", "user on"}, "user hi | assistant yes | user on"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, rec := script(t, tt.steps...)
			if got := shown(s); got != tt.want {
				t.Errorf("the model sees\n%s, want\n%s", got, tt.want)
			}
			if len(rec.Skipped) > 0 {
				t.Errorf("skipped %v", rec.Skipped)
			}
		})
	}
}

func TestBuilderCompactionsCount(t *testing.T) {
	s, _ := script(t, "user hi", "assistant yes", "cut 1-2", "user go", "assistant no", "cut 1-4", "user so")
	var numbers, messages []int
	for red := range s.Log.State().Reductions() {
		numbers = append(numbers, red.Summary.Number)
		messages = append(messages, red.Summary.Messages)
	}
	if got, want := fmt.Sprint(numbers, messages), "[1 2] [2 2]"; got != want {
		t.Errorf("numbers and newly hidden messages %s, want %s", got, want)
	}
	if s.Compactions != 2 || s.Messages != 5 {
		t.Errorf("%d compactions and %d messages, want 2 and 5", s.Compactions, s.Messages)
	}
}

// If the compacted messages are in another file, the summary becomes a
// message.
func TestBuilderCompactionOfNothing(t *testing.T) {
	in := &input{bounds: unbounded, rec: &Recording{}}
	b := newBuilder(in, lineCodec{})
	b.compact(time.Time{}, 1, compaction{hide: b.soFar(), stage: "compact", show: []*furl.Message{furl.TextMessage(furl.RoleUser, "summary")}})
	b.raw(time.Time{}, 2, []byte(`["user","text:on"]`))
	s := b.finish()
	if got, want := shown(s), "user summary | user on"; got != want {
		t.Errorf("the model sees %s, want %s", got, want)
	}
	if s.Compactions != 1 {
		t.Errorf("%d compactions, want 1", s.Compactions)
	}
}

func TestBuilderBlocks(t *testing.T) {
	in := &input{bounds: unbounded, rec: &Recording{}}
	b := newBuilder(in, lineCodec{})
	b.blocks(time.Time{}, 1, furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "hi"})
	b.blocks(time.Time{}, 2, furl.RoleUser)
	if got := shown(b.finish()); got != "user hi" || len(in.rec.Skipped) != 1 {
		t.Errorf("the model sees %s, skipped %v; want user hi, and the empty message skipped", got, in.rec.Skipped)
	}
}

func TestBuilderExchanges(t *testing.T) {
	s, _ := script(t, "user hi", "assistant call:a", "user result:a", "assistant bye", "user on")
	var got []string
	for i := 1; i <= s.Log.Len(); i++ {
		r := s.Log.At(furl.Seq(i))
		if r.By != furl.Import {
			t.Errorf("record %d is by %v, want import", i, r.By)
		}
		if ex, ok := r.Body.(*furl.Exchange); ok {
			parent := s.Log.At(r.Parent)
			if !r.At.Equal(parent.At) {
				t.Errorf("request %d was sent at %v, want %v, the time of the message before it", i, r.At, parent.At)
			}
			if m, ok := s.Log.At(r.Seq + 1).Body.(*furl.Message); !ok || m.Role != furl.RoleAssistant {
				t.Errorf("request %d is not followed by its reply", i)
			}
			got = append(got, ex.ResponseID)
		}
	}
	if want := "assistant call:a,assistant bye"; strings.Join(got, ",") != want {
		t.Errorf("requests %v, want %s", got, want)
	}
	if s.Model != "m" || s.Calls != 1 || s.Results != 1 || s.Messages != 5 {
		t.Errorf("model %q, %d calls, %d results, %d messages; want m, 1, 1, 5", s.Model, s.Calls, s.Results, s.Messages)
	}
	if s.Log.State().View(furl.Model{}).Tokens == 0 {
		t.Error("no tokens were measured")
	}
}

func TestTooManyBranches(t *testing.T) {
	steps := []string{"user hi", "assistant yes"}
	for range maxRewinds + 1 {
		steps = append(steps, "user old", "rewind 2")
	}
	steps = append(steps, "user new")
	s, rec := script(t, steps...)
	if got, want := shown(s), "user hi | assistant yes | user new"; got != want {
		t.Errorf("the model sees %s, want %s", got, want)
	}
	if s.Log.Len() != 4 || len(rec.Notes) != 1 {
		t.Errorf("%d records and notes %v, want 4 and one note", s.Log.Len(), rec.Notes)
	}
}

// A reply whose blocks were all refused still counts as a request, and its
// request does not end the previous reply.
func TestUnansweredAfterReply(t *testing.T) {
	in := &input{bounds: unbounded, rec: &Recording{}}
	b := newBuilder(in, anthropic.Codec)
	b.raw(time.Time{}, 1, []byte(`{"role":"user","content":"go"}`))
	for _, raw := range []string{
		`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}`,
		`{"role":"assistant","content":"said"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{}}]}`,
		`{"role":"user","content":"and?"}`,
		`{"role":"assistant","content":"done"}`,
	} {
		if strings.Contains(raw, "assistant") {
			b.reply(time.Time{}, furl.Exchange{Usage: furl.Usage{Input: 5}})
		}
		b.raw(time.Time{}, 1, []byte(raw))
	}
	s := b.finish()
	if n := checkRequests(t, s, false); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
	if len(in.rec.Skipped) != 1 {
		t.Errorf("skipped %v", in.rec.Skipped)
	}
}

// unbounded is for tests that are not about limits.
var unbounded = bounds{1 << 30, 1 << 40}
