package transcript

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

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
	for model, prompt := range s.Answered() {
		m.RecordAnswered(model, prompt)
	}
	if m.Title != "" {
		m.TitleBy = storage.TitleByAgent
	}
	return m
}

// Answered returns the largest prompt in tokens that the recording has an answer to, for
// each model by its name in requests. The window of a model is at least as large.
func (s *Session) Answered() map[string]int {
	if s.Log == nil {
		return nil
	}
	largest := make(map[string]int)
	for seq := furl.Seq(1); int(seq) <= s.Log.Len(); seq++ {
		if ex, ok := s.Log.At(seq).Body.(*furl.Exchange); ok {
			largest[ex.Model] = max(largest[ex.Model], ex.LargestPrompt())
		}
	}
	return largest
}
