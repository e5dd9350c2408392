package config

import (
	"fmt"
	"math"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/origin"
	"github.com/furlhq/furl/internal/strictyaml"
	"github.com/furlhq/furl/policy"
)

// Parse parses a configuration that chooses among the policies of the set, and
// sets their options; nil means the presets. Its errors name the file, the key
// and the line.
func Parse(name string, data []byte, policies *policy.Set) (*Config, error) {
	c := &Config{set: Policies(policies)}
	// These refer to each other, in any order.
	var chosen, options, models *strictyaml.Value
	keys := map[string]reader{
		"store":    text(&c.Store),
		"catalog":  text(&c.Catalog),
		"policy":   later(&chosen),
		"policies": later(&options),
		"models":   later(&models),

		"rolling_context":            onOff(&c.RollingContext),
		"context_management_enabled": onOff(&c.ContextManagement),
		"ask_first":                  onOff(&c.AskFirst),
		"keep_tools":                 tools(&c.Tools.KeepTools),
		"exclude_tools":              tools(&c.Tools.ExcludeTools),
		"repair_edits":               onOff(&c.RepairEdits),
		"projects":                   c.readProjects,
		"retention": object(map[string]reader{
			"age":     duration(&c.Retention.Age),
			"size":    size(&c.Retention.Size),
			"tenants": c.readTenantAges,
		}),
		"embeddings": object(map[string]reader{
			"url":     address(&c.Embeddings.URL),
			"model":   text(&c.Embeddings.Model),
			"key_env": keyVariable(&c.Embeddings.KeyEnv),
		}),
		"encryption": object(map[string]reader{
			"key_file": text(&c.Encryption.KeyFile),
			"key_env":  keyVariable(&c.Encryption.KeyEnv),
		}),
		"summaries": object(map[string]reader{
			"model":   text(&c.Summaries.Model),
			"key_env": keyVariable(&c.Summaries.KeyEnv),
			"at_once": count(&c.Summaries.AtOnce),
			"timeout": duration(&c.Summaries.Timeout),
		}),
		"telemetry": object(map[string]reader{
			"traces":   oneOf(&c.Telemetry.Traces, "otlp", "none"),
			"endpoint": address(&c.Telemetry.Endpoint),
		}),
		"audit":       c.readAudit,
		"chat":        c.readChat,
		"mcp_servers": c.readMCPServers,
		"gateway": object(map[string]reader{
			"listen":            listen(&c.Gateway.Listen),
			"anthropic":         address(&c.Gateway.Anthropic, "none"),
			"openai":            address(&c.Gateway.OpenAI, "none"),
			"gemini":            address(&c.Gateway.Gemini, "none"),
			"chatgpt":           address(&c.Gateway.ChatGPT, "none"),
			"tls":               c.readTLS,
			"client_keys_env":   keyVariable(&c.Gateway.ClientKeysEnv),
			"client_keys_file":  text(&c.Gateway.ClientKeysFile),
			"keys_file":         text(&c.Gateway.KeysFile),
			"trusted_proxy":     c.readTrustedProxy,
			"operator_key_env":  keyVariable(&c.Gateway.OperatorKeyEnv),
			"operator_key_file": text(&c.Gateway.OperatorKeyFile),
			"tenants":           boolean(&c.Gateway.Tenants),
			"tenant_by":         oneOf(&c.Gateway.TenantBy, "key", "credential", "both"),
			"oidc":              c.readOIDC,
			"limits":            c.readLimits,
			"hosts":             hosts(&c.Gateway.Hosts),
			"origins":           origins(&c.Gateway.Origins),
			"max_body":          size(&c.Gateway.MaxBody),
			"max_requests":      count(&c.Gateway.MaxRequests),
			"refuse":            boolean(&c.Gateway.Refuse),
			"log":               oneOf(&c.Gateway.Log, "debug", "info", "warn", "error"),
			"threads":           oneOf(&c.Gateway.Threads, "refuse", "pass"),
			"billing_header":    oneOf(&c.Gateway.BillingHeader, "pass", "hold"),
			"dry_run":           boolean(&c.Gateway.DryRun),
			"keep_alive":        pings(&c.Gateway.KeepAlive),
			"cache_1h":          onOff(&c.Gateway.HourCache),
			"models_api":        onOff(&c.Gateway.ModelsAPI),
			"recall":            boolean(&c.Gateway.Recall),
			"commands":          onOff(&c.Gateway.Commands),
			"page":              onOff(&c.Gateway.Page),
			"drain_delay":       timeout(&c.Gateway.DrainDelay),
			"finish":            timeout(&c.Gateway.Finish),
		}),
		"mcp": object(map[string]reader{
			"follow":     boolean(&c.MCP.Follow),
			"folders":    folders(&c.MCP.Folders),
			"token_env":  keyVariable(&c.MCP.TokenEnv),
			"hosts":      hosts(&c.MCP.Hosts),
			"origins":    origins(&c.MCP.Origins),
			"operations": names(&c.MCP.Operations, "a list of operations, such as [pin, unpin, restore]"),
		}),
	}
	err := strictyaml.Parse(name, data, func(root strictyaml.Value) {
		if _, ok := root.Get("options"); ok {
			keys["options"] = movedOptions
		}
		object(keys)(root)
		if options != nil {
			c.readPolicies(*options)
		}
		if chosen != nil {
			c.policyName(&c.Policy)(*chosen)
		}
		if models != nil {
			c.readRules(*models)
		}
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// reader reads a value into a field of the configuration.
type reader = func(strictyaml.Value)

func object(keys map[string]reader) reader {
	return func(v strictyaml.Value) {
		for read, v := range strictyaml.Object(v, keys) {
			read(v)
		}
	}
}

// later keeps the value, to be read after the others.
func later(to **strictyaml.Value) reader {
	return func(v strictyaml.Value) { *to = &v }
}

func text(to *string) reader {
	return func(v strictyaml.Value) { *to, _ = v.Text("text") }
}

var (
	variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	hostName     = lazyregexp.New(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)
)

// keyVariable reads the name of an environment variable that holds a key. The
// error does not quote the value, which may be the key itself.
func keyVariable(to *string) reader {
	return func(v strictyaml.Value) {
		const expected = "the name of the environment variable that holds the key (letters, digits and _), not the key itself"
		s, ok := v.Text(expected)
		if ok && s != "" && !variableName.MatchString(s) {
			v.Report("invalid "+v.Key(), "expected "+expected)
			return
		}
		*to = s
	}
}

// hosts reads the names of hosts.
func hosts(to *[]string) reader {
	return func(v strictyaml.Value) {
		for item := range v.List("a list of host names, such as [furl.internal]") {
			const expected = "a host name such as furl.internal, without http:// and port"
			s, ok := item.Text(expected)
			if ok && !hostName.MatchString(s) {
				item.Expected(expected)
			}
			*to = append(*to, s)
		}
	}
}

// names reads a list of names. The list is not nil, also if it is empty.
func names(to *[]string, expected string) reader {
	return func(v strictyaml.Value) {
		*to = []string{}
		for item := range v.List(expected) {
			if s, ok := item.Text(expected); ok {
				*to = append(*to, s)
			}
		}
	}
}

// folders reads paths of folders: absolute ones, or ones below ~.
func folders(to *[]string) reader {
	return func(v strictyaml.Value) {
		for item := range v.List("a list of folders, such as [~/recordings]") {
			var s string
			folder(&s)(item)
			*to = append(*to, s)
		}
	}
}

func folder(to *string) reader {
	return func(v strictyaml.Value) {
		const expected = "an absolute path such as /srv/recordings, or one that starts with ~/"
		s, ok := v.Text(expected)
		if ok && !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/") {
			v.Expected(expected)
		}
		*to = s
	}
}

// origins reads the origins of web pages, as browsers send them.
func origins(to *[]string) reader {
	return func(v strictyaml.Value) {
		for item := range v.List("a list of origins, such as [https://app.example]") {
			s, ok := item.Text("an origin such as https://app.example")
			if err := origin.Check(s); ok && err != nil {
				item.Report("invalid "+item.Key(), err.Error())
			}
			*to = append(*to, s)
		}
	}
}

func boolean(to *bool) reader {
	return func(v strictyaml.Value) { *to, _ = v.Bool() }
}

// onOff reads a switch that has a default.
func onOff(to **bool) reader {
	return func(v strictyaml.Value) {
		on, _ := v.Bool()
		*to = &on
	}
}

func count(to *int) reader {
	return func(v strictyaml.Value) {
		n, _ := v.Whole("a whole number", math.MaxInt32)
		*to = int(n)
	}
}

// pings reads a number of pings per pause.
func pings(to *int) reader {
	return func(v strictyaml.Value) {
		n, _ := v.Whole(fmt.Sprintf("a number of pings from 0 to %d", MaxKeepAlive), MaxKeepAlive)
		*to = int(n)
	}
}

// oneOf reads one of a few words.
func oneOf(to *string, words ...string) reader {
	return func(v strictyaml.Value) { *to, _ = v.OneOf(words...) }
}

// address reads an http or https address, or one of a few words.
func address(to *string, words ...string) reader {
	return func(v strictyaml.Value) {
		expected := strings.Join(append([]string{"an http or https address"}, words...), " or ")
		s, ok := v.Text(expected)
		switch u, err := url.Parse(s); {
		case !ok || slices.Contains(words, s):
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			v.Expected(expected)
		case u.Port() != "" && !isPort(u.Port()):
			v.Expected("a port from 1 to 65535")
		}
		*to = s
	}
}

// listen reads an address to listen on. Port 0 is any free port.
func listen(to *string) reader {
	return func(v strictyaml.Value) {
		const expected = "an address and a port such as 127.0.0.1:7410"
		s, ok := v.Text(expected)
		switch _, port, err := net.SplitHostPort(s); {
		case !ok || s == "" || err != nil: // without a port, furl serve does not start
		case port != "0" && !isPort(port):
			v.Expected("a port from 0 to 65535, where 0 is any free port")
		}
		*to = s
	}
}

// isPort reports whether a text is the number or the name of a port.
func isPort(s string) bool {
	n, err := net.LookupPort("tcp", s)
	return err == nil && n > 0
}

// pattern reads a pattern of path.Match.
func pattern(to *string) reader {
	return func(v strictyaml.Value) {
		const expected = "a pattern such as claude-*"
		s, ok := v.Text(expected)
		if _, err := path.Match(s, ""); ok && (err != nil || s == "") {
			v.Expected(expected)
		}
		*to = s
	}
}

// quantity reads a number that may have a unit, in multiples of the smallest
// unit.
func quantity(v strictyaml.Value, expected string, units map[string]int64) int64 {
	s, ok := v.Text(expected)
	if !ok {
		return 0
	}
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit, ok := units[strings.ToLower(strings.TrimSpace(s[len(digits):]))]
	f, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || f < 0 || f*float64(unit) > 1<<62 {
		v.Expected(expected)
		return 0
	}
	return int64(f * float64(unit))
}

func tokens(to *int) reader {
	return func(v strictyaml.Value) {
		*to = int(quantity(v, "a number of tokens such as 200000 or 200k", tokenUnits))
	}
}

var tokenUnits = map[string]int64{"": 1, "k": 1000, "m": 1e6}

// dollars reads an amount of money. Zero would read like a limit that allows nothing, and
// be none.
func dollars(to *float64) reader {
	return func(v strictyaml.Value) {
		const expected = "an amount in US dollars such as 20 or 2.50, more than 0"
		amount, ok := v.Number(expected, 1e9)
		if ok && amount == 0 {
			v.Expected(expected)
		}
		*to = amount
	}
}

// someTokens reads a number of tokens above zero, for the same reason.
func someTokens(to *int) reader {
	return func(v strictyaml.Value) {
		const expected = "a number of tokens such as 20M, more than 0"
		if *to = int(quantity(v, expected, tokenUnits)); *to != 0 {
			return
		}
		if s, ok := v.Text(expected); ok && strings.Trim(s, "0.kKmM ") == "" && s != "" {
			v.Expected(expected)
		}
	}
}

func size(to *int64) reader {
	return func(v strictyaml.Value) {
		*to = quantity(v, "a size such as 500MB or 20GB", map[string]int64{"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12})
	}
}

func duration(to *time.Duration) reader {
	return func(v strictyaml.Value) {
		*to = time.Duration(quantity(v, "a duration such as 12h or 90d", map[string]int64{
			"m": int64(time.Minute), "h": int64(time.Hour), "d": 24 * int64(time.Hour), "w": 7 * 24 * int64(time.Hour),
		}))
	}
}
