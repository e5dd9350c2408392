package sim_test

import (
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/wire/openai"
)

// An agent has a tool for commands, and tools that read and stop what it has started. The
// model runs commands, as long as there is a tool that takes one.
func TestAgentRunsCommands(t *testing.T) {
	const (
		command = `{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`
		shell   = `{"type":"object","properties":{"shellId":{"type":"string"}},"required":["shellId"]}`
	)
	tool := func(name, schema string) string {
		return `{"type":"function","function":{"name":"` + name + `","parameters":` + schema + `}}`
	}
	for _, tt := range []struct{ name, tools, want string }{
		{"after those that read and stop", tool("read_bash", shell) + "," + tool("stop_bash", shell) + "," + tool("bash", command), "bash"},
		{"with another name for the command", tool("read_shell", shell) + "," + tool("shell", `{"type":"object","properties":{"cmd":{"type":"array"}}}`), "shell"},
		{"without a tool that takes one", tool("view", shell) + "," + tool("run_tests", `{"type":"object"}`), "run_tests"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := openai.Chat.DecodeRequest([]byte(`{"model":"gpt-5","tools":[` + tt.tools + `],"messages":[{"role":"user","content":"Work."}]}`))
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(8) {
				reply, err := sim.NewAgent(&sim.AgentOptions{Seed: seed}).Play(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				calls := 0
				for _, b := range reply.Blocks {
					if b.Kind == furl.KindCall {
						calls++
						if b.Name != tt.want {
							t.Errorf("seed %d: called %s, want %s", seed, b.Name, tt.want)
						}
					}
				}
				if calls == 0 {
					t.Errorf("seed %d: no call in %v", seed, reply.Blocks)
				}
			}
		})
	}
}
