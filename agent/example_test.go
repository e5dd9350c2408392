package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/tool"
)

// An agent in a program: a session, a model, tools, and a loop over the events.
func Example() {
	ctx := context.Background()
	provider := httptest.NewServer(sim.New(&sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 30})}))
	defer provider.Close()

	sessions, err := session.New(inmem.New(), &session.Options{Policy: "rolling-mask-5"})
	if err != nil {
		fmt.Println(err)
		return
	}
	read := tool.Tool{
		Name: "read_file", Description: "Reads a file.",
		Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		Run: func(context.Context, json.RawMessage) (tool.Result, error) {
			return tool.Text(strings.Repeat("a line of a file\n", 100)), nil
		},
	}
	s := sessions.Create(storage.Meta{Title: "Read the files"})
	model := agent.Model{Format: furl.FormatAnthropic, ID: "claude-sonnet-4-5", BaseURL: provider.URL, Key: "test"}
	a, err := agent.New(s, model, &agent.Options{System: "You read files.", Tools: []tool.Tool{read}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range a.Run(ctx, agent.Text("Read the files.")) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if done, ok := e.(agent.Done); ok {
			fmt.Println("the model stopped:", done.Stop)
		}
	}
	c := s.Context("claude-sonnet-4-5")
	fmt.Printf("%d messages, results hidden: %t\n", c.Messages, len(s.Reductions()) > 0)
	// Output:
	// the model stopped: end_turn
	// 62 messages, results hidden: true
}
