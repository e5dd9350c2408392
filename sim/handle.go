package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/promptcache"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
)

// api is one of the providers' formats. Its methods have no state; the state
// of a request is in the call.
type api interface {
	codec() decoder
	// authenticate refuses a request without credentials.
	authenticate(r *http.Request) *protocol.Refusal
	errorBody(r *protocol.Refusal, requestID string) []byte
	// expand resolves references in the body, and reads the fields that the
	// codec does not.
	expand(c *call, body []byte) ([]byte, error)
	undecoded(err error) *protocol.Refusal
	unknownModel(name string) *protocol.Refusal
	// build builds the prompt.
	build(c *call)
	// check validates the request, once there is a prompt, against the rules
	// that the codec's Validate does not check.
	check(c *call) error
	overflow(c *call, tokens int) *protocol.Refusal
	// overflowed returns a stream that starts and then reports an overflow.
	overflowed(c *call, a *answer) []event
	// statusError returns the error for a status, streamError an error after
	// the given number of events of a stream.
	statusError(status int) *protocol.Refusal
	streamError(c *call, sent int) event
	ping() []byte
	newID(c *call) string  // of an answer
	callID(c *call) string // of a call in it
	// thinks reports whether the client receives thinking.
	thinks(c *call) bool
	// seal signs what the provider signs.
	seal(c *call, a *answer)
	// whole returns the non-streamed answer, events the same as a stream.
	whole(c *call, a *answer) []byte
	events(c *call, a *answer) []event
}

// decoder is what the sim needs of a protocol.Codec.
type decoder interface {
	Format() furl.Format
	DecodeRequest(body []byte) (*protocol.Request, error)
	Validate(req *protocol.Request, m furl.Model) error
}

// call is one request.
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

	req     *protocol.Request
	model   furl.Model
	salt    uint64 // of the account and the model
	facts   facts
	prompt  prompt
	fault   *Fault
	entry   Entry
	usage   furl.Usage    // of all passes
	passes  furl.Passes   // nil: one
	done    chan struct{} // closed when it is in the journal; nil: not awaited
	summary *summary      // the provider's compaction, nil if none
}

// answer is a reply with the data that the provider adds.
type answer struct {
	ID      string
	Blocks  []furl.Block
	Stop    string // in Anthropic's words
	StopSeq string
	Usage   furl.Usage
	Created int64
	// Signature is that of the block with the index Signed, "" if there is none (Gemini).
	Signature string
	Signed    int
}

func (s *Sim) serve(w http.ResponseWriter, r *http.Request) {
	c := s.newCall(w, r)
	defer c.record()
	err := c.answer()
	if refusal, ok := errors.AsType[*protocol.Refusal](err); ok {
		c.refuse(refusal)
		return
	}
	if err != nil {
		c.fail(err)
	}
}

// answer handles the request from start to end. It returns an error that has
// not been sent to the client.
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
		return c.answerWithFault()
	}
	if !c.sim.opts.NoAuth && !c.route.open {
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
		return c.sendAnswer(c.summarized())
	}
	if c.cacheOnly() {
		return c.sendAnswer(c.newAnswer(Reply{Stop: "max_tokens"}, tokens))
	}
	reply, err := c.play()
	if err != nil {
		return err
	}
	if reply.Fault != nil && c.fault == nil {
		if c.fault = reply.Fault; c.fault.replaces() {
			return c.answerWithFault()
		}
	}
	if c.fault != nil && c.fault.OverflowInStream && !c.req.Stream {
		return c.api.overflow(c, max(tokens, c.window()+1))
	}
	return c.sendAnswer(c.newAnswer(reply, tokens))
}

// sendAnswer sends the answer, streamed or not.
func (c *call) sendAnswer(a *answer) error {
	c.keepThread(a)
	if c.req.Stream {
		return c.stream(a)
	}
	if err := c.slow(); err != nil {
		return err
	}
	c.cacheStore()
	return c.send(c.api.whole(c, a))
}

// play calls the player.
func (c *call) play() (Reply, error) {
	reply, err := c.sim.opts.Player.Play(c.r.Context(), c.req)
	if err == nil {
		return reply, nil
	}
	if _, ok := errors.AsType[*protocol.Refusal](err); ok {
		return reply, err
	}
	return reply, fmt.Errorf("play: %w", err)
}

// rules returns the model's caching rules in this format: only Anthropic's
// has breakpoints.
func (c *call) rules() furl.Caching {
	rules := c.model.Caching
	if c.req.Format != furl.FormatAnthropic {
		rules.Explicit = false
	}
	return rules
}

// cacheLookup looks up the prompt in the cache.
func (c *call) cacheLookup() promptcache.Split {
	p := &c.prompt
	p.chain = promptcache.Chain(p.chain[:0], c.salt, p.pieces)
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	return c.sim.cache.Lookup(c.rules(), p.chain, p.pieces, c.at)
}

// cacheStore stores the prompt in the cache. It is called at the start of the
// answer, because an entry cannot be read before that.
func (c *call) cacheStore() {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	c.sim.cache.Store(c.rules(), c.prompt.chain, c.prompt.pieces, c.at)
}
