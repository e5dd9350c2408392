package transcript

import "github.com/furlhq/furl/storage"

// Meta returns the metadata that a store should record for one of the
// recording's sessions. For the furl format it is what the file says; for
// others the title, if there is one, the agent, the agent's ids of the session
// and of the one that started it, the working folder, the model, the recorded
// windows, the wire format and the file.
func (rec *Recording) Meta(s *Session) storage.Meta {
	if rec.Format == furlOwn.name {
		return s.Meta
	}
	m := storage.Meta{
		Title: s.Title, Client: rec.Agent, Hint: s.ID, Parent: s.Parent, Project: s.Project,
		Model: s.Model, Format: s.Wire, Windows: s.Windows, Source: rec.File,
	}
	if m.Title != "" {
		m.TitleBy = storage.TitleByAgent
	}
	return m
}
