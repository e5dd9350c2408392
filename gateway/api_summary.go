package gateway

import (
	"net/http"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// showSummaries serves GET /furl/v1/sessions/{id}/summary.
func showSummaries(_ *http.Request, s *session.Session) (any, error) {
	list := []session.Recorded{}
	for _, r := range s.Reductions() {
		if r.Number > 0 && r.Summary != "" {
			list = append(list, r)
		}
	}
	return map[string]any{"session": s.ID(), "waiting": s.WaitingSummary(), "summaries": list}, nil
}

// decideSummary returns the handler that approves or refuses the summary that waits.
func decideSummary(approve bool) func(*http.Request, *session.Session) (any, error) {
	return func(r *http.Request, s *session.Session) (any, error) {
		rec, err := s.DecideSummary(r.Context(), approve)
		if err != nil {
			return nil, err
		}
		return map[string]any{"session": s.ID(), "approved": approve, "reduction_id": rec}, nil
	}
}

// editSummary serves POST /furl/v1/sessions/{id}/summary/edit. Without a reduction it
// edits the summary that waits.
func editSummary(r *http.Request, s *session.Session) (any, error) {
	var in struct {
		Reduction furl.Seq `json:"reduction_id"`
		Text      string   `json:"text"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if in.Text == "" {
		return nil, badRequest("missing field text: send the new text of the summary")
	}
	rec, err := s.EditSummary(r.Context(), in.Reduction, in.Text)
	if err != nil {
		return nil, err
	}
	return map[string]any{"session": s.ID(), "reduction_id": rec.Seq}, nil
}
