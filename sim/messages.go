package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
)

// messages is Anthropic Messages.
type messages struct{}

func (messages) codec() decoder { return anthropic.Codec }

func (messages) authenticate(r *http.Request) *protocol.Refusal {
	if r.Header.Get("x-api-key") != "" || strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		return nil
	}
	return &protocol.Refusal{Status: http.StatusUnauthorized, Type: "authentication_error", Message: "x-api-key header is required"}
}

func (messages) errorBody(r *protocol.Refusal, id string) []byte { return anthropic.ErrorBody(r, id) }

func (messages) undecoded(err error) *protocol.Refusal {
	text := err.Error()
	if strings.Contains(text, "field messages is missing") {
		return refused("messages: Field required")
	}
	return refused("The request body is not valid JSON: " + text)
}

func (messages) unknownModel(name string) *protocol.Refusal {
	if name == "" {
		return refused("model: Field required")
	}
	return &protocol.Refusal{Status: http.StatusNotFound, Type: "not_found_error", Message: "model: " + name}
}

func (messages) overflow(c *call, tokens int) *protocol.Refusal {
	return anthropic.PromptTooLong(tokens, c.window())
}

// overflowed returns a started message followed by an error, as sent by
// proxies of the provider.
func (m messages) overflowed(c *call, a *answer) []event {
	return append(m.events(c, a)[:1], event{name: "error", data: anthropic.ErrorBody(m.overflow(c, c.window()+1), "")})
}

// fields of a request to Messages, with the beta that they require; "" if
// none.
var messagesFields = map[string]string{
	"model": "", "messages": "", "max_tokens": "", "system": "", "tools": "", "tool_choice": "", "metadata": "",
	"stop_sequences": "", "stream": "", "temperature": "", "top_k": "", "top_p": "", "thinking": "", "service_tier": "",
	"cache_control": "", "output_config": "", "inference_geo": "", "container": "",
	"mcp_servers":        "mcp-client",
	"context_management": "context-management-2025-06-27",
	"compaction":         compactOnDemand,
	"diagnostics":        "cache-diagnosis-2026-04-07",
	"output_format":      "structured-outputs",
	"speed":              "fast-mode",
	"fallbacks":          "server-side-fallback",
}

const (
	compactOnDemand  = "compact-2026-09-04"
	compactThreshold = "compact-2026-01-12"
	bindingControls  = "thinking-binding-controls-2026-08-01"
)

func (messages) expand(c *call, body []byte) ([]byte, error) {
	f := &c.facts
	f.betas = betasOf(c.r.Header.Values("anthropic-beta"))
	body, err := c.openThread(body)
	if err != nil {
		return nil, err
	}
	f.read(body, func(key string, r *rawjson.Reader) {
		switch key {
		case "max_tokens":
			_, f.hasMax = r.Int()
		case "speed":
			f.readTerm(r, &f.terms.Speed, "standard")
		case "inference_geo":
			f.readTerm(r, &f.terms.Geo, "global")
		case "thinking":
			f.readThinking(r.Raw())
		case "cache_control":
			f.auto = ttl(r.Raw())
		case "system":
			f.system = r.Raw()
		case "tools":
			f.tools = r.Raw()
		case "temperature":
			f.temperature = notNull(r.Raw())
		case "tool_choice":
			raw := r.Raw()
			f.toolChoice = stringField(raw, "type")
			f.salt = append(append(f.salt, "choice"...), raw...)
		case "output_config":
			raw := r.Raw()
			f.salt = append(append(f.salt, "output"...), raw...)
			f.outputFormat = f.outputFormat || notNull(rawjson.Field(raw, "format")) != nil
		case "output_format":
			f.outputFormat = notNull(r.Raw()) != nil
		case "context_management":
			f.management = notNull(r.Raw())
		case "compaction":
			f.compaction = notNull(r.Raw())
		}
	})
	return body, nil
}

func notNull(raw []byte) []byte {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func (f *facts) readThinking(raw []byte) {
	f.thinking = stringField(raw, "type")
	f.budget, _ = intField(raw, "budget_tokens")
	f.omitted = stringField(raw, "display") == "omitted"
	if b := notNull(rawjson.Field(raw, "block_binding")); b != nil {
		f.bindings = true
		f.drop = stringField(b, "prefix_mismatch_behavior") == "drop_block"
	}
	f.salt = append(append(f.salt, "thinking"...), f.thinking...)
	f.salt = fmt.Append(f.salt, f.budget)
}

// hasBeta reports whether the client requested a beta. A name without a date
// matches any date.
func (f *facts) hasBeta(name string) bool {
	if f.betas[name] {
		return true
	}
	for b := range f.betas {
		if strings.HasPrefix(b, name+"-20") {
			return true
		}
	}
	return false
}

// build builds the prompt: tools, system, messages.
func (messages) build(c *call) {
	p := &c.prompt
	var d digester
	systems := len(c.req.Preamble)
	r := rawjson.NewReader(c.facts.tools)
	if r.Kind() == '[' {
		tools := 0
		for range r.Elements() {
			r.Skip()
			tools++
		}
		systems -= tools
	}
	i := max(systems, 0)
	c.eachPreamble(c.facts.tools, &i, func(b *furl.Block, raw []byte) {
		if b.Deferred {
			return // not read until requested
		}
		p.add(c, b, part{msg: -1, digest: d.object(raw), bound: true}).Mark = lifetime(raw)
	})
	i = 0
	if c.facts.system != nil && c.facts.system[0] == '"' && len(c.req.Preamble) > 0 {
		b := &c.req.Preamble[0]
		p.add(c, b, part{msg: -1, digest: d.text("system", b.Text), bound: true})
	}
	c.eachPreamble(c.facts.system, &i, func(b *furl.Block, raw []byte) {
		digest := d.text("system", b.Text)
		if b.Kind != furl.KindText {
			digest = d.object(raw)
		}
		p.add(c, b, part{msg: -1, digest: digest, bound: true}).Mark = lifetime(raw)
	})
	// What changes how messages are cached, but not what thinking is bound
	// to.
	p.add(c, new(furl.Block), part{msg: -1, digest: d.text("salt", string(c.facts.salt)), gone: true}).Positions = 0
	p.messages(c)
	p.expandReferences(c)
	last := -1
	for i := range p.parts {
		if at := p.parts[i]; at.msg >= 0 {
			m := &c.req.Messages[at.msg]
			if b := &m.Blocks[at.block]; b.CacheMark {
				p.pieces[i].Mark = lifetime(m.Raw[b.Start:b.End])
			}
			if at.kind != furl.KindThinking {
				last = i
			}
		}
	}
	if c.facts.auto > 0 && last >= 0 && p.pieces[last].Mark == 0 {
		p.pieces[last].Mark = c.facts.auto
	}
}

// eachPreamble calls f for the elements of an array and their decoded blocks,
// which start at *i.
func (c *call) eachPreamble(array []byte, i *int, f func(b *furl.Block, raw []byte)) {
	r := rawjson.NewReader(array)
	if r.Kind() != '[' {
		return
	}
	for range r.Elements() {
		raw := r.Raw()
		if *i < len(c.req.Preamble) {
			f(&c.req.Preamble[*i], raw)
		}
		*i++
	}
}

func (messages) check(c *call) error {
	for _, rule := range []func(*call) *protocol.Refusal{checkFields, checkVersion, checkNumbers, checkChoice, checkSearch, checkBinding, checkCompaction, checkEdits} {
		if r := rule(c); r != nil {
			return r
		}
	}
	return nil
}

// checkFields refuses fields that the provider does not know, or knows only
// with a beta.
func checkFields(c *call) *protocol.Refusal {
	f := &c.facts
	if c.sim.opts.AnyField {
		return nil
	}
	if name := f.unknown(messagesFields); name != "" {
		return refused(name + ": Extra inputs are not permitted")
	}
	for _, name := range f.fields {
		if beta := messagesFields[name]; beta != "" && !f.hasBeta(beta) && !(name == "context_management" && f.hasBeta(compactThreshold)) {
			return refused(name + ": Extra inputs are not permitted")
		}
	}
	if f.bindings && !f.hasBeta(bindingControls) {
		return refused("thinking." + f.thinking + ".block_binding: Extra inputs are not permitted")
	}
	return nil
}

func checkVersion(c *call) *protocol.Refusal {
	if c.r.Header.Get("anthropic-version") == "" {
		return refused("anthropic-version: header is required")
	}
	return nil
}

// longOutput matches the models that refuse a request whose prompt and
// requested output together exceed the window: from Sonnet 3.7 to before
// version 4.5; later models stop with model_context_window_exceeded instead
// (Anthropic, context windows, 2026-10).
var longOutput = lazyregexp.New(`^claude-(3-7-sonnet|(opus|sonnet)-4(-1)?)$`)

func refusesLongOutput(m *furl.Model) bool { return longOutput.MatchString(m.ID) }

// leastBudget is the smallest thinking budget.
const leastBudget = 1024

func checkNumbers(c *call) *protocol.Refusal {
	f, req, m := &c.facts, c.req, &c.model
	if c.route.count != nil {
		return nil
	}
	switch {
	case !f.hasMax:
		return refused("max_tokens: Field required")
	case req.MaxTokens < 0:
		return refused("max_tokens: Input should be greater than or equal to 0")
	case req.MaxTokens == 0:
		if r := checkCacheOnly(c); r != nil {
			return r
		}
	case m.MaxOutput > 0 && req.MaxTokens > m.MaxOutput:
		return refused(fmt.Sprintf("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s",
			req.MaxTokens, m.MaxOutput, clipped(req.Model)))
	case f.thinking == "enabled" && f.budget < leastBudget:
		return refused("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case f.thinking == "enabled" && f.budget >= req.MaxTokens:
		return refused("`max_tokens` must be greater than `thinking.budget_tokens`. " +
			"Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
	case (f.thinking == "enabled") && (f.toolChoice == "any" || f.toolChoice == "tool"):
		return refused("Thinking may not be enabled when tool_choice forces tool use.")
	}
	return checkSampling(f)
}

// cacheOnly reports whether the request only writes or renews cache entries: with
// max_tokens 0 the provider reads the prompt and generates nothing (Anthropic, prompt
// caching, 2026-10).
func (c *call) cacheOnly() bool {
	return c.req.Format == furl.FormatAnthropic && c.facts.hasMax && c.req.MaxTokens == 0
}

// checkCacheOnly refuses what the provider does not accept with max_tokens 0. The
// texts are not documented.
func checkCacheOnly(c *call) *protocol.Refusal {
	f := &c.facts
	with := ""
	switch {
	case c.req.Stream:
		with = "stream"
	case f.thinking == "enabled":
		with = "thinking"
	case f.outputFormat:
		with = "output_config.format"
	case f.toolChoice == "any" || f.toolChoice == "tool":
		with = "tool_choice"
	default:
		return nil
	}
	return refused("max_tokens: 0 is not supported with " + with)
}

var toolName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)

// checkChoice validates the tools and the tool choice.
func checkChoice(c *call) *protocol.Refusal {
	seen := make(map[string]bool)
	r := rawjson.NewReader(c.facts.tools)
	n := 0
	if r.Kind() == '[' {
		for i := range r.Elements() {
			raw := r.Raw()
			n++
			name := stringField(raw, "name")
			if typ := stringField(raw, "type"); typ != "" && typ != "custom" {
				continue
			}
			switch {
			case rawjson.Field(raw, "name") == nil:
				return refused(fmt.Sprintf("tools.%d.custom.name: Field required", i))
			case !toolName.MatchString(name):
				return refused(fmt.Sprintf("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i))
			case rawjson.Field(raw, "input_schema") == nil:
				return refused(fmt.Sprintf("tools.%d.custom.input_schema: Field required", i))
			case seen[name]:
				return refused("tools: Tool names must be unique.")
			}
			seen[name] = true
		}
	}
	if n == 0 && (c.facts.toolChoice == "any" || c.facts.toolChoice == "tool") {
		return refused("tool_choice: `tool_choice` may only be specified while providing `tools`.")
	}
	return nil
}

func (messages) count(c *call, tokens int) []byte {
	if c.facts.management != nil {
		return fmt.Appendf(nil, `{"input_tokens":%d,"context_management":{"original_input_tokens":%d}}`, tokens, tokens+c.facts.edits.cleared)
	}
	return fmt.Appendf(nil, `{"input_tokens":%d}`, tokens)
}

func (messages) statusError(status int) *protocol.Refusal {
	r := &protocol.Refusal{Status: status}
	switch status {
	case 401:
		r.Type, r.Message = "authentication_error", "invalid x-api-key"
	case 402:
		r.Type, r.Message = "billing_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."
	case 403:
		r.Type, r.Message = "permission_error", "Your API key does not have permission to use the specified resource."
	case 404:
		r.Type, r.Message = "not_found_error", "Not found"
	case 409:
		r.Type, r.Message = "conflict_error", "The request conflicts with the current state of the resource."
	case 413:
		r.Type, r.Message = "request_too_large", "Request exceeds the maximum size"
	case 429:
		r.Type, r.Message = "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."
	case 504:
		r.Type, r.Message = "timeout_error", "The request timed out."
	case 529:
		r.Type, r.Message = "overloaded_error", "Overloaded"
	default:
		r.Type, r.Message = "api_error", "Internal server error"
		if status < 500 {
			r.Type, r.Message = "invalid_request_error", http.StatusText(status)
		}
	}
	return r
}

func (messages) streamError(*call, int) event {
	return event{name: "error", data: []byte(`{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"}}`)}
}

const pingData = `{"type": "ping"}`

func (messages) ping() []byte { return (&event{name: "ping", data: []byte(pingData)}).bytes() }

func (messages) newID(c *call) string  { return c.newID("msg_", 24) }
func (messages) callID(c *call) string { return c.newID("toolu_", 24) }

func (messages) thinks(c *call) bool {
	return c.facts.thinking == "enabled" || c.facts.thinking == "adaptive"
}

// object marshals values that cannot fail, without escaping for HTML.
func object(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // only values made in this package are passed
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
