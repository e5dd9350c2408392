package sdktest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// The providers' own clients over furlhttp, against a provider that refuses
// whatever breaks its rules: nothing is refused, old results are hidden, one
// session holds the whole conversation, and each reply is recorded once.

// kept is a provider behind an http.Client that keeps sessions.
type kept struct {
	*settled
	url    string
	client *http.Client
	all    *session.Sessions
}

func keep(t *testing.T) *kept {
	t.Helper()
	s := &settled{Sim: sim.New(&sim.Options{Player: player()})}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	all, err := session.New(inmem.New(), &session.Options{Policy: "rolling-mask-5"})
	if err != nil {
		t.Fatal(err)
	}
	return &kept{s, srv.URL, &http.Client{Transport: furlhttp.New(all, nil)}, all}
}

var longResult = strings.Repeat("some words in a file\n", 60)

// check looks at what is left of a conversation.
func (k *kept) check(t *testing.T) {
	t.Helper()
	if b := k.Bill(); b.Refused != 0 || b.Requests < 13 {
		for _, r := range k.Requests() {
			if r.Verdict != sim.VerdictOK {
				t.Log(r.Error)
			}
		}
		t.Errorf("%d of %d requests were refused", b.Refused, b.Requests)
	}
	s, err := k.all.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	sessions := 0
	for _, err := range k.all.List(t.Context(), furl.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		sessions++
	}
	exchanges, heads := 0, 0
	for _, r := range s.Records(0) {
		switch r.Body.(type) {
		case *furl.Exchange:
			exchanges++
		case *furl.Head:
			heads++
		}
	}
	if sessions != 1 || exchanges != 13 || heads != 0 {
		t.Errorf("%d sessions with %d exchanges and %d divergences, want 1 with 13 and none", sessions, exchanges, heads)
	}
	if len(s.Reductions()) == 0 {
		t.Error("nothing was hidden")
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the check found %v, %v", problems, err)
	}
}

func TestFurlhttpAnthropic(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(map[bool]string{false: "whole", true: "streaming"}[stream], func(t *testing.T) {
			k := keep(t)
			client := anthropic.NewClient(anthropicoption.WithBaseURL(k.url), anthropicoption.WithAPIKey("test"), anthropicoption.WithMaxRetries(0),
				anthropicoption.WithHTTPClient(k.client))
			p := anthropic.MessageNewParams{
				Model: "claude-opus-5-5", MaxTokens: 4000, // a model that binds thinking to its prompt
				Thinking: anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{}},
				Tools:    []anthropic.ToolUnionParam{readFile},
				Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Read all files."))},
			}
			for range 20 {
				var m anthropic.Message
				if stream {
					events := client.Messages.NewStreaming(context.Background(), p)
					for events.Next() {
						if err := m.Accumulate(events.Current()); err != nil {
							t.Fatal(err)
						}
					}
					if err := events.Err(); err != nil {
						t.Fatal(err)
					}
				} else {
					got, err := client.Messages.New(context.Background(), p)
					if err != nil {
						t.Fatal(err)
					}
					m = *got
				}
				p.Messages = append(p.Messages, m.ToParam())
				var results []anthropic.ContentBlockParamUnion
				for _, b := range m.Content {
					if call, ok := b.AsAny().(anthropic.ToolUseBlock); ok {
						results = append(results, anthropic.NewToolResultBlock(call.ID, longResult, false))
					}
				}
				if results == nil {
					break
				}
				p.Messages = append(p.Messages, anthropic.NewUserMessage(results...))
			}
			k.check(t)
		})
	}
}

func TestFurlhttpChat(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(map[bool]string{false: "whole", true: "streaming"}[stream], func(t *testing.T) {
			k := keep(t)
			client := openai.NewClient(openaioption.WithBaseURL(k.url+"/v1"), openaioption.WithAPIKey("test"), openaioption.WithMaxRetries(0),
				openaioption.WithHTTPClient(k.client))
			p := openai.ChatCompletionNewParams{
				Model:    "gpt-5.2",
				Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are under test."), openai.UserMessage("Read all files.")},
				Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
					Name: "read_file", Parameters: parameters,
				})},
			}
			for range 20 {
				var m openai.ChatCompletionMessage
				if stream {
					p.StreamOptions.IncludeUsage = openai.Bool(true)
					events := client.Chat.Completions.NewStreaming(context.Background(), p)
					var acc openai.ChatCompletionAccumulator
					for events.Next() {
						if !acc.AddChunk(events.Current()) {
							t.Fatalf("the accumulator does not take %s", events.Current().RawJSON())
						}
					}
					if err := events.Err(); err != nil {
						t.Fatal(err)
					}
					m = acc.Choices[0].Message
				} else {
					got, err := client.Chat.Completions.New(context.Background(), p)
					if err != nil {
						t.Fatal(err)
					}
					m = got.Choices[0].Message
				}
				p.Messages = append(p.Messages, m.ToParam())
				if len(m.ToolCalls) == 0 {
					break
				}
				for _, call := range m.ToolCalls {
					p.Messages = append(p.Messages, openai.ToolMessage(longResult, call.ID))
				}
			}
			k.check(t)
		})
	}
}

func TestFurlhttpResponses(t *testing.T) {
	k := keep(t)
	client := openai.NewClient(openaioption.WithBaseURL(k.url+"/v1"), openaioption.WithAPIKey("test"), openaioption.WithMaxRetries(0),
		openaioption.WithHTTPClient(k.client))
	list := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Read all files.", responses.EasyInputMessageRoleUser)}
	for range 20 {
		r, err := client.Responses.New(context.Background(), responses.ResponseNewParams{
			Model: "gpt-5.2", Store: openai.Bool(false),
			Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
			Input:   responses.ResponseNewParamsInputUnion{OfInputItemList: list},
			Tools:   []responses.ToolUnionParam{responses.ToolParamOfFunction("read_file", parameters, false)},
		})
		if err != nil {
			t.Fatal(err)
		}
		called := false
		for _, item := range r.Output {
			switch item := item.AsAny().(type) {
			case responses.ResponseReasoningItem:
				p := item.ToParam()
				list = append(list, responses.ResponseInputItemUnionParam{OfReasoning: &p})
			case responses.ResponseOutputMessage:
				p := item.ToParam()
				list = append(list, responses.ResponseInputItemUnionParam{OfOutputMessage: &p})
			case responses.ResponseFunctionToolCall:
				p := item.ToParam()
				list = append(list, responses.ResponseInputItemUnionParam{OfFunctionCall: &p})
				called = true
			}
		}
		for _, item := range r.Output {
			if call, ok := item.AsAny().(responses.ResponseFunctionToolCall); ok {
				result := responses.ResponseInputItemParamOfFunctionCallOutput(longResult)
				result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
				list = append(list, result)
			}
		}
		if !called {
			break
		}
	}
	k.check(t)
}
