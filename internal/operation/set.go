package operation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/session"
)

// Pairs are settings and their new values, such as rolling_context=on.
type Pairs []string

// SetInput is the input of set. In JSON, the settings are fields of the object, and null and ""
// remove the session's own value.
type SetInput struct {
	Pairs Pairs `json:"KEY" arg:"[KEY=VALUE]..."`
	preview
}

// MarshalJSON implements json.Marshaler.
func (in SetInput) MarshalJSON() ([]byte, error) {
	out := make(map[string]any)
	for _, pair := range in.Pairs {
		name, value, _ := strings.Cut(pair, "=")
		out[name] = value
	}
	if in.DryRun {
		out["dry_run"] = true
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (in *SetInput) UnmarshalJSON(data []byte) error {
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	dry, ok := values["dry_run"]
	if in.DryRun, _ = dry.(bool); ok && dry != in.DryRun {
		return errors.New("field dry_run must be true or false")
	}
	delete(values, "dry_run")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value, err := settingValue(name, values[name])
		if err != nil {
			return err
		}
		in.Pairs = append(in.Pairs, name+"="+value)
	}
	return nil
}

// settingValue returns a JSON value in the form that session.Session.Set accepts.
func settingValue(name string, value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool:
		if v {
			return "on", nil
		}
		return "off", nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	}
	text, err := json.Marshal(value)
	return "", errors.Join(fmt.Errorf("invalid value %.80s of setting %.80q: expected a string, a number, true, false or null", text, name), err)
}

type settings struct {
	Settings []session.Setting `json:"settings"`
}

var set = define(Operation{
	Name: "set", Path: "settings", Slash: "settings", Short: "Change or list the settings of a session", Audit: Change,
	Long: `Changes settings of a session: all that are given, or none. They are stored with
the session, override the configuration for it, and apply from its next request
on, whatever runs the session. A running gateway notices a change within a second.
KEY= removes the session's own value.`,
	Missing: map[Surface]string{Model: "a model does not choose by what rules it is reduced"},
}, func(c *Call, in *SetInput) (*Result, error) {
	var pairs, names []string
	for _, pair := range in.Pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, invalid(fmt.Sprintf("invalid setting %.80q: expected KEY=VALUE, such as rolling_context=on", pair))
		}
		pairs, names = append(pairs, name, value), append(names, visible.Line(name))
	}
	if len(pairs) == 0 {
		return nil, invalid("missing settings: expected values by name, such as rolling_context=on")
	}
	before := c.Session.Settings()
	after, err := c.Session.SettingsWith(pairs[0], pairs[1], pairs[2:]...)
	if errors.Is(err, session.ErrInvalid) {
		return nil, Invalid{err}
	}
	if err != nil {
		return nil, err
	}
	what := strings.Join(names, ", ")
	r := &Result{Title: "Set " + what, Did: "Set " + what, Value: settings{after}}
	r.Effects = []string{"It applies from the next request on. What is hidden stays hidden."}
	undo := &SetInput{}
	for i := range after {
		if was, is := &before[i], &after[i]; slices.Contains(names, is.Name) {
			r.Notes = append(r.Notes, settingNote(is, was))
			if ownValue(was) != ownValue(is) {
				undo.Pairs = append(undo.Pairs, was.Name+"="+ownValue(was))
			}
		}
	}
	if len(undo.Pairs) == 0 {
		r.Nothing = "The session has these settings already."
		return r, nil
	}
	r.Undo = &Undo{"set", undo}
	if c.Preview {
		return r, nil
	}
	return r, c.Session.Set(c, pairs[0], pairs[1], pairs[2:]...)
})

// ownValue returns the session's own value of a setting, "" for none.
func ownValue(s *session.Setting) string {
	if s.From != "session" {
		return ""
	}
	return s.Value
}

// settingNote says what a setting is and was.
func settingNote(is, was *session.Setting) string {
	text := is.Name + " = " + settingText(is)
	if is.Value != was.Value || is.From != was.From {
		text += ", was " + settingText(was)
	}
	return text
}

func settingText(s *session.Setting) string {
	text := visible.Line(s.Value)
	if text == "" {
		text = "–"
	}
	if s.From != "session" {
		text += " (" + s.From + ")"
	}
	return text
}
