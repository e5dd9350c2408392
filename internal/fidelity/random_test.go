package fidelity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
)

// naive counts by the definitions, going over the whole path each time.
func naive(path, reply []*furl.Message, v *furl.View) Count {
	var c Count
	names, lines, calls := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range reply {
		for i := range m.Blocks {
			b := &m.Blocks[i]
			if m.Role != furl.RoleAssistant || b.Kind != furl.KindText && b.Kind != furl.KindCall {
				continue
			}
			for piece := range b.Texts() {
				for name := range lexer.Names(piece) {
					names[name] = true
				}
				for line := range strings.SplitSeq(piece, "\n") {
					lines[line] = true
				}
			}
			if b.Kind == furl.KindCall {
				calls[b.Name+same(b.Args)] = true
			}
		}
	}
	for name := range names {
		var anywhere, first, own bool
		for _, m := range path {
			for i := range m.Blocks {
				b := &m.Blocks[i]
				if !holdsName(b.Texts(), name) {
					continue
				}
				anywhere = true
				if b.Kind == furl.KindResult || m.Role != furl.RoleAssistant {
					first = true
				} else if b.Kind != furl.KindThinking {
					own = true
				}
			}
		}
		kept := inView(v, func(b *furl.ShownBlock) bool { return holdsName(b.Texts(), name) })
		switch {
		case !anywhere:
		case first && !own:
			c.References += 1
			c.ReferencesKept += kept
		default:
			c.OwnReferences += 1
			c.OwnReferencesKept += kept
		}
	}
	quoted := map[string]bool{}
	for line := range lines {
		folded := strings.Join(strings.Fields(line), " ")
		for _, try := range []string{folded, strings.TrimSpace(strings.TrimLeft(folded[:min(1, len(folded))], "+-") + folded[min(1, len(folded)):])} {
			if inResults(path, try) {
				quoted[try] = true
				break
			}
		}
	}
	for line := range quoted {
		c.Lines++
		c.LinesKept += inView(v, func(b *furl.ShownBlock) bool { return holdsLine(b.Texts(), line) })
	}
	for key := range calls {
		c.Refetches += hiddenResults(path, v, key)
	}
	return c
}

func holdsName(texts func(func(string) bool), name string) bool {
	for piece := range texts {
		for n := range lexer.Names(piece) {
			if n == name {
				return true
			}
		}
	}
	return false
}

func holdsLine(texts func(func(string) bool), line string) bool {
	for piece := range texts {
		for l := range Variants(piece) {
			if l == line {
				return true
			}
		}
	}
	return false
}

func inView(v *furl.View, holds func(*furl.ShownBlock) bool) int {
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			if holds(&v.Messages[i].Blocks[j]) {
				return 1
			}
		}
	}
	return 0
}

func inResults(path []*furl.Message, line string) bool {
	for _, m := range path {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindResult && holdsLine(b.Texts(), line) {
				return true
			}
		}
	}
	return false
}

func hiddenResults(path []*furl.Message, v *furl.View, key string) int {
	results := 0
	latest := map[string]string{}
	for at, m := range path {
		for i := range m.Blocks {
			b := &m.Blocks[i]
			if b.Kind == furl.KindCall {
				latest[b.ID] = b.Name + same(b.Args)
			}
			if b.Kind != furl.KindResult || latest[b.ID] != key {
				continue
			}
			results++
			for s := range v.Messages {
				for _, sb := range v.Messages[s].Blocks {
					if v.Messages[s].Index == at && sb.Pos.Block == i && sb.By == 0 {
						return 0
					}
				}
			}
		}
	}
	return min(results, 1)
}

func same(args []byte) string {
	var compact bytes.Buffer
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) != nil {
		return string(args)
	}
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&compact, "%s=%s;", k, fields[k])
	}
	return compact.String()
}

// script makes small random sessions of a few names, lines and calls, so that
// everything recurs.
type script struct {
	*rand.Rand
	ids int
}

func (s *script) pick(from ...string) string { return from[s.IntN(len(from))] }

func (s *script) words() string {
	var lines []string
	for range 1 + s.IntN(4) {
		prefix := s.pick("", "", "  ", "12\t", "7: ", "a/b.go:3:", "+", "- ", " 5→")
		lines = append(lines, prefix+s.pick(
			"look at first_name and x.y.zed", "third-name", "nothing to see",
			"a line of thirty characters or more", "another  line of thirty characters, surely", "first_name once more, in a line that is long"))
	}
	return strings.Join(lines, "\n")
}

func (s *script) call() furl.Block {
	s.ids++
	args, _ := json.Marshal(s.words())
	order := s.pick(`{"a":1,"b":%s}`, `{ "b": %s, "a": 1 }`, `{"b":"same","a":1}`, `{"a":1,"b":"same"}`)
	if strings.Contains(order, "%s") {
		order = fmt.Sprintf(order, args)
	}
	return call(fmt.Sprint("c", s.ids), s.pick("Read", "Run"), order)
}

func (s *script) assistant() (*furl.Message, []furl.Block) {
	var blocks []furl.Block
	if s.IntN(3) == 0 {
		blocks = append(blocks, furl.Block{Kind: furl.KindThinking, Text: s.words()})
	}
	blocks = append(blocks, furl.Block{Kind: furl.KindText, Text: s.words()})
	var calls []furl.Block
	for range s.IntN(3) {
		calls = append(calls, s.call())
	}
	return message(furl.RoleAssistant, append(blocks, calls...)...), calls
}

func (s *script) session() []*furl.Message {
	msgs := []*furl.Message{text(furl.RoleUser, s.words())}
	for range s.IntN(5) {
		m, calls := s.assistant()
		msgs = append(msgs, m)
		if len(calls) == 0 {
			msgs = append(msgs, text(furl.RoleUser, s.words()))
			continue
		}
		for i := range calls {
			msgs = append(msgs, message(furl.RoleTool, result(calls[i].ID, s.words())))
		}
	}
	return msgs
}

// hidden is a log of the messages with some blocks hidden.
func (s *script) hidden(t *testing.T, msgs []*furl.Message) *furl.Log {
	log := logOf(t, msgs)
	red := &furl.Reduction{Stage: "test"}
	for i, m := range msgs {
		for j := range m.Blocks {
			if s.IntN(2) == 0 || m.Blocks[j].Kind == furl.KindThinking {
				continue
			}
			words := s.words()
			if m.Blocks[j].Kind == furl.KindCall {
				quoted, _ := json.Marshal(words)
				words = fmt.Sprintf(`{"was":%s}`, quoted)
			}
			red.Items = append(red.Items, hide(furl.Seq(i+1), j, words))
		}
	}
	if len(red.Items) > 0 {
		add(t, log, red)
	}
	return log
}

func TestAgainstDefinitions(t *testing.T) {
	var total Count
	for seed := range uint64(400) {
		s := &script{Rand: rand.New(rand.NewPCG(seed, 0))}
		msgs := s.session()
		var tracker Tracker
		for _, m := range s.session() { // a branch to rewind from
			tracker.Add(m)
		}
		tracker.Truncate(0)
		for _, m := range msgs {
			tracker.Add(m)
		}
		answer, _ := s.assistant()
		r := tracker.Reply(answer)
		for i := range r.Refs {
			for msg, block := range r.Holders(r.Refs[i]) {
				if !holdsName(msgs[msg].Blocks[block].Texts(), r.Refs[i].Name) {
					t.Errorf("seed %d: block %d.%d does not hold %s", seed, msg, block, r.Refs[i].Name)
				}
			}
		}
		for i := range r.Lines {
			for msg, block := range r.LineHolders(r.Lines[i]) {
				if !holdsLine(msgs[msg].Blocks[block].Texts(), r.Lines[i].Text) {
					t.Errorf("seed %d: block %d.%d does not hold %q", seed, msg, block, r.Lines[i].Text)
				}
			}
		}
		var seen Seen
		for range 3 {
			v := s.hidden(t, msgs).State().View(furl.Model{})
			seen.Look(r, v)
			got, want := seen.Count(), naive(msgs, []*furl.Message{answer}, v)
			if got != want {
				t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
			}
			sum(&total, got)
		}
	}
	t.Logf("counted %+v", total)
	if total.ReferencesKept == 0 || total.ReferencesKept == total.References || total.Lines == 0 || total.LinesKept == total.Lines || total.Refetches == 0 || total.OwnReferences == 0 {
		t.Errorf("the sessions are too plain: %+v", total)
	}
}

func sum(total *Count, c Count) {
	all, one := reflect.ValueOf(total).Elem(), reflect.ValueOf(c)
	for i := range one.NumField() {
		all.Field(i).SetInt(all.Field(i).Int() + one.Field(i).Int())
	}
}

// A session of a thousand messages and a megabyte, with one Look at each
// view.
func BenchmarkSession(b *testing.B) {
	var msgs []*furl.Message
	bytes := 0
	for i := range 500 {
		var words strings.Builder
		for n := range 40 {
			fmt.Fprintf(&words, "%6d→\treturn s.db.write_%d(ctx, encodeAll%d(recs)) // in store/file_%d.go\n", n, i%37, n, i%91)
		}
		id := fmt.Sprint("c", i)
		msgs = append(msgs, message(furl.RoleAssistant, call(id, "Read", fmt.Sprintf(`{"path":"store/file_%d.go"}`, i%91))), message(furl.RoleTool, result(id, words.String())))
		bytes += words.Len()
	}
	b.Run("track", func(b *testing.B) {
		b.SetBytes(int64(bytes))
		for b.Loop() {
			var tracker Tracker
			for _, m := range msgs {
				if m.Role == furl.RoleAssistant {
					tracker.Reply(m)
				}
				tracker.Add(m)
			}
		}
	})
	b.Run("look", func(b *testing.B) {
		var tracker Tracker
		log := furl.NewLog()
		for _, m := range msgs {
			tracker.Add(m)
			add(b, log, m)
		}
		r := tracker.Reply(msgs[0])
		v := log.State().View(furl.Model{})
		var seen Seen
		b.ReportAllocs()
		for b.Loop() {
			seen.Look(r, v)
			seen.Count()
		}
	})
}
