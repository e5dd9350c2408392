package session

import (
	"cmp"
	"math"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/account"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/token"
)

// The names of the parts of a context, in the order of Context.
const (
	partSystem       = "system"    // instructions
	partTools        = "tools"     // tool definitions
	partUser         = "user"      // user messages, with media
	partAssistant    = "assistant" // assistant messages, with tool calls
	partThinking     = "thinking"
	partResults      = "results"
	partSummaries    = "summaries"    // markers and summaries of whole steps
	partPlaceholders = "placeholders" // placeholders of single blocks
	partFree         = "free"         // free space, including the reply
)

// Part is a part of a context.
type Part struct {
	Name string `json:"name"`
	// Tokens is the estimated size in the provider's tokens. Blocks is the number
	// of blocks, 0 if unknown.
	Tokens int `json:"tokens"`
	Blocks int `json:"blocks,omitempty"`
}

// Usage is the size of a context by its parts.
type Usage struct {
	Model string `json:"model"`
	// Limit is the context window in tokens, 0 if unknown. Percentage is the used
	// share of it, rounded to one decimal.
	Limit int `json:"limit"`
	// LimitAssumed: the catalog lacks the model, and Limit is that of similar models.
	LimitAssumed bool    `json:"limit_assumed,omitempty"`
	Size         int     `json:"current_size"`
	Percentage   float64 `json:"percentage"`
	// Without is what Size would be without reductions.
	Without int `json:"size_without"`
	// Parts add up to Size; with the free part they add up to Limit.
	Parts []Part `json:"parts"`
	// Recorded is the size of the path's messages as they were recorded. Hidden is how
	// much of it the model does not see, Visible the rest: of a block that is shown
	// shorter, what was cut is hidden. Instructions, tools, summaries and markers are
	// part of Size only.
	Recorded int `json:"recorded_tokens"`
	Visible  int `json:"visible_tokens"`
	Hidden   int `json:"hidden_tokens"`
	// Messages is the number of messages on the path, Shown the number in the
	// view.
	Messages int `json:"messages"`
	Shown    int `json:"messages_shown"`
}

// Context returns the size of the next request by its parts. model is its name in
// requests; "" is the session's model. The preamble counts as in Fit. Without one,
// the preamble of earlier requests is split into instructions and tools like that
// of the latest request.
func (s *Session) Context(model string, preamble ...furl.Block) (u Usage) {
	s.Internal().Read(func(c *open.Change) { u = usageOf(c, model, preamble) })
	return u
}

func usageOf(c *open.Change, model string, preamble []furl.Block) Usage {
	model = cmp.Or(model, c.Meta().Model)
	b, v, counted := c.BudgetFor(open.Prompt{Model: model, Preamble: preamble})
	tools := counted.Tools
	if len(preamble) == 0 {
		tools = c.Meta().ToolShare
	}
	st := c.Log().State()
	u := Usage{Model: model, Limit: b.Window, LimitAssumed: b.Model.WindowAssumed, Size: b.Size, Messages: st.Len(), Shown: len(v.Messages)}
	sum := newSum(b)
	sum.fixed(preamble, tools)
	sum.view(v)
	u.Parts = sum.list(b)
	out := account.HiddenPart(st, v, account.RecordedPart(st))
	u.Without = b.Size + max(0, b.Of(out.Tokens, out.Items))
	hidden, recorded := account.Hidden(st, v)
	u.Hidden, u.Recorded = b.Of(hidden, 0), b.Of(recorded, 0)
	u.Visible = u.Recorded - u.Hidden
	if u.Limit > 0 {
		u.Percentage = math.Round(float64(u.Size)*1000/float64(u.Limit)) / 10
	}
	return u
}

// partSums adds up the parts of a view.
type partSums struct {
	b           furl.Budget
	parts       map[string]*token.Part
	count       map[string]int
	fixedTokens map[string]int // in the provider's tokens
}

func newSum(b furl.Budget) *partSums {
	return &partSums{b, make(map[string]*token.Part), make(map[string]int), make(map[string]int)}
}

func (s *partSums) add(name string, tokens, items int) {
	if s.parts[name] == nil {
		s.parts[name] = new(token.Part)
	}
	s.parts[name].Tokens += tokens
	s.parts[name].Items += items
	s.count[name]++
}

// fixed splits the preamble into instructions and tools; tools is the share of
// tools from 0 to 1.
func (s *partSums) fixed(preamble []furl.Block, tools float64) {
	for i := range preamble {
		if preamble[i].Kind == furl.KindOpaque {
			s.count[partTools]++
		} else {
			s.count[partSystem]++
		}
	}
	s.fixedTokens[partTools] = int(float64(s.b.Fixed) * tools)
	s.fixedTokens[partSystem] = s.b.Fixed - s.fixedTokens[partTools]
}

func (s *partSums) view(v *furl.View) {
	for i := range v.Messages {
		sh := &v.Messages[i]
		for j := range sh.Blocks {
			sb := &sh.Blocks[j]
			items := 0
			if sb.Block.Kind == furl.KindCall || sb.Block.Kind == furl.KindResult {
				items = 1
			}
			s.add(partName(sh, sb), sb.Tokens, items)
		}
	}
}

func partName(sh *furl.Shown, sb *furl.ShownBlock) string {
	switch {
	case sh.Index < 0:
		return partSummaries
	case sb.By != 0:
		return partPlaceholders
	case sb.Block.Kind == furl.KindThinking:
		return partThinking
	case sb.Block.IsResult():
		return partResults
	}
	switch sh.Msg.Role {
	case furl.RoleAssistant:
		return partAssistant
	case furl.RoleSystem, furl.RoleDeveloper:
		return partSystem
	}
	return partUser
}

// list returns the parts so that they add up to the size. The largest part gets the
// difference between estimated parts and size.
func (s *partSums) list(b furl.Budget) []Part {
	names := []string{partSystem, partTools, partUser, partAssistant, partThinking, partResults, partSummaries, partPlaceholders}
	list := make([]Part, len(names), len(names)+1)
	total, largest := 0, 0
	for i, name := range names {
		n := s.fixedTokens[name]
		if p := s.parts[name]; p != nil {
			n += b.Of(p.Tokens, p.Items)
		}
		list[i] = Part{Name: name, Tokens: n, Blocks: s.count[name]}
		total += n
		if n > list[largest].Tokens {
			largest = i
		}
	}
	list[largest].Tokens = max(0, list[largest].Tokens+b.Size-total)
	if b.Window > 0 {
		list = append(list, Part{Name: partFree, Tokens: max(0, b.Window-b.Size)})
	}
	return list
}
