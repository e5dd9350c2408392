package sim

import (
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// event is one server-sent event.
type event struct {
	name string // "" in Chat Completions, which has no names
	data []byte
	ping bool // a ping of the provider
}

// bytes returns an event as it is sent.
func (e *event) bytes() []byte {
	var b []byte
	if e.name != "" {
		b = append(append(append(b, "event: "...), e.name...), '\n')
	}
	b = append(append(b, "data: "...), e.data...)
	return append(b, '\n', '\n')
}

// sent returns the n-th event of a stream of so many as it is sent: Gemini's streams may be an
// array.
func (c *call) sent(e *event, n, of int) []byte {
	if !c.route.array {
		return e.bytes()
	}
	b := []byte("[")
	if n > 0 {
		b = []byte("\n,\r\n")
	}
	if b = append(b, e.data...); n == of-1 {
		b = append(b, "\n]"...)
	}
	return b
}

// stream sends the answer event by event, with the effects of the fault.
func (c *call) stream(a *answer) error {
	if err := c.slow(); err != nil {
		return err
	}
	f := c.fault
	if f == nil {
		f = new(Fault)
	}
	var events []event
	if !f.OverflowInStream {
		events = c.api.events(c, a)
	} else {
		c.entry.Verdict, c.entry.Error, c.usage = VerdictFault, "overflow after the stream began", furl.Usage{}
		events = c.api.overflowed(c, a)
	}
	c.header()
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	if c.route.array {
		h.Set("Content-Type", "application/json; charset=UTF-8")
	}
	h.Set("Cache-Control", "no-cache")
	c.w.WriteHeader(http.StatusOK)
	c.cacheStore()
	sent := 0 // events without pings
	for i := range events {
		e := &events[i]
		if f.Cut > 0 && sent >= f.Cut && !e.ping {
			return errCut
		}
		if f.Error > 0 && sent >= f.Error && !e.ping {
			broken := c.api.streamError(c, sent)
			c.entry.Verdict, c.entry.Error = VerdictCut, "an error event was sent on purpose"
			c.finishing()
			return c.put(f, c.sent(&broken, i, i+1))
		}
		if i > 0 && c.sim.opts.Pace > 0 {
			if err := c.sim.opts.Wait(c.r.Context(), c.sim.opts.Pace); err != nil {
				return err
			}
		}
		if f.Ping && i > 0 && !c.route.array {
			if err := c.put(f, c.api.ping()); err != nil {
				return err
			}
		}
		if i == len(events)-1 {
			c.finishing()
		}
		if err := c.put(f, c.sent(e, i, len(events))); err != nil {
			return err
		}
		if !e.ping {
			sent++
		}
	}
	return nil
}

// put writes and flushes bytes, in the pieces that the fault asks for.
func (c *call) put(f *Fault, b []byte) error {
	for len(b) > 0 {
		n := len(b)
		switch f.Split {
		case "bytes":
			n = 1 + c.rng.IntN(7)
		case "lines":
			n = insideLine(b)
		case "utf8":
			n = insideRune(b)
		}
		n = min(n, len(b))
		if _, err := c.w.Write(b[:n]); err != nil {
			return fmt.Errorf("write stream: %w", err)
		}
		if err := c.w.Flush(); err != nil {
			return fmt.Errorf("write stream: %w", err)
		}
		b = b[n:]
	}
	return nil
}

// insideLine returns a length that ends in the middle of the first line.
func insideLine(b []byte) int {
	for i, x := range b {
		if x == '\n' && i > 1 {
			return i/2 + 1
		}
	}
	return len(b)
}

// insideRune returns a length that ends inside the first multi-byte
// character, or at the end.
func insideRune(b []byte) int {
	for i := range b {
		if b[i] >= utf8.RuneSelf && i+1 < len(b) && !utf8.RuneStart(b[i+1]) {
			return i + 1
		}
	}
	return len(b)
}

// deltas cuts a text into deltas of a few whole characters.
func (c *call) deltas(s string) []string {
	var out []string
	for len(s) > 0 {
		n := 4 + c.rng.IntN(24)
		if len(out) >= 2000 { // the rest of a very long text is cut into larger pieces
			n = 4096
		}
		n = min(n, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		out, s = append(out, s[:n]), s[n:]
	}
	return out
}

// fragments cuts the arguments of a call.
func (c *call) fragments(args string) []string {
	if c.fault == nil || !c.fault.OddArgs {
		return c.deltas(args)
	}
	var out []string
	for len(args) > 0 {
		if c.rng.IntN(4) == 0 {
			out = append(out, "")
		}
		n := min(1+c.rng.IntN(3), len(args))
		for n < len(args) && !utf8.RuneStart(args[n]) {
			n++ // a fragment is a JSON string, which cannot contain half a character
		}
		out, args = append(out, args[:n]), args[n:]
	}
	return append(out, "")
}

func (c *call) interleaves() bool { return c.fault != nil && c.fault.Interleave }

// byTurns calls give for the first element of each list, then the second, and
// so on.
func byTurns[T any](lists [][]T, give func(list int, one T)) {
	for n, more := 0, true; more; n++ {
		more = false
		for i := range lists {
			if n < len(lists[i]) {
				give(i, lists[i][n])
				more = true
			}
		}
	}
}

// answerWriter writes an answer and optionally keeps it.
type answerWriter struct {
	http.ResponseWriter
	keep   bool
	kept   []byte
	began  bool // the header was sent
	broken bool // the connection is to be broken
}

func (w *answerWriter) WriteHeader(status int) {
	w.began = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *answerWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	if w.keep {
		w.kept = append(w.kept, b[:n]...)
	}
	return n, err
}

// Flush sends what was written.
func (w *answerWriter) Flush() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil // a recorder without a connection
	}
	return err
}

func (w *answerWriter) abort() {
	_ = w.Flush() // everything before the cut arrives
	w.broken = true
}

// str returns a JSON string.
func str(s string) []byte { return rawjson.AppendString(nil, s) }
