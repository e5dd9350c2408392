package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// ToolUse says which of the recorded tool definitions the model called, and what
// deferring the others would save where the provider has a search for tools.
type ToolUse struct {
	// Defined is the number of definitions, with those of sub-agents, and Tokens
	// their size in the provider's tokens. NeverCalled of them, with
	// NeverCalledTokens, have no call in their session.
	Defined           int `json:"defined"`
	Tokens            int `json:"tokens"`
	NeverCalled       int `json:"never_called"`
	NeverCalledTokens int `json:"never_called_tokens"`
	// Searchable reports whether the provider can search deferred tools for each
	// model of the recording.
	Searchable bool `json:"searchable"`
	// Saved is the share of the input cost as recorded that deferring the tools
	// that were never called would save, from the first request on, without the
	// search tool's own definition. It is null if no price is known.
	Saved *float64 `json:"saved,omitempty"`
}

// countTools counts the recorded tool definitions of a session.
func countTools(rec *transcript.Session, c furl.Counter) (used ToolUse, never token.Part) {
	called := make(map[string]bool)
	for seq := furl.Seq(1); int(seq) <= rec.Log.Len(); seq++ {
		if m, ok := rec.Log.At(seq).Body.(*furl.Message); ok {
			for i := range m.Blocks {
				if m.Blocks[i].Kind == furl.KindCall {
					called[m.Blocks[i].Name] = true
				}
			}
		}
	}
	for i := range rec.Preamble {
		b := rec.Preamble[i]
		if b.Kind != furl.KindOpaque {
			continue
		}
		m := furl.Message{Blocks: []furl.Block{b}}
		m.Measure(c)
		used.Defined++
		used.Tokens += m.Blocks[0].Tokens
		if name := toolName(&b); name != "" && !called[name] {
			used.NeverCalled++
			used.NeverCalledTokens += m.Blocks[0].Tokens
			never = never.Plus(token.PartOf(m.Blocks))
		}
	}
	return used, never
}

// toolName returns the name in a tool's definition, "" if it has none.
func toolName(b *furl.Block) string {
	if b.ID != "" {
		return b.ID
	}
	var def struct {
		Name     string
		Function struct{ Name string }
	}
	if json.Unmarshal([]byte(b.Text), &def) != nil {
		return ""
	}
	return cmp.Or(def.Function.Name, def.Name)
}

// toolsCost returns what the first tokens of a prompt cost, as part of a request at a time.
func toolsCost(m *furl.Model, s split, tokens int, at time.Time) float64 {
	p := price.Complete(price.For(m, s.prompt(), at))
	per := p.Input
	switch {
	case s.Read >= tokens:
		per = p.CacheRead
	case s.WriteLong >= tokens:
		per = p.CacheWrite1h
	case s.Write >= tokens:
		per = p.CacheWrite
	}
	return float64(tokens) * per / 1e6
}

// toolUse sums the tools of a recording's sessions. none are the runs of policy none. It
// returns nil if no definitions are recorded.
func toolUse(sessions []*session, none []*run) *ToolUse {
	out := ToolUse{Searchable: true}
	var saved, cost float64
	priced := false
	for i, s := range sessions {
		out.Defined += s.tools.Defined
		out.Tokens += s.tools.Tokens
		out.NeverCalled += s.tools.NeverCalled
		out.NeverCalledTokens += s.tools.NeverCalledTokens
		saved += none[i].tools
		for n, q := range s.requests {
			out.Searchable = out.Searchable && q.model.ToolSearch
			cost += none[i].each[n].dollars
			priced = priced || none[i].each[n].priced
		}
	}
	if out.Defined == 0 {
		return nil
	}
	if priced && cost > 0 {
		share := saved / cost
		out.Saved = &share
	}
	return &out
}

// note describes the tools in a line, "" if all were called.
func (u *ToolUse) note() string {
	if u == nil || u.NeverCalled == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d tool definitions were never called (%d of %d tokens)", u.NeverCalled, u.Defined, u.NeverCalledTokens, u.Tokens)
	if u.Saved != nil {
		text += fmt.Sprintf("; deferring them would save %.1f%% of the input cost", 100**u.Saved)
		if !u.Searchable {
			text += ", but the provider has no search for tools with this model"
		}
	}
	return text
}
