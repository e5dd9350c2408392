// Package launch connects agents to a gateway: the variables, settings and arguments with which
// furl run and furl eval start them.
package launch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/visible"
)

// Route is how furl run and furl eval connect an agent to a gateway.
type Route struct {
	Place
	command []string
	to      Forwarding

	// Anthropic is the base URL of a cloud that the user's settings choose, to which the
	// gateway must forward the requests. "": that of to.
	Anthropic string
	cloud     *agents.ClaudeCloud // whose base URL is set, nil if none
	settings  map[string]any      // what Claude Code gets with --settings
	Problems  []string            // why requests may not reach furl
	notes     []string            // what was chosen
}

// Place says where an agent finds its settings.
type Place struct {
	Getenv func(string) string
	Home   string // "" if unknown
	folder string // in which it starts, "" if unknown
}

// Here is the place of an agent that gets the environment and the folder of furl.
func Here() Place {
	home, _ := os.UserHomeDir() // otherwise only the environment counts
	return Place{Getenv: os.Getenv, Home: home, folder: "."}
}

// Forwarding says where a gateway forwards requests.
type Forwarding struct {
	// Anthropic and openai are the base URLs, "" if unknown.
	Anthropic, Openai string
	// Given means that the user has named anthropic for this run. Otherwise a cloud's
	// own address has precedence.
	Given bool
	// GivenOpenAI is given for openai.
	GivenOpenAI bool
	// Own is the address of the user's own gateway, which programs may have as base URL.
	Own *url.URL
	// Running means that the gateway already runs, and its addresses cannot be chosen.
	Running bool
	// FreePort means that the user cannot know the gateway's address.
	FreePort bool
	// Keep says how the user has requests forwarded to another address: the name of
	// the flag, and the address.
	Keep func(flag, address string) string
}

// Connect finds out how to connect the agent that a command starts.
func Connect(place Place, command []string, to Forwarding) *Route {
	r := &Route{Place: place, command: command, to: to, settings: make(map[string]any)}
	c, ok := agentOf(command)
	switch {
	case ok && c.Name == "claude":
		r.connectClaude()
		return r
	case ok && c.Name == "codex":
		r.connectCodex()
		return r
	case ok && c.Name == "gemini":
		r.connectGemini()
	case ok && c.Name == "kilo" && r.Getenv("KILO_CONFIG_CONTENT") != "":
		r.problem("KILO_CONFIG_CONTENT is set, so furl does not set it: furl serve --print-env kilo prints the base URLs to add to it")
	case ok && c.Manual && to.FreePort: // otherwise the user knows the address and may have set it
		r.problem("%s does not read its base URL from the environment: start furl serve, and apply what furl serve --print-env %s prints", c.Title, c.Name)
		return r
	}
	r.replaced("ANTHROPIC_BASE_URL", "anthropic", to.Anthropic, to.Given)
	r.replaced("OPENAI_BASE_URL", "openai", to.Openai, to.GivenOpenAI)
	return r
}

func (r *Route) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// replaced says that furl replaces a base URL in the environment with that of the gateway,
// which forwards the credential to another provider. to is its address, given that the
// user has named it for this run.
func (r *Route) replaced(name, flag, to string, given bool) {
	value := r.Getenv(name)
	u, err := url.Parse(value)
	if value == "" || given || r.to.Running || err != nil || r.to.Own != nil && SameHost(u, r.to.Own) || sameAddress(value, to) {
		return
	}
	r.problem("%s is %s, which furl replaces: requests are forwarded to %s, which gets their credential; to keep that provider %s", name, publicAddress(value), publicAddress(to), r.to.Keep(flag, WithoutPassword(value)))
}

// connectClaude chooses the cloud and its address from the user's own settings. Those of
// the project may come from somebody else, and would redirect the user's credentials.
func (r *Route) connectClaude() {
	all := r.claudeSettings(r.command)
	own := slices.DeleteFunc(slices.Clone(all), func(s claudeSettings) bool { return s.project })
	used, usedFrom := r.claudeCloud(all)
	chosen, chosenFrom := r.claudeCloud(own)
	elsewhere := r.claudeBase(all, used)
	if used == nil && !elsewhere {
		r.replaced("ANTHROPIC_BASE_URL", "anthropic", r.to.Anthropic, r.to.Given)
	}
	switch {
	case elsewhere:
	case r.to.Given:
		r.cloud = used
	case used != nil && used != chosen:
		r.problem("%s sets env.%s, which furl does not follow because the file is part of the project, so Claude Code sends its requests to %s and not to furl; to keep that provider set the variable in %s, or %s, where the URL is like %s",
			usedFrom, used.Use, used.Title, r.claudeUser(), r.to.Keep("anthropic", "URL"), used.Address)
	case chosen != nil && used == nil:
		value, from := r.claudeVariable(all, chosen.Use)
		r.problem("%s sets env.%s to %q, so Claude Code does not use %s, which %s chooses, and its requests are forwarded to %s", from, chosen.Use, value, chosen.Title, chosenFrom, publicAddress(r.to.Anthropic))
	case chosen != nil:
		r.chooseCloud(chosen, chosenFrom, all, own)
	}
	if r.cloud != nil && r.cloud.Instead != "" {
		r.clear(r.cloud, all)
	}
}

// chooseCloud chooses the address of a cloud: the user's own, else the gateway's if it is
// the same cloud. A credential of the cloud is sent to no other address.
func (r *Route) chooseCloud(c *agents.ClaudeCloud, from string, all, own []claudeSettings) {
	address := c.Upstream(func(name string) string { value, _ := r.claudeVariable(own, name); return value })
	same := c.Has(r.to.Anthropic) || address != "" && sameAddress(address, r.to.Anthropic)
	switch {
	case r.to.Running && !same:
		r.problem("%s is on (%s), and the gateway forwards to %s, so Claude Code sends its requests to %s and not to furl; to use the gateway %s", c.Use, from, publicAddress(r.to.Anthropic), c.Title, r.to.Keep("anthropic", cmp.Or(publicAddress(address), c.Address)))
		return
	case r.to.Running, address == "" && same:
		address = r.to.Anthropic
	case address == "":
		r.problem("%s is on (%s), and the address of %s is unknown, so Claude Code sends its requests there and not to furl; to keep that provider %s, where the URL is like %s", c.Use, from, c.Title, r.to.Keep("anthropic", "URL"), c.Address)
	default:
		r.Anthropic = address
	}
	for _, name := range c.Variables() {
		value, file := r.claudeVariable(all, name)
		if mine, _ := r.claudeVariable(own, name); value != mine {
			r.problem("%s sets env.%s to %q, which furl does not follow because the file is part of the project; to use it, set the variable in %s, or %s", file, name, value, r.claudeUser(), r.to.Keep("anthropic", "URL"))
		}
	}
	if address == "" {
		return
	}
	r.cloud = c
	note := fmt.Sprintf("Claude Code uses %s (%s in %s): its requests are forwarded to %s", c.Title, c.Use, from, publicAddress(address))
	if r.Anthropic != "" && !sameAddress(address, r.to.Anthropic) {
		note += fmt.Sprintf(", not to %s; for another address %s", publicAddress(r.to.Anthropic), r.to.Keep("anthropic", "URL"))
	}
	r.notes = append(r.notes, note)
}

// clear empties a variable that Claude Code does not accept together with the base URL.
func (r *Route) clear(c *agents.ClaudeCloud, all []claudeSettings) {
	for _, s := range all {
		if value, ok := s.Env[c.Instead]; !ok || value == "" {
			continue
		}
		if _, set := flagValue(r.command[1:], "--settings"); set || s.managed {
			r.problem("%s sets env.%s, which Claude Code does not accept together with a base URL; remove it for furl, and name the address: %s", s.from, c.Instead, r.to.Keep("anthropic", c.Address))
			return
		}
		r.settings["env"] = map[string]string{c.Instead: ""}
		return
	}
}

// claudeBase finds settings by which Claude Code sends its requests elsewhere, and reports
// whether one has a base URL. c is the cloud that it uses, nil if none.
func (r *Route) claudeBase(all []claudeSettings, c *agents.ClaudeCloud) (elsewhere bool) {
	base := "ANTHROPIC_BASE_URL"
	if c != nil {
		base = c.Base
	}
	for _, s := range all {
		url, ok := s.Env[base].(string)
		if !ok || url == "" {
			continue
		}
		url = WithoutPassword(url)
		trusted := ""
		if s.project {
			trusted = "if you trust that address, "
		}
		r.problem("%s sets env.%s to %s, so Claude Code sends its requests there and not to furl; remove it, and %sto keep that provider %s", s.from, base, url, trusted, r.to.Keep("anthropic", url))
		elsewhere = true
		break // the first one wins
	}
	for _, name := range []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"} {
		if value, from := r.claudeVariable(all, name); agents.On(value) {
			r.problem("%s sets %s, so Claude Code does not use Anthropic's API and its requests do not reach furl", from, name)
		}
	}
	return elsewhere
}

// claudeUser is the file of Claude Code's user settings.
func (r *Route) claudeUser() string { return filepath.Join(r.ClaudeFolder(), "settings.json") }

// connectCodex finds settings by which Codex sends its requests elsewhere, and says what
// replaces them. furl sets model_provider, but a profile beats it.
func (r *Route) connectCodex() {
	c, path := r.codexConfig()
	profile, _ := flagValue(r.command[1:], "-p", "--profile")
	profile = cmp.Or(profile, c["profile"])
	if chosen := c["profiles."+profile+".model_provider"]; profile != "" && chosen != "" && chosen != "openai" {
		r.problem("profile %q in %s sets model_provider to %q, so Codex sends its requests there and not to furl; remove it from the profile%s",
			profile, path, chosen, r.keepProvider(c, chosen))
	}
	if r.keptProvider() != "" {
		return
	}
	chosen := c["model_provider"]
	if chosen == "" || chosen == "openai" || chosen == "furl" {
		r.codexSignIn(c, path)
		return
	}
	r.problem("%s sets model_provider to %q, which furl replaces%s", path, chosen, r.keepProvider(c, chosen))
}

// keepProvider says how to keep a provider of Codex, "" if its address is unknown.
func (r *Route) keepProvider(c map[string]string, name string) string {
	url := c["model_providers."+name+".base_url"]
	if url == "" {
		return ""
	}
	return "; to keep that provider " + r.to.Keep("openai", WithoutPassword(url))
}

// codexSignIn says that Codex has no credential although there is an API key. Its
// built-in provider reads OPENAI_API_KEY only when somebody signs in.
func (r *Route) codexSignIn(c map[string]string, path string) {
	store := c["cli_auth_credentials_store"]
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "auth.json")); path != "" && !os.IsNotExist(err) ||
		store != "" && store != "file" || r.Getenv("CODEX_API_KEY") != "" || r.Getenv("OPENAI_API_KEY") == "" {
		return
	}
	cure := "sign in with codex login, or with that key: printenv OPENAI_API_KEY | codex login --with-api-key"
	if r.folder == "" {
		cure = "add --env CODEX_API_KEY, or --home with a folder that has .codex/auth.json"
	}
	r.problem("Codex is not signed in, and does not read OPENAI_API_KEY: %s", cure)
}

// keptProvider returns the provider in Codex's configuration file whose address is
// that of OpenAI's APIs in the gateway, "" if there is none.
func (r *Route) keptProvider() string {
	c, _ := r.codexConfig()
	name := c["model_provider"]
	url := c["model_providers."+name+".base_url"]
	if url == "" || !sameAddress(url, r.to.Openai) || strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') // such a key is quoted
	}) {
		return ""
	}
	return name
}

// Args returns the arguments that start the agent with a gateway's address. Codex needs
// flags, because it reads its base URL from its configuration file. Its built-in provider
// keeps the sign-in and compacts on the server. Its configured provider is kept if the
// gateway forwards to it.
func (r *Route) Args(url string) []string {
	var own []string
	set := func(key, value string) { own = append(own, "-c", key+`="`+value+`"`) }
	switch name := CommandName(r.command[0]); {
	case name == "claude" && len(r.settings) > 0:
		settings, _ := json.Marshal(r.settings) // strings and maps
		own = []string{"--settings", string(settings)}
	case name != "codex":
	case r.keptProvider() != "":
		set("model_providers."+r.keptProvider()+".base_url", url+"/v1")
	default:
		set("model_provider", "openai")
		set("openai_base_url", url+"/v1")
	}
	return slices.Concat(r.command[:1], own, r.command[1:])
}

// Env returns the variables with which the agent is started. A variable with a
// configuration that the user has set stays.
func (r *Route) Env(url string) []string {
	env := []string{"ANTHROPIC_BASE_URL=" + url, "OPENAI_BASE_URL=" + url + "/v1",
		"GOOGLE_GEMINI_BASE_URL=" + url, "GOOGLE_VERTEX_BASE_URL=" + url, "FURL_URL=" + url}
	if r.cloud != nil {
		env = append(env, r.cloud.Base+"="+url+r.cloud.Path)
		if r.cloud.Instead != "" {
			env = append(env, r.cloud.Instead+"=")
		}
	}
	c, ok := agentOf(r.command)
	if !ok || c.Manual {
		return env
	}
	for _, variable := range c.Env {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(value, "{\"") && r.Getenv(name) != "" || strings.HasSuffix(name, "_BASE_URL") {
			continue
		}
		env = append(env, name+"="+strings.ReplaceAll(value, "{url}", url))
	}
	return env
}

// sameAddress compares two base URLs, with or without a version.
func sameAddress(a, b string) bool {
	path := func(s string) string { return strings.TrimSuffix(strings.TrimSuffix(s, "/"), "/v1") }
	return path(a) == path(b)
}

// publicAddress is a base URL without its password, or what to call an unknown one.
func publicAddress(address string) string {
	switch address {
	case "":
		return "an address that furl does not know"
	case "none":
		return "no provider"
	}
	return WithoutPassword(address)
}

// Print says what may go wrong, and what was chosen.
func (r *Route) Print(w io.Writer) {
	for _, problem := range r.Problems {
		fmt.Fprintf(w, "furl: warning: %s\n", visible.Text(problem))
	}
	for _, note := range r.notes {
		fmt.Fprintf(w, "furl: note: %s\n", visible.Text(note))
	}
}
