package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/promptcache"
	"github.com/furlhq/furl/wire/anthropic"
)

// api is one of the providers' formats. Its methods hold no state: that of a
// request is in the call.
type api interface {
	codec() furl.Codec
	// authenticate refuses a request without credentials.
	authenticate(r *http.Request) *furl.Refusal
	errorBody(r *furl.Refusal, requestID string) []byte
	// expand puts in what the request only refers to, and reads what of the
	// body the codec does not.
	expand(c *call, body []byte) ([]byte, error)
	undecoded(err error) *furl.Refusal
	unknownModel(name string) *furl.Refusal
	// build renders the prompt.
	build(c *call)
	// check holds the request to the rules that the codec's Validate does not
	// know, once there is a prompt.
	check(c *call) error
	overflow(c *call, tokens int) *furl.Refusal
	// statusError is the error that goes with a status, streamError one that
	// comes after so many events of a stream.
	statusError(status int) *furl.Refusal
	streamError(c *call, sent int) event
	ping() []byte
	newID(c *call) string  // of an answer
	callID(c *call) string // of a call in it
	// thinks reports whether the client gets to see thinking.
	thinks(c *call) bool
	// seal signs what the provider signs.
	seal(c *call, a *answer)
	// whole is the answer in one piece, events the same as a stream.
	whole(c *call, a *answer) []byte
	events(c *call, a *answer) []event
}

// call is one request on its way through.
type call struct {
	sim    *Sim
	w      *answerWriter
	r      *http.Request
	route  *route
	api    api
	id     string // of the request
	number uint64
	at     time.Time
	rng    *rand.Rand

	req     *furl.Request
	model   furl.Model
	salt    uint64 // of the account and the model
	facts   facts
	prompt  prompt
	fault   *Fault
	entry   Entry
	usage   furl.Usage
	summary *summary // of the provider's own, nil: none
}

// answer is a reply with what the provider adds to it.
type answer struct {
	ID      string
	Blocks  []furl.Block
	Stop    string // in Anthropic's words
	StopSeq string
	Usage   furl.Usage
	Created int64
}

func (s *Sim) serve(w http.ResponseWriter, r *http.Request) {
	c := s.newCall(w, r)
	defer c.record()
	err := c.answer()
	if refusal, ok := errors.AsType[*furl.Refusal](err); ok {
		c.refuse(refusal)
		return
	}
	if err != nil {
		c.fail(err)
	}
}

// answer takes the request from its first byte to its last. An error is what
// remains to be told to the client.
func (c *call) answer() error {
	if err := c.find(); err != nil {
		return err
	}
	body, err := c.read()
	if err != nil {
		return err
	}
	if err := c.pickFault(); err != nil {
		return err
	}
	if c.fault != nil && c.fault.replaces() {
		return c.strike()
	}
	if !c.sim.opts.NoAuth {
		if refusal := c.api.authenticate(c.r); refusal != nil {
			return refusal
		}
	}
	if c.route.raw != nil {
		return c.route.raw(c)
	}
	if err := c.decode(body); err != nil {
		return err
	}
	if err := c.api.codec().Validate(c.req, c.model); err != nil {
		return err
	}
	c.api.build(c)
	if err := c.api.check(c); err != nil {
		return err
	}
	c.prompt.prune()
	tokens := promptcache.Sum(c.prompt.pieces)
	if c.route.count != nil { // of prompts of any size
		c.sim.count()
		return c.send(c.route.count(c, tokens))
	}
	if c.model.Window > 0 && tokens > c.model.Window {
		return c.api.overflow(c, tokens)
	}
	if c.model.Window > 0 && tokens+c.req.MaxTokens > c.model.Window && refusesLongOutput(&c.model) {
		return anthropic.OutputTooLong(tokens, c.req.MaxTokens, c.model.Window)
	}
	if c.route.compact {
		return responses{}.compactNow(c, tokens)
	}
	if c.summary != nil && (c.summary.pause || c.summary.alone) {
		return c.give(c.summarized())
	}
	reply, err := c.play()
	if err != nil {
		return err
	}
	if reply.Fault != nil && c.fault == nil {
		if c.fault = reply.Fault; c.fault.replaces() {
			return c.strike()
		}
	}
	if c.fault != nil && c.fault.OverflowInStream && (c.entry.API != furl.FormatResponses || !c.req.Stream) {
		return c.api.overflow(c, max(tokens, c.window()+1)) // the others tell before they begin
	}
	return c.give(c.finish(reply, tokens))
}

// give sends the answer, as the client wants it.
func (c *call) give(a *answer) error {
	if c.req.Stream {
		return c.stream(a)
	}
	if err := c.slow(); err != nil {
		return err
	}
	c.cacheStore()
	return c.send(c.api.whole(c, a))
}

// newCall begins a request.
func (s *Sim) newCall(w http.ResponseWriter, r *http.Request) *call {
	n := s.turns.request()
	c := &call{
		sim:    s,
		r:      r,
		number: n,
		at:     s.opts.Now(),
		rng:    rand.New(rand.NewPCG(s.opts.Seed, n)),
	}
	c.id = c.newID("req_", 24)
	c.w = &answerWriter{ResponseWriter: w, keep: s.opts.KeepBodies}
	c.entry = Entry{At: c.at, Method: r.Method, Path: r.URL.Path, Verdict: VerdictOK, Status: http.StatusOK}
	if s.opts.KeepBodies {
		c.entry.Header = r.Header.Clone()
		for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Proxy-Authorization"} {
			c.entry.Header.Del(name)
		}
	}
	return c
}

const idLetters = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// newID makes an id that no other request of the sim has.
func (c *call) newID(prefix string, letters int) string {
	b := []byte(prefix + "01")
	for range letters - 2 {
		b = append(b, idLetters[c.rng.IntN(len(idLetters))])
	}
	return string(b)
}

// hexID is an id in OpenAI's style.
func (c *call) hexID(prefix string) string {
	return fmt.Sprintf("%s%016x%016x%08x", prefix, c.number, c.rng.Uint64(), c.rng.Uint32())
}

// find looks up what is asked for.
func (c *call) find() error {
	c.route = findRoute(c.r)
	c.api = c.route.api
	c.entry.API = c.api.codec().Format()
	if c.route.missing {
		return &furl.Refusal{Status: http.StatusNotFound, Type: c.route.missingType(), Message: c.route.missingText(c.r)}
	}
	if method := c.route.method; c.r.Method != method && (method != http.MethodGet || c.r.Method != http.MethodHead) {
		return &furl.Refusal{Status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Message: "Method Not Allowed"}
	}
	return nil
}

// maxBody is the most that is read of a request, in bytes, whatever a model's
// own limit is.
const maxBody = 32 << 20

func (c *call) read() ([]byte, error) {
	var buf bytes.Buffer
	if n := c.r.ContentLength; n > 0 && n <= maxBody {
		buf.Grow(int(n) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(c.r.Body, maxBody+1))
	c.entry.Bytes = int(n)
	if err != nil {
		return nil, &furl.Refusal{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "The request body could not be read: " + err.Error()}
	}
	if n > maxBody {
		return nil, &furl.Refusal{Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Message: "Request exceeds the maximum size"}
	}
	if c.sim.opts.KeepBodies {
		c.entry.Body = buf.Bytes()
	}
	return buf.Bytes(), nil
}

// decode reads the body and finds its model.
func (c *call) decode(body []byte) error {
	body, err := c.api.expand(c, body)
	if err != nil {
		return err
	}
	if c.req, err = c.api.codec().DecodeRequest(body); err != nil {
		return c.api.undecoded(err)
	}
	c.entry.Model, c.entry.Stream, c.entry.Messages = clipped(c.req.Model), c.req.Stream, len(c.req.Messages)
	model, ok := c.sim.opts.Models(c.req.Model)
	if c.req.Model == "" || !ok {
		return c.api.unknownModel(clipped(c.req.Model))
	}
	if c.sim.opts.Window > 0 {
		model.Window = c.sim.opts.Window
	}
	c.model = model
	c.salt = c.account()
	return nil
}

// clipped keeps what a request says about itself from filling the journal.
func clipped(s string) string { return strings.ToValidUTF8(s[:min(len(s), 200)], "") }

var accountSeed = maphash.MakeSeed()

// account is what prompt caches of others are kept apart by.
func (c *call) account() uint64 {
	var h maphash.Hash
	h.SetSeed(accountSeed)
	for _, s := range []string{c.r.Header.Get("Authorization"), c.r.Header.Get("X-Api-Key"), c.req.Model} {
		h.WriteString(s)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// play asks the player.
func (c *call) play() (Reply, error) {
	reply, err := c.sim.opts.Player.Play(c.r.Context(), c.req)
	if err == nil {
		return reply, nil
	}
	if _, ok := errors.AsType[*furl.Refusal](err); ok {
		return reply, err
	}
	return reply, fmt.Errorf("play: %w", err)
}

// rules are the model's caching rules as they hold in this format: marks are
// known to Anthropic's alone.
func (c *call) rules() furl.Caching {
	rules := c.model.Caching
	if c.req.Format != furl.FormatAnthropic {
		rules.Explicit = false
	}
	return rules
}

// cacheLookup looks the prompt up in the cache.
func (c *call) cacheLookup() promptcache.Split {
	p := &c.prompt
	p.chain = promptcache.Chain(p.chain[:0], c.salt, p.pieces)
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	return c.sim.cache.Lookup(c.rules(), p.chain, p.pieces, c.at)
}

// cacheStore leaves the prompt in the cache. It is called when the answer
// begins: before that, an entry cannot be read.
func (c *call) cacheStore() {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	c.sim.cache.Store(c.rules(), c.prompt.chain, c.prompt.pieces, c.at)
}

// send answers with JSON in one piece.
func (c *call) send(body []byte) error {
	c.header()
	c.w.Header().Set("Content-Type", "application/json")
	return c.write(http.StatusOK, body)
}

// header sets what every answer has.
func (c *call) header() {
	h := c.w.Header()
	if c.entry.API == furl.FormatAnthropic {
		h.Set("request-id", c.id)
		return
	}
	h.Set("x-request-id", c.id)
	h.Set("openai-version", "2020-10-01")
	h.Set("openai-processing-ms", "1")
}

// refuse answers a request that breaks a rule.
func (c *call) refuse(r *furl.Refusal) {
	if c.entry.Verdict == VerdictOK {
		c.entry.Verdict = VerdictRefused
	}
	c.entry.Error = r.Message
	c.usage = furl.Usage{}
	c.header()
	c.w.Header().Set("Content-Type", "application/json")
	_ = c.write(r.Status, c.api.errorBody(r, c.id))
}

// fail answers when the sim itself, or its player, cannot; or notes that an
// answer did not get through.
func (c *call) fail(err error) {
	if c.w.began || errors.Is(err, context.Canceled) || errors.Is(err, errCut) {
		c.entry.Verdict = VerdictCut
		if c.entry.Error == "" {
			c.entry.Error = err.Error()
		}
		if errors.Is(err, errCut) {
			c.w.abort()
		}
		return
	}
	c.entry.Verdict = VerdictFault
	c.refuse(&furl.Refusal{Status: http.StatusInternalServerError, Type: serverError(c.entry.API), Message: err.Error()})
}

func serverError(f furl.Format) string {
	if f == furl.FormatAnthropic {
		return "api_error"
	}
	return "server_error"
}

// write sends a status and a body, whole.
func (c *call) write(status int, body []byte) error {
	c.entry.Status = status
	c.w.WriteHeader(status)
	if c.r.Method == http.MethodHead {
		return nil
	}
	if c.fault != nil && c.fault.Cut > 0 && status == http.StatusOK {
		_, _ = c.w.Write(body[:len(body)/2])
		return errCut
	}
	if _, err := c.w.Write(body); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// record puts the request into the journal, whatever became of it, and then
// ends connections that are to break.
func (c *call) record() {
	e := &c.entry
	if c.fault != nil {
		e.Fault = c.fault.String()
	}
	if e.Verdict == VerdictOK || e.Verdict == VerdictCut {
		e.Cost = c.model.Cost(c.usage)
	}
	e.Answer = c.w.kept
	c.sim.record(e, c.usage)
	if c.w.broken && c.r.Context().Value(http.ServerContextKey) != nil {
		panic(http.ErrAbortHandler) // net/http's way to drop a connection
	}
}
