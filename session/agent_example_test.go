package session_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	wire "github.com/furlhq/furl/wire/anthropic"
)

// runAgent works in a session: the session has the history, and each request is
// made of what the session shows.
func runAgent(ctx context.Context, s *session.Session, client anthropic.Client, tools []anthropic.ToolUnionParam, run func(call furl.Block) string) error {
	for {
		fit, err := s.Fit(ctx, "claude-sonnet-4-5") // plan, and hide what does not fit
		if err != nil {
			return err
		}
		list, err := fit.Encode(furl.FormatAnthropic)
		if err != nil {
			return err
		}
		request := anthropic.MessageNewParams{Model: "claude-sonnet-4-5", MaxTokens: 4096, Tools: tools}
		for _, m := range list {
			request.Messages = append(request.Messages, param.Override[anthropic.MessageParam](m))
		}
		response, err := client.Messages.New(ctx, request)
		if err != nil {
			return err
		}
		reply, err := wire.Codec.DecodeReply(200, []byte(response.RawJSON()))
		if err != nil {
			return err
		}
		if err := s.Observe(ctx, fit, reply); err != nil { // append the reply and its usage
			return err
		}
		var results []furl.Block
		for _, b := range reply.Messages[0].Blocks {
			if b.Kind == furl.KindCall {
				results = append(results, furl.Block{Kind: furl.KindResult, ID: b.ID, Text: run(b)})
			}
		}
		if len(results) == 0 {
			return nil
		}
		if _, err := s.Append(ctx, say(furl.RoleUser, results...)); err != nil {
			return err
		}
	}
}

// An agent loop over a session. The program keeps no history of its own: it can
// stop at any time, open the session again and continue.
func Example_agent() {
	ctx := context.Background()
	provider := httptest.NewServer(sim.New(&sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 30}), NoAuth: true}))
	defer provider.Close()
	client := anthropic.NewClient(option.WithBaseURL(provider.URL), option.WithAPIKey("test"))

	sessions, err := session.New(inmem.New(), &session.Options{Policy: "rolling-mask-5"})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := sessions.Create(storage.Meta{Title: "Read the files"})
	if _, err := s.Append(ctx, say(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Read the files."})); err != nil {
		fmt.Println(err)
		return
	}

	tools := []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: "read_file", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"path": map[string]any{"type": "string"}}},
	}}}
	err = runAgent(ctx, s, client, tools, func(furl.Block) string { return strings.Repeat("a line of a file\n", 100) })
	if err != nil {
		fmt.Println(err)
		return
	}
	c := s.Context("claude-sonnet-4-5")
	fmt.Printf("%d messages, results hidden: %t\n", c.Messages, len(s.Reductions()) > 0)
	// Output: 62 messages, results hidden: true
}
