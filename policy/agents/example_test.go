package agents_test

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/policy/agents"
)

// The policies that do what other agents do, and the sizes at which they act in a
// window of 200,000 tokens, if they go by a size.
func ExampleAdd() {
	set := agents.Add(policy.NewSet())
	for _, name := range set.Unlisted() {
		p, err := set.Policy(name, policy.Settings{})
		if err != nil {
			fmt.Println(err)
			return
		}
		acts, _ := policy.Sizes(p, &furl.Budget{Window: 200_000})
		fmt.Println(name, acts)
	}
	// Output:
	// clear-tool-uses 100001
	// clear-thinking 0
	// claude-code 167000
	// codex 180000
	// pi 183617
	// cline 160000
	// opencode-prune 0
	// gemini-masking 0
	// openhands-summary 0
	// openhands-masking 0
	// openhands-recent 0
	// openhands-amortized 0
	// openhands-window 0
}

// acts prints the size at which a policy acts in a window of 200,000 tokens.
func acts(name string, options policy.Preset) {
	p, err := agents.Add(policy.NewSet(), options).Policy(name, policy.Settings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	size, _ := policy.Sizes(p, &furl.Budget{Window: 200_000})
	fmt.Println(name, size)
}

func ExampleClearToolUses() {
	keep := 5
	acts("clear-tool-uses", agents.ClearToolUses{Trigger: 30_000, Keep: &keep, ClearAtLeast: 5000, ExcludeTools: []string{"web_search"}})
	// Output: clear-tool-uses 30001
}

func ExampleClaudeCode() {
	acts("claude-code", agents.ClaudeCode{ReserveTokens: 45_000}) // as in January 2026
	// Output: claude-code 155000
}

func ExampleCodex() {
	acts("codex", agents.Codex{Limit: 150_000}) // model_auto_compact_token_limit
	// Output: codex 150000
}

func ExamplePi() {
	acts("pi", agents.Pi{ReserveTokens: 32_000, KeepRecentTokens: 10_000})
	// Output: pi 168001
}

func ExampleCline() {
	acts("cline", agents.Cline{MaxAllowed: 120_000})
	// Output: cline 120000
}

// Options of presets may also come from a configuration, by their names in JSON.
func ExampleAdd_configure() {
	set := agents.Add(policy.NewSet())
	fmt.Println(set.Configure("gemini-masking", []byte(`{"protect": 40000, "minimum": 20000}`)))
	fmt.Println(set.Configure("openhands-summary", []byte(`{"max_size": 240, "keep_first": 2}`)))
	fmt.Println(set.Configure("openhands-recent", []byte(`{"keep_last": 10}`)))
	// Output:
	// <nil>
	// <nil>
	// unknown key "keep_last" for policy "openhands-recent": expected one of exclude_tools, keep_first, keep_tools, max_size, repair_edits
}
