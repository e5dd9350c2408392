package sim

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl/protocol"
)

// FaultHeader is the header with which a request asks for a fault, in the
// syntax of ParseFault.
const FaultHeader = "X-Sim-Fault"

// Fault is an injected error between a model and its client.
type Fault struct {
	// Status, from 400 on, is returned with the provider's error for it.
	Status int
	// RetryAfter is sent in the retry-after header, in whole seconds.
	RetryAfter time.Duration
	// Redirect is the URL of a 307 response.
	Redirect string
	// Overflow refuses the prompt as too long, whatever its size.
	Overflow bool
	// OverflowInStream does so after the start of a stream, as Responses and
	// proxies of other providers may.
	OverflowInStream bool
	// Slow is the time until the first byte.
	Slow time.Duration
	// Cut breaks the connection after this many events of a stream, or in the
	// middle of a non-streamed answer.
	Cut int
	// Error sends an error event after this many events of a stream and ends
	// it.
	Error int
	// Ping sends a ping before every event except the first.
	Ping bool
	// Split cuts the bytes of a stream into writes: "bytes" into pieces of 1
	// to 7, "lines" inside every line, "utf8" inside every multi-byte
	// character.
	Split string
	// OddArgs sends the arguments of calls in fragments of 1 to 3 bytes, some
	// of them empty.
	OddArgs bool
	// Interleave alternates the fragments of parallel calls, if the format
	// allows it.
	Interleave bool
	// First applies the fault to the first requests, Every to every n-th
	// request. If both are zero, it applies to all.
	First, Every int
}

// ParseFault parses a fault: words separated by spaces or commas.
//
//	429 retry-after=2     an error status; retry-after in seconds or as 1m30s
//	529 first=2           for the first two requests
//	500 every=10          for every tenth request
//	redirect=URL          307 to the URL
//	overflow              the prompt is too long; overflow=stream: after the start of a stream
//	slow=3s               delay before the first byte
//	cut=4                 break the connection after four events
//	error=4               send an error event after four events
//	ping                  send a ping before every event except the first
//	split=utf8            end writes inside characters; also lines, bytes
//	args=odd              send odd fragments of arguments
//	args=interleaved      alternate the arguments of parallel calls
func ParseFault(text string) (Fault, error) {
	var f Fault
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
	if len(words) == 0 {
		return f, errors.New("empty fault: expected for example 529, cut=4 or slow=2s")
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if err := f.set(name, value); err != nil {
			return Fault{}, fmt.Errorf("invalid fault %q: %w", word, err)
		}
	}
	return f, nil
}

func (f *Fault) set(name, value string) (err error) {
	number := func(n *int) error {
		v, err := strconv.Atoi(value)
		if err != nil || v < 1 || v > 1_000_000 {
			return errors.New("expected a number from 1, such as cut=4")
		}
		*n = v
		return nil
	}
	switch name {
	case "retry-after":
		f.RetryAfter, err = duration(value)
	case "slow":
		f.Slow, err = duration(value)
	case "redirect":
		u, bad := url.Parse(value)
		if bad != nil || value == "" || len(value) > 2000 {
			return errors.New("expected a URL")
		}
		f.Redirect = u.String()
	case "overflow":
		switch value {
		case "":
			f.Overflow = true
		case "stream":
			f.OverflowInStream = true
		default:
			return errors.New("expected overflow or overflow=stream")
		}
	case "cut":
		err = number(&f.Cut)
	case "error":
		err = number(&f.Error)
	case "first":
		err = number(&f.First)
	case "every":
		err = number(&f.Every)
	case "ping":
		f.Ping = true
	case "args":
		switch value {
		case "odd":
			f.OddArgs = true
		case "interleaved":
			f.Interleave = true
		default:
			return errors.New("expected args=odd or args=interleaved")
		}
	case "split":
		switch value {
		case "bytes", "lines", "utf8":
			f.Split = value
		default:
			return errors.New("expected split=bytes, split=lines or split=utf8")
		}
	default:
		status, bad := strconv.Atoi(name)
		if bad != nil || status < 400 || status > 599 || value != "" {
			return errors.New("expected a status such as 529, or one of redirect, overflow, slow, cut, error, ping, split, args")
		}
		f.Status = status
	}
	return err
}

func duration(s string) (time.Duration, error) {
	if n, err := strconv.Atoi(s); err == nil {
		s = strconv.Itoa(n) + "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > time.Hour {
		return 0, errors.New("expected a duration such as 2s, at most an hour")
	}
	return d, nil
}

// String returns the fault in the syntax of ParseFault.
func (f *Fault) String() string {
	var words []string
	add := func(set bool, format string, args ...any) {
		if set {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(f.Status > 0, "%d", f.Status)
	add(f.RetryAfter > 0, "retry-after=%s", f.RetryAfter)
	add(f.Redirect != "", "redirect=%s", f.Redirect)
	add(f.Overflow, "overflow")
	add(f.OverflowInStream, "overflow=stream")
	add(f.Slow > 0, "slow=%s", f.Slow)
	add(f.Cut > 0, "cut=%d", f.Cut)
	add(f.Error > 0, "error=%d", f.Error)
	add(f.Ping, "ping")
	add(f.Split != "", "split=%s", f.Split)
	add(f.OddArgs, "args=odd")
	add(f.Interleave, "args=interleaved")
	add(f.First > 0, "first=%d", f.First)
	add(f.Every > 0, "every=%d", f.Every)
	return strings.Join(words, " ")
}

// replaces reports whether the fault replaces the answer.
func (f *Fault) replaces() bool { return f.Status > 0 || f.Redirect != "" || f.Overflow }

// applies reports whether the fault applies to the n-th request.
func (f *Fault) applies(n uint64) bool {
	switch {
	case f.First > 0:
		return n <= uint64(f.First)
	case f.Every > 0:
		return n%uint64(f.Every) == 0
	}
	return true
}

// faultClock counts requests.
type faultClock struct{ requests, queries, prompts atomic.Uint64 }

// request returns the number of a request. Those that only read have numbers of their own, so
// that what the others draw by number does not depend on when a client asks about models.
func (f *faultClock) request(method string) uint64 {
	if onlyReads(method) {
		return 1<<63 | f.queries.Add(1)
	}
	return f.requests.Add(1)
}

func onlyReads(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// pickFault finds the fault of this request, if any. Those of the options
// apply to prompts only, so that a client's other requests do not use them
// up.
func (c *call) pickFault() error {
	if text := c.r.Header.Get(FaultHeader); text != "" {
		f, err := ParseFault(text)
		if err != nil {
			return &protocol.Refusal{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: FaultHeader + ": " + err.Error()}
		}
		c.fault = &f
		return nil
	}
	if c.route.count != nil || c.route.raw != nil {
		return nil
	}
	n := c.sim.turns.prompts.Add(1)
	for i := range c.sim.opts.Faults {
		if f := &c.sim.opts.Faults[i]; f.applies(n) {
			c.fault = f
			return nil
		}
	}
	return nil
}

// answerWithFault answers with the fault.
func (c *call) answerWithFault() error {
	f := c.fault
	if err := c.slow(); err != nil {
		return err
	}
	c.entry.Verdict = VerdictFault
	h := c.w.Header()
	if f.RetryAfter > 0 {
		h.Set("retry-after", strconv.Itoa(int((f.RetryAfter+time.Second-1)/time.Second)))
	}
	switch {
	case f.Redirect != "":
		h.Set("Location", f.Redirect)
		c.header()
		return c.write(http.StatusTemporaryRedirect, nil)
	case f.Overflow:
		return c.api.overflow(c, max(c.window()+1, 1))
	}
	if f.Status == http.StatusTooManyRequests && f.RetryAfter == 0 {
		h.Set("retry-after", "1")
	}
	return c.api.statusError(f.Status)
}

// window returns the context window, as far as it is known yet.
func (c *call) window() int {
	switch {
	case c.model.Window > 0:
		return c.model.Window
	case c.sim.opts.Window > 0:
		return c.sim.opts.Window
	}
	return 200_000
}

// slow waits before the first byte.
func (c *call) slow() error {
	if c.fault == nil || c.fault.Slow == 0 {
		return nil
	}
	return c.sim.opts.Wait(c.r.Context(), c.fault.Slow)
}

// errCut ends a request whose connection is to be broken.
var errCut = errors.New("the connection was cut on purpose")
