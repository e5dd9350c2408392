package sim_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/furlhq/furl/sim"
)

// An agent under test talks to the sim as to its provider. What it did wrong
// is in the journal, and what it would have cost on the bill.
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
