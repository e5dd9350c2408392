package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpOver starts furl mcp and connects to its standard input and output.
func mcpOver(t testing.TB, cmd *exec.Cmd) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

// mcpSays calls a tool, which must not fail, and returns its texts.
func mcpSays(t testing.TB, cs *mcp.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	out, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	text := textOf(out)
	if out.IsError {
		t.Fatalf("%s %v: %s", tool, args, text)
	}
	return text
}

func textOf(out *mcp.CallToolResult) string {
	var texts []string
	for _, c := range out.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}
