// Package summary builds requests for summaries and reads the replies. It sends
// nothing.
package summary

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// focused adds what the user wants in a summary to a request for it.
const focused = "\n\nThe user asks to pay attention to this in particular: "

// Stage returns the stage by which a summarizer writes a summary that a person or a model
// has requested. focus is what it pays attention to, in their words, or "". If there are
// spans, it replaces these messages, else all old ones.
func Stage(z policy.Summarizer, focus string, spans []furl.Span) *policy.Compact {
	c := &policy.Compact{Summarizer: z, Request: policy.DefaultSummaryRequest, Spans: spans}
	if len(spans) > 0 {
		c.Request = policy.PartSummaryRequest
	}
	if focus = strings.TrimSpace(focus); focus != "" {
		c.Request += focused + focus
	}
	return c
}

// Conversation is a conversation to summarize, and the model that writes the summary.
type Conversation struct {
	API   wire.API
	Body  []byte     // its latest request, as sent
	Name  string     // of its model in requests
	Model furl.Model // of the conversation
	Usage furl.Usage // of that request
	// Other is the model that writes the summary, nil if it is the conversation's.
	Other *Other
}

// Other is a model that is not the conversation's.
type Other struct {
	Name  string // in requests
	Model furl.Model
	// API is the format of its requests, and Body a request from which they take the
	// settings for whom and how to answer. If API is nil, both are the conversation's.
	API  wire.API
	Body []byte
}

// Window returns the context window of another model, in tokens of the
// conversation's model. It is 0 if there is none; see policy.SummaryWindower.
func (c *Conversation) Window() int {
	if c.Other == nil {
		return 0
	}
	return int(float64(c.Other.Model.Window) * scaleOf(&c.Model) / scaleOf(&c.Other.Model))
}

func scaleOf(m *furl.Model) float64 { return cmp.Or(m.TokenScale, 1) }

// Cost returns the cost of a request for a summary at a time in US dollars, 0 if prices
// are unknown.
func (c *Conversation) Cost(used furl.Usage, at time.Time) float64 {
	if c.Other != nil {
		return price.OfRequest(&c.Other.Model, used, at)
	}
	return price.OfRequest(&c.Model, used, at)
}

// Summary returns the summary in the reply to a request to a model at a time.
func (c *Conversation) Summary(reply *protocol.Reply, model string, at time.Time) (policy.Summary, error) {
	sum := policy.Summary{Model: cmp.Or(reply.Model, model), Usage: reply.Passes.Sum(reply.Usage)}
	if c.Other != nil {
		sum.Cost = c.Cost(sum.Usage, at)
	}
	var err error
	sum.Text, sum.CutOff, err = summaryFrom(reply)
	return sum, err
}

// errCalled is the error for a model that continued the task.
var errCalled = errors.New("the model called a tool instead of writing a summary")

// summaryFrom returns the summary in a reply; cut is set if the reply did not end
// by itself. A reply with tool calls is an error, and its text is not a summary.
func summaryFrom(reply *protocol.Reply) (text string, cut bool, err error) {
	switch reply.Stop {
	case "end_turn", "stop_sequence", "stop", "completed", "":
		cut = !reply.Complete
	case "tool_use", "tool_calls", "function_call":
		return "", false, errCalled
	default:
		cut = true
	}
	var texts []string
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			if m.Blocks[i].Kind == furl.KindCall {
				return "", false, errCalled
			}
		}
		if said, err := policy.SummaryText(m); err == nil {
			texts = append(texts, said)
		}
	}
	if len(texts) == 0 {
		return "", cut, policy.ErrNoSummary
	}
	return strings.Join(texts, "\n\n"), cut, nil
}
