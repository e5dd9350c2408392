package chatcmd

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/conversation"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
)

// chatCompactor has them written by the model of a chat, and shows the events.
type chatCompactor struct {
	operation.AtOnce
	a    *agent.Agent
	show func(agent.Event) bool
}

// WritesNow implements operation.Compactor.
func (k chatCompactor) WritesNow(*session.Session) (model string, ok bool) {
	return k.a.Model().ID, true
}

// Compact implements operation.Compactor.
func (k chatCompactor) Compact(ctx context.Context, s *session.Session, what operation.Compaction) (furl.Seq, error) {
	before := s.Info().Records
	for e, err := range k.a.Compact(ctx, what.Focus, what.Spans...) {
		if err != nil {
			return 0, err
		}
		if _, done := e.(agent.Done); !done && !k.show(e) {
			return 0, conversation.ErrCanceled
		}
	}
	for _, r := range s.Records(before) {
		if red, ok := r.Body.(*furl.Reduction); ok && red.Summary != nil {
			return r.Seq, nil
		}
	}
	return 0, errors.New("no summary was recorded")
}

// compact replaces old messages by a summary, or those that the first words name.
func (c *chatRun) compact(x *slashRun) chat.Reply {
	o, in := operation.Named("compact"), &operation.CompactInput{}
	words := x.args
	for len(words) > 0 && (words[0] == "--dry-run" || namesMessages(words[0])) {
		if in.DryRun = in.DryRun || words[0] == "--dry-run"; words[0] != "--dry-run" {
			in.Handles = append(in.Handles, words[0])
		}
		words = words[1:]
	}
	in.Focus = strings.Join(words, " ")
	if in.DryRun {
		return c.operate(x, o, in)
	}
	text := ""
	run := func(yield func(agent.Event, error) bool) {
		show := func(e agent.Event) bool { return yield(e, nil) }
		call := &operation.Call{Context: x, Sessions: c.All, Session: c.Session(), Compactor: chatCompactor{a: c.Agent(), show: show}}
		done, err := o.Do(call, in)
		if err == nil && done.Nothing != "" {
			err = operation.Refusal(done.Nothing)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		text = chatText(call, done)
		yield(agent.Done{}, nil)
	}
	return chat.Reply{Events: c.Asking(x, x.ask, iter.Seq2[agent.Event, error](run)), After: func() string { return text }}
}

// namesMessages reports whether a word is a handle, a record number or a range.
func namesMessages(word string) bool {
	a, b, isRange := strings.Cut(strings.Replace(word, "–", "-", 1), "-")
	_, err := recall.ParseHandle(a)
	if err == nil && isRange {
		_, err = recall.ParseHandle(b)
	}
	return err == nil
}
