package open

import (
	"errors"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/storage"
)

// The settings of a session that its plans follow, see package session.
const (
	SettingRolling    = "rolling_context"
	SettingManagement = "context_management_enabled"
	SettingThreshold  = "context_threshold"
	SettingLimit      = "context_limit"
	SettingAskFirst   = "ask_first"
	// SettingKeepTools and SettingExcludeTools have names of tools; see ParseTools.
	SettingKeepTools    = "keep_tools"
	SettingExcludeTools = "exclude_tools"
	SettingRepairEdits  = "repair_edits"
	// SettingRecall has the names of a session's recall tools. It is set with the first
	// request and never changed: tools are at the start of a prompt, so adding or removing
	// one invalidates the prompt cache. Session.Set does not accept it.
	SettingRecall = "recall_tools"
)

// ParseSwitch parses "on" or "off". It returns nil for "".
func ParseSwitch(value string) (*bool, error) {
	switch value {
	case "":
		return nil, nil
	case "on", "true":
		return new(true), nil
	case "off", "false":
		return new(false), nil
	}
	return nil, errors.New("expected on or off")
}

// NoTools is the value of SettingExcludeTools for an empty list.
const NoTools = "none"

// ParseTools parses names of tools, separated by commas. It returns nil for "", and an empty
// list for NoTools.
func ParseTools(value string) []string {
	switch value {
	case "":
		return nil
	case NoTools:
		return []string{}
	}
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// PolicySettings returns the settings of all sessions, overridden by the session's
// own. A session cannot override Off.
func (c *Change) PolicySettings() policy.Settings {
	set := c.all.live().Settings.In(c.Meta().Project)
	set.ToolOptions = set.Plus(policy.ToolOptions{
		ExcludeTools: ParseTools(c.Meta().Settings[SettingExcludeTools]),
		KeepTools:    ParseTools(c.Meta().Settings[SettingKeepTools]),
	})
	if on, err := ParseSwitch(c.Meta().Settings[SettingRolling]); err == nil && on != nil {
		set.RollingContext = on
	}
	if on, err := ParseSwitch(c.Meta().Settings[SettingRepairEdits]); err == nil && on != nil {
		set.RepairEdits = on
	}
	if on, err := ParseSwitch(c.Meta().Settings[SettingManagement]); err == nil && on != nil {
		set.Off = set.Off || !*on
	}
	if f, err := strconv.ParseFloat(c.Meta().Settings[SettingThreshold], 64); err == nil && f > 0 && f <= 1 {
		set.Threshold = f
	}
	set.AskFirst = c.asksFirst()
	return set
}

// PolicyName returns the name of the session's policy.
func (c *Change) PolicyName() string {
	if c.Meta().Policy != "" {
		return c.Meta().Policy
	}
	return c.all.live().Policy
}

// Policy returns the session's policy. If it does not exist any more, plans returns
// the default policy.
func (c *Change) Policy() (furl.Policy, error) {
	live := c.all.live()
	own := c.newMeta != nil && !samePolicy(c.newMeta, &c.s.meta)
	if !own && c.s.policy != nil && c.s.policyOptions == live {
		return c.s.policy, nil
	}
	p, err := live.Policies.Policy(c.PolicyName(), c.PolicySettings())
	if err != nil && c.Meta().Policy != "" {
		c.all.log.Warn("unknown or invalid policy of session: using the default policy", "session", c.key.Session, "policy", c.Meta().Policy, "error", err)
		p, err = live.Policies.Policy(live.Policy, c.PolicySettings())
	}
	if err != nil {
		return nil, err
	}
	if !own {
		c.s.policy, c.s.policyOptions = p, live
	}
	return p, nil
}

// samePolicy reports whether the policies by metadata are the same.
func samePolicy(a, b *storage.Meta) bool {
	return a.Policy == b.Policy && a.Project == b.Project && maps.Equal(a.Settings, b.Settings)
}

func SameMeta(a, b storage.Meta) bool { return reflect.DeepEqual(a, b) }
