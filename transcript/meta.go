package transcript

import (
	"cmp"
	"strings"

	"github.com/furlhq/furl"
)

// titleLength is how many characters of the first words make a title.
const titleLength = 80

// Meta gives what a store should know of one of the recording's sessions:
// what the file says of itself if it is furl's own, and otherwise its title or
// first words, the agent, its id there, model, wire format and file.
func (rec *Recording) Meta(s *Session) furl.Meta {
	if rec.Format == furlOwn.name {
		return s.Meta
	}
	return furl.Meta{
		Title: cmp.Or(s.Title, firstWords(s)), Client: rec.Format, Hint: s.ID, Model: s.Model, Format: s.Wire, Source: rec.File,
	}
}

// firstWords is the beginning of what the user said first, in one line.
func firstWords(s *Session) string {
	st := s.Log.State()
	for i := range st.Len() {
		_, m := st.Message(i)
		if m.Role != furl.RoleUser {
			continue
		}
		for j := range m.Blocks {
			b := &m.Blocks[j]
			text := b.Text[:min(len(b.Text), 64*titleLength)]
			text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
			if b.Kind != furl.KindText || text == "" {
				continue
			}
			if r := []rune(text); len(r) > titleLength {
				text = string(r[:titleLength-1]) + "…"
			}
			return text
		}
	}
	return ""
}
