package sdktest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
	wireanthropic "github.com/furlhq/furl/wire/anthropic"
	wireopenai "github.com/furlhq/furl/wire/openai"
)

// foreseer relays requests to a provider and holds each to what the reply
// before it let it foresee: the history begins with the last request's, and
// goes on with the reply as it was understood.
type foreseer struct {
	t      *testing.T
	codec  furl.Codec
	client *upstream.Client

	mu      sync.Mutex
	chain   furl.Digest // of the last request and its reply
	matched int         // requests that were as foreseen
}

// foreseen starts a foreseer in front of a sim and gives its address.
func foreseen(t *testing.T, codec furl.Codec) (*foreseer, string) {
	t.Helper()
	provider := httptest.NewServer(sim.New(&sim.Options{Player: player(), AnyField: true}))
	t.Cleanup(provider.Close)
	client, err := upstream.New(provider.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	f := &foreseer{t: t, codec: codec, client: client}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	return f, srv.URL
}

func (f *foreseer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
		return
	}
	req, err := f.codec.DecodeRequest(body)
	if err != nil {
		f.t.Error(err)
		return
	}
	var chain furl.Digest
	var chains []furl.Digest
	for i := range req.Messages {
		chain = req.Messages[i].Extend(chain)
		chains = append(chains, chain)
	}
	switch {
	case f.chain.IsZero():
	case slices.Contains(chains, f.chain):
		f.matched++
	default:
		f.t.Errorf("%s: the history is not what the reply foretold: %s", f.codec.Format(), body)
	}
	resp, err := f.client.Do(r.Context(), &upstream.Request{Method: r.Method, URL: r.URL, Header: r.Header, Body: body, Understand: true})
	if err != nil {
		f.t.Error(err)
		return
	}
	defer resp.Close()
	relayed, err := f.client.Relay(w, resp, upstream.Understand(f.codec.(furl.ReplyCodec), resp, func(reply *furl.Reply, err error) {
		if err != nil || !reply.Complete || len(reply.Messages) == 0 || reply.Usage.IsZero() {
			f.t.Errorf("understood %+v, %v", reply, err)
		}
		for _, m := range reply.Messages {
			chain = m.Extend(chain)
		}
		f.chain = chain
	}))
	<-relayed.Observed
	if err != nil && !errors.Is(err, upstream.ErrClientGone) { // a client may leave at [DONE]
		f.t.Error(err)
	}
}

// both runs a test with whole and with streamed replies.
func both(t *testing.T, codec furl.Codec, run func(t *testing.T, base string, stream bool)) {
	for name, stream := range map[string]bool{"whole": false, "streaming": true} {
		t.Run(name, func(t *testing.T) {
			f, base := foreseen(t, codec)
			run(t, base, stream)
			if f.matched != 12 {
				t.Errorf("%d requests were as foreseen, want 12", f.matched)
			}
		})
	}
}

func TestAnthropicHistoryIsForeseen(t *testing.T) {
	both(t, wireanthropic.Codec, func(t *testing.T, base string, stream bool) {
		client := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey("test"), anthropicoption.WithMaxRetries(0))
		p := anthropic.MessageNewParams{
			Model: "claude-opus-5-5", MaxTokens: 4000,
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
					results = append(results, anthropic.NewToolResultBlock(call.ID, "some words in a file", false))
				}
			}
			if results == nil {
				return
			}
			p.Messages = append(p.Messages, anthropic.NewUserMessage(results...))
		}
	})
}

func TestChatHistoryIsForeseen(t *testing.T) {
	both(t, wireopenai.Chat, func(t *testing.T, base string, stream bool) {
		client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0))
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
				return
			}
			for _, call := range m.ToolCalls {
				p.Messages = append(p.Messages, openai.ToolMessage("some words in a file", call.ID))
			}
		}
	})
}

// The client keeps the state itself and sends items back as its own types
// write them.
func TestResponsesHistoryIsForeseen(t *testing.T) {
	both(t, wireopenai.Responses, func(t *testing.T, base string, stream bool) {
		client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0))
		input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Read all files.", responses.EasyInputMessageRoleUser)}
		for range 20 {
			p := responses.ResponseNewParams{
				Model: "gpt-5.2", Store: openai.Bool(false),
				Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
				Input:   responses.ResponseNewParamsInputUnion{OfInputItemList: input},
				Tools:   []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "read_file", Parameters: parameters}}},
			}
			var r responses.Response
			if stream {
				events := client.Responses.NewStreaming(context.Background(), p)
				for events.Next() {
					if e, ok := events.Current().AsAny().(responses.ResponseCompletedEvent); ok {
						r = e.Response
					}
				}
				if err := events.Err(); err != nil {
					t.Fatal(err)
				}
			} else {
				got, err := client.Responses.New(context.Background(), p)
				if err != nil {
					t.Fatal(err)
				}
				r = *got
			}
			var results responses.ResponseInputParam
			for _, item := range r.Output {
				switch item := item.AsAny().(type) {
				case responses.ResponseReasoningItem:
					param := item.ToParam()
					input = append(input, responses.ResponseInputItemUnionParam{OfReasoning: &param})
				case responses.ResponseOutputMessage:
					param := item.ToParam()
					input = append(input, responses.ResponseInputItemUnionParam{OfOutputMessage: &param})
				case responses.ResponseFunctionToolCall:
					param := item.ToParam()
					input = append(input, responses.ResponseInputItemUnionParam{OfFunctionCall: &param})
					result := responses.ResponseInputItemParamOfFunctionCallOutput("some words in a file")
					result.OfFunctionCallOutput.CallID = openai.String(item.CallID)
					results = append(results, result)
				default:
					t.Fatalf("an item %T", item)
				}
			}
			if results == nil {
				if !strings.HasPrefix(r.OutputText(), "Done after 12 steps") {
					t.Errorf("ends with %q", r.OutputText())
				}
				return
			}
			input = append(input, results...)
		}
	})
}
