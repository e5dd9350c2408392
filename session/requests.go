package session

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/price"
)

// Request is a request on a path, with its size, its cost, and what furl did before
// it. Everything in it follows from the log and the descriptions of models. Sizes are
// in the provider's tokens.
type Request struct {
	// Number counts the requests of the path from 1.
	Number int
	// Exchange is the record of the request, 0 if there is none. That is so before
	// the first exchange of a path: requests are then inferred from the replies.
	Exchange furl.Seq
	// Sent is the record that the request was sent for: its prompt is the view of
	// the path up to it.
	Sent furl.Seq
	// Reply is the first message of the reply on the path, 0 if there is none.
	Reply furl.Seq
	// Time is when the request was made, for an inferred one when its reply was
	// recorded.
	Time time.Time
	// Model is the model's name in the request, "" if it is unknown.
	Model string
	// Window is the context window for the session, 0 if unknown. Trigger is the
	// size from which the policy reduces the prompt, Target the size that it
	// reduces to, both 0 if the policy has no such size. All three are today's.
	Window, Trigger, Target int
	// Size is the reported size of the prompt, the estimated one if Estimated is
	// set. SizeWithout is the estimated size without reductions. Account.Prompt and
	// Account.PromptWithout are the same.
	Size, SizeWithout int
	Estimated         bool
	// Imported reports that the record is from a recording of another program. Its
	// reductions may be that program's.
	Imported bool
	// Dry reports a dry run: the prompt had everything, and SizeWithout is Size.
	Dry bool
	// Usage is the reported usage, zero if unknown. Passes are all passes of the
	// request if the provider ran several; Usage is then that of the last one whose
	// prompt was the conversation.
	Usage  furl.Usage
	Passes furl.Passes
	// Terms are those under which the request was billed, Unpriced those of them whose
	// price is not known. Split is its cost by what it is for; its sum is Cost.
	Terms    furl.Terms
	Unpriced []string
	Split    price.Cost
	price.Account
	// Repaired names the files whose text the request showed again because an edit of them had
	// failed, separated by commas, and RepairTokens is what that added to the prompt.
	Repaired     string
	RepairTokens int
	// Reductions are the reductions that were recorded since the previous request.
	Reductions []furl.Seq
	// Scale converts counted tokens of the request's view.
	Scale Scale
}

// RequestModel is what a History must know about a model.
type RequestModel struct {
	// Model is the model as the session has it (Session.Model).
	furl.Model
	// Limit is the largest prompt that the provider accepts, whatever window is
	// set; 0: unknown.
	Limit int
	// Trigger and Target are those of the policy; see Request.
	Trigger, Target int
}

// HistoryOptions are the options of a History.
type HistoryOptions struct {
	// Model describes a model by its name in requests. It is called once for each
	// model.
	Model func(name string) RequestModel
	// Default is the model of requests that are inferred from replies.
	Default string
}

// Requests returns the requests of the session's path. To follow a session, keep a
// History of it instead.
func (s *Session) Requests() ([]Request, error) { return s.requestsTo(s.Head()) }

// requestsTo returns the requests of the path to a record.
func (s *Session) requestsTo(head furl.Seq) ([]Request, error) {
	h := NewHistory(s.HistoryOptions())
	_, err := h.Extend(s.Records(0), head)
	return h.Requests(), err
}

// HistoryOptions returns the options for a History of this session. After a change of
// settings, a new History has the new windows, triggers and targets.
func (s *Session) HistoryOptions() *HistoryOptions {
	return &HistoryOptions{Model: s.requestModel, Default: s.Meta().Model}
}

// requestModel describes a model for a History.
func (s *Session) requestModel(name string) (m RequestModel) {
	s.Internal().Read(func(c *open.Change) { m = requestModelOf(c, name) })
	return m
}

func requestModelOf(c *open.Change, name string) RequestModel {
	m := RequestModel{Model: c.Model(name), Limit: c.ProviderWindow(name)}
	p, err := c.PolicyWithoutModel(open.Prompt{})
	if err != nil {
		return m
	}
	b := policy.NewBudget(m.Model, 0)
	b.Recall = c.HasRecall()
	m.Trigger, m.Target = policy.Sizes(p, &b)
	return m
}
