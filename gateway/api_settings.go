package gateway

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

type settingList struct {
	Session  furl.SessionID    `json:"session"`
	Settings []session.Setting `json:"settings"`
}

// listSettings serves GET /furl/v1/sessions/{id}/settings.
func listSettings(_ *http.Request, s *session.Session) (*settingList, error) {
	return &settingList{s.ID(), s.Settings()}, nil
}

// changeSettings serves POST /furl/v1/sessions/{id}/settings. The body has the new
// values by name; null or "" removes the session's own value.
func changeSettings(r *http.Request, s *session.Session) (*settingList, error) {
	var in map[string]any
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if len(in) == 0 {
		return nil, badRequest("missing settings: send an object with values by name, such as {\"rolling_context\": \"on\"}")
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(in)) {
		value, err := settingValue(name, in[name])
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, name, value)
	}
	if err := s.Set(r.Context(), pairs[0], pairs[1], pairs[2:]...); err != nil {
		return nil, err
	}
	return listSettings(r, s)
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
	text, _ := json.Marshal(value) // decoded from JSON
	return "", badRequest("invalid value %.80s of setting %.80q: expected a string, a number, true, false or null", text, name)
}
