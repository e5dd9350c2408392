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

	"github.com/furlhq/furl"
)

// FaultHeader names the header with which a request asks for a fault of its
// own, in the words of ParseFault.
const FaultHeader = "X-Sim-Fault"

// Fault is something that goes wrong between a model and its client.
type Fault struct {
	// Status, from 400 on, is answered with the provider's error for it.
	Status int
	// RetryAfter stands in the answer's retry-after, in whole seconds.
	RetryAfter time.Duration
	// Redirect is a URL that the answer sends the client to, with 307.
	Redirect string
	// Overflow refuses the prompt as too long, whatever its size.
	Overflow bool
	// OverflowInStream does so after a stream has begun, as Responses may, and
	// servers between other providers and their clients.
	OverflowInStream bool
	// Slow is the time until the first byte.
	Slow time.Duration
	// Cut breaks the connection after so many events of a stream, or half
	// way through an answer in one piece.
	Cut int
	// Error puts an error event after so many events of a stream and ends
	// it.
	Error int
	// Ping sends a sign of life before every event but the first.
	Ping bool
	// Split cuts the bytes of a stream into writes: "bytes" into pieces of 1
	// to 7, "lines" once inside every line, "utf8" inside every character of
	// several bytes.
	Split string
	// OddArgs sends the arguments of calls in fragments of 1 to 3 bytes, and
	// some of none.
	OddArgs bool
	// Interleave sends the fragments of parallel calls by turns, as far as
	// the format allows.
	Interleave bool
	// First lets it happen to the first so many requests, Every to every
	// so-manieth. Both zero: to all.
	First, Every int
}

// ParseFault reads a fault: words with a space or a comma between them.
//
//	429 retry-after=2     an error status; retry-after in seconds or as 1m30s
//	529 first=2           for the first two requests
//	500 every=10          for every tenth request
//	redirect=URL          307 to the URL
//	overflow              the prompt is too long; overflow=stream: after a stream began
//	slow=3s               so long until the first byte
//	cut=4                 the connection breaks after four events
//	error=4               an error event after four events
//	ping                  a ping before every event but the first
//	split=utf8            writes end inside characters; also lines, bytes
//	args=odd              odd fragments of arguments
//	args=interleaved      those of parallel calls by turns
func ParseFault(text string) (Fault, error) {
	var f Fault
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
	if len(words) == 0 {
		return f, errors.New("no fault: want such as 529, cut=4 or slow=2s")
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if err := f.set(name, value); err != nil {
			return Fault{}, fmt.Errorf("fault %q: %w", word, err)
		}
	}
	return f, nil
}

func (f *Fault) set(name, value string) (err error) {
	number := func(n *int) error {
		v, err := strconv.Atoi(value)
		if err != nil || v < 1 || v > 1_000_000 {
			return errors.New("want a number from 1 on, such as cut=4")
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
			return errors.New("want a URL")
		}
		f.Redirect = u.String()
	case "overflow":
		switch value {
		case "":
			f.Overflow = true
		case "stream":
			f.OverflowInStream = true
		default:
			return errors.New("want overflow or overflow=stream")
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
			return errors.New("want args=odd or args=interleaved")
		}
	case "split":
		switch value {
		case "bytes", "lines", "utf8":
			f.Split = value
		default:
			return errors.New("want split=bytes, split=lines or split=utf8")
		}
	default:
		status, bad := strconv.Atoi(name)
		if bad != nil || status < 400 || status > 599 || value != "" {
			return errors.New("no such fault; want a status such as 529, or one of redirect, overflow, slow, cut, error, ping, split, args")
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
		return 0, errors.New("want a time such as 2s, at most an hour")
	}
	return d, nil
}

// String is the fault in the words of ParseFault.
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

// replaces reports whether the client gets this instead of an answer.
func (f *Fault) replaces() bool { return f.Status > 0 || f.Redirect != "" || f.Overflow }

// applies reports whether the fault happens to the n-th request.
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
type faultClock struct{ requests, prompts atomic.Uint64 }

func (f *faultClock) request() uint64 { return f.requests.Add(1) }

// pickFault finds the fault of this request, if any. Those of the options
// happen to prompts only, so that a client's looking around does not use them
// up.
func (c *call) pickFault() error {
	if text := c.r.Header.Get(FaultHeader); text != "" {
		f, err := ParseFault(text)
		if err != nil {
			return &furl.Refusal{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: FaultHeader + ": " + err.Error()}
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

// strike answers with the fault.
func (c *call) strike() error {
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

// window is the context window as far as it is known yet.
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

// errCut says that the connection is to break here.
var errCut = errors.New("the connection was cut on purpose")
