package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// The texts of the rules on calls and their results.
const (
	geminiCallPlace   = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
	geminiResultPlace = "Please ensure that function response turn comes immediately after a function call turn."
	geminiResultCount = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
)

// Validate checks calls and their results. The contents of the model in a row are one turn:
// chats of Google's SDKs send each piece of a stream as a content. Each content of the user is
// a turn of its own, so results in several contents are refused. A result that comes twice
// with one id counts once: Gemini CLI 0.61 sends them so after a resume.
func (geminiCodec) Validate(req *protocol.Request, m furl.Model) error {
	if len(req.Messages) == 0 {
		return geminiRefused("* GenerateContentRequest.contents: contents is not specified\n", "")
	}
	open := 0       // calls of the model's turn before the content
	placed := false // the model's turn follows a content of the user
	for i := range req.Messages {
		msg := &req.Messages[i]
		if len(msg.Blocks) == 0 {
			return geminiRefused(fmt.Sprintf("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i), "")
		}
		if msg.Role == furl.RoleAssistant {
			if i == 0 || req.Messages[i-1].Role != furl.RoleAssistant {
				placed = i > 0
			}
			calls := countKind(msg, furl.KindCall)
			if calls > 0 && !placed {
				return geminiRefused(geminiCallPlace, "")
			}
			open += calls
			continue
		}
		results := countResults(msg)
		switch {
		case results > 0 && open == 0:
			return geminiRefused(geminiResultPlace, "")
		case results != open:
			return geminiRefused(geminiResultCount, "")
		}
		open = 0
	}
	if open > 0 {
		return geminiRefused(geminiResultCount, "")
	}
	return nil
}

func countKind(m *furl.Message, kind furl.Kind) (n int) {
	for i := range m.Blocks {
		if m.Blocks[i].Kind == kind {
			n++
		}
	}
	return n
}

// countResults counts the results of a content, those with one id once.
func countResults(m *furl.Message) (n int) {
	seen := make(map[string]bool)
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == furl.KindResult {
			if b.ID == "" || !seen[b.ID] {
				n++
			}
			seen[b.ID] = true
		}
	}
	return n
}

// check checks the tools and the signatures.
func (gemini) check(c *call) error {
	names := make(map[string]bool)
	for i := range c.req.Preamble {
		b := &c.req.Preamble[i]
		if b.Kind != furl.KindOpaque {
			continue
		}
		if b.ID == "" {
			return geminiRefused("* GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:) or dashes (-), with a maximum length of 128.\n", "")
		}
		if names[b.ID] {
			return geminiRefused("Duplicate function declaration found: "+clipped(b.ID), "")
		}
		names[b.ID] = true
	}
	if most := c.model.MaxOutput; most > 0 && c.req.MaxTokens > most && c.onVertex() {
		return geminiRefused(fmt.Sprintf("Unable to submit request because it has a maxOutputTokens value of %d but the supported range is from 1 (inclusive) to %d (exclusive). Update the value and try again.", c.req.MaxTokens, most+1), "")
	}
	if geminiGeneration(c.req.Model) < 3 || strings.Contains(c.req.Model, "-image") {
		return nil
	}
	return checkGeminiSignatures(c.req)
}

// geminiSkips are words that Google accepts in place of a signature.
// Source: https://ai.google.dev/gemini-api/docs/thought-signatures
var geminiSkips = []string{"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}

// checkGeminiSignatures checks the calls of the current turn, which begins with the newest
// content of the user without results: the first call of each step needs a signature.
func checkGeminiSignatures(req *protocol.Request) error {
	start := 0
	for i := range req.Messages {
		if m := &req.Messages[i]; m.Role == furl.RoleUser && countResults(m) == 0 {
			start = i
		}
	}
	signed := false // the step has a signed call
	for i := start; i < len(req.Messages); i++ {
		m := &req.Messages[i]
		if m.Role != furl.RoleAssistant {
			signed = false
			continue
		}
		for j := range m.Blocks {
			b := &m.Blocks[j]
			if b.Kind != furl.KindCall {
				continue
			}
			sign, _ := rawjson.NewReader(fieldOf(m.Raw[b.Start:b.End], "thoughtSignature")).String()
			switch {
			case sign == "" && !signed:
				return geminiRefused(fmt.Sprintf("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", clipped(b.Name), i+1), "")
			case sign != "" && !geminiSigned(sign, b):
				return geminiRefused("Corrupted thought signature.", "")
			}
			signed = true
		}
	}
	return nil
}

// geminiSigned reports whether a signature is one of a sim for the call, or words in its place.
func geminiSigned(sign string, b *furl.Block) bool {
	if slices.Contains(geminiSkips, sign) {
		return true
	}
	_, ok := open("gemini", b.Name, sign)
	return ok
}
