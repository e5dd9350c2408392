package session

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lost"
	"github.com/furlhq/furl/internal/open"
)

// Loss is what a compaction of the session has lost: the answers and sentences of the user
// and the identifiers that the messages had which it replaced, and that its summary and the
// messages beside it lack. Each has the handle that Get and Restore take.
type Loss = lost.Compaction

// LostList is what was lost of a kind.
type LostList = lost.List

// Lost returns what each compaction on the current branch has lost, in order: those by
// furl, by the agent and by the provider. See package internal/lost for the rules. No
// model is asked.
func (s *Session) Lost() ([]*Loss, error) {
	var path []furl.Record
	s.Internal().Read(func(c *open.Change) { path = c.Log().Path(c.Log().Head()) })
	return lost.Of(path)
}
