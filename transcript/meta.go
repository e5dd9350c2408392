package transcript

import "github.com/furlhq/furl/storage"

// Meta returns the metadata that a store should record for one of the
// recording's sessions. For the furl format it is what the file says; for
// others the title, if there is one, the agent, the agent's session id, the
// model, the recorded windows, the wire format and the file.
func (rec *Recording) Meta(s *Session) storage.Meta {
	if rec.Format == furlOwn.name {
		return s.Meta
	}
	return storage.Meta{Title: s.Title, Client: rec.Agent, Hint: s.ID, Model: s.Model, Format: s.Wire, Windows: s.Windows, Source: rec.File}
}
