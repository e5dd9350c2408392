// Package operation is the table of what a person, a program or a model can do to a session:
// pin, hide, restore, rewind, reduce and so on. An operation exists once: what it takes, what
// it says before and after, what it refuses, and how it is undone. The surfaces are made from
// the table: commands of furl, paths of the API, slash commands of the chat, tools of the MCP
// server, and the panels of the page.
package operation

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
)

// Surface is where an operation can be used.
type Surface string

// The surfaces. An operation has its name on most of them: furl pin, POST …/sessions/ID/pin,
// /pin, the action pin of the page; the model's tools have the prefix "memory_".
const (
	Command Surface = "command"
	API     Surface = "API"
	Chat    Surface = "chat"
	Page    Surface = "page"
	Model   Surface = "model"
)

// Surfaces lists all surfaces in the order of the documents.
func Surfaces() []Surface { return []Surface{Command, API, Chat, Page, Model} }

// Audit is what the audit log calls an operation.
type Audit string

// The names in the audit log.
const (
	Change  Audit = "change"
	Restore Audit = "restore"
	Delete  Audit = "delete"
	Hold    Audit = "hold"
	Release Audit = "release"
)

// Operation is one thing that can be done to a session.
type Operation struct {
	Name    string
	Command string   // words of the command after "furl", if not the name
	Path    string   // the end of the path in the API, if not the name
	Slash   string   // the slash command, if not the command
	Aliases []string // other names of the command
	Short   string   // what it does, in a few words
	Long    string   // what it does, in sentences, for people and for the model
	Example []string // arguments after the name, a line each
	Audit   Audit
	// Optional reports that the session can be left out, because the first argument is a
	// handle that names it.
	Optional bool
	// NoSession reports that its argument names what it is about, and not a session.
	NoSession bool
	// Missing says of the surfaces that do not have the operation, why.
	Missing map[Surface]string

	input func() any
	do    func(*Call, any) (*Result, error)
}

// Call is one use of an operation.
type Call struct {
	context.Context
	Sessions *session.Sessions
	Session  *session.Session
	// Key is that of the session if Session is nil, for operations that do not read it. Its
	// Session is "" for all of the tenant.
	Key furl.SessionKey
	// By is who does it, for operations that record the name.
	By string
	// Preview changes nothing: the result is what would be.
	Preview bool
	// What is what the chosen blocks are called in the words of the result, such as "this
	// message"; "": their handles.
	What string
	// ByModel reports that the model has called it. It may not hide what the user said.
	ByModel bool
	// Compactor writes summaries, nil if no model can be asked.
	Compactor Compactor
}

// SessionKey returns the key of the session, or Key.
func (c *Call) SessionKey() furl.SessionKey {
	if c.Session != nil {
		return c.Session.Info().SessionKey
	}
	return c.Key
}

// Result is what an operation has done, or would do.
type Result struct {
	// Title says it as an order, such as "Pin furl:12", and Did as done, such as "Pinned
	// furl:12". Neither has a period.
	Title, Did string
	// Effects say what that means for the model, and Notes what else there is to know. Both
	// are sentences.
	Effects, Notes []string
	// Price is what it does to the price of later requests, nil for nothing.
	Price *policy.Price
	// Nothing says why nothing changes, "" if something does.
	Nothing string
	// Undo undoes it, nil if the log does not allow that.
	Undo *Undo
	// Value has further figures for programs: a struct.
	Value any
}

// Undo is the operation that undoes another one.
type Undo struct {
	Operation string
	Input     any
}

// Refusal is why an operation cannot be done now, as a sentence.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Invalid is what is wrong with an input.
type Invalid struct{ error }

// Unwrap returns the error without its kind.
func (e Invalid) Unwrap() error { return e.error }

func invalid(text string) error { return Invalid{errors.New(text)} }

// define makes an operation with an input of type In.
func define[In any](o Operation, do func(*Call, *In) (*Result, error)) *Operation {
	o.Command, o.Path = cmp.Or(o.Command, o.Name), cmp.Or(o.Path, o.Name)
	o.Slash = cmp.Or(o.Slash, o.Command)
	o.input = func() any { return new(In) }
	o.do = func(c *Call, in any) (*Result, error) { return do(c, in.(*In)) }
	return &o
}

// Input returns a pointer to an empty input.
func (o *Operation) Input() any { return o.input() }

// Do does the operation. in is a pointer from Input, or to a value of the same type. It sets
// c.Preview if the input says so. An error is a Refusal, an Invalid, or one of the session.
func (o *Operation) Do(c *Call, in any) (*Result, error) {
	c.Preview = c.Preview || DryRun(in)
	return o.do(c, in)
}

// On reports whether a surface has the operation.
func (o *Operation) On(s Surface) bool { return o.Missing[s] == "" }

// Named returns an operation, nil if there is none of that name.
func Named(name string) *Operation {
	if i := slices.IndexFunc(all, func(o *Operation) bool { return o.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// All returns the table.
func All() []*Operation { return slices.Clone(all) }

var all = []*Operation{pin, unpin, prefer, hide, restore, compact, reduce, approve, refuse, edit, rewind, fork, set, redact, hold, release, deletes}

// preview is the part of an input that asks what an operation would do.
type preview struct {
	DryRun bool `json:"dry_run,omitempty" flag:"dry-run" help:"show the effect, change nothing"`
}

func (p *preview) dryRun() bool { return p.DryRun }

// Head is the part of a result that is the same for all operations, in JSON.
type Head struct {
	Session furl.SessionID `json:"session"`
	DryRun  bool           `json:"dry_run"`
	Text    string         `json:"text"`
	Notes   []string       `json:"notes,omitempty"`
	Undo    *undoJSON      `json:"undo,omitempty"`
}

type undoJSON struct {
	Operation string `json:"operation"`
	Input     any    `json:"input"`
}

// DryRun reports whether an input asks what an operation would do.
func DryRun(in any) bool {
	p, ok := in.(interface{ dryRun() bool })
	return ok && p.dryRun()
}
