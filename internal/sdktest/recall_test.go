package sdktest

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
)

// rememberer calls, in turn, its client's tool, recall, and both at once.
type rememberer struct{ asked int }

func (r *rememberer) Play(_ context.Context, req *furl.Request) (sim.Reply, error) {
	n := r.asked
	r.asked++
	reply := sim.Reply{Blocks: []furl.Block{{Kind: furl.KindThinking, Text: "hm"}}}
	say := func(words string) {
		reply.Blocks = append(reply.Blocks, furl.Block{Kind: furl.KindText, Text: words})
	}
	call := func(name, args string) {
		reply.Blocks = append(reply.Blocks, furl.Block{Kind: furl.KindCall, Name: name, Args: []byte(args)})
	}
	switch {
	case n == 13:
		say("All done.")
	case n%4 == 1:
		say("Let me remember.")
		call(session.ToolSearch, `{"query":"files"}`)
	case n%4 == 2:
		call(session.ToolGet, `{"handle":"furl:1.0"}`)
		if n > 4 {
			call("read_file", `{"path":"b.go"}`)
			call("read_file", `{"path":"c.go"}`)
		}
	default:
		say("Reading.")
		call("read_file", `{"path":"a.go"}`)
	}
	return reply, nil
}

// recalling is a gateway with recall in front of a sim.
func recalling(t *testing.T) (*settled, string) {
	t.Helper()
	s := &settled{Sim: sim.New(&sim.Options{Player: &rememberer{}})}
	direct := httptest.NewServer(s)
	t.Cleanup(direct.Close)
	store := inmem.New()
	t.Cleanup(func() { store.Close() })
	sessions, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(direct.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up, OpenAI: up}, &gateway.Options{Recall: true})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g)
	t.Cleanup(func() { front.Close(); g.Close() })
	return s, front.URL
}

// recalled checks what the client has said and heard, and that the provider
// took all of it.
func recalled(t *testing.T, s *settled, heard []string, calls int) {
	t.Helper()
	words := strings.Join(strings.Fields(strings.Join(heard, " ")), " ")
	if calls == 0 || !strings.HasSuffix(words, "All done.") || strings.Count(words, "Let me remember.") < 2 {
		t.Errorf("the client had %d calls and heard %q", calls, words)
	}
	if b := s.Bill(); b.Refused != 0 || b.Requests != 14 {
		t.Errorf("%+v", b)
	}
}

// The providers' own libraries take replies that were made of several: their
// accumulators, their types, and what they send back of them.
func TestAnthropicRecall(t *testing.T) {
	for name, stream := range map[string]bool{"whole": false, "streaming": true} {
		t.Run(name, func(t *testing.T) {
			s, url := recalling(t)
			client := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("test"), anthropicoption.WithMaxRetries(0))
			p := anthropic.MessageNewParams{
				Model: "claude-opus-5-5", MaxTokens: 4000,
				Thinking: anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{}},
				Tools:    []anthropic.ToolUnionParam{readFile},
				Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Read all files."))},
			}
			var heard []string
			calls := 0
			for range 20 {
				var m anthropic.Message
				if stream {
					events := client.Messages.NewStreaming(t.Context(), p)
					for events.Next() {
						if err := m.Accumulate(events.Current()); err != nil {
							t.Fatal(err)
						}
					}
					if err := events.Err(); err != nil {
						t.Fatal(err)
					}
				} else {
					got, err := client.Messages.New(t.Context(), p)
					if err != nil {
						t.Fatal(err)
					}
					m = *got
				}
				p.Messages = append(p.Messages, m.ToParam())
				var results []anthropic.ContentBlockParamUnion
				for _, b := range m.Content {
					switch b := b.AsAny().(type) {
					case anthropic.TextBlock:
						heard = append(heard, b.Text)
					case anthropic.ToolUseBlock:
						if calls++; b.Name != "read_file" {
							t.Errorf("the client has a call of %s", b.Name)
						}
						results = append(results, anthropic.NewToolResultBlock(b.ID, "some words in a file", false))
					}
				}
				if (results == nil) != (m.StopReason == anthropic.StopReasonEndTurn) || m.Usage.OutputTokens == 0 {
					t.Errorf("%d results, stop reason %s, usage %+v", len(results), m.StopReason, m.Usage)
				}
				if results == nil {
					break
				}
				p.Messages = append(p.Messages, anthropic.NewUserMessage(results...))
			}
			recalled(t, s, heard, calls)
		})
	}
}

func TestChatRecall(t *testing.T) {
	for name, stream := range map[string]bool{"whole": false, "streaming": true} {
		t.Run(name, func(t *testing.T) {
			s, url := recalling(t)
			client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0))
			p := openai.ChatCompletionNewParams{
				Model:    "gpt-5.2",
				Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are under test."), openai.UserMessage("Read all files.")},
				Tools:    []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "read_file", Parameters: parameters})},
			}
			var heard []string
			calls := 0
			for range 20 {
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
				heard = append(heard, m.Content)
				p.Messages = append(p.Messages, m.ToParam())
				if len(m.ToolCalls) == 0 {
					break
				}
				for _, call := range m.ToolCalls {
					if calls++; call.Function.Name != "read_file" {
						t.Errorf("the client has a call of %s", call.Function.Name)
					}
					p.Messages = append(p.Messages, openai.ToolMessage("some words in a file", call.ID))
				}
			}
			recalled(t, s, heard, calls)
		})
	}
}

func TestResponsesRecall(t *testing.T) {
	for name, stream := range map[string]bool{"whole": false, "streaming": true} {
		t.Run(name, func(t *testing.T) {
			s, url := recalling(t)
			client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0))
			input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Read all files.", responses.EasyInputMessageRoleUser)}
			p := responses.ResponseNewParams{
				Model: "gpt-5.2", Store: openai.Bool(false), Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
				Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "read_file", Parameters: parameters}}},
			}
			var heard []string
			calls := 0
			for range 20 {
				p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
				var r responses.Response
				if stream {
					events := client.Responses.NewStreaming(t.Context(), p)
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
					got, err := client.Responses.New(t.Context(), p)
					if err != nil {
						t.Fatal(err)
					}
					r = *got
				}
				if r.Usage.TotalTokens == 0 || r.Status != responses.ResponseStatusCompleted {
					t.Errorf("%s", r.RawJSON())
				}
				heard = append(heard, r.OutputText())
				var results responses.ResponseInputParam
				for _, item := range r.Output {
					switch item := item.AsAny().(type) {
					case responses.ResponseReasoningItem:
						back := item.ToParam()
						input = append(input, responses.ResponseInputItemUnionParam{OfReasoning: &back})
					case responses.ResponseOutputMessage:
						back := item.ToParam()
						input = append(input, responses.ResponseInputItemUnionParam{OfOutputMessage: &back})
					case responses.ResponseFunctionToolCall:
						if calls++; item.Name != "read_file" {
							t.Errorf("the client has a call of %s", item.Name)
						}
						back := item.ToParam()
						input = append(input, responses.ResponseInputItemUnionParam{OfFunctionCall: &back})
						result := responses.ResponseInputItemParamOfFunctionCallOutput("some words in a file")
						result.OfFunctionCallOutput.CallID = openai.String(item.CallID)
						results = append(results, result)
					}
				}
				if results == nil {
					break
				}
				input = append(input, results...)
			}
			recalled(t, s, heard, calls)
		})
	}
}
