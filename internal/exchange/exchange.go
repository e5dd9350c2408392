package exchange

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/transact"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
)

// Exchange is one request of a client and its reply:
//
//	decode → match → plan → view → encode → (send) → append → append reply
//
// Sessions.Begin does the steps before sending and sets Body, the body to send.
// Commit stores the request's records once the provider has accepted it. Done
// records the reply; Drop ends an exchange without one.
type Exchange struct {
	session.Exchange

	all        *Sessions
	original   *protocol.Request // the client's request
	req        *protocol.Request // the client's request with recall tools in its preamble
	incoming   *incoming
	draft      transact.Draft // not committed yet; nil: none
	continueAt furl.Seq       // the record that the next request of the exchange follows
	// overflow is the provider's error if it refused the prompt as too long.
	overflow *protocol.Overflow
	// thinking is the provider's error if it refused thinking in the prompt.
	thinking *protocol.ThinkingRefused
	window   int // the context window by that error; 0: unknown

	hourCache protocol.HourCache // BeginOptions.HourCache
	compacts  bool               // BeginOptions.Compact
	fitting   *Fitting           // BeginOptions.Fitting
	thread    *protocol.Thread   // of the request, nil if it has none
	stored    bool               // the request continues a thread

	holdsBilling bool   // BeginOptions.HoldBilling, unless the request is sent as received
	billingLine  string // to send in place of the client's; "": the client's

	offered []string // recall tools in Body
	rounds  int      // replies with calls of recall tools
	recalls int      // answered calls of recall tools

	// These are guarded by the session's lock; other requests read them.
	startsSession bool          // the request starts the session
	firstHead     furl.Seq      // Fit.Head of the first request; 0: not committed
	lastHead      furl.Seq      // Fit.Head of the latest request; 0: not committed
	endChain      furl.Digest   // at the end of the request's messages
	done          chan struct{} // closed when the exchange ends
	release       func()        // from transact.Session.Acquire
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
	if x.Session == nil || x.done == nil || x.dropped() || reply == nil || reply.Refusal != nil && len(reply.Messages) == 0 ||
		len(reply.Messages) == 0 && reply.Usage == (furl.Usage{}) && len(reply.Passes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	sent := x.Body // Commit may prepare another
	if err := x.ensureCommitted(ctx); err != nil {
		return err
	}
	x.Fit.Received, x.Fit.Sent = x.original, sent
	defer x.forgetBodies()
	record := x.Session.Observe
	if compacts(reply) {
		record = func(ctx context.Context, _ *session.Fit, reply *protocol.Reply) error {
			return x.recordCompacted(ctx, reply)
		}
	}
	if err := record(ctx, x.Fit, reply); err != nil {
		return fmt.Errorf("record reply: %w", err)
	}
	if x.thread != nil && reply.ID != "" {
		x.all.rememberThread(x, reply.ID)
	}
	return nil
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
	if x.firstHead == 0 {
		return fmt.Errorf("record the request: %w", errEnded)
	}
	return nil
}

// recordTimeout is the timeout of recording a reply.
const recordTimeout = 30 * time.Second

// forgetBodies releases the memory of a request once it is recorded: hooks keep fits.
func (x *Exchange) forgetBodies() { x.Fit.Received, x.Fit.Sent = nil, nil }

// Drop ends an exchange without recording a reply. It may be called more than once,
// and after Done.
func (x *Exchange) Drop() {
	if x.Session == nil || x.done == nil {
		return
	}
	dropped := false
	x.all.read(x.Session, func(t *tx) {
		if _, dropped = t.pending[x]; dropped {
			delete(t.pending, x)
			close(x.done)
			x.draft = nil
		}
	})
	if dropped {
		x.release()
		x.all.Forget(x.Session)
	}
}
