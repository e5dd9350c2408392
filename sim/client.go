package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire"
)

// Client is the agent's side of a session, for tests of programs between
// agents and providers. Like an agent, it sends its whole history with every
// request, adds the answer unchanged, and then the results of its tools. All
// fields except URL, Format and Model have useful zero values. A Client must
// be used by one goroutine at a time.
type Client struct {
	URL    string // of the provider or a proxy, without /v1
	Format furl.Format
	Model  string
	Stream bool
	System string
	// Tools is a list of tools as JSON, in the wire format. If nil, one tool
	// that runs commands.
	Tools json.RawMessage
	// Fields are further fields of every request and override the defaults.
	// Without them, Anthropic requests ask for 32,000 tokens and automatic
	// caching, and Responses requests disable storing.
	Fields map[string]any
	// Header is sent with every request. Without it, an API key is sent.
	Header http.Header
	// HTTP is the client to use. If nil, http.DefaultClient.
	HTTP *http.Client
	// History is the list of the next request, messages or items as JSON.
	History []json.RawMessage
	// Requests counts the requests sent.
	Requests int
}

// codec returns the API of the format, and its path.
func (c *Client) codec() (wire.API, string) {
	api := wire.For(c.Format)
	if api == nil {
		api = wire.For(furl.FormatAnthropic)
	}
	return api, api.RequestPath(c.Model, c.Stream)
}

// Say adds text of the user to the history.
func (c *Client) Say(words string) error {
	return c.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: words})
}

func (c *Client) add(role furl.Role, blocks ...furl.Block) error {
	codec, _ := c.codec()
	m, err := codec.NewMessage(role, blocks)
	if err != nil {
		return fmt.Errorf("build message: %w", err)
	}
	c.History = append(c.History, m.Raw)
	return nil
}

// Send sends the history and adds the answer to it. It returns a
// *protocol.Refusal for a refused request, and another error for an incomplete
// answer, which is not added.
func (c *Client) Send(ctx context.Context) (*protocol.Reply, error) {
	reply, err := c.exchange(ctx)
	if err != nil {
		return reply, err
	}
	for _, m := range reply.Messages {
		c.History = append(c.History, m.Raw)
	}
	return reply, nil
}

// Work sends requests and answers all calls with the results of run, until
// the model makes no more calls. It returns the last reply.
func (c *Client) Work(ctx context.Context, run func(call furl.Block) string) (*protocol.Reply, error) {
	for {
		reply, err := c.Send(ctx)
		if err != nil {
			return reply, err
		}
		calls := callsOf(reply)
		if len(calls) == 0 {
			return reply, nil
		}
		var results []furl.Block
		for _, call := range calls {
			results = append(results, furl.Block{Kind: furl.KindResult, ID: call.ID, Text: run(call)})
		}
		if err := c.Results(results); err != nil {
			return reply, err
		}
	}
}

// Results adds the results of tools: one message in Anthropic's format, one
// for each result in the others.
func (c *Client) Results(results []furl.Block) error {
	if c.Format == furl.FormatAnthropic {
		return c.add(furl.RoleUser, results...)
	}
	for _, r := range results {
		if err := c.add(furl.RoleTool, r); err != nil {
			return err
		}
	}
	return nil
}

func callsOf(reply *protocol.Reply) (calls []furl.Block) {
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			if m.Blocks[i].Kind == furl.KindCall {
				calls = append(calls, m.Blocks[i])
			}
		}
	}
	return calls
}

// Body returns the request that Send would send now.
func (c *Client) Body() []byte {
	fields := map[string]any{"model": c.Model, "stream": c.Stream}
	list := "messages"
	tools := c.Tools
	if tools == nil {
		tools = json.RawMessage(commandTool[c.Format])
	}
	if !bytes.Equal(tools, []byte("[]")) {
		fields["tools"] = tools
	}
	history := c.History
	switch c.Format {
	case furl.FormatChat:
		if c.Stream {
			fields["stream_options"] = map[string]bool{"include_usage": true}
		}
		if c.System != "" {
			history = slices.Insert(slices.Clone(history), 0, json.RawMessage(object(map[string]string{"role": "system", "content": c.System})))
		}
	case furl.FormatResponses:
		list = "input"
		fields["store"], fields["include"] = false, []string{"reasoning.encrypted_content"}
		if c.System != "" {
			fields["instructions"] = c.System
		}
	default:
		fields["max_tokens"], fields["cache_control"] = 32_000, map[string]string{"type": "ephemeral"}
		if c.System != "" {
			fields["system"] = c.System
		}
	}
	maps.Copy(fields, c.Fields)
	// The list is the last field, and keeps its bytes.
	head := object(fields)
	out := fmt.Appendf(head[:len(head)-1], `,%q:[`, list)
	for i, raw := range history {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, "]}"...)
}

const commandSchema = `{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`

// commandTool is the default tool of a client.
var commandTool = map[furl.Format]string{
	furl.FormatAnthropic: `[{"name":"bash","description":"Runs a command.","input_schema":` + commandSchema + `}]`,
	furl.FormatChat:      `[{"type":"function","function":{"name":"bash","description":"Runs a command.","parameters":` + commandSchema + `}}]`,
	furl.FormatResponses: `[{"type":"function","name":"bash","description":"Runs a command.","parameters":` + commandSchema + `}]`,
}

// maxAnswer bounds the size of an answer, in bytes.
const maxAnswer = 256 << 20

func (c *Client) exchange(ctx context.Context) (*protocol.Reply, error) {
	codec, path := c.codec()
	c.Requests++
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.URL, "/")+path, bytes.NewReader(c.Body()))
	if err != nil {
		return nil, fmt.Errorf("send request %d: %w", c.Requests, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.Format == furl.FormatAnthropic {
		req.Header.Set("anthropic-version", "2023-06-01")
	}
	if c.Header == nil {
		req.Header.Set("Authorization", "Bearer sim-client")
	}
	maps.Copy(req.Header, c.Header)
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("send request %d: %w", c.Requests, err)
	}
	defer func() { _ = resp.Body.Close() }() // read only
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read answer to request %d: %w", c.Requests, err)
	}
	reply, err := understand(codec, resp, body)
	switch {
	case err != nil:
		return reply, fmt.Errorf("answer to request %d: %w", c.Requests, err)
	case reply.Refusal != nil:
		return reply, fmt.Errorf("request %d: %w", c.Requests, reply.Refusal)
	case !reply.Complete:
		return reply, fmt.Errorf("answer to request %d: %w", c.Requests, io.ErrUnexpectedEOF)
	}
	return reply, nil
}

func understand(codec wire.API, resp *http.Response, body []byte) (*protocol.Reply, error) {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return codec.DecodeReply(resp.StatusCode, body)
	}
	a, events := codec.NewAssembler(), new(sse.Scanner)
	for e, err := range events.Feed(body) {
		if err == nil {
			err = a.Feed(e.Type, e.Data)
		}
		if err != nil {
			return nil, err
		}
	}
	return a.Reply()
}
