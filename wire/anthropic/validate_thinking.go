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

// LatestThinking checks a rule that Validate cannot: the thinking of the
// latest assistant message must be sent back unchanged, or omitted
// completely. reply is the message as received. The result is nil or a
// *protocol.Refusal.
func LatestThinking(req *protocol.Request, reply *furl.Message) error {
	list := req.Messages
	end := len(list)
	for end > 0 && list[end-1].Role != furl.RoleAssistant {
		end--
	}
	start := end
	for start > 0 && list[start-1].Role == furl.RoleAssistant {
		start--
	}
	type place struct{ msg, block int }
	var sent []place
	for i := start; i < end; i++ {
		for j := range list[i].Blocks {
			if list[i].Blocks[j].Kind == furl.KindThinking {
				sent = append(sent, place{i, j})
			}
		}
	}
	// Earlier replies may be part of the same message, so the newest blocks
	// are compared with the reply's, from the end.
	k := len(sent)
	for j := len(reply.Blocks) - 1; j >= 0 && len(sent) > 0; j-- {
		if reply.Blocks[j].Kind != furl.KindThinking {
			continue
		}
		k--
		p := sent[max(k, 0)]
		if k < 0 || !sameThinking(rawFields(&list[p.msg], &list[p.msg].Blocks[p.block]), rawFields(reply, &reply.Blocks[j])) {
			return refuse("messages.%d.content.%d: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "+
				"These blocks must remain as they were in the original response.", p.msg, p.block)
		}
	}
	return nil
}

func sameThinking(a, b fields) bool {
	return a.typ == b.typ &&
		a.thinking.Text() == b.thinking.Text() &&
		a.signature.Text() == b.signature.Text() &&
		a.data.Text() == b.data.Text()
}
