package exchange_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/racetest"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire/anthropic"
)

// habits are what clients are known to do to a history before they send it
// again, see docs/internals/matching.md.
type habits struct {
	tail       bool // a changing message is last
	inside     bool // changing words are last in the last message
	ids        bool // call ids are sent back without "_"
	marks      bool // the cache mark moves to the last message
	texts      bool // the texts of an answer are joined into one
	words      bool // what was said beside calls is dropped
	thinking   bool // thinking is dropped
	clears     bool // the client clears old results itself
	compaction bool // the client replaces the history by a summary of its own
	hint       bool // the client sends an id of its own
	retries    bool // a request is sent twice now and then
	clock      bool // changing words are in the first message
	window     bool // only the newest messages are sent
	first      bool // the first message is sent with them
}

func (h habits) String() string {
	var on []string
	for _, x := range []struct {
		name string
		on   bool
	}{
		{"volatile tail", h.tail}, {"volatile words", h.inside}, {"renamed ids", h.ids}, {"moved marks", h.marks}, {"merged texts", h.texts},
		{"dropped words", h.words}, {"dropped thinking", h.thinking}, {"cleared results", h.clears},
		{"own compaction", h.compaction}, {"id", h.hint}, {"retries", h.retries},
		{"changing first message", h.clock}, {"newest messages", h.window}, {"first message kept", h.window && h.first},
	} {
		if x.on {
			on = append(on, x.name)
		}
	}
	if len(on) == 0 {
		return "none"
	}
	return strings.Join(on, ", ")
}

// drawHabits draws any combination of habits.
func drawHabits(t *rapid.T) habits {
	on := func(name string) bool { return rapid.Bool().Draw(t, name) }
	return habits{
		tail: on("tail"), inside: on("inside"), ids: on("ids"), marks: on("marks"), texts: on("texts"), words: on("words"), thinking: on("thinking"),
		clears: on("clears"), compaction: on("compaction"), hint: on("hint"), retries: on("retries"),
		clock: on("clock"), window: on("window"), first: on("first"),
	}
}

// metered measures what a store is given: all heads, and each body once, as
// SQLite and PostgreSQL keep the bodies of a session.
type metered struct {
	storage.Store
	seen    map[string]bool
	bytes   int // of everything
	planned int // of the reductions that policies planned
	reduced int // how many those are
}

func newMetered() *metered { return &metered{Store: inmem.New(), seen: make(map[string]bool)} }

func (m *metered) Append(ctx context.Context, key furl.SessionKey, b storage.Batch) error {
	if err := m.Store.Append(ctx, key, b); err != nil {
		return err
	}
	for _, r := range b.Records {
		head, body, err := record.Encode(r)
		if err != nil {
			return err
		}
		m.bytes += len(head)
		if !m.seen[string(body)] {
			m.seen[string(body)] = true
			m.bytes += len(body)
		}
		if _, ok := r.Body.(*furl.Reduction); ok && r.By == furl.Furl {
			m.planned, m.reduced = m.planned+len(head), m.reduced+1
		}
	}
	return nil
}

// windowOf is how many of the newest messages a client sends that sends no others. The
// first of them is an answer.
const windowOf = 12

// compactEvery is after how many requests a client compacts that does so itself.
const compactEvery = 20

// habitual is an agent with habits.
type habitual struct {
	t       testing.TB
	all     *session.Sessions
	habits  habits
	hints   protocol.Hints
	history [][]furl.Block // the client's version; the assistant's are the odd ones
	sent    map[string]bool
	n       int
	last    *exchange.Exchange
}

func newHabitual(t testing.TB, store storage.Store, policy string, h habits) *habitual {
	t.Helper()
	all, err := session.New(store, &session.Options{Policy: policy, Window: 8_000})
	if err != nil {
		t.Fatal(err)
	}
	c := &habitual{t: t, all: all, habits: h, sent: make(map[string]bool)}
	if h.hint {
		c.hints.Hint = "one"
	}
	c.history = [][]furl.Block{{text("Find out why the tests fail.")}}
	return c
}

// news counts what was not there before a request and its answer.
type news struct {
	messages int
	bytes    int // of messages and of the answer
	reworded int // of answers that the client sends back otherwise than they came
}

// step is a request and its answer.
func (c *habitual) step() (n news) {
	c.t.Helper()
	c.n++
	c.edit()
	x := c.begin(&n)
	if c.habits.retries && c.n%5 == 0 {
		x.Drop()
		x = c.begin(&n)
	}
	c.last = x
	id := fmt.Sprintf("toolu_01Xy%dZq%dKw_x", c.n, 7*c.n)
	answer := []furl.Block{
		{Kind: furl.KindThinking, Text: fmt.Sprint("I think of ", c.n), Signature: 40},
		text("I look. "), text(fmt.Sprintf("Then number %d.", c.n)),
		call(id, "read", fmt.Sprintf(`{"path":"internal/store/file_%d.go"}`, c.n)),
	}
	m := message(c.t, furl.RoleAssistant, answer...)
	c.sent[string(m.Raw)] = true
	n.messages, n.bytes = n.messages+1, n.bytes+len(m.Raw)
	reply := &protocol.Reply{
		Format: furl.FormatAnthropic, ID: fmt.Sprint("msg_", c.n), Model: "claude-sonnet-4-5", Messages: []*furl.Message{m},
		Usage: furl.Usage{Input: 500 + len(x.Body)/4, Output: 20}, Stop: "tool_use", Complete: true,
	}
	if err := x.Done(c.t.Context(), reply); err != nil {
		c.t.Fatal(err)
	}
	if c.habits.ids {
		id = strings.ReplaceAll(id, "_", "")
	}
	lines := strings.Repeat(fmt.Sprintf("func Read%dName() error { return errors.New(\"store_%d: closed\") }\n", c.n, c.n), 12+c.n%20)
	c.history = append(c.history, c.habits.kept(answer), []furl.Block{result(id, fmt.Sprintf("package store // file %d\n%s", c.n, lines))})
	return n
}

// kept gives what the client keeps of an answer.
func (h habits) kept(answer []furl.Block) (list []furl.Block) {
	for _, b := range answer {
		n := len(list)
		switch {
		case b.Kind == furl.KindThinking && h.thinking, b.Kind == furl.KindText && h.words:
			continue
		case b.Kind == furl.KindText && h.texts && n > 0 && list[n-1].Kind == furl.KindText:
			list[n-1].Text += b.Text
			continue
		case b.Kind == furl.KindCall && h.ids:
			b.ID = strings.ReplaceAll(b.ID, "_", "")
		}
		list = append(list, b)
	}
	return list
}

// edit is what the client does to its history by itself.
func (c *habitual) edit() {
	if c.habits.compaction && c.n%compactEvery == 0 {
		kept := c.history[len(c.history)-2:]
		c.history = append([][]furl.Block{{text(fmt.Sprintf("Summary %d of all that was done before.", c.n))}}, kept...)
	}
	if at := len(c.history) - 13; c.habits.clears && at > 0 && c.history[at][0].Kind == furl.KindResult {
		c.history[at] = []furl.Block{result(c.history[at][0].ID, "[cleared]")}
	}
}

// begin sends the request as far as the provider.
func (c *habitual) begin(n *news) *exchange.Exchange {
	c.t.Helper()
	req := c.request()
	for i := range req.Messages {
		raw := bytes.ReplaceAll(req.Messages[i].Raw, []byte(`,"cache_control":{"type":"ephemeral"}`), nil)
		if c.sent[string(raw)] {
			continue
		}
		c.sent[string(raw)] = true
		n.messages, n.bytes = n.messages+1, n.bytes+len(raw)
		if req.Messages[i].Role == furl.RoleAssistant {
			n.reworded += len(raw)
		}
	}
	x, err := exchange.Of(c.all).Begin(c.t.Context(), req, exchange.BeginOptions{Hints: c.hints})
	if err != nil {
		c.t.Fatal(err)
	}
	if x.Err != nil {
		c.t.Fatal("an exchange failed: ", x.Err)
	}
	return x
}

func (c *habitual) request() *protocol.Request {
	c.t.Helper()
	var list []json.RawMessage
	oldest := len(c.history) - windowOf
	for i, blocks := range c.history {
		role := furl.RoleUser
		if c.habits.clock && i == 0 {
			blocks = []furl.Block{text(fmt.Sprintf("It is %d minutes past %d, and today is Friday.", c.n%60, c.n/60)), blocks[0]}
		}
		if c.habits.window && i < oldest && (i > 0 || !c.habits.first) {
			continue
		}
		if i%2 == 1 {
			role = furl.RoleAssistant
		}
		if i == len(c.history)-1 && c.habits.inside {
			blocks = append(slices.Clone(blocks), text(fmt.Sprintf("It is %d o'clock.", c.n)))
		}
		list = append(list, message(c.t, role, blocks...).Raw)
	}
	if c.habits.tail {
		list = append(list, message(c.t, furl.RoleUser, text(fmt.Sprintf("State: %d files are open, the time is %d.", c.n, 7*c.n))).Raw)
	}
	if c.habits.marks {
		last := list[len(list)-1]
		at := bytes.LastIndex(last, []byte("}]"))
		list[len(list)-1] = fmt.Appendf(nil, `%s,"cache_control":{"type":"ephemeral"}%s`, last[:at], last[at:])
	}
	messages, err := json.Marshal(list)
	if err != nil {
		c.t.Fatal(err)
	}
	body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":1000,"system":"You help.","messages":%s}`, messages)
	req, err := anthropic.Codec.DecodeRequest([]byte(body))
	if err != nil {
		c.t.Fatal(err)
	}
	return req
}

// perRecord is how many bytes a record may take beside the bytes of its message.
const perRecord = 300

// Whatever the habits of its client, a session grows by what is new: each
// request adds to the store at most twice the bytes of the messages and planned
// reductions that are new in it, and so many bytes for each of their records. In
// the sum over the session an answer that the client sends back in other words
// is not new.
func TestStoreGrowsByWhatIsNew(t *testing.T) {
	racetest.FewerChecks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		h := drawHabits(rt)
		store := newMetered()
		c := newHabitual(t, store, rapid.SampledFrom([]string{"auto", "rolling-mask-5"}).Draw(rt, "policy"), h)
		steps := rapid.IntRange(25, 50).Draw(rt, "requests")
		fresh, records := 0, 0
		for range steps {
			was := *store
			n := c.step()
			planned := store.planned - was.planned
			added := n.messages + store.reduced - was.reduced + 5 // the exchange, a rewind, a takeover, what is sent again
			if got, limit := store.bytes-was.bytes, 2*(n.bytes+planned)+perRecord*added; got > limit {
				rt.Fatalf("%s: request %d added %d bytes, want at most %d: %+v, %d bytes of reductions", h, c.n, got, limit, n, planned)
			}
			fresh, records = fresh+n.bytes-n.reworded+planned, records+added
		}
		if limit := 2*fresh + perRecord*records; store.bytes > limit {
			rt.Fatalf("%s: %d requests added %d bytes, want at most %d", h, steps, store.bytes, limit)
		}
		s := c.last.Session
		checked(t, s)
		most := 1 // and one for each time that the client began anew
		if h.compaction {
			most += steps / compactEvery
		}
		if h.inside || h.clock {
			most++ // its first message was another one at first
		}
		if got := s.Branches(); len(got) > most {
			rt.Fatalf("%s: %d branches, want at most %d: %+v", h, len(got), most, got[:most+1])
		}
	})
}

// The first answer is found with the client's own call ids, so that no session
// of one exchange is left.
func TestFirstAnswerWithOtherCallIDs(t *testing.T) {
	c := newHabitual(t, newMetered(), "none", habits{ids: true, words: true})
	c.step()
	first := c.last.Session.ID()
	for range 3 {
		c.step()
	}
	if got := c.last.Session.ID(); got != first {
		t.Errorf("it goes on in session %s, want %s", got, first)
	}
	if got := strings.Count(kinds(c.last.Session), "x"); got != 4 {
		t.Errorf("%d exchanges in the session, want 4", got)
	}
}

// The two habits of a real agent together: a changing message at the end, and
// call ids without "_". Nothing is recorded twice.
func TestChangingEndWithOtherCallIDs(t *testing.T) {
	store := newMetered()
	c := newHabitual(t, store, "auto", habits{tail: true, ids: true})
	for range 150 {
		c.step()
	}
	s := c.last.Session
	seen := make(map[string]bool)
	for _, r := range s.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Reduction:
			what := fmt.Sprint(b.Stage, b.Items)
			if seen[what] || b.Copy != 0 {
				t.Errorf("record %d repeats a reduction", r.Seq)
			}
			seen[what] = true
		case *furl.Takeover:
			t.Errorf("record %d is a takeover: the request was taken for a branch", r.Seq)
		}
	}
	if len(seen) < 5 {
		t.Errorf("%d reductions, want some", len(seen))
	}
	messages := 0
	for _, r := range s.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			messages += m.Bytes()
		}
	}
	if store.bytes > 2*messages {
		t.Errorf("the store has %d bytes for %d bytes of messages", store.bytes, messages)
	}
	if n := len(s.Branches()); n != 1 {
		t.Errorf("%d branches, want 1", n)
	}
	checked(t, s)
}

// BenchmarkGrowth prints by how many bytes a request makes SQLite's file grow,
// for clients of each habit, beside the bytes that are new (docs/internals/matching.md has
// the figures).
func BenchmarkGrowth(b *testing.B) {
	const requests = 400
	everything := habits{
		tail: true, inside: true, ids: true, marks: true, texts: true, words: true, thinking: true, clears: true, compaction: true, hint: true,
		retries: true, clock: true, window: true, first: true,
	}
	for _, h := range []habits{
		{}, {tail: true}, {inside: true}, {ids: true}, {marks: true}, {texts: true}, {words: true}, {thinking: true}, {clears: true},
		{compaction: true}, {compaction: true, hint: true}, {retries: true},
		{clock: true}, {window: true}, {window: true, hint: true}, {window: true, first: true}, {clock: true, window: true, first: true},
		{tail: true, ids: true}, {tail: true, words: true}, {tail: true, inside: true}, {tail: true, ids: true, compaction: true, hint: true}, everything,
	} {
		b.Run(strings.ReplaceAll(h.String(), ", ", "+"), func(b *testing.B) {
			for b.Loop() {
				path := filepath.Join(b.TempDir(), "furl.db")
				store, err := sqlite.Open(path, nil)
				if err != nil {
					b.Fatal(err)
				}
				c := newHabitual(b, store, "auto", h)
				fresh := 0
				for range requests {
					n := c.step()
					fresh += n.bytes - n.reworded
				}
				reductions := strings.Count(kinds(c.last.Session), "r")
				if err := store.Close(); err != nil {
					b.Fatal(err)
				}
				info, err := os.Stat(path)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(fresh)/requests, "new-B/request")
				b.ReportMetric(float64(info.Size())/requests, "file-B/request")
				b.ReportMetric(float64(info.Size())/float64(fresh), "file/new")
				b.ReportMetric(float64(reductions), "reductions")
			}
		})
	}
}
