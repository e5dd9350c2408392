package sdktest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/furlhq/furl/sim"
)

// player makes a dozen steps with parallel calls and thinking.
func player() sim.Player {
	return sim.NewAgent(&sim.AgentOptions{Steps: 12, Parallel: 3, Thinking: 30})
}

// settled is a sim whose bill waits for the requests under way: clients leave
// when they have read the last event, before the sim is done with it.
type settled struct {
	*sim.Sim
	handlers sync.WaitGroup
}

func (s *settled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handlers.Add(1)
	defer s.handlers.Done()
	s.Sim.ServeHTTP(w, r)
}

func (s *settled) Bill() sim.Bill {
	s.handlers.Wait()
	return s.Sim.Bill()
}

func anthropicClient(t *testing.T, o *sim.Options) (*settled, anthropic.Client) {
	t.Helper()
	s := &settled{Sim: sim.New(o)}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, anthropic.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("test"), option.WithMaxRetries(0))
}

func TestAnthropicLoop(t *testing.T) {
	inBothWays(t, func(t *testing.T, stream bool) {
		s, client := anthropicClient(t, &sim.Options{Player: player()})
		p := messagesTask()
		p.System = []anthropic.TextBlockParam{{Text: strings.Repeat("You are under test. ", 100), CacheControl: anthropic.NewCacheControlEphemeralParam()}}
		var last *anthropic.Message
		workMessages(t, client, p, stream, someWords, func(m *anthropic.Message) {
			count, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
				Model: p.Model, Messages: p.Messages, Tools: []anthropic.MessageCountTokensToolUnionParam{{OfTool: readFile.OfTool}},
				Thinking: p.Thinking,
				System:   anthropic.MessageCountTokensParamsSystemUnion{OfTextBlockArray: p.System},
			})
			u := m.Usage
			if prompt := u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens; err != nil || count.InputTokens != prompt {
				t.Fatalf("counted %v, %v, billed for %d", count, err, prompt)
			}
			if last != nil && last.StopReason != anthropic.StopReasonToolUse {
				t.Errorf("stop reason %s", last.StopReason)
			}
			last = m
		})
		if last.StopReason != anthropic.StopReasonEndTurn || !strings.HasPrefix(last.Content[0].Text, "Done after 12 steps") {
			t.Errorf("ends with %s", last.RawJSON())
		}
		if b := s.Bill(); b.Refused != 0 || b.Usage.CacheRead == 0 || b.Requests != 26 {
			t.Errorf("%+v", b)
		}
	})
}

func TestAnthropicErrors(t *testing.T) {
	ask := func(o *sim.Options, fault string) *anthropic.Error {
		t.Helper()
		_, client := anthropicClient(t, o)
		_, err := client.Messages.New(context.Background(), anthropic.MessageNewParams{
			Model: "claude-sonnet-4-5", MaxTokens: 10,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(strings.Repeat("hello ", 100)))},
		}, option.WithHeader(sim.FaultHeader, fault))
		e, ok := errors.AsType[*anthropic.Error](err)
		if !ok {
			t.Fatalf("%T: %v", err, err)
		}
		return e
	}
	if e := ask(nil, "429 retry-after=9"); e.StatusCode != 429 || e.Response.Header.Get("retry-after") != "9" || !strings.Contains(e.RawJSON(), "rate_limit_error") {
		t.Errorf("%v", e)
	}
	if e := ask(nil, "529"); e.StatusCode != 529 || e.RequestID == "" {
		t.Errorf("%v", e)
	}
	if e := ask(&sim.Options{Window: 50}, "ping"); e.StatusCode != 400 || !strings.Contains(e.RawJSON(), "prompt is too long: ") {
		t.Errorf("%v", e)
	}
}

// The client's own retries get through.
func TestAnthropicRetries(t *testing.T) {
	fault, err := sim.ParseFault("529 first=2")
	if err != nil {
		t.Fatal(err)
	}
	fault.RetryAfter = 0
	s, client := anthropicClient(t, &sim.Options{Faults: []sim.Fault{fault}})
	m, err := client.Messages.New(context.Background(), anthropic.MessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 100,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
	}, option.WithMaxRetries(2))
	if err != nil || m.Content[0].Text != "You said: hello" || s.Bill().Requests != 3 {
		t.Errorf("%v after %d requests", err, s.Bill().Requests)
	}
}
