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

	"github.com/furlhq/furl/sim"
)

func openaiClient(t *testing.T, o *sim.Options) (*settled, openai.Client) {
	t.Helper()
	s := &settled{Sim: sim.New(o)}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, openai.NewClient(option.WithBaseURL(srv.URL+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0))
}

func TestChatLoop(t *testing.T) {
	inBothWays(t, func(t *testing.T, stream bool) {
		s, client := openaiClient(t, &sim.Options{Player: player()})
		last := ""
		workChat(t, client, stream, someWords, func(m openai.ChatCompletionMessage) { last = m.Content })
		if b := s.Bill(); b.Refused != 0 || b.Requests != 13 || !strings.HasPrefix(last, "Done after 12 steps") {
			t.Errorf("%+v, ends with %q", b, last)
		}
	})
}

// The provider keeps the state, and is sent what is new.
func TestResponsesLoop(t *testing.T) {
	inBothWays(t, func(t *testing.T, stream bool) {
		s, client := openaiClient(t, &sim.Options{Player: player()})
		p := responsesTask()
		p.Input = responses.ResponseNewParamsInputUnion{OfString: openai.String("Read all files.")}
		last := ""
		for range maxSteps {
			r := askResponses(t, client, p, stream)
			last = r.OutputText()
			results := outputs(r, someWords)
			if results == nil {
				break
			}
			p.PreviousResponseID = openai.String(r.ID)
			p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: results}
		}
		if b := s.Bill(); b.Refused != 0 || b.Requests != 13 || b.Usage.Reasoning == 0 || !strings.HasPrefix(last, "Done after 12 steps") {
			t.Errorf("%+v, ends with %q", b, last)
		}
	})
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
