package recorded

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// outline is what decides of one session whether it is chosen, when it is read, and which of its
// requests count. The index keeps it, so all fields are written there.
type outline struct {
	ID, Parent, ForkOf string
	Newest             time.Time // the newest record; zero: the recording has no times
	InProject          bool      // it passes the filter by project
	Replies            []reply
}

// reply is a request and what identifies its reply in all recordings.
type reply struct {
	Seq furl.Seq // of its exchange
	ID  transcript.ReplyID
}

// summary is the outlines of one recording.
type summary struct {
	Part       int
	Unreadable int
	Sessions   []outline
}

// reading is what the index has of one file.
type reading struct {
	Unknown    bool // the file is in an unknown format
	Recordings []summary
}

// summarize returns the outlines of a recording.
func (f *Filter) summarize(rec *transcript.Recording) summary {
	sum := summary{Part: rec.Part, Unreadable: rec.Unreadable()}
	for _, s := range rec.Sessions {
		o := outline{ID: s.ID, Parent: s.Parent, ForkOf: s.ForkOf, Newest: NewestOf(s.Log.Records(0))}
		o.InProject = f.InProject == nil || f.InProject(ProjectOf(s, rec.Meta(s).Project))
		for seq, id := range s.Replies() {
			o.Replies = append(o.Replies, reply{seq, id})
		}
		sum.Sessions = append(sum.Sessions, o)
	}
	return sum
}

// counts returns how many requests of some sessions count, and how many are repeated.
func counts(sessions []outline, repeated []map[furl.Seq]bool) (counted, again int) {
	for i := range sessions {
		counted += len(sessions[i].Replies) - len(repeated[i])
		again += len(repeated[i])
	}
	return counted, again
}
