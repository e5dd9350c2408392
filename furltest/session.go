package furltest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// SessionOptions describe a generated session.
type SessionOptions struct {
	// Seed seeds all random choices; equal options give equal sessions.
	Seed uint64
	// Messages is the number of messages; 0: 20.
	Messages int
	// MessageBytes is the approximate average length of a message on the
	// wire; 0: 1,000. Results are longer than that, texts shorter.
	MessageBytes int
	// Format is the wire format; "": furl.FormatAnthropic.
	Format furl.Format
	// Exchanges adds a record of the request before each reply.
	Exchanges bool
	// Reductions sometimes masks a result, sometimes undoes that, and rewinds
	// about once per hundred messages, taking over the masks.
	Reductions bool
	// Start is when the session began; zero: the start of 2026.
	Start time.Time
}

// Session generates the records of a coding session: requests of a user,
// steps with tool calls, results full of source text, a reply. The records
// form a valid furl.Log.
func Session(o SessionOptions) []furl.Record {
	if o.Messages == 0 {
		o.Messages = 20
	}
	if o.MessageBytes == 0 {
		o.MessageBytes = 1000
	}
	if o.Start.IsZero() {
		o.Start = time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	}
	b := &builder{o: o, rnd: rand.New(rand.NewPCG(o.Seed, 0x6675726c)), log: furl.NewLog(), codec: codecOf(o.Format), at: o.Start}
	b.run()
	return b.log.Records(0)
}

// codecOf returns the codec of a format.
func codecOf(f furl.Format) protocol.Codec {
	switch f {
	case furl.FormatChat:
		return openai.Chat
	case furl.FormatResponses:
		return openai.Responses
	default:
		return anthropic.Codec
	}
}

// builder generates a session.
type builder struct {
	o        SessionOptions
	rnd      *rand.Rand
	log      *furl.Log
	codec    protocol.Codec
	at       time.Time
	messages int
	masks    []furl.Seq // reductions in effect
	results  []furl.Pos // not masked yet
}

func (b *builder) run() {
	b.say(furl.Client, furl.RoleUser, furl.Block{Kind: furl.KindText, Text: b.prose(b.o.MessageBytes / 2)})
	for b.messages < b.o.Messages {
		b.exchange()
		if b.rnd.IntN(12) == 0 {
			b.say(furl.Upstream, furl.RoleAssistant, furl.Block{Kind: furl.KindText, Text: b.prose(b.o.MessageBytes)})
			if b.messages < b.o.Messages {
				b.say(furl.Client, furl.RoleUser, furl.Block{Kind: furl.KindText, Text: b.prose(b.o.MessageBytes / 3)})
			}
			continue
		}
		b.step()
		if b.o.Reductions {
			b.reduce()
		}
	}
}

// step is a call and its result.
func (b *builder) step() {
	id := fmt.Sprintf("toolu_%016x", b.rnd.Uint64())
	path := b.path()
	args, err := json.Marshal(map[string]any{"file_path": path, "offset": b.rnd.IntN(900), "limit": 200})
	if err != nil {
		panic(err) // a string and two numbers
	}
	call := furl.Block{Kind: furl.KindCall, ID: id, Name: pick(b.rnd, tools), Args: args}
	if b.codec.Format() == furl.FormatResponses { // one block an item
		b.say(furl.Upstream, furl.RoleAssistant, call)
	} else {
		b.say(furl.Upstream, furl.RoleAssistant, furl.Block{Kind: furl.KindText, Text: b.prose(b.o.MessageBytes / 6)}, call)
	}
	role := furl.RoleTool
	if b.codec.Format() == furl.FormatAnthropic {
		role = furl.RoleUser
	}
	at := b.say(furl.Client, role, furl.Block{Kind: furl.KindResult, ID: id, Text: b.source(path, b.o.MessageBytes*3/2)})
	b.results = append(b.results, furl.Pos{Msg: at})
}

func (b *builder) say(by furl.Actor, role furl.Role, blocks ...furl.Block) furl.Seq {
	m, err := b.codec.NewMessage(role, blocks)
	if err != nil {
		panic(fmt.Sprintf("furltest: build message: %v", err)) // a bug in this file
	}
	m.Measure(quarter{})
	b.messages++
	return b.add(by, m)
}

func (b *builder) add(by furl.Actor, body furl.Body) furl.Seq {
	b.at = b.at.Add(time.Duration(1+b.rnd.IntN(20_000)) * time.Millisecond)
	r, err := b.log.Append(b.log.Head(), b.at, by, body)
	if err != nil {
		panic(fmt.Sprintf("furltest: append record: %v", err)) // a bug in this file
	}
	return r.Seq
}

func (b *builder) exchange() {
	if !b.o.Exchanges {
		return
	}
	tokens := b.messages * b.o.MessageBytes / 4
	b.add(furl.Furl, &furl.Exchange{
		Model: "model-1", View: furl.DigestOf([]byte(b.prose(16))), Stop: "end_turn", Estimated: tokens,
		ResponseID: fmt.Sprintf("msg_%016x", b.rnd.Uint64()),
		Usage:      furl.Usage{Input: tokens / 10, CacheRead: tokens * 9 / 10, Output: 200},
	})
}

// reduce masks, undoes, rewinds, or does nothing.
func (b *builder) reduce() {
	switch n := b.rnd.IntN(50); {
	case n < 5 && len(b.results) > 3:
		at := b.results[0]
		b.results = b.results[1:]
		b.masks = append(b.masks, b.add(furl.Furl, &furl.Reduction{
			Stage: "mask", Reason: "made up", Before: 1000, After: 900, Scale: 1,
			Items: []furl.Item{{Spans: []furl.Span{{First: at, Last: at}}, Show: furl.In{Text: "[hidden]", Tokens: 6}}},
		}))
	case n == 5 && len(b.masks) > 0:
		b.add(furl.Person, &furl.Restoration{Of: b.masks[len(b.masks)-1]})
		b.masks = b.masks[:len(b.masks)-1]
	case n == 6:
		b.at = b.at.Add(time.Second)
		left := b.log.Head()
		if _, err := b.log.Rewind(left*3/4, b.at, furl.Person); err != nil {
			panic(fmt.Sprintf("furltest: rewind: %v", err)) // a bug in this file
		}
		take, err := b.log.Takeover(left, nil)
		if err != nil {
			panic(fmt.Sprintf("furltest: take over: %v", err)) // a bug in this file
		}
		if take != nil {
			b.add(furl.Furl, take)
		}
		b.masks, b.results = nil, nil
	}
}

// quarter counts one token for every four bytes.
type quarter struct{}

func (quarter) Count(s string) int { return (len(s) + 3) / 4 }

var (
	tools = []string{"Read", "Grep", "Bash", "Edit"}
	nouns = strings.Fields("parser buffer session request handler store record index cursor batch token window digest stream config worker queue client server table column branch commit reader writer cache policy budget message block layer")
	verbs = strings.Fields("open close read write parse encode decode append flush merge split check find load save start stop retry drop keep move copy")
	small = strings.Fields("the a this that when before after because so then with without from into of for and but it we only every")
)

func pick[T any](rnd *rand.Rand, from []T) T { return from[rnd.IntN(len(from))] }

// prose is about n bytes of sentences.
func (b *builder) prose(n int) string {
	var s strings.Builder
	for s.Len() < n {
		for i := range 4 + b.rnd.IntN(10) {
			if i > 0 {
				s.WriteByte(' ')
			}
			switch b.rnd.IntN(5) {
			case 0:
				s.WriteString(pick(b.rnd, verbs))
			case 1, 2:
				s.WriteString(pick(b.rnd, small))
			case 3:
				s.WriteString(pick(b.rnd, nouns))
			default:
				s.WriteString(b.name())
			}
		}
		s.WriteString(".\n")
	}
	return s.String()
}

// name is an identifier, often a new one.
func (b *builder) name() string {
	noun, verb := pick(b.rnd, nouns), pick(b.rnd, verbs)
	switch b.rnd.IntN(3) {
	case 0:
		return fmt.Sprintf("%s_%s_%d", verb, noun, b.rnd.IntN(100))
	case 1:
		return verb + strings.ToUpper(noun[:1]) + noun[1:]
	default:
		return fmt.Sprintf("%s%x", noun, b.rnd.Uint32())
	}
}

func (b *builder) path() string {
	return fmt.Sprintf("/src/%s/%s/%s_%s.go", pick(b.rnd, nouns), pick(b.rnd, nouns), pick(b.rnd, verbs), pick(b.rnd, nouns))
}

// source is about n bytes of numbered source text.
func (b *builder) source(path string, n int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "// %s\n", path)
	for line := 1; s.Len() < n; line++ {
		switch b.rnd.IntN(5) {
		case 0:
			fmt.Fprintf(&s, "%5d\tif err := %s.%s(ctx, %q); err != nil {\n", line, pick(b.rnd, nouns), b.name(), b.path())
		case 1:
			fmt.Fprintf(&s, "%5d\t\treturn fmt.Errorf(\"%s %s: %%w\", err)\n", line, pick(b.rnd, verbs), b.name())
		case 2:
			fmt.Fprintf(&s, "%5d\t}\n", line)
		case 3:
			fmt.Fprintf(&s, "%5d\t// %s %s %s %s\n", line, b.name(), pick(b.rnd, small), pick(b.rnd, verbs), pick(b.rnd, nouns))
		default:
			fmt.Fprintf(&s, "%5d\t%s := %s(%s, %d)\n", line, b.name(), b.name(), pick(b.rnd, nouns), b.rnd.IntN(1e6))
		}
	}
	return s.String()
}
