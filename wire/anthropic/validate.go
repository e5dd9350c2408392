package anthropic

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// defaultMaxBytes is the limit on a body if the model has none.
const defaultMaxBytes = 32 << 20

// Validate checks a request against the provider's rules. It returns nil, or
// a *protocol.Refusal with the provider's text for the first violated rule.
// Adjacent messages of one role count as one, because the provider joins
// them; positions in the texts refer to the list as sent. Where the
// provider's text is unknown, the wording is furl's; comments at these rules
// say so.
//
// It works on the decoded blocks, in time linear in their number. Facts that
// only the body contains (whether thinking is on, automatic caching, cache
// lifetimes) are read from req.Body when a rule needs them; without a body,
// thinking counts as on if the messages contain any.
//
// Two rules cannot be checked from one request: signatures, and whether the
// thinking of the latest message is unchanged.
func (codec) Validate(req *protocol.Request, m furl.Model) error {
	v := validator{req: req, model: m}
	for _, rule := range []func() *protocol.Refusal{
		v.size, v.roles, v.content, v.cacheMarks, v.tools, v.serverTools, v.deferred, v.compaction, v.thinking, v.last,
	} {
		if r := rule(); r != nil {
			return r
		}
	}
	return nil
}

type validator struct {
	req   *protocol.Request
	model furl.Model
	facts *facts // of the body, once read
}

func (v *validator) size() *protocol.Refusal {
	limit := v.model.MaxBytes
	if limit == 0 {
		limit = defaultMaxBytes
	}
	size := len(v.req.Body)
	if v.req.Body == nil {
		for i := range v.req.Messages {
			size += len(v.req.Messages[i].Raw) + 1
		}
		for i := range v.req.Preamble {
			size += len(v.req.Preamble[i].Text)
		}
	}
	if size > limit {
		return BodyTooLarge()
	}
	if n, most := len(v.req.Messages), v.model.MaxMessages; most > 0 && n > most {
		return refuse("messages: List should have at most %d items after validation, not %d", most, n)
	}
	images := 0
	for i := range v.req.Messages {
		for j := range v.req.Messages[i].Blocks {
			for _, media := range v.req.Messages[i].Blocks[j].Media {
				if media.Kind == furl.KindImage {
					images++
				}
			}
		}
	}
	if most := v.model.MaxImages; most > 0 && images > most {
		return refuse("messages: Too much media: 0 document pages + %d images > %d", images, most)
	}
	return v.imageSides(images)
}

// roles checks the order of roles.
func (v *validator) roles() *protocol.Refusal {
	list := v.req.Messages
	if len(list) == 0 {
		return refuse("messages: at least one message is required")
	}
	for i := range list {
		switch list[i].Role {
		case furl.RoleUser, furl.RoleAssistant:
		case furl.RoleSystem:
			if r := v.system(i); r != nil {
				return r
			}
		default:
			return refuse("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
	}
	if list[0].Role != furl.RoleUser && !isCompaction(first(&list[0])) {
		return refuse(`messages: first message must use the "user" role`)
	}
	return nil
}

// system checks instructions inside the list: text only, after the user or
// after a server tool use, and before an assistant message or the end.
func (v *validator) system(i int) *protocol.Refusal {
	list := v.req.Messages
	if !v.model.SystemInside {
		return refuse("role 'system' is not supported on this model")
	}
	if i > 0 {
		switch prev := &list[i-1]; prev.Role {
		case furl.RoleUser, furl.RoleSystem:
		default:
			if b := last(prev); b == nil || !isServerTool(b) {
				// furl's wording.
				return refuse("messages.%d: role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool use", i)
			}
		}
	}
	if i+1 < len(list) && list[i+1].Role == furl.RoleUser {
		return refuse("messages.%d: role 'system' must precede an 'assistant' message or end the array", i)
	}
	for j := range list[i].Blocks {
		// tool_addition and tool_removal are in such messages (@anthropic-ai/sdk 1.14,
		// beta mid-conversation-tool-changes-2026-07-01). What is unknown may be too.
		if b := &list[i].Blocks[j]; b.Kind != furl.KindText && !b.Fixed {
			// furl's wording.
			return refuse("messages.%d.content.%d: role 'system' accepts text blocks only", i, j)
		}
	}
	return nil
}

// setsTurn reports whether a message changes settings of the turn, as Claude
// Code 2.1 sends them in instructions without text, for example the effort.
func setsTurn(m *furl.Message) bool {
	r := rawjson.NewReader(m.Raw)
	for name := range r.Fields() {
		if string(name) == "output_config" {
			return true
		}
	}
	return false
}

// content checks that nothing is empty and that every block is at a position
// that its type allows.
func (v *validator) content() *protocol.Refusal {
	list := v.req.Messages
	blank := true // only white space since the role changed
	for i := range list {
		m := &list[i]
		if empty(m) {
			if i == len(list)-1 && m.Role == furl.RoleAssistant {
				break
			}
			if m.Role == furl.RoleSystem && setsTurn(m) {
				continue
			}
			return refuse("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		for j := range m.Blocks {
			b := &m.Blocks[j]
			switch b.Kind {
			case furl.KindText:
				if b.Text == "" {
					if b.CacheMark {
						return refuse("messages.%d.content.%d.text: cache_control cannot be set for empty text blocks", i, j)
					}
					return refuse("messages: text content blocks must be non-empty")
				}
				blank = blank && strings.TrimSpace(b.Text) == ""
				continue
			case furl.KindThinking:
				if b.CacheMark {
					return refuse("messages.%d.content.%d.%s.cache_control: Extra inputs are not permitted", i, j, wireType(m, b))
				}
				if m.Role != furl.RoleAssistant {
					return refuse("messages.%d.content.%d: `%s` blocks may only be in `assistant` messages", i, j, wireType(m, b))
				}
			case furl.KindCall:
				if m.Role != furl.RoleAssistant {
					return refuse("messages.%d: `tool_use` blocks can only be in `assistant` messages", i)
				}
			case furl.KindResult:
				if m.Role != furl.RoleUser {
					return refuse("messages.%d: `tool_result` blocks can only be in `user` messages", i)
				}
			}
			blank = false
		}
		if i == len(list)-1 || list[i+1].Role != m.Role {
			if blank {
				return refuse("messages: text content blocks must contain non-whitespace text")
			}
			blank = true
		}
	}
	return nil
}

// last checks how the list ends.
func (v *validator) last() *protocol.Refusal {
	list := v.req.Messages
	i := len(list) - 1
	m := &list[i]
	b := last(m)
	if m.Role != furl.RoleAssistant {
		return nil
	}
	if b != nil && (isServerTool(b) || isCompaction(b)) {
		return nil // a paused turn continues
	}
	if !v.model.Prefill {
		return refuse("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	if b != nil && b.Kind == furl.KindThinking {
		return refuse("messages.%d: The final block in an assistant message cannot be `%s`.", i, wireType(m, b))
	}
	if b != nil && b.Kind == furl.KindText && strings.TrimRight(b.Text, " \t\r\n") != b.Text {
		return refuse("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}

// compaction checks the provider's summaries. One made on demand is signed
// and must be the only block at the start; one made at a threshold stays at
// its position.
func (v *validator) compaction() *protocol.Refusal {
	signed := 0
	for i := range v.req.Messages {
		m := &v.req.Messages[i]
		for j := range m.Blocks {
			b := &m.Blocks[j]
			if !isCompaction(b) || !present(rawFields(m, b).signature) {
				continue
			}
			// The codes are documented, the texts after them are furl's.
			if signed++; i > 0 || j > 0 {
				return refuse("messages.%d.content.%d: compaction_block_misplaced: a signed compaction block must be the first block of the first message", i, j)
			}
			if v.body().contextManagement {
				return refuse("context_management: cannot be combined with a signed compaction block")
			}
		}
	}
	return nil
}

func isCompaction(b *furl.Block) bool {
	return b != nil && b.Kind == furl.KindOpaque && b.Name == "compaction"
}

// isServerTool reports whether the block is a tool call run by the provider,
// or its result.
func isServerTool(b *furl.Block) bool {
	return b.Kind == furl.KindOpaque && (isServerCall(b) || isServerResult(b))
}

// isServerCall reports whether an opaque block is a call run by the provider:
// server_tool_use, mcp_tool_use, and types of that form that furl does not know.
func isServerCall(b *furl.Block) bool { return strings.HasSuffix(b.Name, "_tool_use") }

func isServerResult(b *furl.Block) bool { return strings.HasSuffix(b.Name, "_tool_result") }

func first(m *furl.Message) *furl.Block {
	if len(m.Blocks) == 0 {
		return nil
	}
	return &m.Blocks[0]
}

func last(m *furl.Message) *furl.Block {
	if len(m.Blocks) == 0 {
		return nil
	}
	return &m.Blocks[len(m.Blocks)-1]
}

// empty reports whether the content is missing, an empty list or "".
func empty(m *furl.Message) bool {
	return len(m.Blocks) == 0 || len(m.Blocks) == 1 && m.Blocks[0].End == 0 && m.Blocks[0].Kind == furl.KindText && m.Blocks[0].Text == ""
}

// rawFields reads a block's fields again from its bytes.
func rawFields(m *furl.Message, b *furl.Block) fields {
	if b.Start >= b.End || b.End > len(m.Raw) {
		return fields{}
	}
	return readFields(rawjson.NewReader(m.Raw[b.Start:b.End]))
}

// wireType returns a block's type on the wire.
func wireType(m *furl.Message, b *furl.Block) string {
	if t := rawFields(m, b).typ; t != "" {
		return t
	}
	return b.Kind.String()
}

// imageSides checks the sides of the images, whose limit depends on how many images the
// request has (platform.claude.com/docs/en/build-with-claude/vision). The words are the
// provider's, as quoted in github.com/anthropics/claude-code/issues/50430 and others.
func (v *validator) imageSides(images int) *protocol.Refusal {
	limit := v.model.Sides.Of(images)
	many := ""
	if limit != v.model.Sides.Max {
		many = " for many-image requests"
	}
	for i := range v.req.Messages {
		for j := range v.req.Messages[i].Blocks {
			for _, media := range v.req.Messages[i].Blocks[j].Media {
				if media.TooLarge(limit) {
					return refuse("messages.%d.content.%d.image.source.base64.data: At least one of the image dimensions exceed max allowed size%s: %d pixels", i, j, many, limit)
				}
			}
		}
	}
	return nil
}
