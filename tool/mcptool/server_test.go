package mcptool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asServer is the variable that makes the test program an MCP server; its value says of
// which kind.
const asServer = "FURL_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	kind := os.Getenv(asServer)
	switch {
	case kind == "":
		os.Exit(m.Run())
	case kind == "sdk":
		if err := newSDKServer(nil).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
	default:
		if err := serveRaw(kind, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
	os.Exit(0)
}

// newSDKServer returns a server of the SDK with a few tools.
func newSDKServer(stop <-chan struct{}) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 2})
	schema := map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}}
	started, canceled := make(chan struct{}, 100), make(chan struct{}, 100)
	add := func(name string, readOnly bool, run func(ctx context.Context, text string) (*mcp.CallToolResult, error)) {
		s.AddTool(&mcp.Tool{Name: name, Description: "Test " + name + ".", InputSchema: schema, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly}},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var in struct{ Text string }
				if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
					return nil, err
				}
				return run(ctx, in.Text)
			})
	}
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	add("echo", true, func(_ context.Context, s string) (*mcp.CallToolResult, error) { return text(s), nil })
	add("fs.read", true, func(_ context.Context, s string) (*mcp.CallToolResult, error) { return text("dot " + s), nil })
	add("fs_read", false, func(_ context.Context, s string) (*mcp.CallToolResult, error) { return text("line " + s), nil })
	add(strings.Repeat("long", 30), false, func(_ context.Context, s string) (*mcp.CallToolResult, error) { return text("long " + s), nil })
	add("env", true, func(context.Context, string) (*mcp.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	add("fail", false, func(context.Context, string) (*mcp.CallToolResult, error) {
		r := text("no such file")
		r.IsError = true
		return r, nil
	})
	add("repeat", true, func(_ context.Context, s string) (*mcp.CallToolResult, error) {
		n, err := strconv.Atoi(s)
		return text(strings.Repeat("x", n)), err
	})
	add("kinds", true, func(context.Context, string) (*mcp.CallToolResult, error) {
		size := int64(12)
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "one"},
			&mcp.ImageContent{MIMEType: "image/png", Data: []byte("PNG")},
			&mcp.ImageContent{MIMEType: "image/svg+xml", Data: []byte("<svg/>")},
			&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("RIFF")},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///a", MIMEType: "text/plain", Text: "two"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///b", MIMEType: "application/pdf", Blob: []byte("PDF")}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///c", MIMEType: "application/zip", Blob: []byte("PK")}},
			&mcp.ResourceLink{URI: "file:///d", Name: "d", MIMEType: "text/plain", Size: &size, Description: "the d"},
		}, StructuredContent: map[string]any{"unused": true}}, nil
	})
	add("structured", true, func(context.Context, string) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]any{"n": 1}}, nil
	})
	add("wait", true, func(ctx context.Context, _ string) (*mcp.CallToolResult, error) {
		started <- struct{}{}
		select {
		case <-ctx.Done():
			canceled <- struct{}{}
		case <-stop:
		}
		return nil, context.Canceled
	})
	for name, happened := range map[string]chan struct{}{"started": started, "canceled": canceled} {
		add(name, true, func(ctx context.Context, _ string) (*mcp.CallToolResult, error) {
			select {
			case <-happened:
				return text(name), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	}
	add("change", true, func(context.Context, string) (*mcp.CallToolResult, error) {
		s.AddTool(&mcp.Tool{Name: "added", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text("added"), nil
		})
		return text("changed"), nil
	})
	return s
}

// serveRaw is a server that does one thing wrong. Each request is a line.
func serveRaw(kind string, in io.Reader, out io.Writer) error {
	if kind == "broken" {
		return fmt.Errorf("starting\n\ncannot read \x1b[2Jkey %s", os.Getenv("TEST_KEY"))
	}
	if kind == "chatty" {
		fmt.Fprintln(out, "Server listening on stdio")
	}
	lines := bufio.NewScanner(in)
	for first := true; lines.Scan(); first = false {
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Cursor string
				Name   string
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &req); err != nil {
			return err
		}
		if kind == "old" && first && req.Method != "initialize" {
			return fmt.Errorf("expected initialize, got %s", req.Method)
		}
		if len(req.ID) == 0 || kind == "mute" {
			continue
		}
		answer := func(result string) { fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", req.ID, result) }
		switch req.Method {
		case "initialize":
			answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
		case "tools/list":
			answer(rawTools(kind, req.Params.Cursor))
		case "tools/call":
			switch kind {
			case "crash":
				if req.Params.Name == "crash" {
					fmt.Fprint(os.Stderr, strings.Repeat("noise\n", 100_000), "panic: \x1b[31mboom\n")
					os.Exit(7)
				}
				answer(fmt.Sprintf(`{"content":[{"type":"text","text":"process %d"}]}`, os.Getpid()))
			case "hang":
			case "flood":
				fmt.Fprint(out, `{"jsonrpc":"2.0","x":"`)
				for {
					if _, err := io.WriteString(out, strings.Repeat("x", 1<<16)); err != nil {
						return err
					}
				}
			default:
				answer(`{"content":[{"type":"text","text":"ok"}]}`)
			}
		default:
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`+"\n", req.ID)
		}
	}
	return lines.Err()
}

func rawTools(kind, cursor string) string {
	type raw = map[string]any
	object := raw{"type": "object"}
	list := raw{}
	var tools []raw
	switch kind {
	case "many":
		page, _ := strconv.Atoi(cursor) // 0 for the first
		for i := range 100 {
			tools = append(tools, raw{"name": fmt.Sprintf("tool%d", 100*page+i), "inputSchema": object})
		}
		if page < 99 {
			list["nextCursor"] = strconv.Itoa(page + 1)
		}
	case "pages":
		n, _ := strconv.Atoi(cursor)
		list["nextCursor"] = strconv.Itoa(n + 1)
	case "bad":
		deep := any(true)
		for range 100 {
			deep = raw{"items": deep}
		}
		for name, schema := range map[string]any{
			"none": nil, "text": "object", "list": []any{}, "array": raw{"type": "array"}, "banana": raw{"type": "object", "properties": raw{"a": raw{"type": "banana"}}},
			"flat": raw{"type": "object", "properties": raw{"a": 5}}, "required": raw{"type": "object", "required": "a"}, "deep": raw{"type": "object", "properties": raw{"a": deep}},
			"large": raw{"type": "object", "description": strings.Repeat("x", 1<<17)}, "good\x1b[2J\u202e": raw{"anyOf": []any{object}, "properties": raw{"a": raw{"type": []any{"string", "null"}}}},
		} {
			tools = append(tools, raw{"name": name, "inputSchema": schema, "description": strings.Repeat("word\u200b \x1b[0m\n", 1000)})
		}
		tools = append(tools, raw{"name": "", "inputSchema": object}, raw{"name": "flat", "inputSchema": object})
		slices.SortStableFunc(tools, func(a, b raw) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
	default:
		tools = append(tools, raw{"name": "crash", "inputSchema": object}, raw{"name": "other", "inputSchema": object})
	}
	list["tools"] = tools
	if tools == nil {
		list["tools"] = []raw{}
	}
	data, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return string(data)
}
