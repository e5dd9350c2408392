package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/furlhq/furl/internal/origin"
	"github.com/furlhq/furl/policy"
)

// Parse reads a configuration that chooses among the policies of the set, and
// sets their options; nil means the presets. All its errors name the file and the
// line.
func Parse(name string, data []byte, policies *policy.Set) (*Config, error) {
	p := &parser{name: name}
	if policies == nil {
		policies = policy.NewSet()
	}
	c := &Config{set: policies.Clone()}
	var chosen, options, models *yaml.Node // which refer to each other, in whatever order
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return c, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, plain(err))
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:%d: a second document; one is enough", name, max(more.Line, 1))
	}
	p.fields(doc.Content[0], map[string]func(*yaml.Node){
		"store":    p.text(&c.Store),
		"catalog":  p.text(&c.Catalog),
		"policy":   func(n *yaml.Node) { chosen = n },
		"policies": func(n *yaml.Node) { options = n },
		"models":   func(n *yaml.Node) { models = n },

		"rolling_context":            p.onOff(&c.RollingContext),
		"context_management_enabled": p.onOff(&c.ContextManagement),
		"retention": p.object(map[string]func(*yaml.Node){
			"age":  p.age(&c.Retention.Age),
			"size": p.size(&c.Retention.Size),
		}),
		"embeddings": p.object(map[string]func(*yaml.Node){
			"url":     p.url(&c.Embeddings.URL),
			"model":   p.text(&c.Embeddings.Model),
			"key_env": p.variable(&c.Embeddings.KeyEnv),
		}),
		"summaries": p.object(map[string]func(*yaml.Node){
			"model":   p.text(&c.Summaries.Model),
			"at_once": p.count(&c.Summaries.AtOnce),
			"timeout": p.age(&c.Summaries.Timeout),
		}),
		"telemetry": p.object(map[string]func(*yaml.Node){
			"traces":   p.oneOf(&c.Telemetry.Traces, "otlp", "none"),
			"endpoint": p.url(&c.Telemetry.Endpoint),
		}),
		"gateway": p.object(map[string]func(*yaml.Node){
			"listen":            p.text(&c.Gateway.Listen),
			"anthropic":         p.address(&c.Gateway.Anthropic),
			"openai":            p.address(&c.Gateway.OpenAI),
			"client_keys_env":   p.variable(&c.Gateway.ClientKeysEnv),
			"client_keys_file":  p.text(&c.Gateway.ClientKeysFile),
			"operator_key_env":  p.variable(&c.Gateway.OperatorKeyEnv),
			"operator_key_file": p.text(&c.Gateway.OperatorKeyFile),
			"tenants":           p.yes(&c.Gateway.Tenants),
			"tenant_by":         p.oneOf(&c.Gateway.TenantBy, "key", "credential", "both"),
			"hosts":             p.hosts(&c.Gateway.Hosts),
			"origins":           p.origins(&c.Gateway.Origins),
			"max_body":          p.size(&c.Gateway.MaxBody),
			"max_requests":      p.count(&c.Gateway.MaxRequests),
			"refuse":            p.yes(&c.Gateway.Refuse),
			"log":               p.oneOf(&c.Gateway.Log, "debug", "info", "warn", "error"),
			"dry_run":           p.yes(&c.Gateway.DryRun),
			"recall":            p.yes(&c.Gateway.Recall),
		}),
	})
	if options != nil {
		p.policies(options, c)
	}
	if chosen != nil {
		p.policy(&c.Policy, c)(chosen)
	}
	if models != nil {
		p.rules(models, c)
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return c, nil
}

// plain takes the YAML reader's name off its errors.
func plain(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
}

type parser struct {
	name string
	errs []error
}

// maxErrors bounds how many errors are told at once.
const maxErrors = 20

func (p *parser) errorf(n *yaml.Node, format string, args ...any) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, fmt.Errorf("%s:%d: %s", p.name, n.Line, fmt.Sprintf(format, args...)))
	}
}

// fields reads an object whose keys are known.
func (p *parser) fields(n *yaml.Node, known map[string]func(*yaml.Node)) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "keys with values are expected here")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := known[key.Value]
		switch moved, was := moved[key.Value]; {
		case !ok && was:
			p.errorf(key, "unknown key %q: %s", key.Value, moved)
		case !ok:
			p.errorf(key, "there is no key %q here; there are %s", key.Value, keys(known))
		case seen[key.Value]:
			p.errorf(key, "%q stands here twice", key.Value)
		case value.Kind == yaml.AliasNode:
			p.errorf(value, "write the value itself, not *%s", value.Value)
		default:
			read(value)
		}
		seen[key.Value] = true
	}
}

func keys[T any](m map[string]T) string {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (p *parser) object(known map[string]func(*yaml.Node)) func(*yaml.Node) {
	return func(n *yaml.Node) { p.fields(n, known) }
}

func (p *parser) text(to *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			p.errorf(n, "a text is expected here")
			return
		}
		*to = n.Value
	}
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	hostName     = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)
)

// variable reads the name of an environment variable. What stands there instead
// may be the key itself, which is not to be told.
func (p *parser) variable(to *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if p.text(to)(n); *to != "" && !variableName.MatchString(*to) {
			p.errorf(n, "the name of an environment variable is expected here, of letters, digits and _; the key itself stands in the variable")
			*to = ""
		}
	}
}

// hosts reads names of hosts as they stand in a request, the port aside.
func (p *parser) hosts(to *[]string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.SequenceNode {
			p.errorf(n, "a list of host names is expected here, such as [furl.internal]")
			return
		}
		for _, item := range n.Content {
			var s string
			if p.text(&s)(item); !hostName.MatchString(s) {
				p.errorf(item, "the name of a host is expected here, such as furl.internal, without http:// and port, not %q", s)
			}
			*to = append(*to, s)
		}
	}
}

// origins reads origins of web pages, as browsers send them.
func (p *parser) origins(to *[]string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.SequenceNode {
			p.errorf(n, "expected a list of origins, such as [https://app.example]")
			return
		}
		for _, item := range n.Content {
			if err := origin.Check(item.Value); item.Kind != yaml.ScalarNode || err != nil {
				p.errorf(item, "invalid origin: %v", err)
			}
			*to = append(*to, item.Value)
		}
	}
}

func (p *parser) yes(to *bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Tag != "!!bool" || n.Decode(to) != nil {
			p.errorf(n, "true or false is expected here, not %q", n.Value)
		}
	}
}

func (p *parser) count(to *int) func(*yaml.Node) {
	return func(n *yaml.Node) { *to = int(p.number(n, "a number", map[string]int64{"": 1})) }
}

// oneOf reads one of a few words.
func (p *parser) oneOf(to *string, words ...string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if p.text(to)(n); !slices.Contains(words, *to) {
			p.errorf(n, "it is one of %s, not %q", strings.Join(words, ", "), n.Value)
		}
	}
}

// url reads an address.
func (p *parser) url(to *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		p.text(to)(n)
		if u, err := url.Parse(*to); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			p.errorf(n, "an http or https address is expected here, not %q", n.Value)
		}
	}
}

// address reads a base address, or "none".
func (p *parser) address(to *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		p.text(to)(n)
		if u, err := url.Parse(*to); *to != "none" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			p.errorf(n, "an http or https address is expected here, or none, not %q", n.Value)
		}
	}
}

// number reads a count with a unit behind it.
func (p *parser) number(n *yaml.Node, what string, units map[string]int64) int64 {
	digits := strings.TrimRight(n.Value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit, ok := units[strings.ToLower(strings.TrimSpace(n.Value[len(digits):]))]
	f, err := strconv.ParseFloat(digits, 64)
	if n.Kind != yaml.ScalarNode || !ok || err != nil || f < 0 || f*float64(unit) > 1<<62 {
		p.errorf(n, "%s is expected here, not %q", what, n.Value)
		return 0
	}
	return int64(f * float64(unit))
}

func (p *parser) tokens(to *int) func(*yaml.Node) {
	return func(n *yaml.Node) {
		*to = int(p.number(n, "a number of tokens such as 200000 or 200k", map[string]int64{"": 1, "k": 1000, "m": 1e6}))
	}
}

func (p *parser) size(to *int64) func(*yaml.Node) {
	return func(n *yaml.Node) {
		*to = p.number(n, "a size such as 500MB or 20GB", map[string]int64{"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12})
	}
}

func (p *parser) age(to *time.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		*to = time.Duration(p.number(n, "a length of time such as 12h or 90d", map[string]int64{
			"m": int64(time.Minute), "h": int64(time.Hour), "d": 24 * int64(time.Hour), "w": 7 * 24 * int64(time.Hour),
		}))
	}
}
