package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// get sends a request without a body.
func get(t *testing.T, method, url string, headers ...string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer test-key")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

// A conversation may continue from the previous response instead of being
// sent whole, and is billed the same.
func TestPreviousResponse(t *testing.T) {
	s, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 4, Thinking: 20})})
	const tools = `"tools":[{"type":"function","name":"read_file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]`
	body := `{"model":"gpt-5.2","input":"Look around.",` + tools + `}`
	for step := range 5 {
		a := post(t, srv, "/v1/responses", body)
		var r struct {
			ID, Status string
			Output     []struct {
				ID, Type string
				CallID   string `json:"call_id"`
			}
		}
		mustJSON(t, a.body, &r)
		if a.status != 200 {
			t.Fatalf("step %d: %s", step, a.body)
		}
		if status, again := get(t, http.MethodGet, srv.URL+"/v1/responses/"+r.ID); status != 200 || string(again) != string(a.body) {
			t.Errorf("step %d: the stored response differs: %d %s", step, status, again)
		}
		last := r.Output[len(r.Output)-1]
		if step == 4 {
			if last.Type != "message" {
				t.Errorf("ends with %s", a.body)
			}
			missing := strings.Replace(body, r.ID, "x", 1)
			if status, _ := get(t, http.MethodDelete, srv.URL+"/v1/responses/"+r.ID); status != 200 {
				t.Errorf("delete: status %d", status)
			}
			gone := post(t, srv, "/v1/responses", `{"model":"gpt-5.2","input":"hi","previous_response_id":"`+r.ID+`"}`)
			if gone.status != 400 || missing == "" {
				t.Errorf("after deletion: %d %s", gone.status, gone.body)
			}
			continue
		}
		body = `{"model":"gpt-5.2",` + tools + `,"previous_response_id":"` + r.ID + `","input":[{"type":"function_call_output","call_id":"` + last.CallID + `","output":"nothing"}]}`
		if step == 2 { // the same by references to items
			list := []string{`{"role":"user","content":"Look around."}`}
			for _, it := range r.Output {
				list = append(list, `{"type":"item_reference","id":"`+it.ID+`"}`)
			}
			list = append(list, `{"type":"function_call_output","call_id":"`+last.CallID+`","output":"nothing"}`)
			a := post(t, srv, "/v1/responses/input_tokens", `{"model":"gpt-5.2","input":[`+strings.Join(list, ",")+`]}`)
			if a.status != 200 {
				t.Errorf("references: %d %s", a.status, a.body)
			}
			a = post(t, srv, "/v1/responses/input_tokens", `{"model":"gpt-5.2","input":[{"type":"item_reference","id":"`+last.ID+`"},`+list[len(list)-1]+`]}`)
			if a.status != 400 || !strings.Contains(string(a.body), "was provided without its required 'reasoning' item") {
				t.Errorf("a call without its reasoning: %d %s", a.status, a.body)
			}
		}
	}
	if e := s.Requests()[len(s.Requests())-1]; e.Verdict != sim.VerdictRefused {
		t.Errorf("%+v", e)
	}
}

func TestForeignReasoning(t *testing.T) {
	_, srv := serve(t, nil)
	a := post(t, srv, "/v1/responses", `{"model":"gpt-5.2","input":[{"role":"user","content":"hi"},`+
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abc"},{"type":"message","role":"assistant","content":"hm"},{"role":"user","content":"go on"}]}`)
	if a.status != 400 || !strings.Contains(string(a.body), `"code":"invalid_encrypted_content"`) {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}

func TestModels(t *testing.T) {
	s, srv := serve(t, &sim.Options{Window: 1234})
	status, body := get(t, http.MethodGet, srv.URL+"/v1/models")
	var list struct{ Data []struct{ ID, Type string } }
	if mustJSON(t, body, &list); status != 200 || len(list.Data) < 20 || !strings.Contains(string(body), `"object":"list"`) {
		t.Errorf("%d %.200s", status, body)
	}
	status, body = get(t, http.MethodGet, srv.URL+"/v1/models", "anthropic-version", "2023-06-01")
	if mustJSON(t, body, &list); status != 200 || list.Data[0].Type != "model" || !json.Valid(body) {
		t.Errorf("%d %.200s", status, body)
	}
	status, body = get(t, http.MethodGet, srv.URL+"/v1/models/claude-opus-5-5", "anthropic-version", "2023-06-01")
	if status != 200 || !strings.Contains(string(body), `"max_input_tokens":1234`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _ = get(t, http.MethodGet, srv.URL+"/v1/models/nothing"); status != 404 {
		t.Errorf("status %d", status)
	}
	if status, _ = get(t, http.MethodHead, srv.URL+"/api/hello", "Authorization", ""); status != 200 {
		t.Errorf("Claude Code's first request: status %d", status)
	}
	if status, _ = get(t, http.MethodGet, srv.URL+"/v1/messages"); status != 405 {
		t.Errorf("status %d", status)
	}
	if b := s.Bill(); b != (sim.Bill{}) || len(s.Requests()) != 6 {
		t.Errorf("requests that only read are on the bill: %+v", b)
	}
}

// Responses compacts on demand and at a threshold; everything before the item
// is not read, and the agent continues.
func TestResponsesCompaction(t *testing.T) {
	s, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 9, Thinking: 20})})
	d := responsesDialect{}
	_, list := loop(t, srv, d, "gpt-5.2", false, d.user("Look around. "+strings.Repeat("several words of text ", 500)))
	list = append(list, d.user("And now?"))

	a := post(t, srv, "/v1/responses/compact", `{"model":"gpt-5.2","input":`+listOf(list)+`}`)
	var r struct {
		Object string
		Output []json.RawMessage
		Usage  struct {
			Input int `json:"input_tokens"`
		}
	}
	mustJSON(t, a.body, &r)
	if a.status != 200 || r.Object != "response.compaction" || len(r.Output) != 3 || r.Usage.Input < 2000 {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	next := post(t, srv, d.path(), d.body("gpt-5.2", r.Output, false))
	if next.status != 200 || !strings.Contains(string(next.body), `"call_id":"call_sim_`) || !strings.Contains(string(next.body), "Step 10.") {
		t.Errorf("going on: %d %s", next.status, next.body)
	}
	forged := strings.Replace(listOf(r.Output), `"encrypted_content":"`, `"encrypted_content":"x`, 1)
	if a := post(t, srv, d.path(), `{"model":"gpt-5.2","input":`+forged+`}`); a.status != 400 {
		t.Errorf("forged: %d %s", a.status, a.body)
	}

	d.extra = `,"context_management":[{"type":"compaction","compact_threshold":1500}]`
	a = post(t, srv, d.path(), d.body("gpt-5.2", list, true))
	back, calls, _ := d.read(t, a.body, true)
	if a.status != 200 || len(calls) != 1 || !strings.Contains(string(back[0]), `"type":"compaction"`) {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	before := s.Bill().Usage.Prompt()
	list = append(append(list, back...), d.result(calls[0], "nothing"))
	a = post(t, srv, d.path(), d.body("gpt-5.2", list, false))
	if again, _, _ := d.read(t, a.body, false); a.status != 200 || strings.Contains(string(again[0]), `"type":"compaction"`) {
		t.Errorf("compacted again: %d %s", a.status, a.body)
	}
	if n := s.Bill().Usage.Prompt() - before; n > 1000 {
		t.Errorf("%d tokens after the summary", n)
	}
	for extra, want := range map[string]string{
		`,"context_management":[{"type":"compaction","compact_threshold":1}]`: "integer below minimum value",
		`,"context_management":[{"type":"forget"}]`:                           "Supported values are: 'compaction'",
		`,"context_management":{}`:                                            "expected an array",
	} {
		if a := post(t, srv, d.path(), responsesDialect{extra: extra}.body("gpt-5.2", toList(d.user("hi")), false)); a.status != 400 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %s", extra, a.status, a.body)
		}
	}
}

// A request that ends in a compaction_trigger is answered with one item, the compaction,
// streamed or not. It replaces what came before, also where the next request continues
// from the stored response.
func TestCompactionTrigger(t *testing.T) {
	s, srv := serve(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 9, Thinking: 20})})
	d := responsesDialect{}
	_, list := loop(t, srv, d, "gpt-5.5", false, d.user("Look around. "+strings.Repeat("several words of text ", 500)))
	list = append(list, d.user("And now?"))
	trigger := json.RawMessage(`{"type":"compaction_trigger"}`)
	var whole struct {
		ID, Status string
		Output     []json.RawMessage
		Usage      struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		}
	}
	for _, stream := range []bool{false, true} {
		a := post(t, srv, d.path(), fmt.Sprintf(`{"model":"gpt-5.5","stream":%t,"include":["reasoning.encrypted_content"],"input":%s}`, stream, listOf(append(slices.Clone(list), trigger))))
		if a.status != 200 {
			t.Fatalf("status %d: %s", a.status, a.body)
		}
		if back, calls, _ := d.read(t, a.body, stream); len(back) != 1 || len(calls) != 0 || !strings.Contains(string(back[0]), `"type":"compaction"`) {
			t.Fatalf("stream %t: output %s", stream, a.body)
		}
		if !stream {
			mustJSON(t, a.body, &whole)
		}
	}
	if whole.Status != "completed" || whole.Usage.Input < 2000 || whole.Usage.Output == 0 {
		t.Errorf("%+v", whole)
	}
	before := s.Bill().Usage.Prompt()
	for name, body := range map[string]string{
		"item":     d.body("gpt-5.5", append(slices.Clone(whole.Output), d.user("Go on.")), false),
		"response": `{"model":"gpt-5.5","previous_response_id":"` + whole.ID + `","input":"Go on."}`,
	} {
		if a := post(t, srv, d.path(), body); a.status != 200 || !strings.Contains(string(a.body), `"status":"completed"`) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if n := s.Bill().Usage.Prompt() - before; n > 1000 {
		t.Errorf("%d tokens in two requests after the compaction", n)
	}
	early := d.body("gpt-5.5", []json.RawMessage{d.user("Hi."), trigger, d.user("Hi.")}, false)
	if a := post(t, srv, d.path(), early); a.status != 400 || !strings.Contains(string(a.body), "compaction_trigger") {
		t.Errorf("trigger before the end: %d %s", a.status, a.body)
	}
}

// A call of a tool in a namespace names the namespace, as Codex requires it.
func TestNamespacedTool(t *testing.T) {
	_, srv := serve(t, &sim.Options{Player: sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
		return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindCall, Name: "look"}, {Kind: furl.KindCall, Name: "listen"}}}, nil
	})})
	const look, listen = `{"type":"function","name":"look","parameters":{"type":"object"}}`, `{"type":"function","name":"listen","parameters":{"type":"object"}}`
	a := post(t, srv, "/v1/responses", `{"model":"gpt-5.2","input":"Look.","tools":[`+look+`,{"type":"namespace","name":"mcp__eyes","description":"Eyes.","tools":[`+look+`,`+listen+`]}]}`)
	var r struct {
		Output []struct{ Name, Namespace string }
	}
	mustJSON(t, a.body, &r)
	if len(r.Output) != 2 || r.Output[0].Namespace != "" || r.Output[1].Namespace != "mcp__eyes" {
		t.Errorf("calls: %s", a.body)
	}
}

// Codex with its default model defines its tools in the input. The only one that the agent
// calls takes a script.
func TestToolsInTheInput(t *testing.T) {
	_, srv := serve(t, nil)
	a := post(t, srv, "/v1/responses", `{"model":"gpt-6.2-sol","store":false,"input":[{"type":"additional_tools","role":"developer","tools":[`+
		`{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec","description":"Runs scripts, such as await tools.exec_command(…).","format":{"type":"text"}},`+
		`{"type":"custom","name":"note","description":"Notes a text.","format":{"type":"text"}}]}]},{"role":"user","content":"Look around."}]}`)
	var r struct {
		Output []struct{ Type, Name, Input string }
	}
	mustJSON(t, a.body, &r)
	last := r.Output[len(r.Output)-1]
	if a.status != 200 || last.Type != "custom_tool_call" || last.Name != "exec" || !strings.Contains(last.Input, `tools.exec_command({cmd: "seq 1 `) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Codex compresses its requests with zstd if its user signed in with ChatGPT.
func TestCompressedRequest(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, srv := serve(t, nil)
	body := z.EncodeAll([]byte(`{"model":"gpt-5","input":"hello"}`), nil)
	for packed, want := range map[string]int{string(body): 200, string(body[:len(body)-4]): 400, "hello": 400} {
		got := post(t, srv, "/v1/responses", packed, "Content-Encoding", "zstd")
		if got.status != want {
			t.Errorf("%d bytes: status %d, want %d: %s", len(packed), got.status, want, got.body)
		}
	}
}
