package gateway

import (
	"net/http"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/session"
)

type summaryList struct {
	Session   furl.SessionID     `json:"session"`
	Summaries []session.Recorded `json:"summaries"`
	Waiting   *session.Recorded  `json:"waiting"`
}

// showSummaries serves GET /furl/v1/sessions/{id}/summary.
func showSummaries(_ *http.Request, s *session.Session) (*summaryList, error) {
	list := append([]session.Recorded{}, operation.Summaries(s)...)
	return &summaryList{s.ID(), list, s.WaitingSummary()}, nil
}
