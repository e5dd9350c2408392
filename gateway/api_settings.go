package gateway

import (
	"net/http"

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
