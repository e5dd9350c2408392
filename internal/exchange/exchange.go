package exchange

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
)

// Exchange is one request of a client on its way to the model and back:
//
//	decode → match → plan → view → encode → (send) → append → append reply
//
// Sessions.Begin does all up to Body, which is to be sent. Commit stores what
// the request brought once the provider has accepted it. Then Done tells what
// came back, or Drop that nothing did.
type Exchange struct {
	session.Exchange

	all   *Sessions
	asked *protocol.Request // as it came
	req   *protocol.Request // with the recall tools that it is offered, in its preamble
	in    *arrival
	held  *session.Draft // to be committed; nil: nothing is
	at    furl.Seq       // the record that the next request of the exchange follows
	// forced is what the provider said when it refused the prompt as too long.
	forced *protocol.Overflow
	limit  int // the window that this tells

	offered []string // recall tools
	rounds  int      // that had a call of theirs
	recalls int      // such calls

	// Other requests of the session read these while they hold it:
	begins  bool          // the session
	first   furl.Seq      // the Fit's Head of the first request; 0: nothing is committed
	head    furl.Seq      // that of the newest request; 0: it is not committed
	chain   furl.Digest   // at the end of the request's messages
	end     chan struct{} // closed when the exchange is over
	release func()        // of the session
}

// send sets the body to send.
func (x *Exchange) send(body []byte) {
	came := x.asked.Body
	x.Body, x.Reduced = body, len(body) != len(came) || len(body) > 0 && &body[0] != &came[0]
}

// Done records what came of the exchange, also if ctx has ended: the client may
// have gone, and what it was told is still true. A refusal, and a reply of
// which nothing came, are not recorded.
func (x *Exchange) Done(ctx context.Context, reply *protocol.Reply) error {
	defer x.Drop()
	return x.record(ctx, reply)
}

// record records a reply.
func (x *Exchange) record(ctx context.Context, reply *protocol.Reply) error {
	if x.Session == nil || x.end == nil || x.over() || reply == nil || reply.Refusal != nil && len(reply.Messages) == 0 ||
		len(reply.Messages) == 0 && reply.Usage == (furl.Usage{}) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRecord)
	defer cancel()
	sent := x.Body // Commit may prepare another
	if err := x.committed(ctx); err != nil {
		return err
	}
	x.Fit.Received, x.Fit.Sent = x.asked, sent
	defer x.forgetBodies()
	if err := x.Session.Observe(ctx, x.Fit, reply); err != nil {
		return fmt.Errorf("record the reply: %w", err)
	}
	return nil
}

// committed has what the request brought committed, if it is not yet: whoever
// has its reply was not refused.
func (x *Exchange) committed(ctx context.Context) error {
	if _, err := x.Commit(ctx); err != nil {
		return fmt.Errorf("record the request: %w", err)
	}
	if x.Session == nil {
		return fmt.Errorf("record the request: %w", x.Err)
	}
	if x.first == 0 {
		return fmt.Errorf("record the request: %w", errOver)
	}
	return nil
}

// maxRecord bounds how long the recording of a reply may take.
const maxRecord = 30 * time.Second

// forgetBodies lets the memory of a request go once it is recorded: hooks keep fits.
func (x *Exchange) forgetBodies() { x.Fit.Received, x.Fit.Sent = nil, nil }

// Drop ends an exchange of which nothing is recorded. It may be called more
// than once, and after Done.
func (x *Exchange) Drop() {
	if x.Session == nil || x.end == nil {
		return
	}
	dropped := false
	x.all.read(x.Session, func(t *tx) {
		if _, dropped = t.pending[x]; dropped {
			delete(t.pending, x)
			close(x.end)
			x.held = nil
		}
	})
	if dropped {
		x.release()
		x.all.Forget(x.Session)
	}
}
