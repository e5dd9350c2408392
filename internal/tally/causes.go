package tally

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/billed"
)

// What a part of a cost is caused by. Only CauseTool has a tool's name.
const (
	CauseInstructions = "instructions" // and the definitions of tools
	CauseUser         = "user"         // what the user wrote or attached
	CauseReplies      = "replies"      // the text of replies
	CauseThinking     = "thinking"
	CauseTool         = "tool"           // calls and their results
	CauseCompactions  = "compactions"    // requests for summaries, and summaries in prompts
	CauseRetries      = "retries"        // requests that were sent again
	CauseSide         = "side requests"  // of the agent, beside the conversation
	CauseKeepAlive    = "keep-alive"     // see billed.KeepAlive
	CauseProvider     = "provider tools" // what the provider bills for its own tools
)

// Cause is what one cause has cost.
type Cause struct {
	Cause string `json:"cause"`
	Tool  string `json:"tool,omitempty"`
	// Cost is in US dollars. CostOutput is its part for output.
	Cost       float64 `json:"cost"`
	CostOutput float64 `json:"cost_output"`
	// Calls is the number of a tool's calls, and ResultTokens the counted size of its results, each once.
	Calls        int `json:"calls,omitempty"`
	ResultTokens int `json:"result_tokens,omitempty"`
	// PromptTokens is the size in all prompts together, in the provider's tokens, and OutputTokens that of the output.
	PromptTokens int `json:"prompt_tokens"`
	OutputTokens int `json:"output_tokens"`

	prompt, output float64
}

// CauseReport is what causes have cost. The sum of the groups' costs is the total's.
type CauseReport struct {
	Total  Sum      `json:"total"`
	Groups []Cause  `json:"groups"` // the most expensive first
	By     []string `json:"by"`
}

// CauseCollector finds what has caused costs. The cost of a prompt is divided by position: its start was read from
// the cache, then comes what was written to it, then fresh input. Sizes within a prompt are counted and scaled to the size
// that was billed; what the first prompt of a session has beyond its messages are the instructions.
type CauseCollector struct {
	choice  *Collector
	counter furl.Counter
	sums    map[causeKey]*Cause
}

type causeKey struct{ cause, tool string }

// NewCauseCollector returns a collector for the requests that a query chooses.
func NewCauseCollector(q Query, counter furl.Counter) *CauseCollector {
	q.By = nil
	return &CauseCollector{choice: NewCollector(q), counter: counter, sums: make(map[causeKey]*Cause)}
}

// Add adds the requests of a session. records are its log, and models describes its models. If the log cannot be followed,
// the error says so, and the rest of the session is left out.
func (c *CauseCollector) Add(s *billed.Session, records []furl.Record, models billed.Models) error {
	w := causeWalk{c: c, state: new(furl.State), models: models, tools: make(map[string]string), entries: make(map[furl.Seq]*billed.Entry), last: make(map[furl.Seq]furl.Seq)}
	for i := range s.Entries {
		e := &s.Entries[i]
		if !c.choice.chooses(e) {
			continue
		}
		if e.Seq == 0 {
			c.whole(e)
			continue
		}
		w.entries[e.Seq] = e
	}
	w.log = furl.NewLog()
	if err := w.log.Load(records); err != nil {
		return fmt.Errorf("session %s: %w", s.ID, err)
	}
	for i := range records {
		if _, ok := records[i].Body.(*furl.Exchange); ok {
			w.last[records[i].Parent] = records[i].Seq
		}
	}
	for i := range records {
		if err := w.record(&records[i]); err != nil {
			return fmt.Errorf("session %s: %w", s.ID, err)
		}
	}
	return nil
}

// Report returns the sums of what was added.
func (c *CauseCollector) Report() *CauseReport {
	r := &CauseReport{Total: c.choice.report.Total, Groups: []Cause{}, By: []string{"cause"}}
	for _, sum := range c.sums {
		sum.PromptTokens, sum.OutputTokens = int(math.Round(sum.prompt)), int(math.Round(sum.output))
		r.Groups = append(r.Groups, *sum)
	}
	slices.SortFunc(r.Groups, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.PromptTokens, a.PromptTokens), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Tool, b.Tool))
	})
	return r
}

func (c *CauseCollector) sum(key causeKey) *Cause {
	if c.sums[key] == nil {
		c.sums[key] = &Cause{Cause: key.cause, Tool: key.tool}
	}
	return c.sums[key]
}

// whole adds a request that has one cause, if it is no reply.
func (c *CauseCollector) whole(e *billed.Entry) {
	cause := CauseSide
	switch e.Kind {
	case billed.Compaction, billed.Summary:
		cause = CauseCompactions
	case billed.KeepAlive:
		cause = CauseKeepAlive
	}
	c.add(e, cause)
}

func (c *CauseCollector) add(e *billed.Entry, cause string) {
	c.choice.report.Total.add(e)
	sum := c.sum(causeKey{cause: cause})
	sum.Cost += e.Cost
	sum.CostOutput += e.Split.Output
	sum.prompt += float64(e.Usage.Prompt())
	sum.output += float64(e.Usage.Output)
}

// piece is a part of a prompt or a reply, with its counted size.
type piece struct {
	of     causeKey
	tokens int
}

// causeWalk follows the log of a session.
type causeWalk struct {
	c       *CauseCollector
	log     *furl.Log
	state   *furl.State
	models  billed.Models
	entries map[furl.Seq]*billed.Entry
	last    map[furl.Seq]furl.Seq // the last request after a record
	tools   map[string]string     // names by the ids of calls
	prompt  []piece
	changed bool // the prompt has changed other than by growing
	// fixed is the size of the instructions, once known.
	fixed int
	begun bool
}

func (w *causeWalk) record(r *furl.Record) error {
	switch b := r.Body.(type) {
	case *furl.Message:
		b.Measure(w.c.counter)
		for i := range b.Blocks {
			w.prompt = append(w.prompt, piece{w.causeOf(b.Role, &b.Blocks[i]), b.Blocks[i].Tokens})
		}
		w.count(r.Seq, b)
	case *furl.Exchange:
		if e := w.entries[r.Seq]; e != nil {
			w.request(r, b, e)
		}
	case *furl.Head:
		w.state = new(furl.State)
		for _, p := range w.log.Path(r.Parent) {
			if err := w.state.Apply(p); err != nil {
				return err
			}
		}
		w.changed = true
		return nil
	case *furl.Reduction:
		if e := w.entries[r.Seq]; e != nil {
			w.c.whole(e)
		}
		for _, it := range b.Items {
			if mark, ok := it.Show.(furl.Mark); ok {
				for _, m := range mark.Messages {
					m.Measure(w.c.counter)
				}
			}
		}
		w.changed = true
	default:
		w.changed = true
	}
	return w.state.Apply(*r)
}

// count counts calls and results of chosen requests, each once.
func (w *causeWalk) count(seq furl.Seq, m *furl.Message) {
	for i := range m.Blocks {
		b := &m.Blocks[i]
		switch key := w.causeOf(m.Role, b); {
		case key.cause != CauseTool || len(w.entries) == 0:
		case b.IsResult():
			w.c.sum(key).ResultTokens += b.Tokens
		case b.Kind == furl.KindCall:
			w.c.sum(key).Calls++
		}
	}
}

// causeOf returns what a block is caused by.
func (w *causeWalk) causeOf(role furl.Role, b *furl.Block) causeKey {
	switch {
	case b.Kind == furl.KindCall:
		w.tools[b.ID] = b.Name
		return causeKey{CauseTool, cmp.Or(b.Name, "unknown")}
	case b.IsResult():
		return causeKey{CauseTool, cmp.Or(w.tools[b.ID], "unknown")}
	case b.Kind == furl.KindThinking:
		return causeKey{cause: CauseThinking}
	case role == furl.RoleAssistant:
		return causeKey{cause: CauseReplies}
	case role == furl.RoleUser:
		return causeKey{cause: CauseUser}
	}
	return causeKey{cause: CauseInstructions}
}

// request divides the cost of a request.
func (w *causeWalk) request(r *furl.Record, ex *furl.Exchange, e *billed.Entry) {
	if w.last[r.Parent] != r.Seq {
		w.c.add(e, CauseRetries)
		return
	}
	if e.Kind != billed.Reply {
		w.c.whole(e)
		return
	}
	w.c.choice.report.Total.add(e)
	if w.changed {
		w.render(w.models(ex.Model))
	}
	counted := 0
	for i := range w.prompt {
		counted += w.prompt[i].tokens
	}
	size := e.Usage.Prompt()
	if !w.begun && size > 0 {
		w.fixed, w.begun = max(0, size-counted), true
	}
	w.divide(e, min(w.fixed, size), counted)
	w.output(r.Seq, e)
	if e.Split.Tools > 0 {
		w.c.sum(causeKey{cause: CauseProvider}).Cost += e.Split.Tools
	}
}

// render sets the prompt to what a view shows.
func (w *causeWalk) render(m furl.Model) {
	w.prompt, w.changed = w.prompt[:0], false
	view := w.state.View(m)
	for i := range view.Messages {
		sh := &view.Messages[i]
		for j := range sh.Blocks {
			of := causeKey{cause: CauseCompactions}
			if sh.Seq != 0 {
				of = w.causeOf(sh.Msg.Role, sh.Blocks[j].Block)
			}
			w.prompt = append(w.prompt, piece{of, sh.Blocks[j].Tokens})
		}
	}
}

// divide divides the cost of a prompt by position: instructions, then messages.
func (w *causeWalk) divide(e *billed.Entry, fixed, counted int) {
	size := float64(e.Usage.Prompt())
	if size == 0 {
		return
	}
	if counted == 0 {
		fixed = e.Usage.Prompt()
	}
	regions := []struct{ tokens, cost float64 }{
		{float64(e.Usage.CacheRead), e.Split.CacheRead},
		{float64(e.Usage.CacheWrite + e.Usage.CacheWrite1h), e.Split.CacheWrite + e.Split.CacheWrite1h},
		{float64(e.Usage.Input), e.Split.Fresh},
	}
	// take returns the cost of the next tokens.
	at := 0
	take := func(tokens float64) (cost float64) {
		for tokens > 1e-9 && at < len(regions) {
			region := &regions[at]
			if region.tokens <= tokens {
				cost, tokens = cost+region.cost, tokens-region.tokens
				at++
				continue
			}
			part := region.cost * tokens / region.tokens
			region.tokens, region.cost = region.tokens-tokens, region.cost-part
			return cost + part
		}
		return cost
	}
	add := func(of causeKey, tokens float64) {
		sum := w.c.sum(of)
		sum.Cost += take(tokens)
		sum.prompt += tokens
	}
	if fixed > 0 {
		add(causeKey{cause: CauseInstructions}, float64(fixed))
	}
	last := causeKey{cause: CauseInstructions}
	if counted > 0 {
		scale := (size - float64(fixed)) / float64(counted)
		for i := range w.prompt {
			if tokens := float64(w.prompt[i].tokens) * scale; tokens > 0 {
				add(w.prompt[i].of, tokens)
				last = w.prompt[i].of
			}
		}
	}
	for ; at < len(regions); at++ { // what rounding has left
		w.c.sum(last).Cost += regions[at].cost
	}
}

// output divides the cost of the output.
func (w *causeWalk) output(request furl.Seq, e *billed.Entry) {
	var reply []piece
	counted, thinking := 0, -1
	for at := int(request); at < w.log.Len(); at++ {
		r := w.log.At(furl.Seq(at + 1))
		m, ok := r.Body.(*furl.Message)
		if !ok || m.Role != furl.RoleAssistant {
			break
		}
		m.Measure(w.c.counter)
		for i := range m.Blocks {
			if b := &m.Blocks[i]; !b.IsResult() {
				of := w.causeOf(m.Role, b)
				if of.cause == CauseThinking && thinking < 0 {
					thinking = len(reply)
				}
				reply = append(reply, piece{of, b.Tokens})
				counted += b.Tokens
			}
		}
	}
	if e.Usage.Reasoning > 0 && thinking < 0 {
		thinking = len(reply)
		reply = append(reply, piece{of: causeKey{cause: CauseThinking}})
	}
	if counted == 0 && thinking < 0 {
		reply, counted = []piece{{causeKey{cause: CauseReplies}, 1}}, 1
	}
	if thinking >= 0 { // only a part of it, or none, can be read
		rest := 0
		for i := range reply {
			if reply[i].of.cause == CauseThinking {
				reply[i].tokens = 0
			} else {
				rest += reply[i].tokens
			}
		}
		if reply[thinking].tokens = max(0, e.Usage.Output-rest); e.Usage.Reasoning > 0 {
			reply[thinking].tokens = e.Usage.Reasoning
			if said := e.Usage.Output - e.Usage.Reasoning; said > 0 && rest > 0 { // in the same scale
				reply[thinking].tokens = e.Usage.Reasoning * rest / said
			}
		}
		counted = rest + reply[thinking].tokens
	}
	for i := range reply {
		part := float64(reply[i].tokens) / float64(max(1, counted))
		if counted == 0 { // nothing is known
			part = 1 / float64(len(reply))
		}
		sum := w.c.sum(reply[i].of)
		sum.Cost += e.Split.Output * part
		sum.CostOutput += e.Split.Output * part
		sum.output += float64(e.Usage.Output) * part
	}
}
