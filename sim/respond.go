package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
)

// send sends a non-streamed JSON answer.
func (c *call) send(body []byte) error {
	c.header()
	c.w.Header().Set("Content-Type", "application/json")
	return c.write(http.StatusOK, body)
}

// header sets the headers of every answer.
func (c *call) header() {
	h := c.w.Header()
	switch c.entry.API {
	case furl.FormatAnthropic:
		h.Set("request-id", c.id)
		return
	case furl.FormatGemini:
		h.Set("server", "scaffolding on HTTPServer2")
		return
	}
	h.Set("x-request-id", c.id)
	h.Set("openai-version", "2020-10-01")
	h.Set("openai-processing-ms", "1")
}

// refuse answers a request that violates a rule.
func (c *call) refuse(r *protocol.Refusal) {
	if c.entry.Verdict == VerdictOK {
		c.entry.Verdict = VerdictRefused
	}
	c.entry.Error = r.Message
	c.usage = furl.Usage{}
	c.header()
	c.w.Header().Set("Content-Type", "application/json")
	_ = c.write(r.Status, c.api.errorBody(r, c.id))
}

// fail answers if the sim itself, or its player, failed; or records that an
// answer could not be sent.
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
	c.refuse(&protocol.Refusal{Status: http.StatusInternalServerError, Type: serverError(c.entry.API), Message: err.Error()})
}

// bill returns what the request costs.
func (c *call) bill() float64 {
	billed := price.Request{Model: &c.model, Usage: c.usage, Passes: c.passes, Terms: c.facts.terms, At: c.at}
	cost, _ := billed.Cost()
	return cost.Sum()
}

func serverError(f furl.Format) string {
	if f == furl.FormatAnthropic {
		return "api_error"
	}
	return "server_error"
}

// write sends a status and a whole body.
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
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// record adds the request to the journal, whatever its outcome, and then
// breaks connections that are to be broken.
func (c *call) record() {
	e := &c.entry
	if c.fault != nil {
		e.Fault = c.fault.String()
	}
	if e.Verdict == VerdictOK || e.Verdict == VerdictCut {
		e.Cost = c.bill()
	}
	e.Answer = c.w.kept
	c.sim.record(e, c.usage)
	c.finished()
	if c.w.broken && c.r.Context().Value(http.ServerContextKey) != nil {
		panic(http.ErrAbortHandler) // net/http's way to drop a connection
	}
}
