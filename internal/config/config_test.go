package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/policy"
)

func TestParse(t *testing.T) {
	c, err := config.Parse("furl.yaml", []byte(`
store: /data/furl.db
policy: rolling
options:
  target_utilization: 0.7
  eviction_note: false
models:
  - model: claude-*
    policy: auto:faithful
  - model: qwen*
    policy: clear-100k
    window: 32k
    options: {keep_results: 7}
retention: {age: 90d, size: 20GB}
embeddings: {url: "http://localhost:1/v1", model: m, key_env: K}
`))
	if err != nil {
		t.Fatal(err)
	}
	name, o, window := c.For("gpt-5")
	if name != "rolling" || o.Target != 0.7 || o.EvictionNote != policy.Off || window != 0 {
		t.Errorf("for gpt-5: %s %+v %d", name, o, window)
	}
	name, o, window = c.For("qwen3-coder")
	if name != "clear-100k" || o.KeepResults != 7 || window != 32000 {
		t.Errorf("for qwen3-coder: %s %+v %d", name, o, window)
	}
	if name, _, _ = c.For("claude-opus-4-6"); name != "auto:faithful" {
		t.Errorf("for claude-opus-4-6: %s", name)
	}
	if c.Retention.Age != 90*24*time.Hour || c.Retention.Size != 20e9 || c.Embeddings.KeyEnv != "K" {
		t.Errorf("retention %v, embeddings %v", c.Retention, c.Embeddings)
	}
	if name, _, _ := new(config.Config).For("x"); name != "auto" {
		t.Errorf("the default policy is %q", name)
	}
}

// An error names the file, the line and what would be right.
func TestParseErrors(t *testing.T) {
	for file, want := range map[string]string{
		"stor: x":                                   `f.yaml:1: there is no key "stor" here; there are catalog, embeddings, gateway, models, options, policy, retention, store, summaries`,
		"store: x\nstore: y":                        `f.yaml:2: "store" stands here twice`,
		"policy: speed":                             `f.yaml:1: `,
		"policy: rolling\noptions:\n  keep: 3":      `f.yaml:3: there is no key "keep" here; there are `,
		"options:\n  max_age: lots":                 `f.yaml:2: max_age: a string stands where int is expected`,
		"options:\n  context_threshold: 7":          `f.yaml:2: context_threshold: `,
		"models:\n  - policy: auto":                 `f.yaml:2: model: a pattern such as claude-* is expected`,
		"models: {}":                                `f.yaml:1: a list is expected here`,
		"retention:\n  age: soon":                   `f.yaml:2: a length of time such as 12h or 90d is expected here, not "soon"`,
		"retention:\n  size: 5 bananas":             `f.yaml:2: a size such as 500MB`,
		"- a":                                       `f.yaml:1: keys with values are expected here`,
		"store: x\n---\nstore: y":                   `a second document`,
		"gateway:\n  openai: ftp://x":               `f.yaml:2: an http or https address is expected here, or none, not "ftp://x"`,
		"gateway:\n  refuse: maybe":                 `f.yaml:2: true or false is expected here`,
		"gateway:\n  hosts: x":                      `f.yaml:2: a list of host names is expected here`,
		"gateway:\n  hosts: ['*']":                  `f.yaml:2: the name of a host is expected here`,
		"gateway:\n  hosts: [a, 'http://b:1']":      `f.yaml:2: the name of a host is expected here, such as furl.internal, without http:// and port, not "http://b:1"`,
		"gateway:\n  hosts: ['b:7410']":             `f.yaml:2: the name of a host is expected here`,
		"store: [":                                  `f.yaml: `,
		"a: &x {b: *x}":                             `f.yaml`,
		"store: x\ncatalog: {}":                     `f.yaml:2: a text is expected here`,
		"models:\n  - model: '['\n    policy: auto": `f.yaml:2: model: a pattern`,
	} {
		_, err := config.Parse("f.yaml", []byte(file))
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
		"[https://a.example:443]":         `f.yaml:2: invalid origin: "https://a.example:443": leave the port out`,
		"[app://a, 'https://b.example/']": `f.yaml:2: invalid origin: "https://b.example/": expected scheme`,
	} {
		_, err := config.Parse("f.yaml", []byte("gateway:\n  origins: "+list))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
	c, err := config.Parse("f.yaml", []byte("gateway:\n  origins: [https://a.example, 'vscode-webview://*']"))
	if err != nil || len(c.Gateway.Origins) != 2 {
		t.Errorf("valid origins: %v", err)
	}
}

// A key that stands where the name of its variable belongs is not told.
func TestParseKeepsKeys(t *testing.T) {
	for _, file := range []string{"gateway:\n  client_keys_env: sk-planted-key", "embeddings:\n  key_env: sk-planted-key"} {
		_, err := config.Parse("f.yaml", []byte(file))
		if err == nil || !strings.Contains(err.Error(), "f.yaml:2: the name of an environment variable is expected") || strings.Contains(err.Error(), "planted") {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// The example that furl config init writes is right, and says the defaults.
func TestExample(t *testing.T) {
	c, err := config.Parse("example", []byte(config.Example))
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
	c, err = config.Parse("example", []byte(strings.Join(all, "")))
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
	if c, name, err := config.Load(""); err != nil || name != "" || c.Policy != "" {
		t.Errorf("no file: %v %q %v", c, name, err)
	}
	if _, _, err := config.Load(none); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), none+": there is no such file; furl config init --config "+none) {
		t.Errorf("a file that was asked for and is not there gives %v", err)
	}
	t.Setenv("FURL_CONFIG", none)
	if _, _, err := config.Load(""); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "$FURL_CONFIG names "+none+": there is no such file; furl config init makes it, unset FURL_CONFIG") {
		t.Errorf("a file that the environment names and is not there gives %v", err)
	}
	file := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(file, []byte("store: ~/x.db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FURL_CONFIG", file)
	t.Setenv("HOME", dir)
	c, name, err := config.Load("")
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
		c, err := config.Parse("f", data)
		if (c == nil) == (err == nil) {
			t.Fatalf("%v and %v", c, err)
		}
	})
}
