package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
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
	// overflowed is a stream that begins and then tells of an overflow.
	overflowed(c *call, a *answer) []event
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
	done    chan struct{} // closed once it is in the journal; nil: nobody waits
	summary *summary      // of the provider's own, nil: none
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
	if c.fault != nil && c.fault.OverflowInStream && !c.req.Stream {
		return c.api.overflow(c, max(tokens, c.window()+1))
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
