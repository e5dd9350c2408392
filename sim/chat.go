package sim

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/openai"
)

// chat is OpenAI Chat Completions.
type chat struct{ openAI }

func (chat) codec() decoder { return openai.Chat }

var chatFields = names(`messages model audio frequency_penalty function_call functions logit_bias logprobs
	max_completion_tokens max_tokens metadata modalities moderation n parallel_tool_calls prediction presence_penalty
	prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier
	seed service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity
	web_search_options`)

// maxChoices is the maximum number of choices in one request.
const maxChoices = 8

func (chat) expand(c *call, body []byte) ([]byte, error) {
	f := &c.facts
	f.choices = 1
	f.read(body, func(key string, r *rawjson.Reader) {
		switch key {
		case "stream_options":
			f.streamOptions = notNull(r.Raw())
			f.includeUsage = string(rawjson.Field(f.streamOptions, "include_usage")) == "true"
		case "tools":
			f.tools = notNull(r.Raw())
		case "parallel_tool_calls":
			f.recordNeedsTools(key, r)
		case "n":
			if n, ok := r.Int(); ok {
				f.choices = n
			}
		case "tool_choice":
			f.recordNeedsTools(key, r)
			f.toolChoice = choiceOf(r)
		case "service_tier":
			f.readTerm(r, &f.terms.Tier, "auto", "default")
		case "max_tokens", "max_completion_tokens":
			_, f.hasMax = r.Int()
		}
	})
	return body, nil
}

// choiceOf returns a tool_choice that is a string, or the type of an object.
func choiceOf(r *rawjson.Reader) string {
	if r.Kind() == '"' {
		s, _ := r.String()
		return s
	}
	return stringField(r.Raw(), "type")
}

func (chat) build(c *call) { buildOpenAI(c) }

func (chat) check(c *call) error {
	if r := unknownField(c, chatFields); r != nil {
		return r
	}
	if r := tooManyTokens(c, "max_tokens"); r != nil {
		return r
	}
	if r := checkDependentFields(c); r != nil {
		return r
	}
	if n := c.facts.choices; n < 1 || n > maxChoices {
		return &protocol.Refusal{Status: 400, Type: "invalid_request_error", Param: "n", Code: "invalid_value",
			Message: fmt.Sprintf("Invalid 'n': expected an integer from 1 to %d, but got %d instead.", maxChoices, n)}
	}
	return nil
}

func (chat) overflow(c *call, tokens int) *protocol.Refusal {
	return openai.Overflow(furl.FormatChat, tokens, c.window())
}

// overflowed returns a chunk with the role, and then the body of the refusal,
// as compatible servers and routers send it.
func (a chat) overflowed(c *call, said *answer) []event {
	return append(a.events(c, said)[:1], event{data: openai.ErrorBody(a.overflow(c, c.window()+1))})
}

func (chat) streamError(*call, int) event {
	return event{data: []byte(`{"error":{"message":"` + serverTrouble + `","type":"server_error","param":null,"code":null}}`)}
}

func (chat) newID(c *call) string { return c.newID("chatcmpl-", 29) }

// thinks is true: OpenAI's models do not return their reasoning here, but
// those of compatible servers do.
func (chat) thinks(*call) bool { return true }

func (chat) seal(*call, *answer) {}

type chatShape struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	Model       string       `json:"model"`
	Choices     []chatChoice `json:"choices"`
	Usage       *chatUsage   `json:"usage,omitempty"`
	Tier        string       `json:"service_tier"`
	Fingerprint string       `json:"system_fingerprint"`
}

type chatChoice struct {
	Index    int             `json:"index"`
	Message  json.RawMessage `json:"message,omitempty"`
	Delta    json.RawMessage `json:"delta,omitempty"`
	Logprobs *string         `json:"logprobs"`
	Finish   *string         `json:"finish_reason"`
}

type chatUsage struct {
	Prompt     int           `json:"prompt_tokens"`
	Completion int           `json:"completion_tokens"`
	Total      int           `json:"total_tokens"`
	In         promptDetails `json:"prompt_tokens_details"`
	Out        chatDetails   `json:"completion_tokens_details"`
}

type promptDetails struct {
	Cached  int  `json:"cached_tokens"`
	Written *int `json:"cache_write_tokens,omitempty"`
	Audio   *int `json:"audio_tokens,omitempty"`
}

type chatDetails struct {
	Reasoning int `json:"reasoning_tokens"`
	Audio     int `json:"audio_tokens"`
	Accepted  int `json:"accepted_prediction_tokens"`
	Rejected  int `json:"rejected_prediction_tokens"`
}

func (c *call) promptDetails(u furl.Usage) promptDetails {
	d := promptDetails{Cached: u.CacheRead}
	if c.writesCost() {
		d.Written = &u.CacheWrite
	}
	return d
}

func (c *call) chatUsage(u furl.Usage) *chatUsage {
	s := &chatUsage{Prompt: u.Prompt(), Completion: u.Output, Total: u.Prompt() + u.Output, In: c.promptDetails(u)}
	s.In.Audio = new(int)
	s.Out.Reasoning = u.Reasoning
	return s
}

func (c *call) chatShape(a *answer, object string) chatShape {
	return chatShape{ID: a.ID, Object: object, Created: a.Created, Model: c.req.Model, Tier: cmp.Or(c.facts.terms.Tier, "default"), Fingerprint: "fp_furlsim", Choices: []chatChoice{}}
}

var chatStops = map[string]string{
	"tool_use": "tool_calls", "max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter",
}

func chatStop(stop string) *string {
	s, ok := chatStops[stop]
	if !ok {
		s = "stop"
	}
	return &s
}

// chatAnswer is an answer in the fields of Chat Completions.
type chatAnswer struct {
	content, reasoning string
	calls              []*furl.Block
}

func (c *call) chatAnswerOf(a *answer) (s chatAnswer) {
	for i := range a.Blocks {
		switch b := &a.Blocks[i]; b.Kind {
		case furl.KindText:
			s.content += b.Text
		case furl.KindCall:
			s.calls = append(s.calls, b)
		case furl.KindThinking:
			if c.model.Provider != "openai" {
				s.reasoning += b.Text
			}
		}
	}
	return s
}

func (chat) whole(c *call, a *answer) []byte {
	s := c.chatAnswerOf(a)
	content := []byte("null")
	if s.content != "" || len(s.calls) == 0 {
		content = str(s.content)
	}
	m := fmt.Appendf(nil, `{"role":"assistant","content":%s,"refusal":null,"annotations":[]`, content)
	if s.reasoning != "" {
		m = fmt.Appendf(m, `,"reasoning_content":%s`, str(s.reasoning))
	}
	for i, b := range s.calls {
		if i == 0 {
			m = append(m, `,"tool_calls":[`...)
		} else {
			m = append(m, ',')
		}
		m = fmt.Appendf(m, `{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, str(b.ID), str(b.Name), str(string(compact(b.Args))))
	}
	if len(s.calls) > 0 {
		m = append(m, ']')
	}
	shape := c.chatShape(a, "chat.completion")
	for i := range c.facts.choices {
		shape.Choices = append(shape.Choices, chatChoice{Index: i, Message: append(m[:len(m):len(m)], '}'), Finish: chatStop(a.Stop)})
	}
	shape.Usage = c.chatUsage(a.Usage)
	return object(shape)
}

func (chat) events(c *call, a *answer) []event {
	s := c.chatAnswerOf(a)
	var deltas [][]byte
	say := func(format string, args ...any) { deltas = append(deltas, fmt.Appendf(nil, format, args...)) }
	if len(s.calls) > 0 && s.content == "" {
		say(`{"role":"assistant","content":null,"refusal":null}`)
	} else {
		say(`{"role":"assistant","content":"","refusal":null}`)
	}
	for _, text := range c.deltas(s.reasoning) {
		say(`{"reasoning_content":%s}`, str(text))
	}
	for _, text := range c.deltas(s.content) {
		say(`{"content":%s}`, str(text))
	}
	fragments := make([][]string, len(s.calls))
	rest := func(i int, text string) {
		say(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, str(text))
	}
	for i, b := range s.calls {
		say(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, i, str(b.ID), str(b.Name))
		fragments[i] = c.fragments(string(compact(b.Args)))
		if !c.interleaves() {
			byTurns(fragments[i:i+1], func(_ int, text string) { rest(i, text) })
		}
	}
	if c.interleaves() {
		byTurns(fragments, rest)
	}
	var out []event
	chunk := func(choices ...chatChoice) {
		shape := c.chatShape(a, "chat.completion.chunk")
		shape.Choices = append(shape.Choices, choices...)
		data := object(shape)
		if c.facts.includeUsage && len(choices) > 0 {
			data = append(data[:len(data)-1], `,"usage":null}`...)
		} else if c.facts.includeUsage {
			data = fmt.Appendf(data[:len(data)-1], `,"usage":%s}`, object(c.chatUsage(a.Usage)))
		}
		out = append(out, event{data: data})
	}
	for _, d := range deltas {
		for i := range c.facts.choices {
			chunk(chatChoice{Index: i, Delta: d})
		}
	}
	for i := range c.facts.choices {
		chunk(chatChoice{Index: i, Delta: []byte("{}"), Finish: chatStop(a.Stop)})
	}
	if c.facts.includeUsage {
		chunk()
	}
	return append(out, event{data: []byte("[DONE]")})
}
