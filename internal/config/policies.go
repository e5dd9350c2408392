package config

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/furlhq/furl/policy"
)

// anOption shows where the options of a policy are.
const anOption = "policies: {compaction: {context_threshold: 0.8}}"

// moved are keys of former versions, and what to write instead.
var moved = map[string]string{
	"options": "write options below the name of their policy, such as " + anOption + ", and rolling_context and context_management_enabled as keys of the file",
}

// policy reads the name of a policy.
func (p *parser) policy(to *string, c *Config) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if p.text(to)(n); *to == "" {
			return
		}
		_, options := c.Policies[*to] // errors in them are reported there
		if _, err := c.set.Policy(*to, policy.Settings{}); err != nil && !options {
			p.errorf(n, "%s", err)
		}
	}
}

// policies reads the options of policies, by the policies' names.
func (p *parser) policies(n *yaml.Node, c *Config) {
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "expected names of policies with their options, such as %s", anOption)
		return
	}
	c.Policies = make(map[string]string)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		_, err := c.set.Policy(name, policy.Settings{})
		known := slices.Contains(c.set.Names(), name)
		switch _, twice := c.Policies[name]; {
		case twice:
			p.errorf(key, "%q stands here twice", name)
		case err == nil && !known: // safeguard, auto:calls
			p.errorf(key, "%q is another name, without options of its own: choose one of %s", name, strings.Join(c.set.Names(), ", "))
		case name == "" || !known && strings.ContainsAny(name, ": "):
			p.errorf(key, "invalid policy name %q: expected a name without colons and blanks", name)
		default:
			c.Policies[name] = p.options(key, value, name, c.set)
		}
	}
}

// options sets the options of a policy and returns them as JSON.
func (p *parser) options(key, n *yaml.Node, name string, set *policy.Set) string {
	var value any
	if err := n.Decode(&value); err != nil {
		if several, ok := errors.AsType[*yaml.TypeError](err); ok { // such as a key that is there twice
			err = errors.New(strings.Join(several.Errors, "; "))
		}
		p.errorf(n, "%s", plain(err))
		return ""
	}
	if value == nil { // a name without options
		value = map[string]any{}
	}
	data, err := json.Marshal(value)
	if err != nil { // such as NaN, which JSON does not have
		p.errorf(n, "invalid options of policy %q: %s", name, strings.TrimPrefix(err.Error(), "json: "))
		return ""
	}
	err = set.Configure(name, data)
	for _, err := range each(err) {
		at := key
		if o := (*policy.OptionError)(nil); errors.As(err, &o) && len(o.Path) > 0 {
			at = nodeAt(n, o.Path)
			if moved := o.Path[len(o.Path)-1]; len(o.Path) == 1 && (moved == "rolling_context" || moved == "context_management_enabled") {
				p.errorf(at, "%s is not an option of policy %q: write it at the top of the file", moved, name)
				continue
			}
		}
		p.errorf(at, "%s", err)
	}
	return string(data)
}

// each returns the errors that an error joins.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return nil
}

// nodeAt is the node that a path of keys and indexes leads to: of a key the key
// itself, whose line is the one to look at.
func nodeAt(n *yaml.Node, path []string) *yaml.Node {
	at := n
	for _, step := range path {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		switch index, err := strconv.Atoi(step); {
		case n.Kind == yaml.SequenceNode && err == nil && index < len(n.Content):
			n = n.Content[index]
			at = n
		case n.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == step {
					at, n = n.Content[i], n.Content[i+1]
					break
				}
			}
		}
	}
	return at
}

// rules reads the policies of single models.
func (p *parser) rules(n *yaml.Node, c *Config) {
	if n.Kind != yaml.SequenceNode {
		p.errorf(n, "a list is expected here: - model: PATTERN")
		return
	}
	for _, item := range n.Content {
		var r Rule
		var options *yaml.Node
		p.fields(item, map[string]func(*yaml.Node){
			"model":   p.text(&r.Model),
			"policy":  p.policy(&r.Policy, c),
			"window":  p.tokens(&r.Window),
			"options": func(n *yaml.Node) { options = n },
		})
		if _, err := path.Match(r.Model, ""); err != nil || r.Model == "" {
			p.errorf(item, "model: a pattern such as claude-* is expected, not %q", r.Model)
		}
		set := c.set
		switch {
		case options == nil:
		case r.Policy == "":
			p.errorf(options, "options without a policy: name the policy of this model too")
		default:
			set = c.set.Clone()
			r.Options = p.options(options, options, r.Policy, set)
		}
		c.Models, c.ruleSets = append(c.Models, r), append(c.ruleSets, set)
	}
}

// onOff reads a switch that has a default.
func (p *parser) onOff(to **bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		var on bool
		p.yes(&on)(n)
		*to = &on
	}
}
