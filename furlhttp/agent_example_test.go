package furlhttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// runAgent sends a task to the model and runs the tools it calls, until it
// answers without a call. The whole history is sent each time; furl hides what
// does not fit.
func runAgent(ctx context.Context, client anthropic.Client, task string, tools []anthropic.ToolUnionParam, run func(tool string, input json.RawMessage) string) (string, error) {
	request := anthropic.MessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 4096, Tools: tools,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(task))},
	}
	for {
		reply, err := client.Messages.New(ctx, request)
		if err != nil {
			return "", err
		}
		var answer string
		var results []anthropic.ContentBlockParamUnion
		for _, block := range reply.Content {
			switch block.Type {
			case "text":
				answer = block.Text
			case "tool_use":
				results = append(results, anthropic.NewToolResultBlock(block.ID, run(block.Name, block.Input), false))
			}
		}
		if len(results) == 0 {
			return answer, nil
		}
		request.Messages = append(request.Messages, reply.ToParam(), anthropic.NewUserMessage(results...))
	}
}

// An agent loop with the provider's SDK. Only the HTTP client differs from one
// without furl.
func Example_agent() {
	ctx := context.Background()
	provider := httptest.NewServer(sim.New(&sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 30}), NoAuth: true}))
	defer provider.Close()

	sessions, err := session.New(inmem.New(), &session.Options{Policy: "rolling-mask-5"})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := anthropic.NewClient(option.WithBaseURL(provider.URL), option.WithAPIKey("test"),
		option.WithHTTPClient(&http.Client{Transport: furlhttp.New(sessions, nil)}))

	tools := []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: "read_file", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"path": map[string]any{"type": "string"}}},
	}}}
	_, err = runAgent(ctx, client, "Read the files.", tools, func(string, json.RawMessage) string {
		return strings.Repeat("a line of a file\n", 100)
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	for info, err := range sessions.List(ctx, storage.SessionQuery{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		s, err := sessions.Open(ctx, info.Session)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d messages, results hidden: %t\n", info.Messages, len(s.Reductions()) > 0)
	}
	// Output: 62 messages, results hidden: true
}
