package anthropic

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// thinking checks that an open tool loop starts with its thinking, if the
// model requires it. Only the first message of the loop must have any: a
// model that does not think between calls produces none later.
func (v *validator) thinking() *protocol.Refusal {
	if !v.model.Thinking.Required {
		return nil
	}
	list := v.req.Messages
	at := -1 // the newest assistant message of the loop
	i := len(list) - 1
	for i > 0 {
		// A user message that starts with a result, after an assistant
		// message.
		for i > 0 && list[i-1].Role == furl.RoleUser && list[i].Role == furl.RoleUser {
			i--
		}
		if b := first(&list[i]); list[i].Role != furl.RoleUser || b == nil || b.Kind != furl.KindResult {
			break
		}
		i--
		for i > 0 && list[i-1].Role == furl.RoleAssistant && list[i].Role == furl.RoleAssistant {
			i--
		}
		if at < 0 {
			at = i
		}
		if b := first(&list[i]); b != nil && b.Kind == furl.KindThinking {
			return nil
		}
		i--
	}
	if at < 0 || !v.thinks(i) {
		return nil
	}
	found := "nothing"
	if b := first(&list[at]); b != nil {
		found = wireType(&list[at], b)
	}
	return refuse("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. "+
		"When `thinking` is enabled, a final `assistant` message must start with a thinking block "+
		"(preceeding the lastmost set of `tool_use` and `tool_result` blocks). "+
		"We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. "+
		"Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking", at, found)
}

// thinks reports whether thinking is on for the request. Without a body, it
// is on if the open loop, which starts after message loop, has any thinking:
// earlier thinking may be from before it was turned off.
func (v *validator) thinks(loop int) bool {
	if v.req.Body != nil {
		return v.body().thinking
	}
	for i := max(loop, 0); i < len(v.req.Messages); i++ {
		for j := range v.req.Messages[i].Blocks {
			if v.req.Messages[i].Blocks[j].Kind == furl.KindThinking {
				return true
			}
		}
	}
	return false
}
