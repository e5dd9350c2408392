package sim_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/demo"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// An agent under test uses the sim as its provider. The journal shows its
// errors, the bill what it would have cost.
func Example() {
	s := sim.New(&sim.Options{Window: 32_000})
	srv := httptest.NewServer(s)
	defer srv.Close()

	body := `{"model":"claude-sonnet-4-5","max_tokens":1000,"messages":[
		{"role":"user","content":"What is in a.txt?"},
		{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a.txt"}}]},
		{"role":"user","content":"Well?"}]}`
	req, _ := http.NewRequest("POST", srv.URL+"/v1/messages", strings.NewReader(body))
	req.Header.Set("x-api-key", "any")
	req.Header.Set("anthropic-version", "2023-06-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		fmt.Println(err)
	}

	for _, r := range s.Requests() {
		fmt.Println(r.Status, r.Verdict)
		fmt.Println(r.Error)
	}
	fmt.Printf("%d refused, $%.2f\n", s.Bill().Refused, s.Bill().Cost)
	// Output:
	// 400 refused
	// messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.
	// 1 refused, $0.00
}

// ask sends a request with one user message and returns the answer.
func ask(url, words string) string {
	body := `{"model":"gpt-5.2","messages":[{"role":"user","content":"` + words + `"}]}`
	req, _ := http.NewRequest("POST", url+"/v1/chat/completions", strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer any")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	if _, text, ok := strings.Cut(string(answer), `"content":"`); ok {
		text, _, _ = strings.Cut(text, `","refusal"`)
		return text
	}
	return fmt.Sprintf("%d with retry-after %s", resp.StatusCode, resp.Header.Get("retry-after"))
}

// A script defines the answers and the errors.
func ExampleParseScript() {
	script, err := sim.ParseScript("greeting", []byte(`
The server is overloaded once.
-- busy --
fault: 429 retry-after=3
-- hello --
text: Hello yourself.
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := httptest.NewServer(sim.New(&sim.Options{Player: script}))
	defer srv.Close()
	fmt.Println(ask(srv.URL, "Hello?"))
	fmt.Println(ask(srv.URL, "Hello?"))
	// Output:
	// 429 with retry-after 3
	// Hello yourself.
}

// A recorded session answers as its model did, in any format.
func ExampleNewPlayback() {
	session := demo.Recording().Sessions[0] // or of transcript.Read
	p := sim.NewPlayback(session)
	p.Otherwise = sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
		return sim.Text("This was never asked."), nil
	})
	srv := httptest.NewServer(sim.New(&sim.Options{Player: p}))
	defer srv.Close()
	fmt.Println(ask(srv.URL, "Give this session a title."))
	// Output:
	// This was never asked.
}

// A client works against a sim, or against a gateway in front of one, as an
// agent would.
func ExampleClient() {
	s := sim.New(&sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 3})})
	srv := httptest.NewServer(s)
	defer srv.Close()
	c := sim.Client{URL: srv.URL, Format: furl.FormatResponses, Model: "gpt-5.2", Stream: true}
	if err := c.Say("Look around."); err != nil {
		fmt.Println(err)
		return
	}
	_, err := c.Work(context.Background(), func(call furl.Block) string { return "nothing in " + call.Name })
	fmt.Println(c.Requests, "requests,", s.Bill().Refused, "refused,", err)
	// Output:
	// 4 requests, 0 refused, <nil>
}
