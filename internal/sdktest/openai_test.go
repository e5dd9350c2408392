package sdktest

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/furlhq/furl/sim"
)

func openaiClient(t *testing.T, o *sim.Options) (*settled, openai.Client) {
	t.Helper()
	s := &settled{Sim: sim.New(o)}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, openai.NewClient(option.WithBaseURL(srv.URL+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0))
}

var parameters = map[string]any{
	"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []string{"path"},
}

func TestChatLoop(t *testing.T) {
	for _, stream := range []bool{false, true} {
		name := "whole"
		if stream {
			name = "streaming"
		}
		t.Run(name, func(t *testing.T) {
			s, client := openaiClient(t, &sim.Options{Player: player()})
			ctx := context.Background()
			p := openai.ChatCompletionNewParams{
				Model:    "gpt-5.2",
				Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are under test."), openai.UserMessage("Read all files.")},
				Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
					Name: "read_file", Parameters: parameters,
				})},
			}
			for range 20 {
				var m openai.ChatCompletionMessage
				var total int64
				if stream {
					p.StreamOptions.IncludeUsage = openai.Bool(true)
					events := client.Chat.Completions.NewStreaming(ctx, p)
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
					got, err := client.Chat.Completions.New(ctx, p)
					if err != nil {
						t.Fatal(err)
					}
					m, total = got.Choices[0].Message, got.Usage.TotalTokens
				}
				if total == 0 {
					t.Error("no usage")
				}
				p.Messages = append(p.Messages, m.ToParam())
				if len(m.ToolCalls) == 0 {
					if !strings.HasPrefix(m.Content, "Done after 12 steps") {
						t.Errorf("ends with %q", m.Content)
					}
					break
				}
				for _, call := range m.ToolCalls {
					p.Messages = append(p.Messages, openai.ToolMessage("some words in a file", call.ID))
				}
			}
			if b := s.Bill(); b.Refused != 0 || b.Requests != 13 {
				t.Errorf("%+v", b)
			}
		})
	}
}

func TestResponsesLoop(t *testing.T) {
	for _, stream := range []bool{false, true} {
		name := "whole"
		if stream {
			name = "streaming"
		}
		t.Run(name, func(t *testing.T) {
			s, client := openaiClient(t, &sim.Options{Player: player()})
			ctx := context.Background()
			p := responses.ResponseNewParams{
				Model: "gpt-5.2",
				Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Read all files.")},
				Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "read_file", Parameters: parameters}}},
			}
			for range 20 {
				var r responses.Response
				if stream {
					events := client.Responses.NewStreaming(ctx, p)
					var deltas strings.Builder
					for events.Next() {
						switch e := events.Current().AsAny().(type) {
						case responses.ResponseTextDeltaEvent:
							deltas.WriteString(e.Delta)
						case responses.ResponseCompletedEvent:
							r = e.Response
						}
					}
					if err := events.Err(); err != nil {
						t.Fatal(err)
					}
					if deltas.String() != r.OutputText() {
						t.Errorf("the deltas are %q, the text %q", deltas.String(), r.OutputText())
					}
				} else {
					got, err := client.Responses.New(ctx, p)
					if err != nil {
						t.Fatal(err)
					}
					r = *got
				}
				if r.Usage.TotalTokens == 0 || r.Status != responses.ResponseStatusCompleted {
					t.Errorf("%s", r.RawJSON())
				}
				var results responses.ResponseInputParam
				for _, item := range r.Output {
					if call, ok := item.AsAny().(responses.ResponseFunctionToolCall); ok {
						result := responses.ResponseInputItemParamOfFunctionCallOutput("some words in a file")
						result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
						results = append(results, result)
					}
				}
				if results == nil {
					if !strings.HasPrefix(r.OutputText(), "Done after 12 steps") {
						t.Errorf("ends with %q", r.OutputText())
					}
					break
				}
				p.PreviousResponseID = openai.String(r.ID)
				p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: results}
			}
			if b := s.Bill(); b.Refused != 0 || b.Requests != 13 || b.Usage.Reasoning == 0 {
				t.Errorf("%+v", b)
			}
		})
	}
}

func TestOpenAIErrors(t *testing.T) {
	_, client := openaiClient(t, &sim.Options{Window: 20})
	_, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model: "gpt-5.2", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(strings.Repeat("hello ", 100))},
	})
	if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != 400 || e.Code != "context_length_exceeded" || e.Param != "messages" {
		t.Errorf("%v", err)
	}
	events := client.Responses.NewStreaming(context.Background(), responses.ResponseNewParams{
		Model: "gpt-5.2", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")},
	}, option.WithHeader(sim.FaultHeader, "overflow=stream"))
	code := ""
	for events.Next() {
		if e, ok := events.Current().AsAny().(responses.ResponseFailedEvent); ok {
			code = string(e.Response.Error.Code)
		}
	}
	if err := events.Err(); err != nil || code != "context_length_exceeded" {
		t.Errorf("%v, code %q", err, code)
	}
}
