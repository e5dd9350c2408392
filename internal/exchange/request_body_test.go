package exchange_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

// TestX7RequestBodies: whatever clients of the three formats send, and whatever
// furl makes of it, both bodies of each request can be rebuilt to the byte.
func TestX7RequestBodies(t *testing.T) {
	for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		t.Run(string(format), func(t *testing.T) {
			requests, changed := 0, 0
			rapid.Check(t, func(rt *rapid.T) {
				c := &anyClient{T: rt, t: t, api: wire.For(format), store: inmem.New(), window: 4000, system: "You help.", separator: ",", want: make(map[furl.Seq][2][]byte)}
				c.restart()
				c.recall = rapid.Bool().Draw(rt, "recall")
				rt.Repeat(map[string]func(*rapid.T){
					"step":     c.step,
					"say":      c.say,
					"mark":     c.mark,
					"forget":   c.forget,
					"rewrite":  c.rewrite,
					"preamble": c.preamble,
					"restart":  func(*rapid.T) { c.restart() },
					"drop":     func(*rapid.T) { c.all.Drop() },
				})
				c.check()
				c.restart()
				c.check()
				c.fork()
				for _, bodies := range c.want {
					if requests++; !bytes.Equal(bodies[0], bodies[1]) {
						changed++
					}
				}
			})
			if t.Logf("%d requests, %d of them changed", requests, changed); changed < requests/20 {
				t.Error("too few requests were changed")
			}
		})
	}
}

// anyClient sends all it has with each request, in its own way.
type anyClient struct {
	*rapid.T
	t         *testing.T
	api       wire.API
	store     storage.Store
	all       *session.Sessions
	history   []json.RawMessage
	turns     []int // where each of the user's questions is in the history
	window    int
	policy    string // "": auto
	recall    bool
	system    string
	separator string
	fields    string
	replies   int
	want      map[furl.Seq][2][]byte
}

func (c *anyClient) restart() {
	c.all = reopen(c.t, c.store, session.Options{Policy: cmp.Or(c.policy, "auto"), Window: c.window, Recall: true})
}

func (c *anyClient) message(role furl.Role, blocks ...furl.Block) json.RawMessage {
	m, err := c.api.NewMessage(role, blocks)
	if err != nil {
		c.Fatal(err)
	}
	return m.Raw
}

func (c *anyClient) body() []byte {
	history := c.history
	system := fmt.Sprintf(`"system":%q,"max_tokens":1000`, c.system)
	switch c.api.Format() {
	case furl.FormatChat:
		history = append([]json.RawMessage{fmt.Appendf(nil, `{"role":"system","content":%q}`, c.system)}, history...)
		system = `"stream":false`
	case furl.FormatResponses:
		system = fmt.Sprintf(`"instructions":%q,"store":false`, c.system)
	}
	var list []string
	for _, m := range history {
		list = append(list, string(m))
	}
	tool := c.api.Tool("read", "Read a file.", `{"type":"object"}`)
	return fmt.Appendf(nil, `{"model":"claude-sonnet-4-5",%s, %q:[%s] ,"tools":[%s],"x":1.10%s}`, system, c.api.List(), strings.Join(list, c.separator), tool, c.fields)
}

// send sends the history and returns the request's exchange.
func (c *anyClient) send(blocks ...furl.Block) {
	req, err := c.api.DecodeRequest(c.body())
	if err != nil {
		c.Fatal(err)
	}
	recall := exchange.NoRecall
	if c.recall {
		recall = exchange.OfferRecall
	}
	x, err := exchange.Of(c.all).Begin(c.t.Context(), req, exchange.BeginOptions{Hints: protocol.Hints{Session: "s"}, Recall: recall})
	if err != nil || x.Err != nil {
		c.Fatal(err, x.Err)
	}
	for again := true; again; {
		if _, err := x.Commit(c.t.Context()); err != nil || x.Err != nil {
			c.Fatal(err, x.Err)
		}
		c.replies++
		reply := &protocol.Reply{
			Format: c.api.Format(), ID: fmt.Sprintf("r%d", c.replies), Model: "claude-sonnet-4-5", Complete: true,
			Usage: furl.Usage{Input: 100 + len(x.Body)/4, Output: 20}, Stop: "tool_use",
		}
		list := blocks
		if x.Offered() && rapid.IntRange(0, 3).Draw(c.T, "recalls") == 0 {
			list = []furl.Block{{Kind: furl.KindCall, ID: fmt.Sprintf("memory%d", c.replies), Name: exchange.ToolSearch, Args: json.RawMessage(`{"query":"file"}`)}}
			if c.api.Format() == furl.FormatChat {
				reply.Stop = "tool_calls"
			} else if c.api.Format() == furl.FormatResponses {
				reply.Stop = "completed"
			}
		} else {
			again = false
		}
		for _, group := range c.grouped(list) {
			m, err := c.api.NewMessage(furl.RoleAssistant, group)
			if err != nil {
				c.Fatal(err)
			}
			reply.Messages = append(reply.Messages, m)
		}
		sent, seq := slices.Clone(x.Body), furl.Seq(0)
		before := len(x.Session.Records(0))
		more, err := x.Answer(c.t.Context(), reply)
		if err != nil {
			c.Fatal(err)
		}
		for _, r := range x.Session.Records(furl.Seq(before)) {
			if _, ok := r.Body.(*furl.Exchange); ok {
				seq = r.Seq
			}
		}
		if seq == 0 {
			c.Fatal("no exchange was recorded")
		}
		c.want[seq] = [2][]byte{slices.Clone(req.Body), sent}
		again = again && more
		if !again {
			x.Drop()
			if len(list) > 0 && list[0].Name == exchange.ToolSearch {
				return // the client sees nothing of it
			}
		}
	}
	for _, group := range c.grouped(blocks) {
		raw := c.message(furl.RoleAssistant, group...)
		// Clients write answers in their own way.
		switch rapid.IntRange(0, 2).Draw(c.T, "style") {
		case 1:
			raw = bytes.Replace(raw, []byte(`{`), []byte(`{ "y":null , `), 1)
		case 2:
			raw = bytes.ReplaceAll(raw, []byte(`":`), []byte(`": `))
		}
		c.history = append(c.history, raw)
	}
}

// grouped gives the blocks of each message: items of Responses have one.
func (c *anyClient) grouped(blocks []furl.Block) (groups [][]furl.Block) {
	if c.api.Format() != furl.FormatResponses {
		return [][]furl.Block{blocks}
	}
	for _, b := range blocks {
		groups = append(groups, []furl.Block{b})
	}
	return groups
}

// step is an answer with a call, and its result.
func (c *anyClient) step(t *rapid.T) {
	if len(c.history) == 0 {
		c.say(t)
		return
	}
	id := fmt.Sprintf("call%d", c.replies)
	c.send(furl.Block{Kind: furl.KindText, Text: "I look."}, furl.Block{Kind: furl.KindCall, ID: id, Name: "read", Args: fmt.Appendf(nil, `{"path":"file%d"}`, c.replies)})
	results, err := c.api.ToolResults([]furl.Block{{Kind: furl.KindResult, ID: id, Text: strings.Repeat(fmt.Sprintf("line of file %d\n", c.replies), rapid.IntRange(1, 120).Draw(t, "lines"))}})
	if err != nil {
		c.Fatal(err)
	}
	for _, m := range results {
		c.history = append(c.history, m.Raw)
	}
}

// say is a question and its answer.
func (c *anyClient) say(t *rapid.T) {
	c.turns = append(c.turns, len(c.history))
	c.history = append(c.history, c.message(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: rapid.SampledFrom([]string{"go on", "why?", strings.Repeat("at length, ", 90)}).Draw(t, "words")}))
	c.send(furl.Block{Kind: furl.KindText, Text: fmt.Sprintf("Answer %d", c.replies)})
}

// mark moves the client's cache mark, or whatever it writes into a message.
func (c *anyClient) mark(t *rapid.T) {
	const mark = ` "cache_control":{"type":"ephemeral"},`
	for i := range c.history {
		c.history[i] = bytes.Replace(c.history[i], []byte(mark), nil, 1)
	}
	if n := len(c.history); n > 0 {
		i := rapid.IntRange(max(0, n-3), n-1).Draw(t, "at")
		c.history[i] = bytes.Replace(c.history[i], []byte(`{`), []byte(`{`+mark), 1)
	}
}

// forget goes back in the history.
func (c *anyClient) forget(t *rapid.T) {
	if n := len(c.turns); n > 1 {
		n = rapid.IntRange(1, n-1).Draw(t, "kept")
		c.history, c.turns = c.history[:c.turns[n]], c.turns[:n]
		c.say(t)
	}
}

// rewrite changes some of what was said.
func (c *anyClient) rewrite(t *rapid.T) {
	if n := len(c.history); n > 0 {
		i := rapid.IntRange(0, n-1).Draw(t, "at")
		c.history[i] = bytes.ReplaceAll(c.history[i], []byte("line"), []byte("row"))
	}
}

func (c *anyClient) preamble(t *rapid.T) {
	c.system = rapid.SampledFrom([]string{"You help.", "You help; it is late.", strings.Repeat("Rule. ", 200)}).Draw(t, "system")
	c.separator = rapid.SampledFrom([]string{",", ", ", " ,\n"}).Draw(t, "separator")
	c.fields = rapid.SampledFrom([]string{"", `,"z":"é"`}).Draw(t, "fields")
}

func (c *anyClient) check() {
	if len(c.want) == 0 {
		return
	}
	s, err := c.all.Open(c.t.Context(), "s")
	if err != nil {
		c.Fatal(err)
	}
	c.bodiesOf(s, furl.Seq(len(s.Records(0))))
}

// bodiesOf compares the bodies of the requests up to a record.
func (c *anyClient) bodiesOf(s *session.Session, last furl.Seq) {
	for seq, want := range c.want {
		if seq > last {
			continue
		}
		for kind, body := range want {
			got, err := []func(context.Context, furl.Seq) ([]byte, error){s.ReceivedBody, s.SentBody}[kind](c.t.Context(), seq)
			if err != nil || !bytes.Equal(got, body) {
				c.Fatalf("record %d, kind %d: %v\n%s\nwant\n%s", seq, kind, err, got, body)
			}
		}
	}
}

// fork has the bodies in a copy, also when the original is gone.
func (c *anyClient) fork() {
	if len(c.want) == 0 {
		return
	}
	s, err := c.all.Open(c.t.Context(), "s")
	if err != nil {
		c.Fatal(err)
	}
	at := s.Head()
	fork, err := c.all.Fork(c.t.Context(), s, at)
	if err != nil {
		c.Fatal(err)
	}
	if err := c.all.Delete(c.t.Context(), "s"); err != nil {
		c.Fatal(err)
	}
	c.bodiesOf(fork, at)
}

// A request for which nothing more is hidden than for the one before stores next
// to nothing for its bodies.
func TestRequestBodySize(t *testing.T) {
	store := &countingStore{Store: inmem.New()}
	c := &client{t: t, all: reopen(t, store, session.Options{Policy: "auto", Window: 6000}), system: strings.Repeat("Rule. ", 1000)}
	c.add(furl.RoleUser, text("begin"))
	reduced := 0
	for n := range 60 {
		store.contents = 0
		ex := lastExchange(c.step().Session)
		if ex.Request.Sent != "" {
			reduced++
		}
		size := len(ex.Request.Received) + len(ex.Request.Sent) + store.contents
		if n > 0 && len(ex.Plan) == 0 && size > 40 {
			t.Errorf("request %d stores %d bytes for its bodies, want at most 40", n, size)
		}
	}
	if reduced < 30 {
		t.Errorf("only %d requests were reduced", reduced)
	}
}

func lastExchange(s *session.Session) *furl.Exchange {
	for _, r := range slices.Backward(s.Records(0)) {
		if ex, ok := r.Body.(*furl.Exchange); ok {
			return ex
		}
	}
	return nil
}

type countingStore struct {
	*inmem.Store
	contents int
}

func (s *countingStore) Append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	for _, c := range b.Contents {
		s.contents += len(c)
	}
	return s.Store.Append(ctx, key, b)
}

// Bodies that were not recorded, and numbers of other records, are errors that
// say so.
func TestRequestBodyRefuses(t *testing.T) {
	c := &client{t: t, all: reopen(t, inmem.New(), session.Options{})}
	c.add(furl.RoleUser, text("begin"))
	s := c.send(text("one")).Session
	for seq, want := range map[furl.Seq]string{0: "the session has 3 records", 1: "not an exchange; the first one is 2", 3: "the last one is 2", 4: "the session has 3 records"} {
		if _, err := s.SentBody(t.Context(), seq); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("record %d: %v", seq, err)
		}
	}
	old := c.all.Create(storage.Meta{})
	m := message(t, furl.RoleUser, text("begin"))
	if _, err := old.Append(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	fit, err := old.Fit(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Observe(t.Context(), fit, &protocol.Reply{ID: "r", Usage: furl.Usage{Input: 3}}); err != nil {
		t.Fatal(err)
	}
	if _, err := old.ReceivedBody(t.Context(), 2); !errors.Is(err, rebuild.ErrNotRecorded) {
		t.Errorf("an exchange without bodies: %v", err)
	}
	// A part that is too large is not stored.
	c = &client{t: t, all: reopen(t, inmem.New(), session.Options{}), system: strings.Repeat("x", storage.MaxContent)}
	c.add(furl.RoleUser, text("begin"))
	s = c.send(text("one")).Session
	if _, err := s.ReceivedBody(t.Context(), 2); !errors.Is(err, storage.ErrNoContent) || !strings.Contains(err.Error(), "above 4 MB") {
		t.Errorf("a part that is too large: %v", err)
	}
}
