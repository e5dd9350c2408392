package exchange

import (
	"context"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
)

// Fitting is what a program says of a request that it sends itself.
type Fitting struct {
	// Policy is the name of the session's policy from now on, "" for no change.
	Policy string
	// Usage is the usage of the reply to the session's previous request, zero if it is not
	// known.
	Usage  furl.Usage
	Passes furl.Passes
	Terms  furl.Terms
	// Now is the time of the request and of its records. If zero, the clock's time.
	Now time.Time
	// Budget is the largest prompt in tokens, if that is less than the window leaves; 0:
	// no such limit. Chars is the same in characters, for the preset graduated only.
	Budget, Chars int
}

func (f *Fitting) now() time.Time {
	if f == nil {
		return time.Time{}
	}
	return f.Now
}

func (f *Fitting) policy() string {
	if f == nil {
		return ""
	}
	return f.Policy
}

func (f *Fitting) budget() int {
	if f == nil {
		return 0
	}
	return f.Budget
}

func (f *Fitting) adjust() func(policy.Settings) policy.Settings {
	if f == nil || f.Chars == 0 {
		return nil
	}
	return func(set policy.Settings) policy.Settings {
		set.InputChars = f.Chars
		return set
	}
}

// recordAwaited records the reply to the session's previous request, which the history
// has, as if furl had seen it: with its usage, after its request.
func (x *Exchange) recordAwaited(ctx context.Context, s *open.Session) error {
	if x.fitting == nil {
		return nil
	}
	err := s.Update(ctx, open.Committed, func(st *open.Change) error {
		sent := st.Awaited()
		if sent == nil {
			return nil
		}
		t := x.all.tx(s, st)
		t.UpdateIndex()
		msgs := x.incoming.req.Messages
		pl := find(t.Change, x.incoming.chains, msgs)
		if pl.head != sent.Head {
			return nil
		}
		reply := &protocol.Reply{Format: x.req.Format, Usage: x.fitting.Usage, Passes: x.fitting.Passes, Terms: x.fitting.Terms, Complete: true}
		for i := pl.matched; i < len(msgs) && msgs[i].Role == furl.RoleAssistant; i++ {
			reply.Messages = append(reply.Messages, cloneMessage(x.incoming.recordedForm(i)))
		}
		if len(reply.Messages) == 0 {
			return nil
		}
		return st.ObserveAwaited(ctx, sent, reply)
	})
	if err != nil {
		return fmt.Errorf("record the reply to the previous request: %w", err)
	}
	return nil
}

// HiddenBlock is a block of the request that the body to send shows otherwise or not at
// all.
type HiddenBlock struct {
	// Message is the index of its message in the request's list, -1 if the request has it
	// in other messages. Block is its index in the recorded message.
	Message, Block int
	At             furl.Pos
	By             furl.Seq // the reduction
}

// Hidden returns what the body to send hides of the request, in order. It is valid after
// Begin until the session changes.
func (x *Exchange) Hidden() []HiddenBlock {
	if x.Fit == nil {
		return nil
	}
	var list []HiddenBlock
	st := x.Fit.View.State
	to := x.incoming.pairs.to
	for i := range min(st.Len(), len(to)) {
		seq, m := st.Message(i)
		for k := range m.Blocks {
			p := furl.Pos{Msg: seq, Block: k}
			if by := st.ShownBy(p); by != 0 && clientMark(st, by) == nil {
				list = append(list, HiddenBlock{Message: max(to[i], -1), Block: k, At: p, By: by})
			}
		}
	}
	return list
}
