package session

import (
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
)

// settingNames returns the settings that Set accepts.
func settingNames() []string {
	return []string{settingManagement, settingLimit, settingRolling, settingThreshold, settingPolicy, settingTitle}
}

// Set changes a setting of the session and stores it: context_management_enabled,
// context_limit, rolling_context, context_threshold, policy or title. An empty value
// removes it. An unknown name or an invalid value is an error.
func (s *Session) Set(ctx context.Context, name, value string) error {
	switch name {
	case settingPolicy:
		return s.setPolicy(ctx, value)
	case settingTitle:
		return s.updateMeta(ctx, func(m *storage.Meta) error {
			m.Title, m.TitleBy = value, storage.TitleByPerson
			return nil
		})
	}
	value = strings.ToLower(strings.TrimSpace(value))
	if err := checkSetting(name, value); err != nil {
		return err
	}
	return s.updateMeta(ctx, func(m *storage.Meta) error {
		if value == "" {
			delete(m.Settings, name)
			return nil
		}
		if m.Settings == nil {
			m.Settings = make(map[string]string)
		}
		m.Settings[name] = value
		return nil
	})
}

// setPolicy changes the session's policy. An empty name selects the default policy.
func (s *Session) setPolicy(ctx context.Context, name string) error {
	if name != "" {
		if _, err := s.all.live().Policies.Policy(name, s.all.live().Settings); err != nil {
			return err
		}
	}
	return s.updateMeta(ctx, func(m *storage.Meta) error { m.Policy = name; return nil })
}

// updateMeta changes the session's metadata. f may run more than once.
func (s *Session) updateMeta(ctx context.Context, f func(*storage.Meta) error) error {
	return s.update(ctx, onDisk, func() error {
		m := s.meta.Clone()
		if err := f(&m); err != nil {
			return err
		}
		s.newMeta = &m
		return nil
	})
}

func checkSetting(name, value string) error {
	if !slices.Contains(settingNames(), name) {
		return fmt.Errorf("unknown setting %q: expected one of %s", name, strings.Join(settingNames(), ", "))
	}
	if value == "" {
		return nil
	}
	var err error
	switch name {
	case settingRolling, settingManagement:
		_, err = parseSwitch(value)
	case settingThreshold:
		var f float64
		if f, err = strconv.ParseFloat(value, 64); err == nil && !(f > 0 && f <= 1) {
			err = errors.New("expected a number above 0 and at most 1")
		}
	case settingLimit:
		var n int
		if n, err = strconv.Atoi(value); err == nil && n <= 0 {
			err = errors.New("expected a positive number of tokens")
		}
	}
	if err != nil {
		return fmt.Errorf("invalid value %[2]q of setting %[1]s: %[3]w", name, value, err)
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
	return set
}

// policyName returns the name of the session's policy.
func (s *Session) policyName() string {
	if s.meta.Policy != "" {
		return s.meta.Policy
	}
	return s.all.live().Policy
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
