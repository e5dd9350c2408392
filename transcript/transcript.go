// Package transcript reads the recordings that agents keep of their sessions,
// and turns them into furl's log; and it writes sessions for others to read.
//
// [Read] takes one file, [Walk] files and whole folders. What a file is comes
// from its content, never from its name; [Formats] lists what is known.
// Compressed files (.gz, .zst) are unpacked.
//
// An importer's job is to give back what went over the wire, as far as the
// recording tells: a reply that was written down in pieces becomes one message
// again, what the client only showed is left out, and a call whose result was
// never recorded gets one, because no provider takes a request without it.
// Everything that could not be used is listed in [Recording.Skipped], every
// repair in [Recording.Notes].
//
// [Export] writes a session in one of [ExportFormats]: whole, in furl's own,
// which Read takes back to the byte; or one conversation of it, as other
// programs or people read it. What is lost on the way is in [Exported.Notes].
package transcript

import (
	"time"

	"github.com/furlhq/furl"
)

// Recording is one file: one session with its sub-agents, or several sessions.
type Recording struct {
	File     string // as the caller named it
	Format   string // "claude-code", "codex", …; see Formats
	Agent    string // "Claude Code", "Codex", …; "" unknown
	Sessions []*Session
	Skipped  []Skip
	// Notes are remarks for people: repairs made, what could not be known.
	Notes []string
}

// Session is one conversation of a recording.
type Session struct {
	ID     string
	Title  string
	Parent string // the session whose sub-agent this is; "" for a main one
	Model  string // the last real model named; "" unknown
	// Meta is what a store knew of the session, if the file is furl's own.
	Meta furl.Meta
	// Wire is the format its messages are recorded or rendered in.
	Wire furl.Format
	// Preamble holds the system text and the tools where the recording has
	// them, as blocks for measuring; see furl.Request.
	Preamble []furl.Block
	// Log holds the messages, an Exchange before each reply (with usage,
	// model and the time of the request where recorded), recorded compactions
	// as Reductions and rewinds as Heads, all in recorded order and all by
	// furl.Import. Of furl's own files it is the log as it was exported.
	Log *furl.Log
	// Counts as recorded, before any repair. Messages counts the recording's
	// own records of conversation, of which several may make one message.
	Messages, Calls, Results, Compactions int
}

// Skip is one record of a file that could not be used.
type Skip struct {
	Line   int // 1-based; 0 where the format has no lines
	Reason string
}

// Start is the first recorded time of a session; zero when none is known.
func (s *Session) Start() time.Time {
	for i := 1; i <= s.Log.Len(); i++ {
		if r := s.Log.At(furl.Seq(i)); !r.At.IsZero() {
			return r.At
		}
	}
	return time.Time{}
}

// End is the last recorded time of a session; zero when none is known.
func (s *Session) End() time.Time {
	for i := s.Log.Len(); i > 0; i-- {
		if r := s.Log.At(furl.Seq(i)); !r.At.IsZero() {
			return r.At
		}
	}
	return time.Time{}
}
