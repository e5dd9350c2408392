package mcptool_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl/tool/mcptool"
)

// The tools of a server, here one of this program.
func Example() {
	ctx := context.Background()
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	type input struct {
		Name string `json:"name"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greets a person."}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name + "."}}}, nil, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()

	c, err := mcptool.Connect(ctx, mcptool.Server{Name: "greeter", URL: web.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()
	tools, err := c.Tools(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range tools {
		result, err := t.Run(ctx, []byte(`{"name":"Ada"}`))
		fmt.Println(t.Name, t.Changes, result.Text(), err)
	}
	// Output:
	// greeter__greet true Hello, Ada. <nil>
}
