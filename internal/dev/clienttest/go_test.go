package clienttest

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// The SDKs for Go, with their own retries.
func TestGo(t *testing.T) {
	const steps = 14
	for _, stream := range []bool{false, true} {
		for name, begin := range map[string]func(*fixture, testing.TB, bool) func(string) string{
			"anthropic": (*fixture).anthropicAgent, "chat": (*fixture).chatAgent, "responses": (*fixture).responsesAgent,
			"gemini": (*fixture).geminiAgent,
		} {
			t.Run(fmt.Sprintf("%s stream=%v", name, stream), func(t *testing.T) {
				t.Parallel()
				st := newFixture(t, options{window: 24_000, steps: steps, recall: stream})
				st.twice(t, steps, begin(st, t, stream))
			})
		}
	}
}

var properties = map[string]any{"command": map[string]any{"type": "string"}}

// bash is the tool: it runs the command that a call's arguments hold.
func (st *fixture) bash(t testing.TB, args string) string {
	t.Helper()
	var in struct {
		Command string `json:"command"`
	}
	if err := json.Unmarshal([]byte(args), &in); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", in.Command)
	cmd.Dir = st.dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", in.Command, err)
	}
	return string(out)
}

func (st *fixture) anthropicAgent(t testing.TB, stream bool) func(task string) string {
	client := anthropic.NewClient(anthropicoption.WithBaseURL(st.url), anthropicoption.WithAPIKey("dummy"))
	p := anthropic.MessageNewParams{
		Model: "claude-opus-5-5", MaxTokens: 2000,
		Thinking: anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{}},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: "bash", Description: anthropic.String("Run a command."),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: properties, Required: []string{"command"}},
		}}},
	}
	ask := func(ctx context.Context) (m anthropic.Message) {
		if !stream {
			got, err := client.Messages.New(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			return *got
		}
		events := client.Messages.NewStreaming(ctx, p)
		for events.Next() {
			if err := m.Accumulate(events.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if err := events.Err(); err != nil {
			t.Fatal(err)
		}
		return m
	}
	return func(task string) string {
		p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(task)))
		for {
			m, said := ask(t.Context()), ""
			p.Messages = append(p.Messages, m.ToParam())
			var results []anthropic.ContentBlockParamUnion
			for _, b := range m.Content {
				said += b.Text
				if call, ok := b.AsAny().(anthropic.ToolUseBlock); ok {
					results = append(results, anthropic.NewToolResultBlock(call.ID, st.bash(t, string(call.Input)), false))
				}
			}
			if results == nil {
				return said
			}
			p.Messages = append(p.Messages, anthropic.NewUserMessage(results...))
		}
	}
}

func (st *fixture) chatAgent(t testing.TB, stream bool) func(task string) string {
	client := openai.NewClient(option.WithBaseURL(st.url+"/v1"), option.WithAPIKey("dummy"))
	p := openai.ChatCompletionNewParams{
		Model:    "gpt-5",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You work through all pieces.")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "bash", Parameters: map[string]any{"type": "object", "properties": properties, "required": []string{"command"}},
		})},
	}
	ask := func(ctx context.Context) openai.ChatCompletionMessage {
		if !stream {
			got, err := client.Chat.Completions.New(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			return got.Choices[0].Message
		}
		var acc openai.ChatCompletionAccumulator
		events := client.Chat.Completions.NewStreaming(ctx, p)
		for events.Next() {
			if !acc.AddChunk(events.Current()) {
				t.Fatalf("the accumulator does not take %s", events.Current().RawJSON())
			}
		}
		if err := events.Err(); err != nil {
			t.Fatal(err)
		}
		return acc.Choices[0].Message
	}
	return func(task string) string {
		p.Messages = append(p.Messages, openai.UserMessage(task))
		for {
			m := ask(t.Context())
			p.Messages = append(p.Messages, m.ToParam())
			if len(m.ToolCalls) == 0 {
				return m.Content
			}
			for _, call := range m.ToolCalls {
				p.Messages = append(p.Messages, openai.ToolMessage(st.bash(t, call.Function.Arguments), call.ID))
			}
		}
	}
}

// responsesAgent resends all items, as Codex does.
func (st *fixture) responsesAgent(t testing.TB, stream bool) func(task string) string {
	client := openai.NewClient(option.WithBaseURL(st.url+"/v1"), option.WithAPIKey("dummy"))
	var input responses.ResponseInputParam
	ask := func(ctx context.Context) *responses.Response {
		p := responses.ResponseNewParams{
			Model: "gpt-5", Store: openai.Bool(false), Instructions: openai.String("You work through all pieces."),
			Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
			Input:   responses.ResponseNewParamsInputUnion{OfInputItemList: input},
			Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
				Name: "bash", Parameters: map[string]any{"type": "object", "properties": properties, "required": []string{"command"}},
			}}},
		}
		if !stream {
			got, err := client.Responses.New(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		var got *responses.Response
		events := client.Responses.NewStreaming(ctx, p)
		for events.Next() {
			if done, ok := events.Current().AsAny().(responses.ResponseCompletedEvent); ok {
				got = &done.Response
			}
		}
		if err := events.Err(); err != nil || got == nil {
			t.Fatalf("a stream ends without its response: %v", err)
		}
		return got
	}
	return func(task string) string {
		input = append(input, responses.ResponseInputItemParamOfMessage(task, responses.EasyInputMessageRoleUser))
		for {
			got, calls := ask(t.Context()), false
			for _, item := range got.Output {
				switch item := item.AsAny().(type) {
				case responses.ResponseOutputMessage:
					p := item.ToParam()
					input = append(input, responses.ResponseInputItemUnionParam{OfOutputMessage: &p})
				case responses.ResponseReasoningItem:
					p := item.ToParam()
					input = append(input, responses.ResponseInputItemUnionParam{OfReasoning: &p})
				case responses.ResponseFunctionToolCall:
					calls = true
					p := item.ToParam()
					result := responses.ResponseInputItemParamOfFunctionCallOutput(st.bash(t, item.Arguments))
					result.OfFunctionCallOutput.CallID = openai.String(item.CallID)
					input = append(input, responses.ResponseInputItemUnionParam{OfFunctionCall: &p}, result)
				}
			}
			if !calls {
				return got.OutputText()
			}
		}
	}
}
