package conversation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/sim"
)

// simulatedModel is the model that furl's simulated provider plays.
const simulatedModel = "claude-sonnet-4-5"

// simPace is the time between two events of the simulated model's stream.
const simPace = 5 * time.Millisecond

// simulatedChat starts a simulated provider, which knows the working folder, and returns the model to reach it.
func (o *Options) simulatedChat(dir string, seed uint64) (m agent.Model, stop func(), err error) {
	var player sim.Player = sim.NewAgent(&sim.AgentOptions{
		Steps: 3, Only: []string{"list_files", "read_file", "search_files"},
		Arguments: func(tool string, _ int) []byte { return simArguments(dir, tool) },
	})
	pace := simPace
	if o.Script != "" {
		data, err := os.ReadFile(o.Script)
		if err != nil {
			return m, nil, fmt.Errorf("script: %w", err)
		}
		if player, err = sim.ParseScript(o.Script, data); err != nil {
			return m, nil, err
		}
		pace = 0
	}
	url, stop, err := launch.ListenLocal(sim.New(&sim.Options{Player: player, NoAuth: true, Pace: pace, Seed: seed}))
	if err != nil {
		return m, nil, err
	}
	return agent.Model{Format: furl.FormatAnthropic, ID: cmp.Or(o.Model, simulatedModel), BaseURL: url, Key: "simulated"}, stop, nil
}

// simArguments returns the arguments of the simulated model's calls in a working folder.
func simArguments(dir, tool string) []byte {
	switch tool {
	case "list_files":
		return []byte(`{"path":"."}`)
	case "search_files":
		return []byte(`{"pattern":"func"}`)
	case "read_file":
		names, err := os.ReadDir(dir)
		if err != nil {
			return nil
		}
		for _, n := range names {
			if n.Type().IsRegular() {
				args, err := json.Marshal(map[string]string{"path": n.Name()})
				if err != nil {
					return nil
				}
				return args
			}
		}
	}
	return nil
}
