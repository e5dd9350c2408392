// Package chat defines a conversation as a chat program shows it: what the program can
// ask of the conversation, and what the conversation can ask of the user.
//
// Package internal/conversation has the conversation of a session, and internal/tui the screen.
package chat

import (
	"context"
	"iter"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/tool"
)

// Conversation is a session with an agent. Its methods may be called from several
// goroutines at the same time. All texts may come from a model, from tools or from
// files: escape control characters before printing them.
type Conversation interface {
	// Info describes the conversation. It is fast.
	Info() Info
	// Meter returns how full the context is.
	Meter() (Meter, error)
	// Entries returns the last n entries of the current branch, oldest first, and how
	// many are before them.
	Entries(n int) (list []Entry, before int, err error)
	// Run sends input to the model and works until the model ends; see agent.Agent.Run.
	// Without input it continues where the session has stopped.
	Run(ctx context.Context, ask Asker, input ...agent.Input) iter.Seq2[agent.Event, error]
	// Send adds input while a run is in progress; see agent.Agent.Send.
	Send(input agent.Input)
	// TakePending returns and removes the input that has not been delivered.
	TakePending() []agent.Input
	// Commands lists the slash commands, in the order of /help.
	Commands() []Command
	// Command runs a line for which IsCommand is true. width is that of the terminal,
	// in columns.
	Command(ctx context.Context, ask Asker, line string, width int) Reply
}

// Info describes a conversation.
type Info struct {
	Session furl.SessionID
	// Title is the start of the first message of the user, "" in an empty session.
	Title string
	// Model is the model's ID, and Provider the name of its provider.
	Model, Provider string
	// Simulated reports that furl's simulated provider replies.
	Simulated bool
	// Dir is the working folder of the tools.
	Dir string
	// Resumable reports that the last run stopped before the model had ended, so that
	// a Run without input continues it.
	Resumable bool
	// Notices are sentences to show when the chat starts.
	Notices []string
}

// Meter says how full the context is. Sizes are in tokens.
type Meter struct {
	Size, Window int
	// Threshold is the size from which the policy reduces the context, 0 if it is not
	// known.
	Threshold int
	// Kinds are the parts of Size, in a fixed order, without empty ones.
	Kinds []Kind
	// Hidden is the number of hidden messages.
	Hidden int
	// Next says at a time what the input of the next message costs, in several lengths, the
	// longest first; nil if that is unknown.
	Next func(now time.Time) []string
}

// Kind is the size of one kind of content, such as "results".
type Kind struct {
	Name   string
	Tokens int
}

// EntryKind says what an Entry is.
type EntryKind int

const (
	User     EntryKind = iota // a message of the user
	Text                      // a text of the model
	Thinking                  // thinking of the model
	Call                      // a call and its result
	Marker                    // a reduction of the context
)

// Entry is one item of the conversation as a person reads it.
type Entry struct {
	Kind   EntryKind
	Record furl.Seq
	// Text is the text, or the description of the marker: one line, and below it what
	// can be shown on request, such as the summary.
	Text string
	// Media is the number of images and documents of the message.
	Media int
	// Call and Result are set if Kind is Call. Result is nil if the call has none.
	Call   agent.Call
	Result *tool.Result
	// Hidden reports that the model does not see the entry, or not all of it.
	Hidden bool
	Time   time.Time
}

// Command is a slash command.
type Command struct {
	Name  string // without the slash
	Usage string // the arguments, such as "[on|off]"
	Short string // what it does, at most 60 characters
	// Values are the possible first arguments, for completion. It may be nil.
	Values func() []string
}

// Reply is what a slash command returns.
type Reply struct {
	// Text is the output. It is escaped and may have colors.
	Text string
	// Err says why the command failed.
	Err error
	// Events, if not nil, must be read: the command asks a model. It is read like a Run.
	Events iter.Seq2[agent.Event, error]
	// After, if not nil, returns more output when Events have been read; "" for none.
	After func() string
	// Reload reports that the entries have changed: another branch or session.
	Reload bool
	// Input is a text for the input line, such as the message before which the user
	// went back.
	Input string
	// Quit reports that the chat ends.
	Quit bool
}

// Asker asks the user a question and waits for the answer. An error means that there is
// no answer: the question was canceled, ctx has ended, or nobody can be asked.
type Asker func(ctx context.Context, q Question) (Answer, error)

// Question is a choice, or a text to edit if Edit is set.
type Question struct {
	// Title is one line.
	Title string
	// Body is text to read before answering. It may be long.
	Body string
	// Diff is a unified diff, "" for none.
	Diff string
	// Options are the choices.
	Options []Option
	// Default is the index of the option that is selected at the start.
	Default int
	// Edit asks for a new version of Body instead of a choice.
	Edit bool
}

// Option is one choice of a Question.
type Option struct {
	Label string
	// Key selects the option, such as "y". It may be "".
	Key string
	// Text reports that the option asks for a line of text as well.
	Text bool
	// AfterEnd reports that the option can be chosen once the end of Body and Diff was
	// shown. Before that, choosing it scrolls.
	AfterEnd bool
}

// Answer is the user's answer.
type Answer struct {
	// Option is the index of the option.
	Option int
	// Text is the line of text, or the edited text.
	Text string
}
