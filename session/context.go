package session

import (
	"cmp"
	"math"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/token"
)

// The parts of a context, in the order in which Context gives them.
const (
	partSystem    = "system"    // instructions
	partTools     = "tools"     // their definitions
	partUser      = "user"      // words of the user, media among them
	partAssistant = "assistant" // words of the model, and its calls
	partThinking  = "thinking"
	partResults   = "results"
	partSummaries = "summaries" // what represents whole steps
	partStandIns  = "stand-ins" // what is in place of single blocks
	partFree      = "free"      // room for more, and the reply
)

// Part is a part of a context.
type Part struct {
	Name string `json:"name"`
	// Tokens are the provider's, as estimated. Blocks counts what it is made
	// of, 0 where that is not known.
	Tokens int `json:"tokens"`
	Blocks int `json:"blocks,omitempty"`
}

// Usage says where the tokens of a context are.
type Usage struct {
	Model string `json:"model"`
	// Limit is the window, 0 if none is known; Percentage how much of it is
	// taken, to one decimal.
	Limit      int     `json:"limit"`
	Size       int     `json:"current_size"`
	Percentage float64 `json:"percentage"`
	// Parts sum up to Size, and with what is free to Limit.
	Parts []Part `json:"parts"`
	// Hidden is the size of what is recorded on the path and not shown.
	Hidden int `json:"hidden_tokens"`
	// Messages are those of the path, Shown those in the view.
	Messages int `json:"messages"`
	Shown    int `json:"messages_shown"`
}

// Context says where the tokens of the next request are, for a model by the
// name that requests give it; "" is the session's. The preamble counts as in
// Fit; without one, what earlier requests had beside the messages is shared as it
// was in the newest one.
func (s *Session) Context(model string, preamble ...furl.Block) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, v, counted := s.budgetFor(Prompt{Model: cmp.Or(model, s.meta.Model), Preamble: preamble})
	tools := counted.tools
	if len(preamble) == 0 {
		tools = s.meta.ToolShare
	}
	u := Usage{Model: cmp.Or(model, s.meta.Model), Limit: b.Window, Size: b.Size, Messages: s.log.State().Len(), Shown: len(v.Messages)}
	sum := newSum(b)
	sum.fixed(preamble, tools)
	sum.view(v)
	u.Parts = sum.list(b)
	all := 0
	for i := range s.log.State().Len() {
		_, m := s.log.State().Message(i)
		all += m.Tokens()
	}
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			if sb := &v.Messages[i].Blocks[j]; sb.By == 0 && v.Messages[i].Index >= 0 {
				all -= sb.Block.Tokens
			}
		}
	}
	u.Hidden = b.Of(max(0, all), 0)
	if u.Limit > 0 {
		u.Percentage = math.Round(float64(u.Size)*1000/float64(u.Limit)) / 10
	}
	return u
}

// sum adds up the parts of a view.
type sum struct {
	b     furl.Budget
	parts map[string]*token.Part
	count map[string]int
	given map[string]int // in the provider's tokens already
}

func newSum(b furl.Budget) *sum {
	return &sum{b, make(map[string]*token.Part), make(map[string]int), make(map[string]int)}
}

func (s *sum) add(name string, tokens, items int) {
	if s.parts[name] == nil {
		s.parts[name] = new(token.Part)
	}
	s.parts[name].Tokens += tokens
	s.parts[name].Items += items
	s.count[name]++
}

// fixed shares what is sent beside the messages between instructions and
// tools.
func (s *sum) fixed(preamble []furl.Block, tools float64) {
	for i := range preamble {
		if preamble[i].Kind == furl.KindOpaque {
			s.count[partTools]++
		} else {
			s.count[partSystem]++
		}
	}
	s.given[partTools] = int(float64(s.b.Fixed) * tools)
	s.given[partSystem] = s.b.Fixed - s.given[partTools]
}

func (s *sum) view(v *furl.View) {
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
		return partStandIns
	case sb.Block.Kind == furl.KindThinking:
		return partThinking
	case sb.Block.Kind == furl.KindResult:
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

// list gives the parts so that they sum up to the size: what was estimated for
// them and not reported goes to the largest.
func (s *sum) list(b furl.Budget) []Part {
	names := []string{partSystem, partTools, partUser, partAssistant, partThinking, partResults, partSummaries, partStandIns}
	list := make([]Part, len(names), len(names)+1)
	total, largest := 0, 0
	for i, name := range names {
		n := s.given[name]
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
