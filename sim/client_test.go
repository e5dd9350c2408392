package sim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/sim"
)

var start = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)

// clock is a time that a test advances.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// serve starts a sim for a test.
func serve(t *testing.T, o *sim.Options) (*sim.Sim, *httptest.Server) {
	t.Helper()
	s := sim.New(o)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, srv
}

// answered is the response to a request.
type answered struct {
	status int
	header http.Header
	body   []byte
	err    error // while reading the body
}

// post sends a body with the headers that every provider requires, and
// further headers as name, value. Without a path, it is the first line of the body.
func post(t *testing.T, srv *httptest.Server, path, body string, headers ...string) answered {
	t.Helper()
	if path == "" {
		path, body, _ = strings.Cut(body, "\n")
	}
	req, err := http.NewRequest(http.MethodPost, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer test-key")
	req.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(path, "/v1/messages") {
		req.Header.Set("anthropic-version", "2023-06-01")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return answered{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answered{resp.StatusCode, resp.Header, b, err}
}

// events splits a stream into names and data.
func events(t *testing.T, stream []byte) (names []string, data []json.RawMessage) {
	t.Helper()
	for block := range bytes.SplitSeq(bytes.TrimSuffix(stream, []byte("\n\n")), []byte("\n\n")) {
		name, payload := "", []byte(nil)
		for line := range bytes.SplitSeq(block, []byte("\n")) {
			if v, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
				name = string(v)
			}
			if v, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				payload = v
			}
		}
		if payload == nil {
			continue // a comment
		}
		names, data = append(names, name), append(data, json.RawMessage(payload))
	}
	return names, data
}

// dialect is how a client of one format writes requests and reads answers.
type dialect interface {
	// path is that of requests, "" if it is the first line of the body.
	path() string
	user(text string) json.RawMessage
	result(id, text string) json.RawMessage
	// body is a request for a list.
	body(model string, list []json.RawMessage, stream bool) string
	// read returns the messages to be sent back, the calls and the text of an
	// answer.
	read(t *testing.T, body []byte, stream bool) (back []json.RawMessage, calls []string, text string)
}

// loop runs an agent's client: it answers calls with results until there are
// none, and returns the final text and the history.
func loop(t *testing.T, srv *httptest.Server, d dialect, model string, stream bool, list ...json.RawMessage) (text string, history []json.RawMessage) {
	t.Helper()
	for n := range 200 {
		a := post(t, srv, d.path(), d.body(model, list, stream))
		if a.status != http.StatusOK || a.err != nil {
			t.Fatalf("request %d: status %d, %v: %s", n, a.status, a.err, a.body)
		}
		back, calls, text := d.read(t, a.body, stream)
		list = append(list, back...)
		if len(calls) == 0 {
			return text, list
		}
		var results []json.RawMessage
		for i, id := range calls {
			results = append(results, d.result(id, fmt.Sprintf("result %d of request %d: src/file-%d.go:%d says “grüße”\n%s", i, n, n, i, strings.Repeat("line of output\n", n))))
		}
		list = append(list, joined(d, results)...)
	}
	t.Fatal("no end after 200 requests")
	return "", nil
}

// joined returns the messages with results.
func joined(d dialect, results []json.RawMessage) []json.RawMessage {
	switch d.(type) {
	case anthropicDialect:
		return toList(joinResults(results))
	case geminiDialect:
		var parts []json.RawMessage
		for _, r := range results {
			parts = append(parts, bytes.TrimSuffix(bytes.TrimPrefix(r, []byte(`{"role":"user","parts":[`)), []byte("]}")))
		}
		return toList(json.RawMessage(`{"role":"user","parts":` + listOf(parts) + `}`))
	}
	return results
}

func joinResults(results []json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"role":"user","content":[` + string(bytes.Join(toBytes(results), []byte(","))) + `]}`)
}

func toBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func listOf(list []json.RawMessage) string {
	return "[" + string(bytes.Join(toBytes(list), []byte(","))) + "]"
}

type anthropicDialect struct {
	extra string // further fields
}

func (anthropicDialect) path() string { return "/v1/messages" }
func (anthropicDialect) user(text string) json.RawMessage {
	return json.RawMessage(`{"role":"user","content":` + quote(text) + `}`)
}
func (anthropicDialect) result(id, text string) json.RawMessage {
	return json.RawMessage(`{"type":"tool_result","tool_use_id":` + quote(id) + `,"content":` + quote(text) + `}`)
}

const readTool = `{"name":"read_file","description":"Reads","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`

func (d anthropicDialect) body(model string, list []json.RawMessage, stream bool) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":64000,"stream":%t,"system":"You are a test.","tools":[%s],"cache_control":{"type":"ephemeral"},"messages":%s%s}`,
		model, stream, readTool, listOf(list), d.extra)
}

func (anthropicDialect) read(t *testing.T, body []byte, stream bool) (back []json.RawMessage, calls []string, text string) {
	t.Helper()
	if stream {
		body = gatherMessage(t, body)
	}
	var m struct {
		Content []struct {
			Type, ID, Text string
		}
		Raw json.RawMessage `json:"-"`
	}
	var raw struct{ Content json.RawMessage }
	mustJSON(t, body, &m)
	mustJSON(t, body, &raw)
	for _, b := range m.Content {
		switch b.Type {
		case "tool_use":
			calls = append(calls, b.ID)
		case "text":
			text += b.Text
		}
	}
	return []json.RawMessage{json.RawMessage(`{"role":"assistant","content":` + string(raw.Content) + `}`)}, calls, text
}

func mustJSON(t *testing.T, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
}

// gatherMessage assembles the message of a stream, and checks the order of
// events.
func gatherMessage(t *testing.T, stream []byte) []byte {
	t.Helper()
	names, data := events(t, bytes.ReplaceAll(stream, []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n"), nil))
	var blocks []map[string]any
	open := -1
	var start, end struct {
		Message map[string]any
		Delta   map[string]any
		Usage   map[string]any
	}
	for i, name := range names {
		var e struct {
			Type    string
			Index   int
			Block   map[string]any `json:"content_block"`
			Delta   map[string]any
			Message map[string]any
		}
		mustJSON(t, data[i], &e)
		if e.Type != name {
			t.Fatalf("event %s has type %s", name, e.Type)
		}
		switch name {
		case "message_start":
			if i != 0 {
				t.Fatal("message_start is not the first event")
			}
			mustJSON(t, data[i], &start)
		case "content_block_start":
			if open >= 0 || e.Index != len(blocks) {
				t.Fatalf("block %d starts while %d is open and %d are there", e.Index, open, len(blocks))
			}
			open = e.Index
			blocks = append(blocks, e.Block)
		case "content_block_delta":
			if e.Index != open {
				t.Fatalf("a delta for block %d while %d is open", e.Index, open)
			}
			b := blocks[open]
			switch e.Delta["type"] {
			case "text_delta":
				b["text"] = b["text"].(string) + e.Delta["text"].(string)
			case "thinking_delta":
				b["thinking"] = b["thinking"].(string) + e.Delta["thinking"].(string)
			case "signature_delta":
				b["signature"] = b["signature"].(string) + e.Delta["signature"].(string)
			case "input_json_delta":
				s, _ := b["partial"].(string)
				b["partial"] = s + e.Delta["partial_json"].(string)
			case "compaction_delta":
				b["content"] = e.Delta["content"]
				if v, ok := e.Delta["encrypted_content"]; ok {
					b["encrypted_content"] = v
				}
			default:
				t.Fatalf("delta %v", e.Delta)
			}
		case "content_block_stop":
			if e.Index != open {
				t.Fatalf("block %d stops while %d is open", e.Index, open)
			}
			if s, ok := blocks[open]["partial"]; ok {
				blocks[open]["input"] = json.RawMessage(s.(string))
				delete(blocks[open], "partial")
			}
			open = -1
		case "message_delta":
			if i != len(names)-2 || open >= 0 {
				t.Fatal("message_delta is not the last but one")
			}
			mustJSON(t, data[i], &end)
		case "message_stop", "ping":
		default:
			t.Fatalf("event %s", name)
		}
	}
	if names[len(names)-1] != "message_stop" {
		t.Fatalf("the stream ends with %s", names[len(names)-1])
	}
	m := start.Message
	m["content"] = blocks
	m["stop_reason"] = end.Delta["stop_reason"]
	maps.Copy(m["usage"].(map[string]any), end.Usage)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type chatDialect struct{ extra string }

func (chatDialect) path() string { return "/v1/chat/completions" }
func (chatDialect) user(text string) json.RawMessage {
	return json.RawMessage(`{"role":"user","content":` + quote(text) + `}`)
}
func (chatDialect) result(id, text string) json.RawMessage {
	return json.RawMessage(`{"role":"tool","tool_call_id":` + quote(id) + `,"content":` + quote(text) + `}`)
}
func (d chatDialect) body(model string, list []json.RawMessage, stream bool) string {
	options := ""
	if stream {
		options = `,"stream_options":{"include_usage":true}`
	}
	return fmt.Sprintf(`{"model":%q,"stream":%t%s,"tools":[{"type":"function","function":{"name":"read_file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],"messages":%s%s}`,
		model, stream, options, listOf(list), d.extra)
}

func (chatDialect) read(t *testing.T, body []byte, stream bool) (back []json.RawMessage, calls []string, text string) {
	t.Helper()
	type call struct {
		ID, Type string
		Index    int
		Function struct{ Name, Arguments string }
	}
	type message struct {
		Role      string
		Content   *string
		ToolCalls []call `json:"tool_calls"`
	}
	var m message
	if stream {
		_, data := events(t, body)
		if string(data[len(data)-1]) != "[DONE]" {
			t.Fatalf("the stream ends with %s", data[len(data)-1])
		}
		usage := 0
		for i, d := range data[:len(data)-1] {
			var chunk struct {
				Object  string
				Choices []struct {
					Delta  message
					Finish *string `json:"finish_reason"`
				}
				Usage *struct {
					Total int `json:"total_tokens"`
				}
			}
			mustJSON(t, d, &chunk)
			if chunk.Object != "chat.completion.chunk" {
				t.Fatalf("chunk %s", d)
			}
			if last := i == len(data)-2; last != (len(chunk.Choices) == 0) || last != (chunk.Usage != nil) {
				t.Fatalf("chunk %d of %d: %s", i, len(data)-1, d)
			}
			if chunk.Usage != nil {
				usage = chunk.Usage.Total
			}
			for _, ch := range chunk.Choices {
				if (i == 0) != (ch.Delta.Role == "assistant") || (i == len(data)-3) != (ch.Finish != nil) {
					t.Fatalf("chunk %d of %d: %s", i, len(data)-1, d)
				}
				if ch.Delta.Content != nil {
					if m.Content == nil {
						m.Content = new(string)
					}
					*m.Content += *ch.Delta.Content
				}
				for _, c := range ch.Delta.ToolCalls {
					if c.Index == len(m.ToolCalls) {
						m.ToolCalls = append(m.ToolCalls, c)
					} else {
						m.ToolCalls[c.Index].Function.Arguments += c.Function.Arguments
						if c.ID != "" {
							t.Fatalf("a later fragment has an id: %s", d)
						}
					}
				}
			}
		}
		if usage == 0 {
			t.Fatal("no usage")
		}
	} else {
		var whole struct {
			Choices []struct{ Message message }
		}
		mustJSON(t, body, &whole)
		m = whole.Choices[0].Message
	}
	if m.Content != nil {
		text = *m.Content
	}
	out := map[string]any{"role": "assistant", "content": m.Content}
	var list []any
	for _, c := range m.ToolCalls {
		calls = append(calls, c.ID)
		list = append(list, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Function.Name, "arguments": c.Function.Arguments}})
	}
	if list != nil {
		out["tool_calls"] = list
	}
	b, _ := json.Marshal(out)
	return []json.RawMessage{b}, calls, text
}

type responsesDialect struct{ extra string }

func (responsesDialect) path() string { return "/v1/responses" }
func (responsesDialect) user(text string) json.RawMessage {
	return json.RawMessage(`{"role":"user","content":` + quote(text) + `}`)
}
func (responsesDialect) result(id, text string) json.RawMessage {
	return json.RawMessage(`{"type":"function_call_output","call_id":` + quote(id) + `,"output":` + quote(text) + `}`)
}
func (d responsesDialect) body(model string, list []json.RawMessage, stream bool) string {
	return fmt.Sprintf(`{"model":%q,"stream":%t,"store":false,"include":["reasoning.encrypted_content"],"tools":[{"type":"function","name":"read_file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}],"input":%s%s}`,
		model, stream, listOf(list), d.extra)
}

func (responsesDialect) read(t *testing.T, body []byte, stream bool) (back []json.RawMessage, calls []string, text string) {
	t.Helper()
	if stream {
		names, data := events(t, body)
		var e struct {
			Response json.RawMessage
		}
		deltas := map[string]string{}
		for i := range names {
			var ev struct {
				Type      string
				N         int    `json:"sequence_number"`
				Item      string `json:"item_id"`
				Delta     string
				Text      string
				Arguments *string
			}
			mustJSON(t, data[i], &ev)
			if ev.N != i || ev.Type != names[i] {
				t.Fatalf("event %d is %s", i, data[i])
			}
			switch {
			case strings.HasSuffix(ev.Type, ".delta"):
				deltas[ev.Item] += ev.Delta
			case ev.Type == "response.output_text.done" && deltas[ev.Item] != ev.Text,
				ev.Type == "response.function_call_arguments.done" && deltas[ev.Item] != *ev.Arguments:
				t.Fatalf("the deltas are %q, then %s", deltas[ev.Item], data[i])
			}
		}
		if names[0] != "response.created" || names[len(names)-1] != "response.completed" {
			t.Fatalf("events %v", names)
		}
		mustJSON(t, data[len(data)-1], &e)
		body = e.Response
	}
	var r struct {
		Status string
		Output []json.RawMessage
		Usage  struct {
			Total int `json:"total_tokens"`
		}
	}
	mustJSON(t, body, &r)
	if r.Status != "completed" || r.Usage.Total == 0 {
		t.Fatalf("response %s", body)
	}
	for _, raw := range r.Output {
		var it struct {
			Type    string
			CallID  string `json:"call_id"`
			Content []struct{ Text string }
		}
		mustJSON(t, raw, &it)
		switch it.Type {
		case "function_call", "custom_tool_call":
			calls = append(calls, it.CallID)
		case "message":
			text += it.Content[0].Text
		}
	}
	return r.Output, calls, text
}

func toList(m ...json.RawMessage) []json.RawMessage { return m }

func equal(a, b []int) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// loopHandler is loop on a handler without a server.
func loopHandler(t *testing.T, s *sim.Sim, d dialect, model string, stream bool) {
	t.Helper()
	srv := httptest.NewServer(s)
	defer srv.Close()
	loop(t, srv, d, model, stream, d.user("Look around."))
}

func serveHandler(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}
