package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
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
	settingRolling = "rolling_context"
	// settingManagement "off" makes every policy do nothing (C1).
	settingManagement = "context_management_enabled"
	// settingThreshold is the share of the window at which policies act, such
	// as "0.85" (C1).
	settingThreshold = "context_threshold"
	// settingLimit is the window to stay within, in tokens (C1).
	settingLimit = "context_limit"
	// settingAskFirst "on" makes a summary wait for a person's approval (C10).
	settingAskFirst = "ask_first"
	// settingCommands "on" makes the gateway answer commands to furl that a person types
	// in an agent (A4).
	settingCommands = "commands"
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
	{Name: settingPinned, About: "handles of the messages and blocks that no policy hides"},
	{Name: settingTitle, About: "the name of the session in lists"},
}

// Settings returns all settings of the session with their values in effect for the model
// of its latest request.
func (s *Session) Settings() []Setting { return s.SettingsFor("") }

// SettingsFor is Settings for a model, by its name in requests; "" is that of the latest
// request.
func (s *Session) SettingsFor(model string) []Setting {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(knownSettings)
	for i := range list {
		list[i].Value, list[i].From = s.settingFor(list[i].Name, model)
		if list[i].Name == settingPolicy {
			list[i].Values = s.all.live().Policies.Names()
		}
	}
	return list
}

// setting returns the value in effect of a setting, and where it comes from.
func (s *Session) setting(name string) (value, from string) { return s.settingFor(name, "") }

func (s *Session) settingFor(name, model string) (value, from string) {
	live := s.all.live()
	own := s.meta.Settings[name]
	onOff := func(all *bool, byDefault bool) (string, string) {
		if on, err := parseSwitch(own); err == nil && on != nil {
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
		case s.meta.Policy != "":
			return s.meta.Policy, fromSession
		case live.Policy != defaultPolicy:
			return live.Policy, fromConfiguration
		}
		return live.Policy, fromDefault
	case settingTitle:
		if s.meta.TitleBy == storage.TitleByPerson {
			return s.meta.Title, fromSession
		}
		return s.meta.Title, fromDefault
	case settingManagement:
		if live.Settings.Off { // a session cannot override it
			return switchText(false), fromConfiguration
		}
		return onOff(nil, true)
	case settingRolling:
		return onOff(live.Settings.RollingContext, s.policyName() == "tool-age")
	case settingAskFirst:
		return onOff(live.AskFirst, false)
	case settingCommands:
		return onOff(live.Commands, false)
	case settingThreshold:
		switch {
		case own != "":
			return own, fromSession
		case live.Settings.Threshold > 0:
			return strconv.FormatFloat(live.Settings.Threshold, 'g', -1, 64), fromConfiguration
		}
	case settingLimit:
		m := s.model(cmp.Or(model, s.meta.Model))
		switch {
		case own != "":
			return own, fromSession
		case m.Window == 0:
			return "", fromDefault
		case s.all.configuredWindow(&m) > 0:
			return strconv.Itoa(m.Window), fromConfiguration
		case m.WindowAssumed:
			return strconv.Itoa(m.Window), fromFamily
		}
		return strconv.Itoa(m.Window), fromDefault
	case settingPinned:
		if pinned := s.pinned(); len(pinned) > 0 {
			return strings.Join(pinned, ","), fromSession
		}
	}
	return "", fromDefault
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
	pairs := append([]string{name, value}, more...)
	if len(pairs)%2 != 0 {
		return fmt.Errorf("set %s: a name without a value", pairs[len(pairs)-1])
	}
	return s.update(ctx, onDisk, func() error {
		m := s.meta.Clone()
		for i := 0; i < len(pairs); i += 2 {
			if err := s.set(&m, pairs[i], pairs[i+1]); err != nil {
				return &invalid{err}
			}
		}
		if !sameMeta(m, s.meta) {
			s.newMeta = &m
		}
		return nil
	})
}

// Store stores a session without records, which otherwise is stored with its first one,
// so that its settings are kept. It adds a record that changes nothing. A session with
// records is stored already.
func (s *Session) Store(ctx context.Context) error {
	return s.update(ctx, onDisk, func() error {
		if s.log.Len() > 0 {
			return nil
		}
		_, err := s.log.Rewind(0, s.all.o.Now(), furl.Person)
		return err
	})
}

// set changes a setting in m, or in the log.
func (s *Session) set(m *storage.Meta, name, value string) error {
	switch name {
	case settingPolicy:
		if value != "" {
			if _, err := s.all.live().Policies.Policy(value, s.all.live().Settings); err != nil {
				return err
			}
		}
		m.Policy = value
		return nil
	case settingTitle:
		m.Title, m.TitleBy = value, storage.TitleByPerson
		if value == "" {
			m.Title, m.TitleBy = Title(s.log.Records(0)), ""
		}
		return nil
	case settingPinned:
		return s.setPinned(value)
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
func (s *Session) pinned() []string {
	pins := func(r furl.Record) bool {
		switch b := r.Body.(type) {
		case *furl.Restoration:
			return b.Hold == furl.Pin
		case *furl.Takeover:
			return true
		}
		return false
	}
	if !slices.ContainsFunc(s.log.Records(0), pins) {
		return nil
	}
	st, err := s.unreduced() // a view has the holds of what it shows
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
func (s *Session) setPinned(value string) error {
	spansOf := func(handles []string) (spans []furl.Span, err error) {
		for _, h := range handles {
			span, err := s.span(h)
			if err != nil {
				return nil, err
			}
			spans = append(spans, span)
		}
		return spans, nil
	}
	had := s.pinned()
	now := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
	pin, err := spansOf(now)
	if err != nil {
		return err
	}
	release, err := spansOf(had)
	if err != nil {
		return err
	}
	for _, res := range []*furl.Restoration{{Spans: release, Hold: furl.Release}, {Spans: pin, Hold: furl.Pin}} {
		if len(res.Spans) == 0 {
			continue
		}
		if _, err := s.appendRecord(furl.Person, res); err != nil {
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
	default:
		if _, err := parseSwitch(value); err != nil {
			expected = "on or off"
		}
	}
	if expected != "" {
		return fmt.Errorf("invalid value %.80q of setting %s: expected %s", value, name, expected)
	}
	return nil
}

// parseSwitch parses "on" or "off". It returns nil for "".
func parseSwitch(value string) (*bool, error) {
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

// policySettings returns the settings of all sessions, overridden by the session's
// own. A session cannot override Off.
func (s *Session) policySettings() policy.Settings {
	set := s.all.live().Settings
	if on, err := parseSwitch(s.meta.Settings[settingRolling]); err == nil && on != nil {
		set.RollingContext = on
	}
	if on, err := parseSwitch(s.meta.Settings[settingManagement]); err == nil && on != nil {
		set.Off = set.Off || !*on
	}
	if f, err := strconv.ParseFloat(s.meta.Settings[settingThreshold], 64); err == nil && f > 0 && f <= 1 {
		set.Threshold = f
	}
	set.AskFirst = s.asksFirst()
	return set
}

// HidesNothing reports whether the policy of sessions without their own never hides anything
// from requests to a model.
func (a *Sessions) HidesNothing(model string, format furl.Format) bool {
	live := a.live()
	p, err := live.Policies.Policy(live.Policy, live.Settings)
	b := furl.Budget{Model: a.Model(model, format)}
	return err == nil && policy.HidesNothing(p, &b)
}

// policyName returns the name of the session's policy.
func (s *Session) policyName() string {
	if s.meta.Policy != "" {
		return s.meta.Policy
	}
	return s.all.live().Policy
}

// Policy returns the name of the session's policy.
func (s *Session) Policy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policyName()
}

// sessionPolicy returns the session's policy. If it does not exist any more, plans returns
// the default policy.
func (s *Session) sessionPolicy() (furl.Policy, error) {
	live := s.all.live()
	if s.policy != nil && s.policyOptions == live {
		return s.policy, nil
	}
	p, err := live.Policies.Policy(s.policyName(), s.policySettings())
	if err != nil && s.meta.Policy != "" {
		s.all.log.Warn("unknown or invalid policy of session: using the default policy", "session", s.key.Session, "policy", s.meta.Policy, "error", err)
		p, err = live.Policies.Policy(live.Policy, s.policySettings())
	}
	if err != nil {
		return nil, err
	}
	s.policy, s.policyOptions = p, live
	return p, nil
}

func sameMeta(a, b storage.Meta) bool { return reflect.DeepEqual(a, b) }

func sameSettings(a, b map[string]string) bool { return maps.Equal(a, b) }
