package exchange

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// Exchange is one request of a client and its reply:
//
//	receive → match → plan → view → encode → send → commit → relay and record the reply
//
// Receive, or Begin for a decoded request, does the steps before sending and sets Body.
// Send sends it, and stores the request's records once the provider has accepted it. Relay
// returns the response for the client, whose reply is recorded while it is read, and Finish
// ends the exchange. Drop ends it without a reply. A program that sends the body itself
// calls Commit and Done instead.
//
// Compose makes the request of a program that has no client. It calls Ask, which sends the
// request and reads the whole reply, and Done. Plain makes a request that is not recorded.
type Exchange struct {
	session.Exchange
	// Local is furl's answer to the request, which is then not sent; nil: there is none.
	Local *Local

	api   wire.API
	count bool // BeginOptions.Peek
	sending

	all        *Sessions
	original   *protocol.Request // the client's request
	req        *protocol.Request // the client's request with recall tools in its preamble
	incoming   *incoming
	draft      *open.Prepared // not committed yet; nil: none
	continueAt furl.Seq       // the record that the next request of the exchange follows
	// overflow is the provider's error if it refused the prompt as too long.
	overflow  *protocol.Overflow
	overflows int // prompts that were shortened after it
	// thinking is the provider's error if it refused thinking in the prompt.
	thinking *protocol.ThinkingRefused
	window   int // the context window by that error; 0: unknown

	hourCache protocol.HourCache // BeginOptions.HourCache
	compacts  bool               // BeginOptions.Compact
	fitting   *Fitting           // BeginOptions.Fitting

	composed   *Composed   // nil: a client sends the body
	head       []byte      // by Composed.Head
	headPrompt open.Prompt // by Composed.Head

	thread *protocol.Thread // of the request, nil if it has none
	stored bool             // the request continues a thread

	holdsBilling bool   // BeginOptions.HoldBilling, unless the request is sent as received
	billingLine  string // to send in place of the client's; "": the client's

	offered []string // recall tools in Body
	rounds  int      // replies with calls of recall tools
	recalls int      // answered calls of recall tools

	startsSession bool         // the request starts the session
	flight        *open.Flight // nil: not prepared, or not recorded
}

// setBody sets the body to send.
func (x *Exchange) setBody(body []byte) {
	came := x.original.Body
	x.Body, x.Reduced = body, len(body) != len(came) || len(body) > 0 && &body[0] != &came[0]
}

// Done records the reply and ends the exchange, also if ctx has ended because the
// client has disconnected. Refusals and empty replies are not recorded.
func (x *Exchange) Done(ctx context.Context, reply *protocol.Reply) error {
	defer x.Drop()
	return x.recordReply(ctx, reply)
}

// recordReply records a reply.
func (x *Exchange) recordReply(ctx context.Context, reply *protocol.Reply) error {
	if x.composed == nil && (x.dropped() || !hasContent(reply)) || !x.isRecorded() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	sent := x.Body // Commit may prepare another
	if err := x.ensureCommitted(ctx); err != nil {
		return err
	}
	bodies := open.Bodies{Received: x.original, Sent: sent}
	var err error
	if x.composed == nil && compacts(reply) {
		err = x.recordCompacted(ctx, bodies, reply)
	} else {
		ends := x.flight
		if x.thread != nil {
			ends = nil // the thread is not known yet
		}
		err = x.Session.Internal().Observe(ctx, x.Fit, bodies, reply, ends)
	}
	if err != nil {
		return fmt.Errorf("record reply: %w", err)
	}
	if x.thread != nil && reply.ID != "" {
		x.all.rememberThread(x, reply.ID)
	}
	return nil
}

// isRecorded reports whether the request is recorded in a session, or will be.
func (x *Exchange) isRecorded() bool {
	return x.Session != nil && (x.flight != nil || x.composed != nil)
}

// hasContent reports whether a reply has messages or usage to record.
func hasContent(reply *protocol.Reply) bool {
	return reply != nil && (len(reply.Messages) > 0 || reply.Refusal == nil && (reply.Usage != (furl.Usage{}) || len(reply.Passes) > 0))
}

// ensureCommitted commits the request unless that was done before. A request
// with a reply was accepted by the provider.
func (x *Exchange) ensureCommitted(ctx context.Context) error {
	if _, err := x.Commit(ctx); err != nil {
		return fmt.Errorf("record the request: %w", err)
	}
	if x.Session == nil {
		return fmt.Errorf("record the request: %w", x.Err)
	}
	if !x.Committed {
		return fmt.Errorf("record the request: %w", errEnded)
	}
	return nil
}

// recordTimeout is the timeout of recording a reply.
const recordTimeout = 30 * time.Second

// Drop ends an exchange without recording a reply. It may be called more than once,
// and after Done.
func (x *Exchange) Drop() {
	if x.Session == nil || x.flight == nil {
		return
	}
	select {
	case <-x.flight.Done:
		return
	default:
	}
	dropped := false
	x.all.read(x.Session.Internal(), func(t *tx) {
		if dropped = t.End(x.flight); dropped {
			x.draft = nil
		}
	})
	if dropped {
		x.all.Forget(x.Session.Internal())
	}
}
