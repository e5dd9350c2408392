package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/strictyaml"
	"github.com/furlhq/furl/policy"
)

// anOption shows where the options of a policy are.
const anOption = "policies: {compaction: {context_threshold: 0.8}}"

// movedOptions reports a key of former versions.
func movedOptions(v strictyaml.Value) {
	v.ReportKey(`unknown key "options"`, "write options below the name of their policy, such as "+anOption+", and rolling_context and context_management_enabled as keys of the file")
}

// policyName reads the name of a policy.
func (c *Config) policyName(to *string) reader {
	return func(v strictyaml.Value) {
		if *to, _ = v.Text("the name of a policy"); *to == "" {
			return
		}
		_, options := c.Policies[*to] // errors in them are reported there
		if _, err := c.set.Policy(*to, policy.Settings{}); err != nil && !options {
			reportPolicyError(v, err)
		}
	}
}

// readPolicies reads the options of policies, by the policies' names.
func (c *Config) readPolicies(v strictyaml.Value) {
	c.Policies = make(map[string]string)
	for v := range v.Entries("names of policies with their options, such as " + anOption) {
		name := v.Name()
		_, err := c.set.Policy(name, policy.Settings{})
		known := c.set.Has(name)
		switch {
		case err == nil && !known: // safeguard, auto:results
			v.ReportKey(fmt.Sprintf("%q is another name, without options of its own", name), "choose one of "+strings.Join(c.set.Names(), ", "))
		case name == "" || !known && strings.ContainsAny(name, ": "):
			v.ReportKey(fmt.Sprintf("invalid policy name %.80q", name), "expected a name without colons and blanks")
		default:
			c.Policies[name] = configure(v, name, c.set)
		}
	}
}

// configure sets the options of a policy and returns them as JSON.
func configure(v strictyaml.Value, name string, set *policy.Set) string {
	var value any
	if !v.Decode(&value) {
		return ""
	}
	if value == nil { // a name without options
		value = map[string]any{}
	}
	data, err := json.Marshal(value)
	if err != nil { // such as NaN, which JSON does not have
		v.Report(fmt.Sprintf("invalid options of policy %q", name), strings.TrimPrefix(err.Error(), "json: "))
		return ""
	}
	for _, err := range each(set.Configure(name, data)) {
		at := v
		if o, ok := errors.AsType[*policy.OptionError](err); ok {
			at = v.At(o.Path)
			if len(o.Path) == 1 && (o.Path[0] == "rolling_context" || o.Path[0] == "context_management_enabled") {
				at.ReportKey(fmt.Sprintf("%s is not an option of policy %q", o.Path[0], name), "write it at the top of the file")
				continue
			}
		}
		reportPolicyError(at, err)
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

// wrongAndRight matches an error that says what is wrong, then ": " and what was
// expected. Colons in quotes do not count.
var wrongAndRight = lazyregexp.New(`(?s)^((?::?"(?:[^"\\]|\\.)*"|:[^ "]|[^":])+): (.*)$`)

// reportPolicyError reports an error of a policy's name or options at the line of
// the value's key.
func reportPolicyError(v strictyaml.Value, err error) {
	what, remedy := err.Error(), ""
	if m := wrongAndRight.FindStringSubmatch(what); m != nil {
		what, remedy = m[1], m[2]
	}
	v.ReportKey(what, remedy)
}

// readRules reads the policies of single models.
func (c *Config) readRules(v strictyaml.Value) {
	for item := range v.List(`a list of rules, each starting with "- model: PATTERN"`) {
		var r Rule
		var options *strictyaml.Value
		object(map[string]reader{
			"model":   pattern(&r.Model),
			"policy":  c.policyName(&r.Policy),
			"window":  tokens(&r.Window),
			"options": later(&options),
		})(item)
		item.Require("model", "expected a pattern such as claude-*")
		set := c.set
		switch {
		case options == nil:
		case r.Policy == "":
			options.ReportKey("options without a policy", "name the policy of this model too")
		default:
			set = c.set.Clone()
			r.Options = configure(*options, r.Policy, set)
		}
		c.Models, c.ruleSets = append(c.Models, r), append(c.ruleSets, set)
	}
}

// tools reads names of tools, or patterns.
func tools(to *[]string) reader {
	return func(v strictyaml.Value) {
		names(to, "a list of names of tools, such as [mcp__jira__*]")(v)
		if err := (policy.ToolOptions{KeepTools: *to}).Validate(); err != nil {
			v.Report("invalid "+v.Key(), err.Error())
		}
	}
}

// readProjects reads which tools' results stay in some folders.
func (c *Config) readProjects(v strictyaml.Value) {
	for item := range v.List(`a list of folders, each starting with "- project: FOLDER"`) {
		var p policy.ProjectTools
		object(map[string]reader{
			"project":       folder(&p.Project),
			"keep_tools":    tools(&p.KeepTools),
			"exclude_tools": tools(&p.ExcludeTools),
		})(item)
		item.Require("project", "expected a folder such as ~/code/shop")
		c.Projects = append(c.Projects, p)
	}
}
