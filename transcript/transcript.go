// Package transcript imports the recordings that agents keep of their
// sessions into furl's log, and exports sessions for other programs and for
// people.
//
// [Read] imports one file, [Walk] files and whole folders. The format is
// detected from the content, never from the file name; [Formats] lists the
// known ones. Compressed files (.gz, .zst) are unpacked.
//
// Importers reconstruct what was sent over the wire, as far as the recording
// shows it. A reply that was recorded in pieces becomes one message again.
// Content that the client only displayed is skipped. A call without a
// recorded result gets a placeholder result, because providers refuse a
// request without one. [Recording.Skipped] lists all unusable data,
// [Recording.Notes] all repairs.
//
// [Export] writes a session in one of [ExportFormats]: the whole session in
// the furl format, which Read imports again without any loss, or one path of
// it in the format of another program or for people. [Exported.Notes] lists
// what the format could not represent.
package transcript

import (
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Recording is one file: one session with its sub-agents, or several
// sessions.
type Recording struct {
	File     string // as named by the caller
	Format   string // "claude-code", "codex", …; see Formats
	Agent    string // "Claude Code", "Codex", …; "" if unknown
	Sessions []*Session
	// Skipped are the records that could not be used, at most the first 10,000.
	Skipped []Skip
	// Notes are remarks for people: repairs, and facts that could not be
	// determined.
	Notes []string
	// Part is the number of the part of a file that Walk reads in parts, from 1; 0 if
	// it is read as a whole. The sessions of each part but the first have ids and
	// titles that end in its number. More says that another part follows.
	Part int
	More bool
	// Uses are the other files that reading it has looked at, which may not exist, and folders whose
	// files it has listed. A recording that stays the same reads the same while they do.
	Uses []string

	unlisted int // records that could not be used and are not in Skipped
}

// Session is one conversation of a recording.
type Session struct {
	ID     string
	Title  string
	Parent string // for a sub-agent, the session that started it; otherwise ""
	// ForkOf is the id of the session whose messages this one begins with, if
	// the recording names it.
	ForkOf string
	// Project is the folder that the agent worked in, "" if not recorded.
	Project string
	Model   string // the last real model named; "" if unknown
	// Windows are the context windows, in tokens, that the recording says its
	// models had, by the models' names; see docs/use/formats.md.
	Windows map[string]int
	// PlanLimits are the limits of a subscription that the recording has.
	PlanLimits []PlanLimit
	// Meta is the metadata from a store, if the file is in the furl format.
	Meta storage.Meta
	// Wire is the format in which its messages are recorded or rendered.
	Wire furl.Format
	// Preamble contains the system text and the tools, if recorded, as blocks
	// for measuring; see protocol.Request.
	Preamble []furl.Block
	// Log contains the messages, an Exchange before each reply (with usage,
	// model and the time of the request if recorded), recorded compactions as
	// Reductions and rewinds as Heads, all in recorded order and all by
	// furl.Import. For files in the furl format it is the log as exported.
	Log *furl.Log
	// Contents are the bytes to which the log's records refer by digest
	// (storage.Batch.Contents). Files in the furl format have them, and with Reader.Bodies those whose
	// agent records its requests.
	Contents [][]byte
	// Counts as recorded, before any repair. Messages counts the conversation
	// records of the recording; several of them may form one message.
	Messages, Calls, Results, Compactions int
	// Repeated are the requests that are counted in another session, by the records of their
	// exchanges. Readers do not set it: who reads several recordings compares their Replies.
	Repeated map[furl.Seq]bool

	// root is the session that the first records come from, if neither ids nor times
	// identify replies.
	root string
}

// Skip is one record of a file that could not be used.
type Skip struct {
	Line   int // 1-based; 0 for formats without lines
	Reason string
}

// Unreadable is the number of records that could not be used.
func (r *Recording) Unreadable() int { return len(r.Skipped) + r.unlisted }

// Damage describes the unreadable records of a file in one line: how many, and
// where and why the first. It is empty if there are none.
func (r *Recording) Damage() string {
	switch n := r.Unreadable(); n {
	case 0:
		return ""
	case 1:
		return "1 unreadable record: " + r.Skipped[0].String()
	default:
		return fmt.Sprintf("%d unreadable records, the first: %s", n, r.Skipped[0])
	}
}

// String returns the line and the reason.
func (s Skip) String() string {
	if s.Line > 0 {
		return fmt.Sprintf("line %d: %s", s.Line, s.Reason)
	}
	return s.Reason
}

// Start returns the first recorded time of a session; zero if none is known.
func (s *Session) Start() time.Time {
	for i := 1; i <= s.Log.Len(); i++ {
		if r := s.Log.At(furl.Seq(i)); !r.At.IsZero() {
			return r.At
		}
	}
	return time.Time{}
}

// End returns the last recorded time of a session; zero if none is known.
func (s *Session) End() time.Time {
	for i := s.Log.Len(); i > 0; i-- {
		if r := s.Log.At(furl.Seq(i)); !r.At.IsZero() {
			return r.At
		}
	}
	return time.Time{}
}
