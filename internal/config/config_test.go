package config_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/policy"
)

func TestParse(t *testing.T) {
	c, err := config.Parse("furl.yaml", []byte(`
store: /data/furl.db
models:
  - model: claude-*
    policy: auto:faithful
  - model: qwen*
    policy: clear-100k
    window: 32k
    options: {keep_results: 7}
  - model: gemma*
    window: 8k
policy: rolling
rolling_context: true
keep_tools: [mcp__jira__*]
repair_edits: false
exclude_tools: []
projects:
  - project: /srv/shop
    keep_tools: [Bash]
policies:
  rolling:
    target_utilization: 0.7
    eviction_note: false
  lean:
    context_threshold: 0.5
    stages: [clip, {mask: {keep_results: 8, text: "[gone]"}}]
retention: {age: 90d, size: 20GB}
embeddings: {url: "http://localhost:1/v1", model: m, key_env: K}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]struct {
		policy string
		window int
	}{
		"gpt-5":           {"rolling", 0},
		"qwen3-coder":     {"clear-100k", 32000},
		"claude-opus-4-6": {"auto:faithful", 0},
		"gemma3":          {"rolling", 8000},
	} {
		name, set, window := c.For(model)
		if _, err := set.Policy(name, c.Settings()); name != want.policy || window != want.window || err != nil {
			t.Errorf("for %s: %s, window %d, %v", model, name, window, err)
		}
	}
	if want := map[string]string{
		"rolling": `{"eviction_note":false,"target_utilization":0.7}`,
		"lean":    `{"context_threshold":0.5,"stages":["clip",{"mask":{"keep_results":8,"text":"[gone]"}}]}`,
	}; !maps.Equal(c.Policies, want) || c.Models[1].Options != `{"keep_results":7}` {
		t.Errorf("options are %v and %v, want %v", c.Policies, c.Models[1].Options, want)
	}
	if names := c.Set().Names(); names[len(names)-1] != "lean" {
		t.Errorf("the policies are %v", names)
	}
	if set := c.Settings(); set.Off || set.RollingContext == nil || !*set.RollingContext {
		t.Errorf("settings %+v", set)
	}
	if set := c.Settings().In("/srv/shop/cart"); !slices.Equal(set.KeepTools, []string{"mcp__jira__*", "Bash"}) || set.ExcludeTools == nil || len(set.ExcludeTools) > 0 ||
		len(c.Settings().In("/srv/shops").KeepTools) != 1 {
		t.Errorf("tools %+v", set.ToolOptions)
	}
	if c.Retention.Age != 90*24*time.Hour || c.Retention.Size != 20e9 || c.Embeddings.KeyEnv != "K" {
		t.Errorf("retention %v, embeddings %v", c.Retention, c.Embeddings)
	}
	if name, set, _ := new(config.Config).For("x"); name != "auto" || set == nil {
		t.Errorf("the default policy is %q", name)
	}
}

// Options reach the policies that are made of them: each model's its own.
func TestOptionsReachPolicies(t *testing.T) {
	c, err := config.Parse("furl.yaml", []byte(`
policy: clear-100k
policies:
  clear-100k: {trigger: 200, text: "[all]"}
models:
  - model: other
    policy: clear-100k
    options: {trigger: 100, text: "[one]"}
  - model: off
    policy: none
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	log := furl.NewLog()
	add := func(m *furl.Message) {
		m.Measure(words{})
		m.Seal()
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, m); err != nil {
			t.Fatal(err)
		}
	}
	add(furl.TextMessage(furl.RoleUser, "go"))
	for i := range 6 {
		id := fmt.Sprint("c", i)
		add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: id, Name: "read", Args: []byte("{}")}}})
		add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: id, Text: strings.Repeat("word ", 30)}}})
	}
	p, err := c.SetByModel().Policy(c.Default(), c.Settings())
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]string{"mine": "[all]", "other": "[one]", "off": ""} {
		size := log.State().View(furl.Model{}).Tokens
		plan, err := p.Plan(t.Context(), log.State(), furl.Budget{Counter: words{}, Size: size, Model: furl.Model{ID: model}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, red := range plan.Reductions {
			got = red.Items[0].Show.(furl.In).Text
		}
		if got != want {
			t.Errorf("%s shows %q, want %q", model, got, want)
		}
	}
}

// words counts a token a word.
type words struct{}

func (words) Count(text string) int { return len(strings.Fields(text)) }

// A stage that a program added can be named in the file.
func TestStageOfYourOwn(t *testing.T) {
	base := policy.NewSet()
	base.AddStage(forget{Keep: 2})
	c, err := config.Parse("f.yaml", []byte("policy: lean\npolicies: {lean: {stages: [{forget: {tool: Bash}}]}}"), base)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.Set().Policy("lean", policy.Settings{}); err != nil || p.Name() != "lean" {
		t.Errorf("%v, %v", p, err)
	}
	if slices.Contains(base.Names(), "lean") {
		t.Error("the file changed the set that it was given")
	}
	for file, want := range map[string]string{
		"policies:\n  lean:\n    stages:\n      - mask\n      - forget:\n          tol: Bash": `f.yaml: unknown key "tol" for stage "forget" (line 6): expected one of keep, tool`,
		"policies:\n  lean:\n    stages:\n      - mask\n      - forget: {keep: -1}":           `f.yaml: keep is negative (line 5)`,
		"policies:\n  lean:\n    stages:\n      - forgt":                                      `f.yaml: unknown stage "forgt" (line 4): choose one of mask, clip, shorten, truncate, evict, extract, compact, forget`,
	} {
		if _, err := config.Parse("f.yaml", []byte(file), base); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}

type forget struct {
	Tool string `json:"tool"`
	Keep int    `json:"keep"`
}

func (forget) Name() string { return "forget" }

func (forget) Reduce(context.Context, *furl.View, furl.Budget) (*furl.Reduction, error) {
	return nil, policy.Nothing
}

func (f forget) Validate() error {
	if f.Keep < 0 {
		return errors.New("keep is negative")
	}
	return nil
}

// An error names the file, the key, the line and what was expected.
func TestParseErrors(t *testing.T) {
	for file, want := range map[string]string{
		"stor: x":            `f.yaml: unknown key "stor" (line 1): did you mean "store"?`,
		"x: x":               `f.yaml: unknown key "x" (line 1): expected one of ask_first, audit, catalog, chat, context_management_enabled, embeddings, encryption, exclude_tools, gateway, keep_tools, mcp, mcp_servers, models, policies, policy, projects, repair_edits, retention, rolling_context, store, summaries, telemetry`,
		"store: x\nstore: y": `f.yaml: duplicate key "store" (line 2): first on line 1`,
		"policy: speed":      `f.yaml: unknown policy "speed" (line 1): choose one of none, `,
		"policy: rolling\npolicies:\n  tool-age:\n    keep: 3":                    `f.yaml: unknown key "keep" for policy "tool-age" (line 4): expected one of exclude_tools, keep_tools, max_age, max_tokens_per_output, min_tokens, repair_edits, text`,
		"policies:\n  tool-age: {max_age: lots}":                                  `f.yaml: invalid max_age "lots" (line 2): expected a whole number`,
		"policies:\n  tool-age: {max_age: }":                                      `f.yaml: invalid max_age null (line 2): expected a whole number`,
		"policies:\n  rolling:\n    context_threshold: 7":                         `f.yaml: invalid context_threshold 7 (line 3): expected at most 1`,
		"policies:\n  rolling:\n    'a: b': 1":                                    `f.yaml: unknown key "a: b" for policy "rolling" (line 3): expected one of `,
		"policies:\n  none: {x: 1}":                                               `f.yaml: unknown key "x" for policy "none" (line 2): it has no options`,
		"policies:\n  rollin: {target_utilization: 0.7}":                          `f.yaml: unknown policy "rollin" (line 2): choose one of none, tool-age, `,
		"policies:\n  safeguard: {fraction: 0.7}":                                 `f.yaml: "safeguard" is another name, without options of its own (line 2): choose one of none, `,
		"policies:\n  auto:results: {summary: true}":                              `f.yaml: "auto:results" is another name, without options of its own (line 2): choose one of none, `,
		"policies:\n  a:b: {stages: [clip]}":                                      `f.yaml: invalid policy name "a:b" (line 2)`,
		"policies:\n  auto: {}\n  auto: {}":                                       `f.yaml: duplicate key "auto" (line 3): first on line 2`,
		"policies:\n  auto:\n    summary: true\n    summary: 1":                   `f.yaml: invalid policies.auto (line 4): mapping key "summary" already defined at line 3`,
		"policies:\n  lean: {stages: []}":                                         `f.yaml: invalid stages (line 2): expected a list of stages`,
		"policies:\n  lean:\n    stages:\n      - {a: 1, b: 2}":                   `f.yaml: invalid stage (line 4): expected its name`,
		"policies:\n  - auto":                                                     `f.yaml: invalid policies (line 2): expected names of policies with their options, such as policies: {`,
		"policies:\n  auto: 3":                                                    `f.yaml: invalid options of policy "auto" (line 2): expected keys with values`,
		"policies:\n  auto: {rolling_context: true}":                              `f.yaml: rolling_context is not an option of policy "auto" (line 2): write it at the top of the file`,
		"policy: rolling\noptions:\n  target_utilization: 0.7":                    `f.yaml: unknown key "options" (line 2): write options below the name of their policy, such as policies: {`,
		"models:\n  - model: a\n    options: {max_age: 3}":                        `f.yaml: options without a policy (line 3)`,
		"models:\n  - model: a\n    policy: auto\n    options:\n      max_age: 3": `f.yaml: unknown key "max_age" for policy "auto" (line 5): expected one of exclude_tools, keep_tools, repair_edits, shorten_inputs, summary, `,
		"models:\n  - policy: auto":                                               `f.yaml: missing model (line 2): expected a pattern such as claude-*`,
		"models: {}":                                                              `f.yaml: invalid models (line 1): expected a list of rules, each starting with "- model: PATTERN", not a mapping`,
		"models: [claude-*]":                                                      `f.yaml: invalid models "claude-*" (line 1): expected "key: value" lines`,
		"retention:\n  age: soon":                                                 `f.yaml: invalid retention.age "soon" (line 2): expected a duration such as 12h or 90d`,
		"retention:\n  size: 5 bananas":                                           `f.yaml: invalid retention.size "5 bananas" (line 2): expected a size such as 500MB`,
		"- a":                                                                     `f.yaml: invalid file (line 1): expected "key: value" lines, not a list`,
		"gateway:\n  openai: ftp://x":                                             `f.yaml: invalid gateway.openai "ftp://x" (line 2): expected an http or https address or none`,
		"gateway:\n  refuse: maybe":                                               `f.yaml: invalid gateway.refuse "maybe" (line 2): expected true or false`,
		"gateway:\n  log: loud":                                                   `f.yaml: invalid gateway.log "loud" (line 2): expected one of debug, info, warn, error`,
		"gateway:\n  max_requests: 1.5":                                           `f.yaml: invalid gateway.max_requests "1.5" (line 2): expected a whole number`,
		"gateway:\n  keep_alive: true":                                            `f.yaml: invalid gateway.keep_alive "true" (line 2): expected a number of pings from 0 to 100`,
		"gateway:\n  keep_alive: 101":                                             `f.yaml: invalid gateway.keep_alive "101" (line 2): expected a number of pings from 0 to 100`,
		"gateway:\n  keep_alive: -1":                                              `f.yaml: invalid gateway.keep_alive "-1" (line 2): expected a number of pings from 0 to 100`,
		"gateway:\n  hosts: x":                                                    `f.yaml: invalid gateway.hosts "x" (line 2): expected a list of host names, such as [furl.internal]`,
		"gateway:\n  hosts: ['*']":                                                `f.yaml: invalid gateway.hosts "*" (line 2): expected a host name`,
		"gateway:\n  hosts: [a, 'http://b:1']":                                    `f.yaml: invalid gateway.hosts "http://b:1" (line 2): expected a host name such as furl.internal, without http:// and port`,
		"gateway:\n  hosts: ['b:7410']":                                           `f.yaml: invalid gateway.hosts "b:7410" (line 2): expected a host name`,
		"gateway:\n  limits: {dollars_per_day: 0}":                                `f.yaml: invalid gateway.limits.dollars_per_day "0" (line 2): expected an amount in US dollars such as 20 or 2.50, more than 0`,
		"gateway:\n  limits: {dollars_per_session: $5}":                           `f.yaml: invalid gateway.limits.dollars_per_session "$5" (line 2): expected an amount in US dollars`,
		"gateway:\n  limits: {tenants: {a: {dollars_per_project_day: -1}}}":       `f.yaml: invalid gateway.limits.tenants.a.dollars_per_project_day "-1" (line 2): expected an amount in US dollars`,
		"gateway:\n  limits: {tokens_per_session: 0k}":                            `f.yaml: invalid gateway.limits.tokens_per_session "0k" (line 2): expected a number of tokens such as 20M, more than 0`,
		"gateway:\n  limits: {dollar_per_day: 5}":                                 `f.yaml: unknown key "dollar_per_day" (line 2): did you mean "dollars_per_day"?`,
		"store: x\ncatalog: {}":                                                   `f.yaml: invalid catalog (line 2): expected text, not a mapping`,
		"models:\n  - model: '['\n    policy: auto":                               `f.yaml: invalid model "[" (line 2): expected a pattern`,
	} {
		_, err := config.Parse("f.yaml", []byte(file), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}

// Origins that no browser sends, or that every page can have, are refused.
func TestParseOrigins(t *testing.T) {
	for list, want := range map[string]string{
		"https://a.example":               `f.yaml: invalid gateway.origins "https://a.example" (line 2): expected a list of origins, such as [https://app.example]`,
		"\n    - app://a\n    - 'null'":   `f.yaml: invalid gateway.origins (line 4): null cannot be allowed: any page can send it from a sandboxed frame`,
		"['https://*.a.example']":         `f.yaml: invalid gateway.origins (line 2): "https://*.a.example": expected scheme, host and port without path or *`,
		"[{a: b}]":                        `f.yaml: invalid gateway.origins (line 2): expected an origin`,
		"['*']":                           `f.yaml: invalid gateway.origins (line 2): "*": expected an origin such as https://app.example`,
		"[https://a.example:443]":         `f.yaml: invalid gateway.origins (line 2): "https://a.example:443": remove the port: browsers omit the default port of the scheme`,
		"[app://a, 'https://b.example/']": `f.yaml: invalid gateway.origins (line 2): "https://b.example/": expected scheme`,
	} {
		_, err := config.Parse("f.yaml", []byte("gateway:\n  origins: "+list), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
	c, err := config.Parse("f.yaml", []byte("gateway:\n  origins: [https://a.example, 'vscode-webview://*']"), nil)
	if err != nil || len(c.Gateway.Origins) != 2 {
		t.Errorf("valid origins: %v", err)
	}
}

// A key in the place of the name of its variable is not quoted.
func TestParseKeepsKeys(t *testing.T) {
	for _, file := range []string{"gateway:\n  client_keys_env: sk-planted-key", "embeddings:\n  key_env: sk-planted-key"} {
		_, err := config.Parse("f.yaml", []byte(file), nil)
		if err == nil || !strings.Contains(err.Error(), "(line 2): expected the name of the environment variable") || strings.Contains(err.Error(), "planted") {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// The example that furl config init writes is right, and says the defaults.
func TestExample(t *testing.T) {
	c, err := config.Parse("example", []byte(config.Example), nil)
	if err != nil {
		t.Fatal(err)
	}
	if name, _, _ := c.For("m"); name != "auto" {
		t.Errorf("the example's policy is %q", name)
	}
	// Uncommented it is right too, so that no key in it is out of date.
	var all []string
	for line := range strings.Lines(config.Example) {
		if rest, ok := strings.CutPrefix(line, "# "); ok && (strings.Contains(rest, ": ") || strings.HasSuffix(rest, ":\n")) && !strings.Contains(rest, ". ") && !strings.Contains(rest, "postgres://user") {
			line = rest
		}
		all = append(all, line)
	}
	c, err = config.Parse("example", []byte(strings.Join(all, "")), nil)
	if err != nil {
		t.Fatalf("uncommented:\n%s\n%v", strings.Join(all, ""), err)
	}
	if len(c.Models) != 2 || c.Retention.Size == 0 || c.Embeddings.URL == "" || c.Summaries.Model == "" || c.Summaries.AtOnce != 4 || c.Summaries.Timeout != 5*time.Minute || c.Gateway.MaxRequests != 1024 || len(c.Gateway.Hosts) != 1 || len(c.Gateway.Origins) != 1 || c.Catalog == "" || c.Store == "" || len(c.MCPServers) != 2 {
		t.Errorf("uncommented: %+v", c)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none.yaml")
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} { // one of them is the system's
		t.Setenv(name, dir)
	}
	t.Setenv("FURL_CONFIG", "")
	if c, name, err := config.Load("", nil); err != nil || name != "" || c.Policy != "" {
		t.Errorf("no file: %v %q %v", c, name, err)
	}
	if _, _, err := config.Load(none, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), none+": no such file; create it with furl config init --config "+none) {
		t.Errorf("a named file that does not exist: %v", err)
	}
	t.Setenv("FURL_CONFIG", none)
	if _, _, err := config.Load("", nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "$FURL_CONFIG names "+none+": no such file; create it with furl config init, or unset FURL_CONFIG") {
		t.Errorf("a file of the environment that does not exist: %v", err)
	}
	file := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(file, []byte("store: ~/x.db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FURL_CONFIG", file)
	t.Setenv("HOME", dir)
	c, name, err := config.Load("", nil)
	if err != nil || name != file {
		t.Fatalf("%q %v", name, err)
	}
	if place, err := c.StorePlace(); err != nil || place != filepath.Join(dir, "x.db") {
		t.Errorf("the store is at %q, %v", place, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(config.Example))
	f.Add([]byte("models:\n  - model: a\n    options: {max_age: 3}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("f", data, nil)
		if (c == nil) == (err == nil) {
			t.Fatalf("%v and %v", c, err)
		}
	})
}

// The models of furl's own agent have defaults by their names.
func TestChat(t *testing.T) {
	c, err := config.Parse("furl.yaml", []byte(`
chat:
  model: local
  models:
    - id: claude-sonnet-4-5
      thinking: 8000
      options: {temperature: 0.5}
    - {id: qwen3, name: local, url: "http://localhost:11434/v1", key_env: NO_KEY, context_limit: 32k, max_tokens: 4k, thinking: off}
    - {id: gpt-5.2, format: openai-responses}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]config.ChatModel{
		"claude-sonnet-4-5": {ID: "claude-sonnet-4-5", Name: "claude-sonnet-4-5", Format: "anthropic", KeyEnv: "ANTHROPIC_API_KEY", Thinking: "8000", Options: `{"temperature":0.5}`},
		"":                  {ID: "qwen3", Name: "local", Format: "openai-chat", URL: "http://localhost:11434/v1", KeyEnv: "NO_KEY", Window: 32_000, MaxTokens: 4000, Thinking: "off"},
		"gpt-5.2":           {ID: "gpt-5.2", Name: "gpt-5.2", Format: "openai-responses", KeyEnv: "OPENAI_API_KEY"},
	} {
		if got, ok := c.Chat.Find(name); !ok || got != want {
			t.Errorf("%q: got %+v, want %+v", name, got, want)
		}
	}
	if _, ok := c.Chat.Find("other"); ok {
		t.Error("a model that is not configured is found")
	}
	for text, want := range map[string]string{
		"{model: x}":                                "unknown model",
		"{models: [{name: x}]}":                     "the name of the model in requests",
		"{models: [{id: x}, {id: x}]}":              "two models",
		"{models: [{id: x, thinking: much}]}":       "off, low, medium, high",
		"{models: [{id: x, options: [1]}]}":         "fields of a request",
		"{models: [{id: x, key_env: sk-ant-1234}]}": "not the key itself",
	} {
		if _, err := config.Parse("furl.yaml", []byte("chat: "+text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
