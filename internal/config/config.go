// Package config reads furl's configuration file, a strict YAML file in which
// every key has a default.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/policy/agents"
)

// Config is what a configuration file says. The zero value is the defaults.
type Config struct {
	// Store is a file or the postgres:// address of a database. If empty,
	// furl.db in the data folder.
	Store string `yaml:"store"`
	// Catalog is a file that adds to the built-in model catalogue.
	Catalog string `yaml:"catalog"`
	// Policy names the policy of every session. If empty, auto.
	Policy string `yaml:"policy"`
	// Policies are the options of policies as JSON, by the policies' names, and
	// the user's own policies. Set has them applied.
	Policies map[string]string `yaml:"policies"`
	// RollingContext and ContextManagement hold for every policy, see Settings.
	RollingContext    *bool `yaml:"rolling_context"`
	ContextManagement *bool `yaml:"context_management_enabled"`
	// Tools are for every policy, and Projects for every policy in sessions in some folders.
	Tools    policy.ToolOptions
	Projects []policy.ProjectTools `yaml:"projects"`
	// RepairEdits is for every policy, see policy.EditOptions.
	RepairEdits *bool `yaml:"repair_edits"`
	// AskFirst is for sessions without their own setting of this name.
	AskFirst *bool `yaml:"ask_first"`
	// Models gives models whose name matches a pattern another policy. The first
	// match counts.
	Models []Rule `yaml:"models"`
	// Retention says which sessions may be deleted by themselves. If zero,
	// none ever is.
	Retention Retention `yaml:"retention"`
	// Embeddings is the endpoint of a model that makes vectors for recall.
	// If its URL is empty, recall is lexical.
	Embeddings Embeddings `yaml:"embeddings"`
	// Encryption is about the encryption of the store.
	Encryption Encryption `yaml:"encryption"`
	// Summaries says who writes the summaries of policies that show them, in
	// furl serve.
	Summaries Summaries `yaml:"summaries"`
	// Audit is about the log of accesses.
	Audit Audit `yaml:"audit"`
	// Telemetry is about what furl serve tells others of its work.
	Telemetry Telemetry `yaml:"telemetry"`
	// Chat is about furl's own agent.
	Chat Chat `yaml:"chat"`
	// MCPServers are the servers whose tools furl's own agent has, in the order of
	// the file.
	MCPServers []MCPServer `yaml:"mcp_servers"`
	// Gateway is about furl serve.
	Gateway Gateway `yaml:"gateway"`
	// MCP is about furl mcp.
	MCP MCP `yaml:"mcp"`

	// The policies with their options, and for each of Models with its own.
	set      *policy.Set
	ruleSets []*policy.Set
}

// Summaries are written by the provider of a conversation, with its own
// credential.
type Summaries struct {
	// Model is who writes, by the name that requests give it. If empty, the
	// conversation's own.
	Model string `yaml:"model"`
	// KeyEnv names the environment variable with the API key for summaries that a
	// person requests on the page. If empty, they are written with the key of the
	// session's next request.
	KeyEnv string `yaml:"key_env"`
	// AtOnce bounds how many are written at the same time, Timeout how long
	// one may take. If zero, 4 and 5 minutes.
	AtOnce  int           `yaml:"at_once"`
	Timeout time.Duration `yaml:"timeout"`
}

// Key returns the API key, "" if there is none.
func (s *Summaries) Key() string {
	if s.KeyEnv == "" {
		return ""
	}
	return os.Getenv(s.KeyEnv)
}

// Telemetry is where OpenTelemetry traces go. The standard variables of the
// environment (OTEL_…) say the rest.
type Telemetry struct {
	// Traces is "otlp" or "none". If empty, otlp where the environment names
	// an endpoint or that exporter, else none.
	Traces string `yaml:"traces"`
	// Endpoint is the address of a collector that takes OTLP over HTTP, up to
	// but without /v1/traces. If empty, what the environment says, else
	// http://localhost:4318.
	Endpoint string `yaml:"endpoint"`
}

// Gateway is what furl serve goes by.
type Gateway struct {
	// Listen is the address. If empty, DefaultListen.
	Listen string `yaml:"listen"`
	// Anthropic, OpenAI and Gemini are the base addresses of the providers. If
	// empty, the providers' own; "none" serves none.
	Anthropic string `yaml:"anthropic"`
	OpenAI    string `yaml:"openai"`
	Gemini    string `yaml:"gemini"`
	// ChatGPT is the base address of the provider for logins with ChatGPT. If
	// empty, ChatGPT's backend if OpenAI is the default, else none.
	ChatGPT string `yaml:"chatgpt"`
	// TLS is the certificate to listen with.
	TLS TLS `yaml:"tls"`
	// ClientKeysEnv names the environment variable with the keys, separated
	// by commas, one of which clients must show.
	ClientKeysEnv string `yaml:"client_keys_env"`
	// ClientKeysFile is a file with such keys, one a line, which is read anew
	// with the configuration. Unless the path is absolute, it is beside the
	// configuration's own file.
	ClientKeysFile string `yaml:"client_keys_file"`
	// KeysFile is the file of named keys, which furl keys manages.
	KeysFile string `yaml:"keys_file"`
	// TrustedProxy is a proxy that identifies clients.
	TrustedProxy TrustedProxy `yaml:"trusted_proxy"`
	// OperatorKeyEnv and OperatorKeyFile are where the keys of the operator
	// are, in the same way.
	OperatorKeyEnv  string `yaml:"operator_key_env"`
	OperatorKeyFile string `yaml:"operator_key_file"`
	// Tenants keeps the sessions of different users apart. TenantBy is what
	// tells users apart: key, credential or both. If empty, key where there are
	// client keys, else credential.
	Tenants  bool   `yaml:"tenants"`
	TenantBy string `yaml:"tenant_by"`
	// OIDC is an issuer of tokens that identify clients.
	OIDC OIDC `yaml:"oidc"`
	// Limits are what each tenant may use.
	Limits Limits `yaml:"limits"`
	// Hosts are further names under which furl's API is addressed.
	Hosts []string `yaml:"hosts"`
	// Origins are the web pages and applications, such as https://app.example
	// or vscode-webview://*, that may send requests from a browser.
	Origins []string `yaml:"origins"`
	// MaxBody bounds a request in bytes, MaxRequests how many are under way.
	// If zero, 64 MB and 1024.
	MaxBody     int64 `yaml:"max_body"`
	MaxRequests int   `yaml:"max_requests"`
	// Refuse answers with an error where furl's part fails, instead of
	// sending the request on without it.
	Refuse bool `yaml:"refuse"`
	// Log is the level of the log: debug, info, warn or error. If empty,
	// info.
	Log string `yaml:"log"`
	// Threads is refuse or pass: what the gateway does with message threads, in which
	// the provider keeps the history. If empty, refuse.
	Threads string `yaml:"threads"`
	// BillingHeader is pass or hold: what is sent to providers other than Anthropic in
	// place of Claude Code's first system block, which changes with each request. If
	// empty, pass.
	BillingHeader string `yaml:"billing_header"`
	// DryRun plans and says what would be hidden, and hides nothing.
	DryRun bool `yaml:"dry_run"`
	// KeepAlive is how many pings may keep the prompt cache of a session alive in
	// a pause. If zero, none. MaxKeepAlive is the largest number.
	KeepAlive int `yaml:"keep_alive"`
	// HourCache asks for cache entries of one hour for instructions and tools, once a
	// session has paused. If nil, the policy decides.
	HourCache *bool `yaml:"cache_1h"`
	// ModelsAPI asks providers about the models of requests. If nil, it is on.
	ModelsAPI *bool `yaml:"models_api"`
	// Recall gives models tools that find what is hidden from them, and
	// answers their calls.
	Recall bool `yaml:"recall"`
	// Page serves the page for browsers at the root. If nil, true.
	Page *bool `yaml:"page"`
	// Commands answers commands that a person types in an agent, in sessions
	// without their own setting of this name.
	Commands *bool `yaml:"commands"`
	// DrainDelay is how long the gateway still accepts requests after a signal to
	// stop, while /readyz already reports that it is not ready, so that a load
	// balancer notices. If zero, it stops accepting requests at once.
	DrainDelay time.Duration `yaml:"drain_delay"`
	// Finish is how long the gateway keeps reading a response, to record it, after its
	// client has disconnected. If zero, the provider's request is cancelled at once.
	Finish time.Duration `yaml:"finish"`
}

// MCP are the settings of furl mcp.
type MCP struct {
	// Follow imports recordings in the background.
	Follow bool `yaml:"follow"`
	// Folders are followed instead of those where agents keep their sessions.
	Folders []string `yaml:"folders"`
	// TokenEnv names the environment variable with the bearer token of HTTP
	// clients. If empty, none is required on loopback addresses.
	TokenEnv string `yaml:"token_env"`
	// Hosts are further names under which the HTTP server is addressed.
	Hosts []string `yaml:"hosts"`
	// Origins are the web pages that may send requests to the HTTP server.
	Origins []string `yaml:"origins"`
	// Operations are what the client's model may do to sessions. If nil, it may pin, unpin
	// and restore.
	Operations []string `yaml:"operations"`
}

// MaxKeepAlive is the largest number of pings in a pause.
const MaxKeepAlive = 100

// DefaultListen is where furl serve listens.
const DefaultListen = "127.0.0.1:7410"

// Rule is a policy for some models.
type Rule struct {
	// Model is a pattern as of path.Match, such as "claude-*".
	Model string `yaml:"model"`
	// Policy is the name of the policy. If empty, the file's.
	Policy string `yaml:"policy"`
	Window int    `yaml:"window"` // in tokens; 0: the model's
	// Options of the policy as JSON. If empty, those of Config.Policies.
	Options string `yaml:"options"`
}

// Retention limits what a store keeps, by whole sessions and oldest first.
type Retention struct {
	Age  time.Duration `yaml:"age"`  // since the newest record; 0: no limit
	Size int64         `yaml:"size"` // of the store, in bytes; 0: no limit
	// Tenants has other ages for some tenants, by their names.
	Tenants map[string]time.Duration `yaml:"tenants"`
}

// Embeddings is an endpoint that speaks OpenAI's embeddings API.
type Embeddings struct {
	URL   string `yaml:"url"` // up to but without /embeddings
	Model string `yaml:"model"`
	// KeyEnv names the environment variable that holds the key; keys do not
	// are in the file.
	KeyEnv string `yaml:"key_env"`
}

// Encryption says where the master keys are with which the store is encrypted. If
// both fields are empty, it is not.
type Encryption struct {
	// KeyFile is a file, and KeyEnv an environment variable, with one key per line.
	KeyFile string `yaml:"key_file"`
	KeyEnv  string `yaml:"key_env"`
}

// Set returns the policies that can be chosen by name, with the file's options.
// The rules for models do not apply to it.
func (c *Config) Set() *policy.Set {
	if c.set == nil {
		return Policies(nil)
	}
	return c.set
}

// Policies returns the policies that can be chosen by name without a file: a copy of the
// given ones, or of the presets if nil, with what other agents do.
func Policies(own *policy.Set) *policy.Set {
	if own == nil {
		own = policy.NewSet()
	}
	return agents.Add(own.Clone())
}

// SetByModel returns Set with the rules for models applied to the file's policy.
func (c *Config) SetByModel() *policy.Set {
	if len(c.Models) == 0 {
		return c.Set()
	}
	rules := make([]policy.ModelRule, len(c.Models))
	for i, r := range c.Models {
		rules[i] = policy.ModelRule{Model: r.Model, Policy: r.Policy, Policies: c.ruleSets[i], Window: r.Window}
	}
	set := c.Set().Clone()
	set.ByModel(c.Default(), rules...)
	return set
}

// Settings are what the file sets for every policy.
func (c *Config) Settings() policy.Settings {
	projects := slices.Clone(c.Projects)
	for i := range projects {
		if folder, err := belowHome("projects", projects[i].Project); err == nil {
			projects[i].Project = folder
		}
	}
	return policy.Settings{Off: c.ContextManagement != nil && !*c.ContextManagement, RollingContext: c.RollingContext, ToolOptions: c.Tools, EditOptions: policy.EditOptions{RepairEdits: c.RepairEdits}, ProjectTools: projects}
}

// For returns the policy of a model: its name, the set to make it from, and the
// window that is set for the model.
func (c *Config) For(model string) (name string, set *policy.Set, window int) {
	for i, r := range c.Models {
		if ok, _ := path.Match(r.Model, model); ok {
			return cmp.Or(r.Policy, c.Default()), c.ruleSets[i], r.Window
		}
	}
	return c.Default(), c.Set(), 0
}

// Default is the name of the policy of sessions that have none of their own.
func (c *Config) Default() string { return cmp.Or(c.Policy, "auto") }

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// Load reads the file at name, or the file at Path if name is "". If that one
// does not exist, it returns the defaults and the name "". The file can choose
// among the policies of the set, and set their options; nil means the presets.
func Load(name string, policies *policy.Set) (*Config, string, error) {
	what, mend := name, "create it with furl config init --config "+name
	if name == "" {
		var err error
		if name, err = Path(); err != nil {
			return &Config{set: policies}, "", nil
		}
		if os.Getenv(variable) != "" {
			what, mend = "$"+variable+" names "+name, "create it with furl config init, or unset "+variable
		}
	}
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && what != "":
		return nil, "", &missingError{fmt.Sprintf("read the configuration: %s: no such file; %s", what, mend)}
	case errors.Is(err, fs.ErrNotExist):
		return &Config{set: policies}, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("read the configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, "", fmt.Errorf("read the configuration: %w", err)
	}
	if len(data) > maxFile {
		return nil, "", fmt.Errorf("%s is too large for a configuration file: at most %d bytes", name, maxFile)
	}
	c, err := Parse(name, data, policies)
	return c, name, err
}

// missingError is the error for a named file that does not exist. It wraps
// fs.ErrNotExist and has another text.
type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }
func (e *missingError) Unwrap() error { return fs.ErrNotExist }

// variable of the environment names the file.
const variable = "FURL_CONFIG"

// Path is where the configuration file is looked for: $FURL_CONFIG, else
// furl/config.yaml where the system keeps configuration.
func Path() (string, error) {
	if name := os.Getenv(variable); name != "" {
		return name, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "furl", "config.yaml"), nil
}

// DataDir is the folder for what furl keeps: $FURL_DATA, else where the system
// puts the data of programs.
func DataDir() (string, error) {
	if dir := os.Getenv("FURL_DATA"); dir != "" {
		return dir, nil
	}
	switch runtime.GOOS {
	case "darwin":
		dir, err := os.UserConfigDir() // ~/Library/Application Support
		return filepath.Join(dir, "furl"), err
	case "windows":
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "furl"), nil
		}
	default:
		if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "furl"), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the data folder: %w; $FURL_DATA names one", err)
	}
	return filepath.Join(home, ".local", "share", "furl"), nil
}

// StorePlace is where the store is: what the file says, with ~ for the home
// folder, else furl.db in the data folder.
func (c *Config) StorePlace() (string, error) {
	if c.Store == "" {
		dir, err := DataDir()
		if err != nil {
			return "", err
		}
		return filepath.Join(dir, "furl.db"), nil
	}
	return belowHome("store", c.Store)
}

// belowHome returns a path with ~ replaced by the home folder. what names the setting
// in errors.
func belowHome(what, name string) (string, error) {
	rest, ok := strings.CutPrefix(name, "~/")
	if !ok {
		return name, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", what, name, err)
	}
	return filepath.Join(home, rest), nil
}

// FollowFolders returns MCP.Folders with ~ replaced by the home folder.
func (c *Config) FollowFolders() ([]string, error) {
	var out []string
	for _, name := range c.MCP.Folders {
		folder, err := belowHome("mcp.folders:", name)
		if err != nil {
			return nil, err
		}
		out = append(out, folder)
	}
	return out, nil
}

// Example is a file with every key, all of them at their defaults.
const Example = `# Configuration of furl. Every key is optional; unknown keys are errors.

# The store of sessions: a file, or postgres://user@host/database.
# store: ~/.local/share/furl/furl.db

# The policy; furl replay compares policies.
policy: auto

# Options of policies, and custom policies made of stages, see
# docs/use/configuration.md.
# policies:
#   compaction:
#     context_threshold: 0.8
#   lean:
#     stages: [clip, {mask: {keep_results: 8}}]

# If true, tool-age runs before the policy.
# rolling_context: false

# If false, all policies are off.
# context_management_enabled: true

# Further tools whose results stay, and the tools in place of furl's own list (those by
# which agents ask, plan, load skills and write lists of tasks).
# keep_tools: [mcp__jira__*]
# exclude_tools: [skill]
# projects:
#   - project: ~/code/shop
#     keep_tools: [mcp__linear__*]

# If true, the model sees the hidden text of a file again after its edit failed, under
# every policy; if false, under none. By default only under auto.
# repair_edits: false

# If true, summaries wait for approval (furl summary SESSION).
# ask_first: false

# Other policies for some models; the first matching pattern applies.
# models:
#   - model: claude-*
#     policy: auto:faithful
#   - model: qwen*
#     policy: compaction
#     window: 32k

# More models, prices and windows, in the format of docs/use/configuration.md.
# catalog: models.yaml

# By default sessions are never deleted. age deletes sessions without a new
# record for this long, size the oldest ones of a larger store.
# retention:
#   age: 90d
#   size: 20GB
#   tenants: {acme: 30d}

# Vectors for search, from a server with OpenAI's embeddings API.
# embeddings:
#   url: http://localhost:11434/v1
#   model: nomic-embed-text
#   key_env: EMBEDDINGS_KEY

# The model that writes summaries, of the same provider as the session's model.
# The default is the session's model.
# summaries:
#   model: claude-haiku-4-5
#   key_env: SUMMARIES_KEY
#   at_once: 4
#   timeout: 5m

# The log of who has read, changed, exported or deleted what.
# audit:
#   file: audit.jsonl
#   required: false
#   max_size: 100MB

# OpenTelemetry traces of furl serve, without message contents. The variables
# OTEL_… apply too.
# telemetry:
#   traces: none
#   endpoint: http://localhost:4318

# The models of furl's own agent. model is the one to start with.
# chat:
#   model: sonnet
#   models:
#     - id: claude-sonnet-4-5
#       name: sonnet
#       format: anthropic
#       url: https://api.anthropic.com
#       key_env: ANTHROPIC_API_KEY
#       context_limit: 200k
#       max_tokens: 32k
#       thinking: medium
#       options: {temperature: 1}

# MCP servers with tools for furl's own agent: a command or an address. ${VAR} is
# a variable of the environment; keys belong there. Commands get a minimal
# environment and env.
# mcp_servers:
#   files:
#     command: mcp-server-filesystem
#     args: ["${HOME}/notes"]
#     env: {LOG_LEVEL: warn}
#     dir: ~/notes
#     start_timeout: 30s
#     call_timeout: 10m
#   issues:
#     url: https://mcp.example/mcp
#     headers: {Authorization: "Bearer ${ISSUES_TOKEN}"}

# furl serve. To listen on other interfaces, it requires client keys.
# gateway:
#   listen: 127.0.0.1:7410
#   anthropic: https://api.anthropic.com
#   openai: https://api.openai.com
#   gemini: https://generativelanguage.googleapis.com
#   tls:
#     cert_file: cert.pem
#     key_file: key.pem
#     client_ca_file: clients.pem
#     client_crl_file: revoked.pem
#     client_cert: required
#     client_identity: subject
#   client_keys_env: FURL_CLIENT_KEYS
#   client_keys_file: client-keys
#   keys_file: client-keys.json
#   trusted_proxy:
#     header: X-Auth-User
#     networks: [10.0.0.0/8]
#   operator_key_env: FURL_OPERATOR_KEY
#   operator_key_file: operator-key
#   tenants: false
#   tenant_by: key
#   oidc:
#     issuer: https://login.example
#     audience: furl
#     tenant_claim: sub
#     scopes_claim: groups
#     scopes: {agents: [proxy, read, change]}
#   limits:
#     requests_per_minute: 600
#     concurrent: 50
#     bytes_per_day: 5GB
#     sessions: 10000
#     dollars_per_day: 20
#     dollars_per_project_day: 10
#     dollars_per_session: 5
#     tokens_per_session: 50M
#     tenants:
#       acme: {requests_per_minute: 6000}
#   hosts: [furl.internal]
#   origins: [https://app.example]
#   max_body: 64MB
#   max_requests: 1024
#   refuse: false
#   billing_header: pass
#   dry_run: false
#   log: info
#   keep_alive: 0
#   cache_1h: true
#   models_api: true
#   recall: false
#   commands: false
#   page: true

# furl mcp. With follow, it imports the recordings of agents in the background,
# from folders if that is set. The others are for --listen.
# mcp:
#   follow: false
#   folders: [~/recordings]
#   token_env: FURL_MCP_TOKEN
#   hosts: [furl.internal]
#   origins: [https://app.example]
#   operations: [pin, unpin, restore]
`
