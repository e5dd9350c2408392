package mcpserver

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl/internal/recalltext"
)

// The names of the tools, besides the recall tools that the gateway has too.
const (
	toolList   = "session_list"
	toolStatus = "context_status"
)

// addTools adds the tools. Their definitions are in every prompt of the client, so
// they are short and never change while the server runs.
func (s *Server) addTools() {
	no := false
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}
	add(s, &mcp.Tool{
		Name: recalltext.ToolSearch, Title: "Search recorded sessions", Annotations: reads,
		Description: "Search what was said and done in recorded agent sessions on this machine, also what a compaction has removed from this conversation: messages, commands, tool results, errors. Gives excerpts with handles, those of the current project first.",
	}, s.search)
	add(s, &mcp.Tool{
		Name: recalltext.ToolGet, Title: "Read a recorded message", Annotations: reads,
		Description: "Get the exact original of a message, call or tool result of a recorded session by its handle, such as furl:ID/12.0, whole or a range of lines.",
	}, s.get)
	s.addOperations()
	add(s, &mcp.Tool{
		Name: toolList, Title: "List recorded sessions", Annotations: reads,
		Description: "List recorded agent sessions, newest first, with title, agent, folder and time; by default those of the current project.",
	}, s.sessions)
	add(s, &mcp.Tool{
		Name: toolStatus, Title: "Show the size of a context", Annotations: reads,
		Description: "Show how full the context window of a recorded session was at its newest message, by kind of content, and how much is hidden from the model.",
	}, s.status)
}

// add adds a tool whose handler returns texts: furl's words first, then, if it quotes a
// text whole, that text as a block of its own.
func add[In any](s *Server, t *mcp.Tool, run func(context.Context, *mcp.CallToolRequest, In) ([]string, error)) {
	mcp.AddTool(s.mcp, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		texts, err := run(ctx, req, in)
		if err != nil {
			return nil, nil, err
		}
		if note := s.o.Importing(); note != "" && t.Name != recalltext.ToolGet && operationOf(t.Name) == nil {
			texts[len(texts)-1] = strings.TrimRight(texts[len(texts)-1], "\n") + "\n\n" + note
		}
		out := &mcp.CallToolResult{}
		for _, text := range texts {
			out.Content = append(out.Content, &mcp.TextContent{Text: text})
		}
		return out, nil, nil
	})
}
