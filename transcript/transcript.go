// Package transcript reads the recordings that agents keep of their sessions,
// and turns them into furl's log.
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
	// Wire is the format its messages are recorded or rendered in.
	Wire furl.Format
	// Log holds the messages, an Exchange before each reply (with usage,
	// model and the time of the request's reply where recorded), recorded compactions
	// as Reductions and rewinds as Heads, all in recorded order.
	Log *furl.Log
	// Counts as recorded, before any repair.
	Messages, Calls, Results, Compactions int
}

// Skip is one record of a file that could not be used.
type Skip struct {
	Line   int // 1-based; 0 where the format has no lines
	Reason string
}

// Start and End give the recorded times of a session; zero when unknown.
func (s *Session) Start() time.Time {
	for i := 1; i <= s.Log.Len(); i++ {
		if r := s.Log.At(furl.Seq(i)); !r.At.IsZero() {
			return r.At
		}
	}
	return time.Time{}
}
