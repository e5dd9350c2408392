package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/strictyaml"
)

// MCPServer is an MCP server whose tools furl's own agent has. Its texts have
// variables; see Expanded.
type MCPServer struct {
	Name string

	// Command is the program to start. Env is added to a minimal environment.
	Command string
	Args    []string
	Env     Secrets
	Dir     string

	// URL is the address of a server that is not started by furl.
	URL     string
	Headers Secrets

	// StartTimeout and CallTimeout limit the time until the server is ready, and of
	// a call. If zero, 30 seconds and 10 minutes.
	StartTimeout time.Duration
	CallTimeout  time.Duration
}

// Secrets are values by their names. Printed or encoded, they are the names only.
type Secrets map[string]string

// String returns the names.
func (s Secrets) String() string {
	return "[" + strings.Join(slices.Sorted(maps.Keys(s)), " ") + "]"
}

// GoString returns the names.
func (s Secrets) GoString() string { return s.String() }

// MarshalText returns the names.
func (s Secrets) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

var (
	// mcpName is what package mcptool accepts.
	mcpName    = lazyregexp.New(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`)
	headerName = lazyregexp.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	// mcpVariable is ${VAR} or ${VAR:-default}, or what is meant to be one.
	mcpVariable = lazyregexp.New(`\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\})?`)
)

// readMCPServers reads the servers by their names. Its errors quote no value, because
// each can have a key.
func (c *Config) readMCPServers(v strictyaml.Value) {
	for v := range v.Secret().Entries("names of servers, such as mcp_servers: {files: {command: mcp-files}}") {
		s := MCPServer{Name: v.Name()}
		if len(s.Name) > 32 || !mcpName.MatchString(s.Name) {
			v.ReportKey(fmt.Sprintf("invalid name of a server %.40q", s.Name), `expected 1 to 32 letters, digits, "-" and single "_"`)
		}
		object(map[string]reader{
			"command":       template(&s.Command),
			"args":          templates(&s.Args),
			"env":           secrets(&s.Env, variableName, "the name of a variable: letters, digits and _"),
			"dir":           template(&s.Dir),
			"url":           template(&s.URL),
			"headers":       secrets(&s.Headers, headerName, "the name of a header, such as Authorization"),
			"start_timeout": timeout(&s.StartTimeout),
			"call_timeout":  timeout(&s.CallTimeout),
		})(v)
		s.check(v)
		c.MCPServers = append(c.MCPServers, s)
	}
}

// check reports settings that do not belong together.
func (s *MCPServer) check(v strictyaml.Value) {
	_, command := v.Get("command")
	_, address := v.Get("url")
	if command == address {
		v.ReportKey(fmt.Sprintf("invalid server %.40q", s.Name), "expected either command or url")
		return
	}
	if command && s.Command == "" || address && s.URL == "" {
		v.ReportKey(fmt.Sprintf("invalid server %.40q", s.Name), "its command or url is empty")
	}
	wrong := []string{"args", "env", "dir"}
	if command {
		wrong = []string{"headers"}
	}
	for _, key := range wrong {
		if value, ok := v.Get(key); ok {
			value.ReportKey(fmt.Sprintf("unknown key %q of server %.40q", key, s.Name), "args, env and dir belong to a command, headers to a url")
		}
	}
	if value, ok := v.Get("url"); ok && !strings.Contains(s.URL, "${") && !isHTTP(s.URL) {
		value.Expected("an http or https address")
	}
}

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// template reads a text of one line with variables.
func template(to *string) reader {
	return func(v strictyaml.Value) {
		s, ok := v.Text("text in quotes")
		if !ok {
			return
		}
		*to = s
		if strings.ContainsAny(s, "\r\n\x00") {
			v.Expected("one line")
		}
		for _, m := range mcpVariable.FindAllStringSubmatch(s, -1) {
			if m[1] == "" {
				v.Expected("variables as ${VAR} or ${VAR:-default}")
				return
			}
		}
	}
}

func templates(to *[]string) reader {
	return func(v strictyaml.Value) {
		for item := range v.List("a list of arguments, such as [--verbose]") {
			var s string
			template(&s)(item)
			*to = append(*to, s)
		}
	}
}

func secrets(to *Secrets, name *lazyregexp.Regexp, expected string) reader {
	return func(v strictyaml.Value) {
		*to = make(Secrets)
		for v := range v.Entries("names with values") {
			if !name.MatchString(v.Name()) {
				v.ReportKey(fmt.Sprintf("invalid name %.40q", v.Name()), "expected "+expected)
			}
			var s string
			template(&s)(v)
			(*to)[v.Name()] = s
		}
	}
}

func timeout(to *time.Duration) reader {
	return func(v strictyaml.Value) {
		const expected = "a duration such as 30s or 10m"
		*to = time.Duration(quantity(v, expected, map[string]int64{"s": int64(time.Second), "m": int64(time.Minute), "h": int64(time.Hour)}))
	}
}

// Expanded returns the server with its variables replaced, and "~/" at the beginning of
// Command and Dir by the home folder.
func (s MCPServer) Expanded() (MCPServer, error) {
	missing := s.Missing()
	if len(missing) > 0 {
		return s, fmt.Errorf("mcp_servers.%s: the environment variable %s is not set; set it, or write a default as ${%s:-value}",
			s.Name, strings.Join(missing, ", "), missing[0])
	}
	s.replace(func(text string) string { return mcpVariable.ReplaceAllStringFunc(text, variableValue) })
	if s.URL != "" && !isHTTP(s.URL) {
		return s, fmt.Errorf("mcp_servers.%s.url: expected an http or https address after its variables are replaced", s.Name)
	}
	var failed error
	for _, place := range []*string{&s.Command, &s.Dir} {
		path, err := belowHome("mcp_servers."+s.Name+":", *place)
		*place, failed = path, errors.Join(failed, err)
	}
	for name, value := range s.Headers {
		if strings.ContainsAny(value, "\r\n\x00") {
			failed = errors.Join(failed, fmt.Errorf("mcp_servers.%s.headers.%s: expected one line after its variables are replaced", s.Name, name))
		}
	}
	return s, failed
}

// Missing returns the names of the variables that have no value and no default.
func (s MCPServer) Missing() []string {
	var names []string
	s.replace(func(text string) string {
		for _, m := range mcpVariable.FindAllStringSubmatch(text, -1) {
			if m[2] == "" && os.Getenv(m[1]) == "" && !slices.Contains(names, m[1]) {
				names = append(names, m[1])
			}
		}
		return text
	})
	slices.Sort(names)
	return names
}

func variableValue(variable string) string {
	m := mcpVariable.FindStringSubmatch(variable)
	return cmp.Or(os.Getenv(m[1]), strings.TrimPrefix(m[2], ":-"))
}

// replace replaces the texts with variables. It clones what s shares with others.
func (s *MCPServer) replace(change func(string) string) {
	s.Args, s.Env, s.Headers = slices.Clone(s.Args), maps.Clone(s.Env), maps.Clone(s.Headers)
	for _, to := range []*string{&s.Command, &s.Dir, &s.URL} {
		*to = change(*to)
	}
	for i := range s.Args {
		s.Args[i] = change(s.Args[i])
	}
	for _, values := range []Secrets{s.Env, s.Headers} {
		for name := range values {
			values[name] = change(values[name])
		}
	}
}
