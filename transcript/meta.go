package transcript

import "github.com/furlhq/furl"

// Meta gives what a store should know of one of the recording's sessions: what
// the file says itself if it is furl's own, and otherwise its title, if it has
// one, the agent, its id there, model, wire format and file.
func (rec *Recording) Meta(s *Session) furl.Meta {
	if rec.Format == furlOwn.name {
		return s.Meta
	}
	return furl.Meta{Title: s.Title, Client: rec.Agent, Hint: s.ID, Model: s.Model, Format: s.Wire, Source: rec.File}
}
