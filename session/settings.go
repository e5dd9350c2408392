package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/storage"
)

// The names of per-session settings. They are stored with the session and override
// the options of all sessions.
const (
	// settingPolicy and settingTitle are the session's policy and title. They are in
	// storage.Meta, not in its Settings.
	settingPolicy = "policy"
	settingTitle  = "title"
	// settingRolling puts tool-age in front of the session's policy: "on" or
	// "off" (A4).
	settingRolling = open.SettingRolling
	// settingManagement "off" makes every policy do nothing (C1).
	settingManagement = open.SettingManagement
	// settingThreshold is the share of the window at which policies act, such
	// as "0.85" (C1).
	settingThreshold = open.SettingThreshold
	// settingLimit is the window to stay within, in tokens (C1).
	settingLimit = open.SettingLimit
	// settingAskFirst "on" makes a summary wait for a person's approval (C10).
	settingAskFirst = open.SettingAskFirst
	// settingCommands "on" makes the gateway answer commands to furl that a person types
	// in an agent (A4).
	settingCommands = "commands"
	// settingKeepTools and settingExcludeTools have the names of the tools whose results
	// stay: further ones, and those in place of furl's list.
	settingKeepTools    = open.SettingKeepTools
	settingExcludeTools = open.SettingExcludeTools
	// settingRepairEdits says whether the text of a file is shown again after an edit of it
	// has failed.
	settingRepairEdits = open.SettingRepairEdits
	// settingPinned has the handles of the pinned blocks. It is not stored: the log
	// has the pins.
	settingPinned = "pinned"
)

// Setting is a setting of a session; see Session.Set.
type Setting struct {
	Name string `json:"name"`
	// Value is the value in effect, in the form that Set accepts. It is "" if the
	// session's policy or model determines it.
	Value string `json:"value"`
	// From says where the value comes from: "session", "configuration" (the options of
	// all sessions), or "default".
	From string `json:"from"`
	// About describes the setting in a few words, Values lists its values if these
	// are few.
	About  string   `json:"description"`
	Values []string `json:"values,omitempty"`
}

// The values of Setting.From.
const (
	fromSession       = "session"
	fromConfiguration = "configuration"
	fromDefault       = "default"
	fromFamily        = "assumed" // from similar models
)

var switchValues = []string{"on", "off"}

// knownSettings are the settings in the order of Session.Settings.
var knownSettings = []Setting{
	{Name: settingPolicy, About: "the policy that reduces the context"},
	{Name: settingThreshold, About: "the share of the window at which policies act, above 0 and at most 1"},
	{Name: settingLimit, About: "the context window, in tokens"},
	{Name: settingManagement, About: "off turns all policies off", Values: switchValues},
	{Name: settingRolling, About: "on runs tool-age before the policy, off turns tool-age off", Values: switchValues},
	{Name: settingAskFirst, About: "on makes summaries wait for approval", Values: switchValues},
	{Name: settingCommands, About: "on answers commands typed in the agent, such as furl: rolling-context on", Values: switchValues},
	{Name: settingKeepTools, About: "further tools whose results stay, such as mcp__jira__*, separated by commas"},
	{Name: settingExcludeTools, About: "the tools whose results stay in place of furl's list, or none"},
	{Name: settingRepairEdits, About: "on shows hidden text of a file again after its edit failed", Values: switchValues},
	{Name: settingPinned, About: "handles of the messages and blocks that no policy hides"},
	{Name: settingTitle, About: "the name of the session in lists"},
}

// Settings returns all settings of the session with their values in effect for the model
// of its latest request.
func (s *Session) Settings() []Setting { return s.SettingsFor("") }

// SettingsFor is Settings for a model, by its name in requests; "" is that of the latest
// request.
func (s *Session) SettingsFor(model string) (list []Setting) {
	s.Internal().Read(func(c *open.Change) { list = settingsOf(c, model) })
	return list
}

func settingsOf(c *open.Change, model string) []Setting {
	list := slices.Clone(knownSettings)
	for i := range list {
		list[i].Value, list[i].From = settingFor(c, list[i].Name, model)
		if list[i].Name == settingPolicy {
			list[i].Values = c.Options().Policies.Names()
		}
	}
	return list
}

// settingFor returns the value in effect of a setting, and where it comes from.
func settingFor(c *open.Change, name, model string) (value, from string) {
	live := c.Options()
	own := c.Meta().Settings[name]
	onOff := func(all *bool, byDefault bool) (string, string) {
		if on, err := open.ParseSwitch(own); err == nil && on != nil {
			return switchText(*on), fromSession
		}
		if all != nil {
			return switchText(*all), fromConfiguration
		}
		return switchText(byDefault), fromDefault
	}
	switch name {
	case settingPolicy:
		switch {
		case c.Meta().Policy != "":
			return c.Meta().Policy, fromSession
		case live.Policy != defaultPolicy:
			return live.Policy, fromConfiguration
		}
		return live.Policy, fromDefault
	case settingTitle:
		if c.Meta().TitleBy == storage.TitleByPerson {
			return c.Meta().Title, fromSession
		}
		return c.Meta().Title, fromDefault
	case settingManagement:
		if live.Settings.Off { // a session cannot override it
			return switchText(false), fromConfiguration
		}
		return onOff(nil, true)
	case settingRolling:
		return onOff(live.Settings.RollingContext, c.PolicyName() == "tool-age")
	case settingAskFirst:
		return onOff(live.AskFirst, false)
	case settingRepairEdits:
		p, err := c.Policy()
		return onOff(live.Settings.RepairEdits, err == nil && policy.RepairsEdits(p, &furl.Budget{Model: c.Model(cmp.Or(model, c.Meta().Model))}))
	case settingCommands:
		return onOff(live.Commands, false)
	case settingThreshold:
		switch {
		case own != "":
			return own, fromSession
		case live.Settings.Threshold > 0:
			return strconv.FormatFloat(live.Settings.Threshold, 'g', -1, 64), fromConfiguration
		}
	case settingKeepTools:
		return toolsText(own, live.Settings.In(c.Meta().Project).KeepTools)
	case settingExcludeTools:
		return toolsText(own, live.Settings.In(c.Meta().Project).ExcludeTools)
	case settingLimit:
		m := c.Model(cmp.Or(model, c.Meta().Model))
		switch {
		case own != "":
			return own, fromSession
		case m.Window == 0:
			return "", fromDefault
		case c.All().ConfiguredWindow(&m) > 0:
			return strconv.Itoa(m.Window), fromConfiguration
		case m.WindowAssumed:
			return strconv.Itoa(m.Window), fromFamily
		}
		return strconv.Itoa(m.Window), fromDefault
	case settingPinned:
		if pinned := pinned(c); len(pinned) > 0 {
			return strings.Join(pinned, ","), fromSession
		}
	}
	return "", fromDefault
}

// toolsText is the value in effect of a list of tools: the session's own or that of all
// sessions.
func toolsText(own string, all []string) (value, from string) {
	switch {
	case own != "":
		return own, fromSession
	case all == nil:
		return "", fromDefault
	case len(all) == 0:
		return open.NoTools, fromConfiguration
	}
	return strings.Join(all, ","), fromConfiguration
}

func switchText(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Set changes a setting of the session and stores it; Settings lists them. An empty
// value removes the session's own value. more are further pairs of a name and a value:
// all are changed, or none. For an unknown name or an invalid value, the error wraps
// ErrInvalid.
func (s *Session) Set(ctx context.Context, name, value string, more ...string) error {
	return s.Internal().Update(ctx, open.OnDisk, func(c *open.Change) error { return setAll(c, append([]string{name, value}, more...)) })
}

// setAll changes the settings of pairs of a name and a value.
func setAll(c *open.Change, pairs []string) error {
	if len(pairs)%2 != 0 {
		return fmt.Errorf("set %s: a name without a value", pairs[len(pairs)-1])
	}
	m := c.Meta().Clone()
	for i := 0; i < len(pairs); i += 2 {
		if err := set(c, &m, pairs[i], pairs[i+1]); err != nil {
			return &invalid{err}
		}
	}
	if !open.SameMeta(m, c.Meta()) {
		c.SetMeta(m)
	}
	return nil
}

// SettingsWith returns the settings that the session would have after Set. It changes nothing.
func (s *Session) SettingsWith(name, value string, more ...string) (list []Setting, err error) {
	err = s.Internal().Try(func(c *open.Change) error {
		if err := setAll(c, append([]string{name, value}, more...)); err != nil {
			return err
		}
		list = settingsOf(c, "")
		return nil
	})
	return list, err
}

// Store stores a session without records, which otherwise is stored with its first one,
// so that its settings are kept. It adds a record that changes nothing. A session with
// records is stored already.
func (s *Session) Store(ctx context.Context) error {
	return s.Internal().Update(ctx, open.OnDisk, func(c *open.Change) error {
		if c.Log().Len() > 0 {
			return nil
		}
		_, err := c.Rewind(0, furl.Person)
		return err
	})
}

// set changes a setting in m, or in the log.
func set(c *open.Change, m *storage.Meta, name, value string) error {
	switch name {
	case settingPolicy:
		if value != "" {
			if _, err := c.Options().Policies.Policy(value, c.Options().Settings); err != nil {
				return err
			}
		}
		m.Policy = value
		return nil
	case settingTitle:
		m.Title, m.TitleBy = value, storage.TitleByPerson
		if value == "" {
			m.Title, m.TitleBy = Title(c.Log().Records(0)), ""
		}
		return nil
	case settingPinned:
		return setPinned(c, value)
	}
	value = strings.ToLower(strings.TrimSpace(value))
	if err := checkSetting(name, value); err != nil {
		return err
	}
	if value == "" {
		delete(m.Settings, name)
		return nil
	}
	if m.Settings == nil {
		m.Settings = make(map[string]string)
	}
	m.Settings[name] = value
	return nil
}

// ErrInvalid is wrapped by the error for a policy or setting that is unknown, or that
// does not accept a value.
var ErrInvalid = errors.New("unknown name or invalid value")

type invalid struct{ error }

func (*invalid) Is(target error) bool { return target == ErrInvalid }
func (e *invalid) Unwrap() error      { return e.error }

// pinned returns the handles of the pinned blocks of the path.
func pinned(c *open.Change) []string {
	pins := func(r furl.Record) bool {
		switch b := r.Body.(type) {
		case *furl.Restoration:
			return b.Hold == furl.Pin
		case *furl.Takeover:
			return true
		}
		return false
	}
	if !slices.ContainsFunc(c.Log().Records(0), pins) {
		return nil
	}
	st, err := c.Unreduced() // a view has the holds of what it shows
	if err != nil {
		return nil
	}
	var list []string
	v := st.View(furl.Model{})
	for i := range v.Messages {
		sh := &v.Messages[i]
		var blocks []string
		for j := range sh.Blocks {
			if b := &sh.Blocks[j]; b.Hold == furl.Pin && sh.Seq != 0 {
				blocks = append(blocks, recall.HandleOf(b.Pos).String())
			}
		}
		if len(blocks) > 0 && len(blocks) == len(sh.Msg.Blocks) {
			blocks = []string{recall.Handle{Msg: sh.Seq, Block: -1}.String()}
		}
		list = append(list, blocks...)
	}
	return list
}

// setPinned pins the blocks of these handles, separated by commas, and unpins all
// others.
func setPinned(c *open.Change, value string) error {
	had := pinned(c)
	now := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
	pin, err := spansOf(c, now)
	if err != nil {
		return err
	}
	release, err := spansOf(c, had)
	if err != nil {
		return err
	}
	for _, res := range []*furl.Restoration{{Spans: release, Hold: furl.Release}, {Spans: pin, Hold: furl.Pin}} {
		if len(res.Spans) == 0 {
			continue
		}
		if _, err := c.Append(furl.Person, res); err != nil {
			return err
		}
	}
	return nil
}

func checkSetting(name, value string) error {
	if !slices.ContainsFunc(knownSettings, func(k Setting) bool { return k.Name == name }) {
		var names []string
		for _, k := range knownSettings {
			names = append(names, k.Name)
		}
		return fmt.Errorf("unknown setting %.80q: expected one of %s", name, strings.Join(names, ", "))
	}
	if value == "" {
		return nil
	}
	expected := ""
	switch name {
	case settingThreshold:
		if f, err := strconv.ParseFloat(value, 64); err != nil || !(f > 0 && f <= 1) {
			expected = "a number above 0 and at most 1"
		}
	case settingLimit:
		if n, err := strconv.Atoi(value); err != nil || n <= 0 {
			expected = "a positive number of tokens"
		}
	case settingKeepTools, settingExcludeTools:
		tools := policy.ToolOptions{KeepTools: open.ParseTools(value)}
		if err := tools.Validate(); err != nil {
			expected = "names of tools, separated by commas, or patterns such as mcp__jira__*"
		}
	default:
		if _, err := open.ParseSwitch(value); err != nil {
			expected = "on or off"
		}
	}
	if expected != "" {
		return fmt.Errorf("invalid value %.80q of setting %s: expected %s", value, name, expected)
	}
	return nil
}

// HidesNothing reports whether the policy of sessions without their own never hides anything
// from requests to a model.
func (a *Sessions) HidesNothing(model string, format furl.Format) bool {
	live := a.Options()
	p, err := live.Policies.Policy(live.Policy, live.Settings)
	b := furl.Budget{Model: a.Model(model, format)}
	return err == nil && policy.HidesNothing(p, &b)
}

// Policy returns the name of the session's policy.
func (s *Session) Policy() (name string) {
	s.Internal().Read(func(c *open.Change) { name = c.PolicyName() })
	return name
}
