package mcptool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl/tool"
)

// Tools returns the tools of the server. They are read once, and again after the
// server has reported a change or was started again. The tools work until Close.
func (c *Client) Tools(ctx context.Context) ([]tool.Tool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tools != nil && !c.stale.Load() {
		return slices.Clone(c.tools), nil
	}
	var tools []tool.Tool
	var notes []string
	err := c.call(ctx, "list tools", "start_timeout", c.s.StartTimeout, func(ctx context.Context, s *mcp.ClientSession) error {
		c.stale.Store(false) // before reading: a change meanwhile counts
		list, note, err := listTools(ctx, s)
		if err == nil {
			tools, notes = c.convert(list)
			notes = append(notes, note...)
		}
		return err
	})
	if err != nil {
		c.stale.Store(true)
		return nil, err
	}
	c.tools, c.notes = tools, notes
	return slices.Clone(tools), nil
}

// Notes says which tools of the last list were left out or shortened, and why. Names
// in it come from the server; control characters are escaped.
func (c *Client) Notes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notes)
}

// listTools reads the pages of the list.
func listTools(ctx context.Context, s *mcp.ClientSession) (list []*mcp.Tool, notes []string, err error) {
	if init := s.InitializeResult(); init == nil || init.Capabilities == nil || init.Capabilities.Tools == nil {
		return nil, []string{"the server has no tools"}, nil
	}
	cursor := ""
	for range maxPages {
		page, err := s.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, nil, err
		}
		list = append(list, page.Tools...)
		if len(list) > maxTools {
			return list[:maxTools], []string{fmt.Sprintf("the server lists more than %d tools; the others are left out", maxTools)}, nil
		}
		if page.NextCursor == "" || page.NextCursor == cursor {
			return list, nil, nil
		}
		cursor = page.NextCursor
	}
	return list, []string{fmt.Sprintf("the list of tools has more than %d pages; the others are left out", maxPages)}, nil
}

// convert returns the tools that a model can be offered.
func (c *Client) convert(list []*mcp.Tool) (tools []tool.Tool, notes []string) {
	tools = []tool.Tool{} // not nil: the list was read
	names := toolNames(c.s.Name, list)
	seen := make(map[string]bool)
	for i, t := range list {
		if t == nil || t.Name == "" || seen[t.Name] {
			notes = append(notes, fmt.Sprintf("tool %d is left out: expected a name that no other tool has", i+1))
			continue
		}
		seen[t.Name] = true
		schema, err := inputSchema(t.InputSchema)
		if err != nil {
			notes = append(notes, fmt.Sprintf("tool %s is left out: %s", c.clean(t.Name, 80), c.clean(err.Error(), 200)))
			continue
		}
		about := cmp.Or(t.Description, t.Title)
		if len(about) > maxDescription {
			notes = append(notes, fmt.Sprintf("the description of tool %s is cut to %d bytes", c.clean(t.Name, 80), maxDescription))
		}
		tools = append(tools, c.newTool(t, names[i], escape(cut(about, maxDescription), "\n\t"), schema))
	}
	return tools, notes
}

func (c *Client) newTool(t *mcp.Tool, name, about string, schema json.RawMessage) tool.Tool {
	original := t.Name
	return tool.Tool{
		Name: name, Description: about, Schema: schema,
		Changes: t.Annotations == nil || !t.Annotations.ReadOnlyHint,
		Preview: func(context.Context, json.RawMessage) (tool.Preview, error) {
			return tool.Preview{
				Title: fmt.Sprintf("Call %s of MCP server %s", c.clean(original, 80), c.s.Name),
				Note:  fmt.Sprintf("The MCP server %s (%s) runs this tool. It is a program outside of furl.", c.s.Name, c.place()),
			}, nil
		},
		Run: func(ctx context.Context, input json.RawMessage) (tool.Result, error) {
			return c.run(ctx, original, input)
		},
	}
}

// place says where the server runs, without its arguments and the query of its
// address, which may have keys.
func (c *Client) place() string {
	if c.s.Command != "" {
		return "command " + c.clean(filepath.Base(c.s.Command), 80)
	}
	u, err := url.Parse(c.s.URL)
	if err != nil {
		return "HTTP" // Check has parsed it
	}
	return c.clean(u.Host, 80)
}

// run calls a tool.
func (c *Client) run(ctx context.Context, name string, input json.RawMessage) (tool.Result, error) {
	if len(strings.TrimSpace(string(input))) == 0 || string(input) == "null" {
		input = json.RawMessage("{}")
	}
	var out *mcp.CallToolResult
	err := c.call(ctx, "call "+c.clean(name, 80), "call_timeout", c.s.CallTimeout, func(ctx context.Context, s *mcp.ClientSession) (err error) {
		out, err = s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: input})
		return err
	})
	if err != nil {
		return tool.Result{}, err
	}
	result := toResult(out)
	size := 0
	for _, p := range result.Parts {
		size += len(p.Text) + len(p.Data)
	}
	if size > c.s.MaxResult {
		return tool.Result{}, fmt.Errorf("call %s on MCP server %s: the result has %d bytes, more than the limit of %d; request less", c.clean(name, 80), c.s.Name, size, c.s.MaxResult)
	}
	return result, nil
}

// maxName is the longest name of a tool that providers accept.
const maxName = 64

// toolNames returns the names of tools for the model: valid and unique, and the same
// for the same list in any order.
func toolNames(server string, list []*mcp.Tool) []string {
	names := make([]string, len(list))
	count := make(map[string]int)
	for i, t := range list {
		if t != nil {
			names[i] = server + "__" + strings.Map(validRune, t.Name)
			count[names[i]]++
		}
	}
	for i, t := range list {
		if t == nil {
			continue
		}
		changed := names[i] != server+"__"+t.Name
		if len(names[i]) > maxName || changed && count[names[i]] > 1 {
			sum := sha256.Sum256([]byte(t.Name))
			names[i] = fmt.Sprintf("%s_%x", names[i][:min(len(names[i]), maxName-13)], sum[:6])
		}
	}
	return names
}

func validRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
		return r
	}
	return '_'
}
