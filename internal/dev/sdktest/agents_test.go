package sdktest

import (
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// The agents of these tests, one for each API, are written as programs are that
// know nothing of furl: they read files until their model is done. look sees
// each reply before it goes into the history.

// someWords is what is in a file.
const someWords = "some words in a file"

// inBothWays runs a test with whole and with streamed replies.
func inBothWays(t *testing.T, run func(t *testing.T, stream bool)) {
	for name, stream := range map[string]bool{"whole": false, "streaming": true} {
		t.Run(name, func(t *testing.T) { run(t, stream) })
	}
}

// maxSteps is how many requests an agent makes at most.
const maxSteps = 20

var readFile = anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
	Name:        "read_file",
	Description: anthropic.String("Reads a file."),
	InputSchema: anthropic.ToolInputSchemaParam{
		Properties: map[string]any{"path": map[string]any{"type": "string"}},
		Required:   []string{"path"},
	},
}}

// messagesTask is what the agent of Messages asks first, of a model that binds
// thinking to its prompt.
func messagesTask() *anthropic.MessageNewParams {
	return &anthropic.MessageNewParams{
		Model: "claude-opus-5-5", MaxTokens: 4000,
		Thinking: anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{}},
		Tools:    []anthropic.ToolUnionParam{readFile},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Read all files."))},
	}
}

func workMessages(t *testing.T, client anthropic.Client, p *anthropic.MessageNewParams, stream bool, file string, look func(m *anthropic.Message)) {
	t.Helper()
	for range maxSteps {
		m := askMessages(t, client, p, stream)
		if look != nil {
			look(m)
		}
		p.Messages = append(p.Messages, m.ToParam())
		var results []anthropic.ContentBlockParamUnion
		for _, b := range m.Content {
			if call, ok := b.AsAny().(anthropic.ToolUseBlock); ok {
				results = append(results, anthropic.NewToolResultBlock(call.ID, file, false))
			}
		}
		if results == nil {
			return
		}
		p.Messages = append(p.Messages, anthropic.NewUserMessage(results...))
	}
}

func askMessages(t *testing.T, client anthropic.Client, p *anthropic.MessageNewParams, stream bool) *anthropic.Message {
	t.Helper()
	if !stream {
		m, err := client.Messages.New(t.Context(), *p)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	var m anthropic.Message
	events := client.Messages.NewStreaming(t.Context(), *p)
	for events.Next() {
		if err := m.Accumulate(events.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	return &m
}

var parameters = map[string]any{
	"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []string{"path"},
}

func workChat(t *testing.T, client openai.Client, stream bool, file string, look func(m openai.ChatCompletionMessage)) {
	t.Helper()
	p := openai.ChatCompletionNewParams{
		Model:    "gpt-5.2",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are under test."), openai.UserMessage("Read all files.")},
		Tools:    []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "read_file", Parameters: parameters})},
	}
	for range maxSteps {
		m := askChat(t, client, p, stream)
		if look != nil {
			look(m)
		}
		p.Messages = append(p.Messages, m.ToParam())
		if len(m.ToolCalls) == 0 {
			return
		}
		for _, call := range m.ToolCalls {
			p.Messages = append(p.Messages, openai.ToolMessage(file, call.ID))
		}
	}
}

func askChat(t *testing.T, client openai.Client, p openai.ChatCompletionNewParams, stream bool) openai.ChatCompletionMessage {
	t.Helper()
	var m openai.ChatCompletionMessage
	var total int64
	if stream {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
		events := client.Chat.Completions.NewStreaming(t.Context(), p)
		var acc openai.ChatCompletionAccumulator
		for events.Next() {
			if !acc.AddChunk(events.Current()) {
				t.Fatalf("the accumulator does not take %s", events.Current().RawJSON())
			}
		}
		if err := events.Err(); err != nil {
			t.Fatal(err)
		}
		m, total = acc.Choices[0].Message, acc.Usage.TotalTokens
	} else {
		got, err := client.Chat.Completions.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		m, total = got.Choices[0].Message, got.Usage.TotalTokens
	}
	if total == 0 || m.Role != "assistant" {
		t.Errorf("usage %d, role %q", total, m.Role)
	}
	return m
}

// responsesTask is what the agents of Responses ask, but for the input.
func responsesTask() responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: "gpt-5.2",
		Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "read_file", Parameters: parameters}}},
	}
}

// workResponses keeps the state itself and sends items back as the library's
// own types write them.
func workResponses(t *testing.T, client openai.Client, stream bool, file string, look func(r *responses.Response)) {
	t.Helper()
	p := responsesTask()
	p.Store, p.Include = openai.Bool(false), []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Read all files.", responses.EasyInputMessageRoleUser)}
	for range maxSteps {
		p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
		r := askResponses(t, client, p, stream)
		if look != nil {
			look(r)
		}
		for _, item := range r.Output {
			switch item := item.AsAny().(type) {
			case responses.ResponseReasoningItem:
				back := item.ToParam()
				input = append(input, responses.ResponseInputItemUnionParam{OfReasoning: &back})
			case responses.ResponseOutputMessage:
				back := item.ToParam()
				input = append(input, responses.ResponseInputItemUnionParam{OfOutputMessage: &back})
			case responses.ResponseFunctionToolCall:
				back := item.ToParam()
				input = append(input, responses.ResponseInputItemUnionParam{OfFunctionCall: &back})
			default:
				t.Fatalf("an item %T", item)
			}
		}
		results := outputs(r, file)
		if results == nil {
			return
		}
		input = append(input, results...)
	}
}

// outputs answers the calls of a response.
func outputs(r *responses.Response, file string) (results responses.ResponseInputParam) {
	for _, item := range r.Output {
		if call, ok := item.AsAny().(responses.ResponseFunctionToolCall); ok {
			result := responses.ResponseInputItemParamOfFunctionCallOutput(file)
			result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
			results = append(results, result)
		}
	}
	return results
}

func askResponses(t *testing.T, client openai.Client, p responses.ResponseNewParams, stream bool) *responses.Response {
	t.Helper()
	r := new(responses.Response)
	if stream {
		events := client.Responses.NewStreaming(t.Context(), p)
		var deltas strings.Builder
		for events.Next() {
			switch e := events.Current().AsAny().(type) {
			case responses.ResponseTextDeltaEvent:
				deltas.WriteString(e.Delta)
			case responses.ResponseCompletedEvent:
				r = &e.Response
			}
		}
		if err := events.Err(); err != nil {
			t.Fatal(err)
		}
		if deltas.String() != r.OutputText() {
			t.Errorf("the deltas are %q, the text %q", deltas.String(), r.OutputText())
		}
	} else {
		var err error
		if r, err = client.Responses.New(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if r.Usage.TotalTokens == 0 || r.Status != responses.ResponseStatusCompleted {
		t.Errorf("%s", r.RawJSON())
	}
	return r
}
