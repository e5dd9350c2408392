package web

import (
	"math"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/account"
	"github.com/furlhq/furl/session"
)

// contextPicture is the data of the ribbon, which shows the context to scale. The lists
// have one element per run, in the order of the prompt. Tokens are in the provider's.
type contextPicture struct {
	Size    int      `json:"size"`
	Window  int      `json:"window"`  // 0: unknown
	Trigger int      `json:"trigger"` // 0: the policy has none
	Target  int      `json:"target"`  // 0: the policy has none
	Request int      `json:"request"` // 0: now
	Head    furl.Seq `json:"head"`
	// Kinds are the names of kinds; Kind has indexes into it.
	Kinds  []kind `json:"kinds"`
	Kind   []int  `json:"kind"`
	Tokens []int  `json:"tokens"`
	// Record is the record of a run less that of the previous run, so that the list
	// compresses well. Parts before the messages, and summaries, have record 0.
	Record []int `json:"record"`
	Block  []int `json:"block"`
	// By is the reduction that hides a run, or whose text a run is; 0 for none. A hidden
	// run without a reduction is thinking that the provider drops.
	By []furl.Seq `json:"by"`
	// Hidden is 1 for runs that the model does not see. Their tokens are how much of the
	// originals is not visible.
	Hidden []int `json:"hidden"`

	record furl.Seq // of the previous run
}

// kinds are the kinds of runs, in the order of the legend.
var kinds = []kind{kindSystem, kindTools, kindUser, kindAssistant, kindCall, kindThinking, kindResult, kindSummary, kindPlaceholder}

// run is a part of the context that the ribbon draws.
type run struct {
	kind   kind
	tokens int
	pos    furl.Pos
	by     furl.Seq
	hidden bool
}

func (c *contextPicture) add(r run) {
	c.Kind, c.Tokens = append(c.Kind, slices.Index(kinds, r.kind)), append(c.Tokens, r.tokens)
	c.Record, c.Block = append(c.Record, int(r.pos.Msg)-int(c.record)), append(c.Block, r.pos.Block)
	hidden := 0
	if r.hidden {
		hidden = 1
	}
	c.By, c.Hidden = append(c.By, r.by), append(c.Hidden, hidden)
	c.record = r.pos.Msg
}

// picture responds with the context of a moment.
func (p *Page) picture(v *visit) error {
	return v.atMoment(func(m *moment) error {
		return v.json(m.picture(v.s, v.usage(m).Hidden))
	})
}

// picture returns the context. hidden is the size of what reductions hide, to which the
// hidden runs add up.
func (m *moment) picture(s *session.Session, hidden int) *contextPicture {
	now := s.Composition(m.name)
	size, scale := now.Size, now.Scale
	c := &contextPicture{Request: m.request, Head: m.state.Head(), Kinds: kinds}
	if q := m.sent(); q != nil {
		size, scale = q.Size, q.Scale
		c.Window, c.Trigger, c.Target = q.Window, q.Trigger, q.Target
	} else {
		limits := s.HistoryOptions().Model(m.name)
		c.Window, c.Trigger, c.Target = s.Context(m.name).Limit, limits.Trigger, limits.Target
	}
	c.Size = size
	fixed := min(size, scale.Fixed)
	tools := 0
	if now.Scale.Fixed > 0 {
		tools = int(float64(fixed) * float64(now.Tools) / float64(now.Scale.Fixed))
	}
	if fixed > tools {
		c.add(run{kind: kindSystem, tokens: fixed - tools})
	}
	if tools > 0 {
		c.add(run{kind: kindTools, tokens: tools})
	}
	m.blocks(c, scale, size-fixed, hidden)
	return c
}

// blocks adds the blocks of the path and the summaries in the order of the prompt. Those
// that the model sees add up to size, and those that reductions hide to hiddenSize.
func (m *moment) blocks(c *contextPicture, scale session.Scale, size, hiddenSize int) {
	whole := float64(m.view.Tokens)*scale.PerToken + float64(m.view.Items)*scale.PerItem
	fit := 1.0
	if whole > 0 {
		fit = float64(size) / whole
	}
	sum, given := 0.0, 0
	visible := func(k kind, sb *furl.ShownBlock, by furl.Seq) {
		sum += (float64(sb.Tokens)*scale.PerToken + float64(items(sb.Block))*scale.PerItem) * fit
		tokens := int(math.Round(sum)) - given
		given += tokens
		c.add(run{kind: k, tokens: tokens, pos: sb.Pos, by: by})
	}
	perHidden := scale.PerToken
	if counted, _ := account.Hidden(m.state, m.view); counted > 0 {
		perHidden = float64(hiddenSize) / float64(counted)
	}
	away, taken := 0.0, 0
	hidden := func(msg *furl.Message, pos furl.Pos, shown *furl.ShownBlock) {
		b, by := &msg.Blocks[pos.Block], m.state.ShownBy(pos)
		if by == 0 { // the provider drops it, and the size of what is hidden leaves it out
			c.add(run{kindOf(msg, b), int(math.Round(float64(b.Tokens) * perHidden)), pos, 0, true})
			return
		}
		away += float64(account.HiddenOf(m.state, pos, b, shown)) * perHidden
		tokens := int(math.Round(away)) - taken
		taken += tokens
		c.add(run{kindOf(msg, b), tokens, pos, by, true})
	}
	next := 0 // message of the path
	hideTo := func(index int) {
		for ; next < index; next++ {
			seq, msg := m.state.Message(next)
			for j := range msg.Blocks {
				hidden(msg, furl.Pos{Msg: seq, Block: j}, nil)
			}
		}
	}
	for i := range m.view.Messages {
		sh := &m.view.Messages[i]
		if sh.Index < 0 {
			for j := range sh.Blocks {
				visible(kindSummary, &sh.Blocks[j], sh.By)
			}
			continue
		}
		hideTo(sh.Index)
		next = sh.Index + 1
		at := 0
		for j := range sh.Msg.Blocks {
			pos := furl.Pos{Msg: sh.Seq, Block: j}
			if at == len(sh.Blocks) || sh.Blocks[at].Pos != pos {
				hidden(sh.Msg, pos, nil)
				continue
			}
			sb := &sh.Blocks[at]
			at++
			switch {
			case sb.By != 0:
				visible(kindPlaceholder, sb, sb.By)
				hidden(sh.Msg, pos, sb)
			case sb.Tokens == 0 && sb.Block.Tokens > 0: // the provider drops it
				hidden(sh.Msg, pos, nil)
			default:
				visible(kindOf(sh.Msg, sb.Block), sb, 0)
			}
		}
	}
	hideTo(m.state.Len())
}

// items is 1 for a block that counts as an item of a prompt; see session.Scale.
func items(b *furl.Block) int {
	if b.Kind == furl.KindCall || b.Kind == furl.KindResult {
		return 1
	}
	return 0
}
