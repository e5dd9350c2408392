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
		"policies:\n  lean:\n    stages:\n      - mask\n      - forget:\n          tol: Bash": `f.yaml:6: unknown key "tol" for stage "forget": expected one of keep, tool`,
		"policies:\n  lean:\n    stages:\n      - mask\n      - forget: {keep: -1}":           `f.yaml:5: keep is negative`,
		"policies:\n  lean:\n    stages:\n      - forgt":                                      `f.yaml:4: unknown stage "forgt": choose one of mask, clip, shorten, truncate, evict, extract, compact, forget`,
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

// An error names the file, the line and what would be right.
func TestParseErrors(t *testing.T) {
	for file, want := range map[string]string{
		"stor: x":            `f.yaml:1: there is no key "stor" here; there are catalog, context_management_enabled, embeddings, gateway, models, policies, policy, retention, rolling_context, store, summaries`,
		"store: x\nstore: y": `f.yaml:2: "store" stands here twice`,
		"policy: speed":      `f.yaml:1: `,
		"policy: rolling\npolicies:\n  tool-age:\n    keep: 3":                    `f.yaml:4: unknown key "keep" for policy "tool-age": expected one of max_age, max_tokens_per_output, min_tokens, text`,
		"policies:\n  tool-age: {max_age: lots}":                                  `f.yaml:2: invalid max_age "lots": expected a whole number`,
		"policies:\n  tool-age: {max_age: }":                                      `f.yaml:2: invalid max_age null: expected a whole number`,
		"policies:\n  rolling:\n    context_threshold: 7":                         `f.yaml:3: invalid context_threshold 7: expected at most 1`,
		"policies:\n  none: {x: 1}":                                               `f.yaml:2: unknown key "x" for policy "none": it has no options`,
		"policies:\n  rollin: {target_utilization: 0.7}":                          `f.yaml:2: unknown policy "rollin": choose one of none, tool-age, `,
		"policies:\n  safeguard: {fraction: 0.7}":                                 `f.yaml:2: "safeguard" is another name, without options of its own: choose one of none, `,
		"policies:\n  auto:calls: {summary: true}":                                `f.yaml:2: "auto:calls" is another name, without options`,
		"policies:\n  a:b: {stages: [clip]}":                                      `f.yaml:2: invalid policy name "a:b"`,
		"policies:\n  auto: {}\n  auto: {}":                                       `f.yaml:3: "auto" stands here twice`,
		"policies:\n  auto:\n    summary: true\n    summary: 1":                   `f.yaml:3: line 4: mapping key "summary" already defined at line 3`,
		"policies:\n  lean: {stages: []}":                                         `f.yaml:2: invalid stages: expected a list of stages`,
		"policies:\n  lean:\n    stages:\n      - {a: 1, b: 2}":                   `f.yaml:4: invalid stage: expected its name`,
		"policies:\n  - auto":                                                     `f.yaml:2: expected names of policies with their options`,
		"policies:\n  auto: 3":                                                    `f.yaml:2: invalid options of policy "auto": expected keys with values`,
		"policies:\n  auto: {rolling_context: true}":                              `f.yaml:2: rolling_context is not an option of policy "auto": write it at the top of the file`,
		"policy: rolling\noptions:\n  target_utilization: 0.7":                    `f.yaml:2: unknown key "options": write options below the name of their policy, such as policies: {`,
		"rolling_context: perhaps":                                                `f.yaml:1: true or false is expected here`,
		"models:\n  - model: a\n    options: {max_age: 3}":                        `f.yaml:3: options without a policy`,
		"models:\n  - model: a\n    policy: auto\n    options:\n      max_age: 3": `f.yaml:5: unknown key "max_age" for policy "auto": expected one of summary, `,
		"models:\n  - policy: auto":                                               `f.yaml:2: model: a pattern such as claude-* is expected`,
		"models: {}":                                                              `f.yaml:1: a list is expected here`,
		"retention:\n  age: soon":                                                 `f.yaml:2: a length of time such as 12h or 90d is expected here, not "soon"`,
		"retention:\n  size: 5 bananas":                                           `f.yaml:2: a size such as 500MB`,
		"- a":                                                                     `f.yaml:1: keys with values are expected here`,
		"store: x\n---\nstore: y":                                                 `a second document`,
		"gateway:\n  openai: ftp://x":                                             `f.yaml:2: an http or https address is expected here, or none, not "ftp://x"`,
		"gateway:\n  refuse: maybe":                                               `f.yaml:2: true or false is expected here`,
		"gateway:\n  hosts: x":                                                    `f.yaml:2: a list of host names is expected here`,
		"gateway:\n  hosts: ['*']":                                                `f.yaml:2: the name of a host is expected here`,
		"gateway:\n  hosts: [a, 'http://b:1']":                                    `f.yaml:2: the name of a host is expected here, such as furl.internal, without http:// and port, not "http://b:1"`,
		"gateway:\n  hosts: ['b:7410']":                                           `f.yaml:2: the name of a host is expected here`,
		"store: [":                                                                `f.yaml: `,
		"a: &x {b: *x}":                                                           `f.yaml`,
		"store: x\ncatalog: {}":                                                   `f.yaml:2: a text is expected here`,
		"models:\n  - model: '['\n    policy: auto":                               `f.yaml:2: model: a pattern`,
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
		"https://a.example":               `f.yaml:2: expected a list of origins, such as [https://app.example]`,
		"\n    - app://a\n    - 'null'":   `f.yaml:4: invalid origin: null cannot be allowed: any page can send it from a sandboxed frame`,
		"['https://*.a.example']":         `f.yaml:2: invalid origin: "https://*.a.example": expected scheme, host and port without path or *`,
		"[{a: b}]":                        `f.yaml:2: invalid origin: `,
		"['*']":                           `f.yaml:2: invalid origin: "*": expected an origin such as https://app.example`,
		"[https://a.example:443]":         `f.yaml:2: invalid origin: "https://a.example:443": remove the port: browsers omit the default port of the scheme`,
		"[app://a, 'https://b.example/']": `f.yaml:2: invalid origin: "https://b.example/": expected scheme`,
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

// A key that stands where the name of its variable belongs is not told.
func TestParseKeepsKeys(t *testing.T) {
	for _, file := range []string{"gateway:\n  client_keys_env: sk-planted-key", "embeddings:\n  key_env: sk-planted-key"} {
		_, err := config.Parse("f.yaml", []byte(file), nil)
		if err == nil || !strings.Contains(err.Error(), "f.yaml:2: the name of an environment variable is expected") || strings.Contains(err.Error(), "planted") {
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
	if len(c.Models) != 2 || c.Retention.Size == 0 || c.Embeddings.URL == "" || c.Summaries.Model == "" || c.Summaries.AtOnce != 4 || c.Summaries.Timeout != 5*time.Minute || c.Gateway.MaxRequests != 1024 || len(c.Gateway.Hosts) != 1 || len(c.Gateway.Origins) != 1 || c.Catalog == "" || c.Store == "" {
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
	if _, _, err := config.Load(none, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), none+": there is no such file; furl config init --config "+none) {
		t.Errorf("a file that was asked for and is not there gives %v", err)
	}
	t.Setenv("FURL_CONFIG", none)
	if _, _, err := config.Load("", nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "$FURL_CONFIG names "+none+": there is no such file; furl config init makes it, unset FURL_CONFIG") {
		t.Errorf("a file that the environment names and is not there gives %v", err)
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
