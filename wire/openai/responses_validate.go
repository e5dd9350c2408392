package openai

import (
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// Validate checks a request against the rules of Responses. It returns nil,
// or a *protocol.Refusal with the provider's text. The rules on pairs are checked
// on the decoded items. Those on the form of the body and on the provider's
// ids need req.Body and are checked if it is set.
//
// A Stateful request does not contain the history it continues, so its
// outputs need no calls; the same holds for a list with an item_reference.
// Whether an item's reasoning is missing cannot be checked from one request;
// see CheckReasoning.
//
// The text for a misplaced compaction_trigger is furl's, because the provider
// documents none. More cache breakpoints than the provider's maximum are not
// an error: it uses the latest ones.
func (responses) Validate(req *protocol.Request, m furl.Model) error {
	open := false // the calls may be elsewhere
	if req.Body != nil {
		f, err := readBody(req.Body, "input")
		open = f.prev || f.conversation
		switch {
		case err != nil:
			return notJSON()
		case f.cacheKey != nil:
			return f.cacheKey
		case f.prev && f.conversation:
			return refuse("mutually_exclusive_parameters", "", "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. "+
				"Ensure you are only providing one of: 'previous_response_id' or 'conversation'.")
		case f.list != 0 && f.list != '"' && f.list != '[':
			return wrongType("input", "one of a string or array of input items", f.list)
		}
		if err := validItems(req); err != nil {
			return err
		}
		if r := validDeferred(req); r != nil {
			return r
		}
	}
	if len(req.Messages) == 0 && !open {
		return refuse("missing_required_parameter", "input",
			`One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided.`)
	}
	if n := len(req.Messages); m.MaxMessages > 0 && n > m.MaxMessages {
		return longArray("input", m.MaxMessages, n)
	}
	if r := validOrder(req.Messages, open); r != nil {
		return r
	}
	if r := validReasoning(req.Messages); r != nil {
		return r
	}
	return nil
}

// validOrder checks that calls and outputs match one to one, each output
// after its call.
func validOrder(items []furl.Message, open bool) *protocol.Refusal {
	waiting := make(map[string]int) // id of a call to the number of calls without output
	var programs programs
	for i := range items {
		for b := range items[i].Blocks {
			bl := &items[i].Blocks[b]
			if r := programs.check(&items[i], bl, open); r != nil {
				return r
			}
			switch call, answers := pairOf(bl); {
			case bl.Kind == furl.KindOpaque && bl.Name == "item_reference":
				open = true
			case bl.Kind == furl.KindOpaque && bl.Name == "compaction_trigger" && i != len(items)-1:
				return refuse("", "input", "Item of type 'compaction_trigger' must be the last item of 'input'.")
			case call:
				waiting[bl.ID]++
			case answers && waiting[bl.ID] > 0:
				waiting[bl.ID]--
			case answers && !open:
				return refuse("", "input", "No tool call found for %s with call_id %s.", typeName(&items[i], "function_call_output"), bl.ID)
			}
		}
	}
	for i := range items {
		for b := range items[i].Blocks {
			bl := &items[i].Blocks[b]
			if call, _ := pairOf(bl); call && waiting[bl.ID] > 0 {
				return refuse("", "input", "No tool output found for %s %s.", typeName(&items[i], "function_call"), bl.ID)
			}
		}
	}
	return nil
}

// programs are the programs of a list so far: whether they wait for their output.
//
// The provider documents that a program and its program_output are sent back
// unchanged, and that a call of a program names it (OpenAI, "Programmatic Tool
// Calling", 2026-11; openai-agents-python pull request 3833). That it refuses a
// list with one of them missing, and its texts, are assumptions.
type programs struct {
	known   map[string]bool
	waiting []string // ids of those without output, oldest first
}

func (p *programs) check(m *furl.Message, bl *furl.Block, open bool) *protocol.Refusal {
	switch {
	case bl.Kind == furl.KindOpaque && bl.Name == "program":
		if p.known == nil {
			p.known = make(map[string]bool)
		}
		p.known[bl.ID] = true
		p.waiting = append(p.waiting, bl.ID)
	case bl.Kind == furl.KindOpaque && bl.Name == "program_output":
		if at := slices.Index(p.waiting, bl.ID); at >= 0 {
			p.waiting = slices.Delete(p.waiting, at, at+1)
		} else if !open {
			return refuse("", "input", "No program found for program output with call_id %s.", bl.ID)
		}
	case bl.Caller != "" && !open && !p.known[bl.Caller]:
		return refuse("", "input", "No program found for %s with call_id %s.", typeName(m, "function_call"), bl.ID)
	case m.Role == furl.RoleUser && len(p.waiting) > 0:
		return refuse("", "input", "No program output found for program %s.", p.waiting[0])
	}
	return nil
}

// pairOf reports whether a block is a call that needs an output, or an
// output.
func pairOf(bl *furl.Block) (call, output bool) {
	if bl.Kind == furl.KindOpaque {
		return bl.Name == "computer_call", bl.Name == "computer_call_output"
	}
	return bl.Kind == furl.KindCall, bl.Kind == furl.KindResult
}

// typeName returns an item's type as in the provider's texts: "function call".
func typeName(m *furl.Message, typ string) string {
	if m.Format == furl.FormatResponses {
		if t := rawjson.Unquote(rawjson.Field(m.Raw, "type")); t != "" {
			typ = t
		}
	}
	return strings.ReplaceAll(typ, "_", " ")
}

// validReasoning checks that reasoning with an id is followed by its output,
// and that ids are unique.
func validReasoning(items []furl.Message) *protocol.Refusal {
	seen := make(map[string]bool)
	for i := range items {
		m := &items[i]
		if !isReasoning(m) || m.Blocks[0].ID == "" {
			continue
		}
		id := m.Blocks[0].ID
		if seen[id] {
			return duplicate(id)
		}
		seen[id] = true
		if i+1 == len(items) || items[i+1].Role != furl.RoleAssistant {
			return refuse("", "input", "Item '%s' of type 'reasoning' was provided without its required following item.", id)
		}
	}
	return nil
}

func duplicate(id string) *protocol.Refusal {
	return refuse("", "input", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", id)
}

// validItems checks the rules that need the bytes of the items.
func validItems(req *protocol.Request) error {
	seen := make(map[string]bool)
	var s itemScan
	for i := range req.Messages {
		raw := req.Messages[i].Raw
		if raw == nil {
			continue
		}
		s.read(raw, rawjson.NewReader(raw))
		if s.id != "" && seen[s.id] {
			return duplicate(s.id)
		}
		seen[s.id] = true
		call, isCall := callItems[s.typ]
		switch v := s.args[call.args]; {
		case !isCall:
		case call.args == argArguments && v.kind != '"':
			return badField(i, "arguments", "a string", v.kind)
		case call.args == argInput && v.kind != '"':
			return badField(i, "input", "a string", v.kind)
		}
		text := s.typ == "function_call_output" || s.typ == "custom_tool_call_output"
		if k := s.output.kind; text && k != '"' && k != '[' {
			return badField(i, "output", "one of a string or array of objects", k)
		}
	}
	return nil
}

func badField(i int, name, want string, kind byte) *protocol.Refusal {
	param := fmt.Sprintf("input[%d].%s", i, name)
	if kind == 0 {
		return refuse("missing_required_parameter", param, "Missing required parameter: '%s'.", param)
	}
	return wrongType(param, want, kind)
}

// ReasoningOf maps the id of each item of a model's reply to the id of the
// reasoning before it. The provider keeps this relation for items that it has
// stored.
func ReasoningOf(items []furl.Message) map[string]string {
	of := make(map[string]string)
	reasoning := ""
	for i := range items {
		m := &items[i]
		switch {
		case m.Role != furl.RoleAssistant:
			reasoning = ""
		case isReasoning(m):
			reasoning = m.Blocks[0].ID
		case reasoning != "":
			if id := rawjson.Unquote(rawjson.Field(m.Raw, "id")); id != "" {
				of[id] = reasoning
			}
		}
	}
	return of
}

// CheckReasoning checks a rule that Validate cannot: an item with the
// provider's id must follow its reasoning. of is the result of ReasoningOf
// for the replies. It returns nil or a *protocol.Refusal.
func CheckReasoning(items []furl.Message, of map[string]string) error {
	reasoning := ""
	for i := range items {
		m := &items[i]
		switch {
		case m.Role != furl.RoleAssistant:
			reasoning = ""
			continue
		case isReasoning(m):
			reasoning = m.Blocks[0].ID
			continue
		}
		id := rawjson.Unquote(rawjson.Field(m.Raw, "id"))
		if want := of[id]; id != "" && want != "" && want != reasoning {
			typ := rawjson.Unquote(rawjson.Field(m.Raw, "type"))
			if typ == "" {
				typ = "message"
			}
			return refuse("", "input", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", id, typ, want)
		}
	}
	return nil
}
