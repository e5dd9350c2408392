package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// killRounds is how often the gateway is killed: n times, under the race detector
// half as often, or FURL_KILL_ROUNDS.
func killRounds(t *testing.T, n int) int {
	text := os.Getenv("FURL_KILL_ROUNDS")
	if text == "" && raceDetector {
		return max(n/2, 3)
	}
	if text == "" {
		return n
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("FURL_KILL_ROUNDS: %v", err)
	}
	return n
}

// If the gateway is killed at any point of a request, it loses nothing that a client has
// received. After a restart on the same store, the client's retry finds its session,
// nothing is recorded twice, and nothing is recorded that was never sent.
//
// FURL_KILL_ROUNDS=500 go test -run TestKill ./cmd/furl kills it five hundred times; make soak does it often too.
func TestKill(t *testing.T) {
	for _, recall := range []bool{false, true} {
		name, few, fewer := "", 12, 4
		if recall { // a kill of each kind, of which every second round has one
			name, few, fewer = ",recall", 8, 3
		}
		t.Run("sqlite"+name, func(t *testing.T) {
			home := t.TempDir()
			place := home + "/furl.db"
			killing(t, home, place, killRounds(t, few), recall, func() (storage.Store, error) { return sqlite.Open(place, nil) })
		})
		t.Run("postgres"+name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("not with -short: it starts a database server")
			}
			place := pgtest.URL(t)
			killing(t, t.TempDir(), place, killRounds(t, fewer), recall, func() (storage.Store, error) { return postgres.Open(t.Context(), place, nil) })
		})
	}
}

// moment is when a gateway is killed.
type moment struct {
	where   place
	victim  int     // the conversation, of four concurrent ones
	request int     // its request in this round, from 1
	part    float64 // of the body, or of a time
}

type place int

const (
	inRequest  place = iota // part of the body has been sent
	atProvider              // the provider has the request
	inAnswer                // the provider has sent a part of the reply
	inDelivery              // the client has received a part of the reply
	atEnd                   // the client has received all of it
	atRandom                // some time after the start of the request
	places

	// In any conversation, with recall and summaries.
	recalling  // the provider has the request after a recall
	summing    // the provider has the request for a summary
	recalled   // it has sent a part of the reply after a recall
	summarized // it has sent a part of a summary
)

func (m moment) String() string {
	names := []string{"in the request", "at the provider", "in the answer", "in the delivery", "at the end", "at random",
		"", "at a recall", "at a summary", "in the answer after a recall", "in a summary"}
	return fmt.Sprintf("conversation %d, request %d, %s, %.2f", m.victim, m.request, names[m.where], m.part)
}

// round is one run of a gateway.
type round struct {
	moment
	*process
}

func (r *round) is(where place, conversation, request int) bool {
	return r.where == where && r.victim == conversation%4 && r.request == request
}

// killing runs conversations through gateways that are killed one after another.
func killing(t *testing.T, home, store string, rounds int, recall bool, open func() (storage.Store, error)) {
	k := &killer{lines: 10}
	var player sim.Player = sim.NewAgent(&sim.AgentOptions{Steps: 9, Parallel: 2, Lines: 8, Words: 60})
	args := []string{"--window", "24k"}
	if recall {
		player, k.lines = &rememberer{player}, 40
		args = []string{"--window", "12k", "--recall", "--policy", "compaction"}
	}
	k.sim = sim.New(&sim.Options{KeepBodies: true, Player: player})
	provider := httptest.NewServer(k)
	defer provider.Close()
	for i := range 4 {
		k.conversations = append(k.conversations, newConversation(k, i))
	}
	rnd := rand.New(rand.NewPCG(11, uint64(rounds)))
	for n := range rounds {
		m := moment{where: place(rnd.IntN(int(places))), victim: rnd.IntN(4), request: 1 + rnd.IntN(3), part: rnd.Float64()}
		if recall && n%2 == 0 {
			m.where = recalling + place(n/2%4)
		}
		k.begin(&round{m, serve(t, home, append([]string{"--store", store, "--anthropic", provider.URL, "--openai", provider.URL}, args...)...)})
		var all sync.WaitGroup
		for _, c := range k.conversations {
			all.Go(func() { c.talk(t.Context()) })
		}
		all.Wait()
		<-k.round.done
		if log := k.round.log(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") || strings.Contains(log, "panic") {
			t.Errorf("the gateway says\n%s", log)
		}
		k.check(t, open)
		if t.Failed() {
			t.Fatalf("in round %d: %v", n, m)
		}
	}
	t.Logf("%d rounds, %d requests, %d of them after a recall, %d summaries, %d reductions in the last sessions", rounds, len(k.sim.Requests()), k.recalls.Load(), k.summaries.Load(), k.reductions)
	if recall && (k.recalls.Load() == 0 || k.summaries.Load() == 0) {
		t.Error("nothing was recalled, or no summary asked for")
	}
	if out, err := furlCommand(home, "doctor", "--store", store).CombinedOutput(); err != nil {
		t.Errorf("furl doctor: %v\n%s", err, out)
	}
}

// killer is the provider, and kills the gateway at a moment.
type killer struct {
	sim           *sim.Sim
	conversations []*conversation
	round         *round
	reductions    int // in the conversations, at the last check
	lines         int // of a tool result

	recalls, summaries atomic.Int64 // requests
}

func (k *killer) begin(r *round) {
	k.round = r
	for i, c := range k.conversations {
		if c.requests = 0; len(c.client.History) > 150 {
			k.conversations[i] = newConversation(k, c.n+len(k.conversations))
		}
	}
}

// conversationHeader identifies the conversation of a request.
const conversationHeader = "X-Conversation"

// ServeHTTP is the provider's side.
func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var conversation, request int
	_, _ = fmt.Sscanf(r.Header.Get(conversationHeader), "%d/%d", &conversation, &request)
	at, in := k.round.is(atProvider, conversation, request), k.round.is(inAnswer, conversation, request)
	if k.lines > 10 {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // it was cut off when the gateway was killed
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch where := k.round.where; {
		case bytes.Contains(body, []byte("about to outgrow the context window")):
			k.summaries.Add(1)
			at, in = where == summing, where == summarized
		case behindRecall(r.URL.Path, body):
			k.recalls.Add(1)
			at, in = at || where == recalling, in || where == recalled
		}
	}
	if at {
		k.round.kill()
	}
	if !in {
		k.sim.ServeHTTP(w, r)
		return
	}
	writer := &killWriter{w, k.round, 1 + int(k.round.part*40)}
	k.sim.ServeHTTP(writer, r)
	k.round.kill() // if there were fewer parts
}

// killWriter kills the gateway before it writes its left-th part.
type killWriter struct {
	http.ResponseWriter
	round *round
	left  int
}

func (w *killWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *killWriter) Write(p []byte) (int, error) {
	if w.left--; w.left == 0 {
		w.round.kill()
	}
	return w.ResponseWriter.Write(p)
}

// conversation is an agent and its session.
type conversation struct {
	killer   *killer
	n        int
	client   sim.Client
	words    string // the first
	requests int    // in this round
	// known is the number of messages that the gateway has acknowledged: those of
	// the newest request with a response. A reply is recorded a moment after its
	// client has it, or with the next request, which contains it.
	known int
}

// newConversation creates the n-th conversation. Every second one sends an id, the others
// are identified by their history.
func newConversation(k *killer, n int) *conversation {
	format := []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses, furl.FormatAnthropic}[n%4]
	c := &conversation{killer: k, n: n, words: fmt.Sprintf("Conversation %d looks at everything there is.", n)}
	c.client = sim.Client{URL: "http://gateway", Format: format, Model: "gpt-5", Stream: n%4 != 3, HTTP: &http.Client{Transport: c}, Header: http.Header{"Authorization": {"Bearer k"}}}
	if format == furl.FormatAnthropic {
		c.client.Model = "claude-sonnet-4-5"
		c.client.Fields = map[string]any{"max_tokens": 2000}
	}
	if n%2 == 1 {
		c.client.Header.Set("Session-Id", "conversation-"+strconv.Itoa(n))
	}
	return c
}

// talk sends requests until the gateway is killed. A request without a response is sent
// again in the next round.
func (c *conversation) talk(ctx context.Context) {
	for {
		if len(c.client.History) == 0 || c.answered() {
			words := c.words
			if len(c.client.History) > 0 {
				words = fmt.Sprintf("Go on, %d.", len(c.client.History))
			}
			if err := c.client.Say(words); err != nil {
				panic(err) // a text is always a valid message
			}
		}
		if _, err := c.client.Work(ctx, func(call furl.Block) string { return strings.Repeat(call.ID+" prints a line\n", c.killer.lines) }); err != nil {
			return
		}
	}
}

// answered reports whether the last message is a reply.
func (c *conversation) answered() bool {
	msgs := c.messages()
	return msgs[len(msgs)-1].Role == furl.RoleAssistant
}

// codec decodes requests and replies.
type codec interface {
	protocol.Codec
	protocol.ReplyCodec
}

func (c *conversation) codec() codec { return codecOf(c.client.Format) }

func codecOf(format furl.Format) codec {
	return map[furl.Format]protocol.Codec{
		furl.FormatAnthropic: anthropic.Codec, furl.FormatChat: openai.Chat, furl.FormatResponses: openai.Responses,
	}[format].(codec)
}

// messages are those of the client, sealed.
func (c *conversation) messages() []furl.Message {
	req, err := c.codec().DecodeRequest(c.client.Body())
	if err != nil {
		panic(err) // the codec has encoded it
	}
	for i := range req.Messages {
		req.Messages[i].Seal()
	}
	return req.Messages
}

// RoundTrip is the client's side.
func (c *conversation) RoundTrip(req *http.Request) (*http.Response, error) {
	r := c.killer.round
	c.requests++
	n, sent := c.requests, len(c.messages())
	req.URL.Host = strings.TrimPrefix(r.url, "http://")
	req.Header.Set(conversationHeader, fmt.Sprintf("%d/%d", c.n, n))
	switch {
	case r.is(inRequest, c.n, n):
		req.Body = &killBody{ReadCloser: req.Body, round: r, left: int(r.part * float64(req.ContentLength))}
	case r.is(atRandom, c.n, n):
		time.AfterFunc(time.Duration(r.part*float64(20*time.Millisecond)), r.kill)
	}
	resp, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	c.known = max(c.known, sent)
	got := &delivery{ReadCloser: resp.Body}
	switch {
	case r.is(inDelivery, c.n, n):
		got.round, got.left = r, int(r.part*4000)
	case r.is(atEnd, c.n, n):
		got.round, got.left = r, 1<<30
	}
	resp.Body = got
	return resp, nil
}

// killBody kills the gateway when a part of the body has been read.
type killBody struct {
	io.ReadCloser
	round *round
	left  int
}

func (b *killBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.round.kill()
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), max(b.left, 1))])
	b.left -= n
	return n, err
}

// delivery is the body of a response at the client.
type delivery struct {
	io.ReadCloser
	round *round // nil: nothing is killed
	left  int
}

func (d *delivery) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	d.left -= n
	if d.round != nil && (d.left <= 0 || err == io.EOF) {
		d.round.kill()
	}
	return n, err
}

// check compares the store with the conversations.
func (k *killer) check(t *testing.T, open func() (storage.Store, error)) {
	t.Helper()
	store, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if checker, ok := store.(storage.Checker); ok {
		for p, err := range checker.Check(t.Context(), false) {
			if t.Errorf("the store: %v %v", p, err); err != nil {
				break
			}
		}
	}
	sessions, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]*session.Session)
	for info, err := range sessions.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		s, err := sessions.Open(t.Context(), info.Session)
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("session %s: %v %v", s.ID(), problems, err)
		}
		if info.Hint != "" || wentOn(s) {
			found[info.Title] = append(found[info.Title], s)
		}
	}
	answered := k.answered(t)
	k.reductions = 0
	for _, c := range k.conversations {
		switch n := len(found[c.words]); {
		case n > 1:
			t.Errorf("conversation %d has %d sessions", c.n, n)
		case n == 1:
			c.check(t, found[c.words][0], answered)
			k.reductions += len(found[c.words][0].Reductions())
		case c.known > 2:
			t.Errorf("conversation %d has no session, and %d of its messages were taken", c.n, c.known)
		}
	}
}

// wentOn reports whether a session has more than its first message. A retried first
// message starts another session if nothing else identifies the session.
func wentOn(s *session.Session) bool {
	spoken := 0
	for _, r := range s.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok && m.Role != furl.RoleAssistant && len(blocksOf(m)) > 0 {
			spoken++
		}
	}
	return spoken > 1
}

// replies are those of the provider, as messages and as blocks.
type replies struct {
	whole  map[furl.Digest]bool
	blocks map[string]bool
}

// has reports whether a message is a reply, or several that furl has joined. A client
// sends the latter if its gateway was killed before it had recorded what it had
// delivered.
func (r *replies) has(m *furl.Message) bool {
	return r.whole[m.Digest] || !slices.ContainsFunc(blocksOf(m), func(b string) bool { return !r.blocks[b] })
}

// answered returns the replies of the provider.
func (k *killer) answered(t *testing.T) *replies {
	t.Helper()
	all := &replies{make(map[furl.Digest]bool), make(map[string]bool)}
	for _, e := range k.sim.Requests() {
		if e.Verdict == sim.VerdictRefused && !strings.Contains(e.Error, "could not be read") { // cut off when the gateway was killed
			t.Errorf("request %d was refused: %s", e.N, e.Error)
		}
		for _, m := range understand(t, e) {
			for i := range m.Blocks {
				// As furl records calls that it answers itself.
				m.Blocks[i].Own = isRecall(m.Blocks[i].Name)
			}
			m.Seal()
			all.whole[m.Digest] = true
			for _, b := range blocksOf(m) {
				all.blocks[b] = k.lines > 10 // several are joined only with recall
			}
		}
	}
	return all
}

func understand(t *testing.T, e sim.Entry) []*furl.Message {
	t.Helper()
	codec := codecOf(e.API)
	if !e.Stream {
		reply, err := codec.DecodeReply(e.Status, e.Answer)
		if err != nil {
			return nil // it was not sent completely
		}
		return reply.Messages
	}
	asm, events := codec.NewAssembler(), new(sse.Scanner)
	for ev, err := range events.Feed(e.Answer) {
		if err == nil {
			err = asm.Feed(ev.Type, ev.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	reply, err := asm.Reply()
	if err != nil {
		return nil // nothing of it was sent
	}
	return reply.Messages
}

// check compares a session with its conversation.
func (c *conversation) check(t *testing.T, s *session.Session, answered *replies) {
	t.Helper()
	chains, responses := make(map[furl.Digest]furl.Seq), make(map[string]furl.Seq)
	replyTo := make(map[furl.Seq]furl.Seq) // the exchange that a record follows
	for _, r := range s.Records(0) {
		replyTo[r.Seq] = replyTo[r.Parent]
		switch b := r.Body.(type) {
		case *furl.Message:
			// A request with two responses, because the client did not receive the first,
			// may have two equal replies.
			was, twice := chains[r.Chain]
			if len(blocksOf(b)) == 0 {
				twice = false // added by furl, so equal ones have the same chain
			}
			if twice && (b.Role != furl.RoleAssistant || replyTo[was] == replyTo[r.Seq]) {
				t.Errorf("conversation %d: record %d is there twice, as %d too", c.n, was, r.Seq)
			}
			chains[r.Chain] = r.Seq
			if b.Role == furl.RoleAssistant && !answered.has(b) {
				t.Errorf("conversation %d: record %d is not a reply of the provider: %.200s", c.n, r.Seq, b.Raw)
			}
		case *furl.Exchange:
			if was, twice := responses[b.ResponseID]; twice || b.ResponseID == "" {
				t.Errorf("conversation %d: exchange %d is there twice, as %d too", c.n, was, r.Seq)
			}
			responses[b.ResponseID], replyTo[r.Seq] = r.Seq, r.Seq
		}
	}
	path, err := pathOf(s)
	if err != nil {
		t.Fatal(err)
	}
	spoken := c.messages()
	var have, want, known []string
	for _, m := range path {
		have = append(have, blocksOf(m)...)
	}
	for i := range spoken {
		if want = append(want, blocksOf(&spoken[i])...); i < c.known {
			known = want
		}
	}
	if len(have) < len(known) {
		t.Errorf("conversation %d: %d blocks are on the path, and %d were acknowledged", c.n, len(have), len(known))
	}
	for i := range min(len(have), len(want)) {
		if have[i] != want[i] {
			t.Fatalf("conversation %d: block %d is %.200s\nwant %.200s", c.n, i, have[i], want[i])
		}
	}
	for _, b := range have[min(len(have), len(want)):] {
		// Recorded, but not delivered.
		if !strings.HasPrefix(b, string(furl.RoleAssistant)) {
			t.Errorf("conversation %d: %.200s was never said", c.n, b)
		}
	}
}

// blocksOf returns the blocks of a message that its client knows, in a unique form. A
// client of Chat Completions may have the texts of several replies as one.
func blocksOf(m *furl.Message) (blocks []string) {
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Own {
			continue
		}
		for words := range strings.SplitSeq(b.Text, furl.BetweenWords) {
			blocks = append(blocks, fmt.Sprintf("%s %s %s %s %s %s", m.Role, b.Kind, b.Name, b.ID, b.Args, words))
		}
	}
	return blocks
}

func pathOf(s *session.Session) (path []*furl.Message, err error) {
	log := furl.NewLog()
	if err := log.Load(s.Records(0)); err != nil {
		return nil, err
	}
	if log.Len() == 0 {
		return nil, errors.New("an empty session")
	}
	for i := range log.State().Len() {
		_, m := log.State().Message(i)
		path = append(path, m)
	}
	return path, nil
}
