package furl_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

// sizes are sessions of about 50k, 200k and 1M tokens, in bytes.
var sizes = []struct {
	name  string
	bytes int
}{{"50k", 200 << 10}, {"200k", 800 << 10}, {"1M", 4 << 20}}

// benchMessages is a coding session of about n bytes: thinking, calls, results
// full of source text, a few words.
func benchMessages(n int) (msgs []*furl.Message, bytes int) {
	source := strings.Repeat("\tif err := run(ctx, name); err != nil {\n\t\treturn fmt.Errorf(\"run %s: %w\", name, err)\n\t}\n", 40)
	add := func(role furl.Role, blocks ...furl.Block) {
		m := &furl.Message{Role: role, Blocks: blocks}
		for i := range blocks {
			bytes += len(blocks[i].Text) + len(blocks[i].Args)
			blocks[i].Tokens = 4 + (len(blocks[i].Text)+len(blocks[i].Args))/4
		}
		msgs = append(msgs, m)
	}
	add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Find out why the build is slow."})
	for i := 0; bytes < n; i++ {
		id := fmt.Sprintf("toolu_%06d", i)
		add(furl.RoleAssistant,
			furl.Block{Kind: furl.KindThinking, Text: "The error must come from run; let me look at who calls it.", Signature: 400},
			furl.Block{Kind: furl.KindText, Text: fmt.Sprintf("Reading file %d.", i)},
			furl.Block{Kind: furl.KindCall, ID: id, Name: "Read", Args: fmt.Appendf(nil, `{"file_path":"/src/pkg/file_%d.go","offset":%d,"limit":200}`, i, i*10)})
		add(furl.RoleUser, furl.Block{Kind: furl.KindResult, ID: id, Text: fmt.Sprint(i, source)})
	}
	return msgs, bytes
}

// benchLog holds the messages, with every second result of the older half
// masked by one reduction.
func benchLog(b *testing.B, msgs []*furl.Message) *furl.Log {
	log := furl.NewLog()
	add := func(body furl.Body) {
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, body); err != nil {
			b.Fatal(err)
		}
	}
	red := &furl.Reduction{Stage: "mask"}
	for i, m := range msgs {
		add(m)
		if i < len(msgs)/2 && i%4 == 2 {
			at := furl.Pos{Msg: log.Head()}
			red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: at, Last: at}}, Show: furl.In{Text: "[hidden]", Tokens: 8}})
		}
	}
	add(red)
	return log
}

// BenchmarkCopy is what the others are measured against.
func BenchmarkCopy(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			_, n := benchMessages(size.bytes)
			text := make([]byte, n)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				_ = append([]byte(nil), text...)
			}
		})
	}
}

// BenchmarkExtend chains the digests of all messages, as matching a request to
// a session does.
func BenchmarkExtend(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			msgs, n := benchMessages(size.bytes)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				var chain furl.Digest
				for _, m := range msgs {
					chain = m.Extend(chain)
				}
			}
		})
	}
}

// BenchmarkFold folds a whole log, as loading a session does.
func BenchmarkFold(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			msgs, n := benchMessages(size.bytes)
			log := benchLog(b, msgs)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := furl.Fold(log, log.Head()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkView shows a state in which nearly all is visible with one more
// reduction, as planning does, on a model that binds thinking to what comes
// before it and on one that does not.
func BenchmarkView(b *testing.B) {
	for _, binds := range []bool{false, true} {
		for _, size := range sizes {
			name := size.name
			if binds {
				name = "binding/" + name
			}
			b.Run(name, func(b *testing.B) {
				msgs, n := benchMessages(size.bytes)
				state := benchLog(b, msgs).State()
				model := furl.Model{Thinking: furl.Thinking{Binds: binds}}
				last, _ := state.Message(state.Len() - 3)
				at := furl.Pos{Msg: last}
				red := &furl.Reduction{Stage: "mask", Items: []furl.Item{{Spans: []furl.Span{{First: at, Last: at}}, Show: furl.In{Text: "[hidden]", Tokens: 8}}}}
				state.View(model) // what the next one takes its sizes from
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					after, err := state.With(red)
					if err != nil {
						b.Fatal(err)
					}
					after.View(model)
				}
			})
		}
	}
}
