package sim

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/promptcache"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// editing is the effect of the provider's context editing on a request.
type editing struct {
	applied []appliedEdit
	cleared int // input tokens, over all edits
}

// appliedEdit is reported in the response.
type appliedEdit struct {
	Type          string `json:"type"`
	ToolUses      *int   `json:"cleared_tool_uses,omitempty"`
	ThinkingTurns *int   `json:"cleared_thinking_turns,omitempty"`
	InputTokens   int    `json:"cleared_input_tokens"`
}

// edit is one element of context_management.edits.
type edit struct {
	Type    string `json:"type"`
	Trigger *struct {
		Type  string `json:"type"`
		Value int    `json:"value"`
	} `json:"trigger"`
	Keep         json.RawMessage `json:"keep"`
	ClearAtLeast *struct {
		Value int `json:"value"`
	} `json:"clear_at_least"`
	ExcludeTools    []string        `json:"exclude_tools"`
	ClearToolInputs json.RawMessage `json:"clear_tool_inputs"`
	Pause           bool            `json:"pause_after_compaction"`
	Instructions    string          `json:"instructions"`
}

// The edits, and their default triggers, in tokens.
const (
	clearTools    = "clear_tool_uses_20250919"
	clearThinking = "clear_thinking_20251015"
	compactEdit   = "compact_20260112"

	clearTrigger   = 100_000
	compactTrigger = 150_000
	leastCompact   = 50_000
)

const maxEdits = 16

// checkEdits applies the edits that the request asks for.
func checkEdits(c *call) *protocol.Refusal {
	c.prompt.prune()
	raw := c.facts.management
	if raw == nil {
		return nil
	}
	var management struct {
		Edits []edit `json:"edits"`
	}
	if err := json.Unmarshal(raw, &management); err != nil || len(management.Edits) > maxEdits {
		return refused("context_management: Input should be a valid dictionary")
	}
	for i := range management.Edits {
		e := &management.Edits[i]
		switch e.Type {
		case clearTools:
			c.clearTools(e)
		case clearThinking:
			if i > 0 {
				return refused("context_management.edits: `clear_thinking_20251015` must be the first edit")
			}
			if r := c.clearThinking(e); r != nil {
				return r
			}
		case compactEdit:
			if r := c.compactAt(e); r != nil {
				return r
			}
		default:
			return refused("context_management.edits.0: Input tag '" + clipped(e.Type) + "' found using 'type' does not match any of the expected tags: " +
				"'clear_thinking_20251015', 'clear_tool_uses_20250919', 'compact_20260112'")
		}
	}
	return nil
}

// clearTools replaces the oldest results by a placeholder.
func (c *call) clearTools(e *edit) {
	p := &c.prompt
	names := make(map[string]string) // of calls, by id
	var results []int
	for i := range p.parts {
		switch at := &p.parts[i]; at.kind {
		case furl.KindCall:
			b := c.block(at)
			names[b.ID] = b.Name
		case furl.KindResult:
			results = append(results, i)
		}
	}
	size := promptcache.Sum(p.pieces)
	limit, byUses := clearTrigger, false
	if e.Trigger != nil {
		limit, byUses = e.Trigger.Value, e.Trigger.Type == "tool_uses"
	}
	if byUses && len(results) <= limit || !byUses && size <= limit {
		return
	}
	keep := 3
	if n, ok := intField(e.Keep, "value"); ok {
		keep = max(n, 0)
	}
	results = results[:max(len(results)-keep, 0)]
	results = slices.DeleteFunc(results, func(i int) bool { return slices.Contains(e.ExcludeTools, names[c.block(&p.parts[i]).ID]) })
	freed := 0
	for _, i := range results {
		freed += p.pieces[i].Tokens - min(p.pieces[i].Tokens, c.clearedTokens())
	}
	if freed == 0 || e.ClearAtLeast != nil && freed < e.ClearAtLeast.Value {
		return
	}
	ids := make(map[string]bool)
	for _, i := range results {
		b := c.block(&p.parts[i])
		ids[b.ID] = true
		p.replace(i, "cleared result "+b.ID, min(p.pieces[i].Tokens, c.clearedTokens()))
	}
	freed += c.clearInputs(e, ids)
	n := len(results)
	c.applied(appliedEdit{Type: e.Type, ToolUses: &n, InputTokens: freed})
}

// clearInputs replaces the arguments of calls whose results are cleared.
func (c *call) clearInputs(e *edit, ids map[string]bool) (freed int) {
	var only []string
	switch {
	case len(e.ClearToolInputs) == 0 || bytes.Equal(e.ClearToolInputs, []byte("false")) || bytes.Equal(e.ClearToolInputs, []byte("null")):
		return 0
	case e.ClearToolInputs[0] == '[':
		if json.Unmarshal(e.ClearToolInputs, &only) != nil {
			return 0
		}
	}
	p := &c.prompt
	for i := range p.parts {
		if p.parts[i].kind != furl.KindCall {
			continue
		}
		b := c.block(&p.parts[i])
		if !ids[b.ID] || only != nil && !slices.Contains(only, b.Name) {
			continue
		}
		tokens := min(p.pieces[i].Tokens, c.clearedTokens())
		freed += p.pieces[i].Tokens - tokens
		p.replace(i, "cleared call "+b.ID, tokens)
	}
	return freed
}

// clearThinking removes thinking, except that of the newest messages.
func (c *call) clearThinking(e *edit) *protocol.Refusal {
	keep := 0
	switch r := rawjson.NewReader(e.Keep); {
	case len(e.Keep) == 0:
		return nil // the model's rule already applies
	case r.Kind() == '"':
		if s, _ := r.String(); s == "all" {
			return nil
		}
		return refused("context_management.edits.0.clear_thinking_20251015.keep: Input should be 'all'")
	default:
		n, ok := intField(e.Keep, "value")
		if !ok || n < 1 {
			return refused("context_management.edits.0.clear_thinking_20251015.keep.value: Input should be greater than 0")
		}
		keep = n
	}
	p := &c.prompt
	freed, turns, last := 0, 0, -1
	for i := len(p.parts) - 1; i >= 0; i-- {
		at := &p.parts[i]
		if at.kind != furl.KindThinking || at.msg < 0 {
			continue
		}
		if at.msg != last {
			turns, last = turns+1, at.msg
		}
		if turns > keep {
			at.gone = true
			freed += p.pieces[i].Tokens
		}
	}
	if cleared := turns - keep; cleared > 0 {
		p.prune()
		c.applied(appliedEdit{Type: e.Type, ThinkingTurns: &cleared, InputTokens: freed})
	}
	return nil
}

// clearedTokens is the size of a placeholder.
func (c *call) clearedTokens() int {
	return c.tokens(&furl.Block{Kind: furl.KindText, Text: "[Old tool result content cleared]"}, furl.Digest{})
}

func (c *call) applied(e appliedEdit) {
	c.facts.edits.applied = append(c.facts.edits.applied, e)
	c.facts.edits.cleared += e.InputTokens
}

func (c *call) block(at *part) *furl.Block { return &c.req.Messages[at.msg].Blocks[at.block] }

// replace replaces the content of a piece.
func (p *prompt) replace(i int, text string, tokens int) {
	var d digester
	x := d.text("replaced", text)
	p.parts[i].digest = x
	p.pieces[i].ID = idOf(x)
	p.pieces[i].Tokens = tokens
}
