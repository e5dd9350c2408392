package sdktest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
)

// rememberer calls, in turn, its client's tool, recall, and both at once.
type rememberer struct{ asked int }

func (r *rememberer) Play(_ context.Context, req *protocol.Request) (sim.Reply, error) {
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
		call(exchange.ToolSearch, `{"query":"files"}`)
	case n%4 == 2:
		call(exchange.ToolGet, `{"handle":"furl:1.0"}`)
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

// recalling is a sim whose client has recall: a gateway's, or furlhttp's.
func recalling(t *testing.T, byGateway bool) (s *settled, url string, client *http.Client) {
	t.Helper()
	s = &settled{Sim: sim.New(&sim.Options{Player: &rememberer{}})}
	direct := httptest.NewServer(s)
	t.Cleanup(direct.Close)
	store := inmem.New()
	t.Cleanup(func() { store.Close() })
	sessions, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !byGateway {
		return s, direct.URL, &http.Client{Transport: furlhttp.New(sessions, &furlhttp.Options{Recall: true})}
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
	return s, front.URL, http.DefaultClient
}

// program is what a client has heard, and the tools it was to run.
type program struct {
	heard strings.Builder
	calls []string
}

// The providers' own libraries take replies that were made of several: their
// accumulators, their types, and what they send back of them.
func recalls(t *testing.T, run func(t *testing.T, url string, client *http.Client, stream bool, p *program)) {
	for name, byGateway := range map[string]bool{"gateway": true, "furlhttp": false} {
		t.Run(name, func(t *testing.T) {
			inBothWays(t, func(t *testing.T, stream bool) {
				s, url, client := recalling(t, byGateway)
				var p program
				run(t, url, client, stream, &p)
				words := strings.Join(strings.Fields(p.heard.String()), " ")
				if !strings.HasSuffix(words, "All done.") || strings.Count(words, "Let me remember.") < 2 {
					t.Errorf("the client heard %q", words)
				}
				if names := slices.Compact(p.calls); !slices.Equal(names, []string{"read_file"}) {
					t.Errorf("the client has calls of %q", names)
				}
				if b := s.Bill(); b.Refused != 0 || b.Requests != 14 {
					t.Errorf("%+v", b)
				}
			})
		})
	}
}

func TestAnthropicRecall(t *testing.T) {
	recalls(t, func(t *testing.T, url string, hc *http.Client, stream bool, p *program) {
		client := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("test"), anthropicoption.WithMaxRetries(0), anthropicoption.WithHTTPClient(hc))
		workMessages(t, client, messagesTask(), stream, someWords, func(m *anthropic.Message) {
			had := len(p.calls)
			for _, b := range m.Content {
				switch b := b.AsAny().(type) {
				case anthropic.TextBlock:
					p.heard.WriteString(b.Text + "\n")
				case anthropic.ToolUseBlock:
					p.calls = append(p.calls, b.Name)
				}
			}
			if (len(p.calls) == had) != (m.StopReason == anthropic.StopReasonEndTurn) || m.Usage.OutputTokens == 0 {
				t.Errorf("%d calls, stop reason %s, usage %+v", len(p.calls)-had, m.StopReason, m.Usage)
			}
		})
	})
}

func TestChatRecall(t *testing.T) {
	recalls(t, func(t *testing.T, url string, hc *http.Client, stream bool, p *program) {
		client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0), option.WithHTTPClient(hc))
		workChat(t, client, stream, someWords, func(m openai.ChatCompletionMessage) {
			p.heard.WriteString(m.Content + "\n")
			for _, call := range m.ToolCalls {
				p.calls = append(p.calls, call.Function.Name)
			}
		})
	})
}

func TestResponsesRecall(t *testing.T) {
	recalls(t, func(t *testing.T, url string, hc *http.Client, stream bool, p *program) {
		client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0), option.WithHTTPClient(hc))
		workResponses(t, client, stream, someWords, func(r *responses.Response) {
			p.heard.WriteString(r.OutputText() + "\n")
			for _, item := range r.Output {
				if call, ok := item.AsAny().(responses.ResponseFunctionToolCall); ok {
					p.calls = append(p.calls, call.Name)
				}
			}
		})
	})
}
