//go:build clients_all

package clienttest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// more are coding agents of testdata/all. They are not in TestCoders, because the tests of
// a change would take too long.
var more = []coder{
	{
		name: "qwen", title: "Qwen Code", model: "gpt-5", window: 40_000,
		program: of("all", "@qwen-code/qwen-code/cli-entry.js"),
		setup: func(t testing.TB, st *fixture) {
			st.atHome(t, ".qwen/settings.json", `{"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}`)
		},
		env: func(st *fixture) []string {
			return []string{"OPENAI_BASE_URL=" + st.url + "/v1", "OPENAI_API_KEY=dummy", "OPENAI_MODEL=gpt-5"}
		},
		first: func(task string) []string { return []string{"-y", "-p", task} },
		again: func(task string) []string { return []string{"-y", "--continue", "-p", task} },
	},
	copilot("responses"), copilot("completions"),
	{
		name: "kilo", title: "Kilo Code", model: "gpt-5", window: 40_000,
		program: program("all", "@kilocode/cli-linux-x64-baseline/bin/kilo"),
		env: func(st *fixture) []string {
			return []string{
				fmt.Sprintf(`KILO_CONFIG_CONTENT={"permission":"allow","provider":{"openai":{"options":{"baseURL":%q,"apiKey":"dummy"}}}}`, st.url+"/v1"),
				"OPENAI_API_KEY=dummy", "KILO_DISABLE_AUTOUPDATE=1", "KILO_DISABLE_MODELS_FETCH=1",
			}
		},
		first: func(task string) []string { return []string{"run", "--auto", "-m", "openai/gpt-5", task} },
		again: func(task string) []string { return []string{"run", "--auto", "-c", "-m", "openai/gpt-5", task} },
	},
	{
		name: "continue", title: "Continue", model: "gpt-5", window: 40_000,
		program: of("all", "@continuedev/cli/dist/cn.js"),
		setup: func(t testing.TB, st *fixture) {
			st.atHome(t, ".continue/config.yaml", fmt.Sprintf(`name: furl
version: 1.0.0
schema: v1
models:
  - {name: gpt, provider: openai, model: gpt-5, apiKey: dummy, apiBase: "%s/v1/", roles: [chat]}
`, st.url))
		},
		env: func(st *fixture) []string { return []string{"CONTINUE_TELEMETRY_ENABLED=0"} },
		first: func(task string) []string {
			return []string{"-p", "--auto", "--config", "../.continue/config.yaml", task}
		},
		again: func(task string) []string {
			return []string{"-p", "--auto", "--resume", "--config", "../.continue/config.yaml", task}
		},
	},
}

// copilot is Copilot CLI with a provider of the user's own.
func copilot(api string) coder {
	return coder{
		name: "copilot " + api, title: "Copilot CLI", model: "gpt-5", window: 40_000,
		program: program("all", "@github/copilot-linux-x64/copilot"),
		env: func(st *fixture) []string {
			return []string{
				"COPILOT_PROVIDER_BASE_URL=" + st.url + "/v1", "COPILOT_PROVIDER_API_KEY=dummy", "COPILOT_PROVIDER_WIRE_API=" + api,
				"COPILOT_MODEL=gpt-5", "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false",
			}
		},
		first: func(task string) []string { return []string{"--allow-all-tools", "-p", task} },
		again: func(task string) []string { return []string{"--allow-all-tools", "--continue", "-p", task} },
	}
}

// of is a script and program a program of the packages in a folder of testdata.
func of(dir, name string) func(testing.TB) []string {
	return func(t testing.TB) []string { return []string{node(t), program(dir, name)(t)[0]} }
}

func program(dir, name string) func(testing.TB) []string {
	return func(t testing.TB) []string {
		file, err := filepath.Abs(filepath.Join(clients(), dir, "node_modules", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return []string{file}
	}
}

// The agents of testdata/all at work, each resumed by its own means. X1
func TestMoreCoders(t *testing.T) {
	for _, c := range more {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) { c.work(t, 14, false) })
	}
}

// Qwen Code continues sessions of other agents, as those of TestResumeForeign do.
func TestResumeQwen(t *testing.T) {
	h := heir{more[0], "qwen", func(args []string, task string) []string { return append(args, "-y", "-p", task) }}
	h.foreign(t)
}
