// Package tool defines what a model may call, and has the tools of a working
// folder: read, list, search and edit files, and run commands.
//
// A [Tool] is a value with functions. Programs write their own, take those of
// a folder from [Open], and those of MCP servers from package tool/mcptool.
package tool

import (
	"context"
	"encoding/json"
	"strings"
)

// Tool is a function that a model may call. Its functions may be called from
// several goroutines at the same time.
type Tool struct {
	// Name identifies the tool to the model: 1 to 64 letters, digits, "_" and "-".
	Name string
	// Description tells the model what the tool does and when to call it.
	Description string
	// Schema is the JSON Schema of the input, of type object.
	Schema json.RawMessage
	// Changes is set if a call may change something outside the program. Such
	// calls are approved by the user first, unless the user has said otherwise.
	Changes bool
	// Preview says what a call would do, without doing it: a diff, a command
	// line. It is shown when asking for approval. An error means that the call
	// would fail the same way. If nil, there is no preview beyond the input.
	Preview func(ctx context.Context, input json.RawMessage) (Preview, error)
	// Run makes the call. An error means that the call failed; its text is sent
	// to the model as a failed result (see Failed). When ctx is canceled, Run
	// stops what it started and returns soon.
	Run func(ctx context.Context, input json.RawMessage) (Result, error)
}

// Preview says what a call would do. All text in it may come from the model or
// from files: escape control characters before printing it.
type Preview struct {
	// Title is one line, such as "Edit main.go" or "Run a command".
	Title string
	// Diff is a unified diff of the files that the call would change.
	Diff string
	// Command is the command line that the call would run.
	Command string
	// Note says what else to know before approving, in a sentence or two.
	Note string
}

// Result is what a call returns to the model.
type Result struct {
	// Parts are the result's texts and images, in order.
	Parts []Part
	// Error marks a failed call. The text says what was wrong.
	Error bool
}

// Part is a text, or an image or document.
type Part struct {
	// Text is the text, if Type is empty.
	Text string
	// Type is the media type of Data, such as "image/png" or "application/pdf".
	// If empty, the part is a text.
	Type string
	// Data has the bytes of an image or document, not encoded.
	Data []byte
}

// Text returns a result of one text.
func Text(text string) Result { return Result{Parts: []Part{{Text: text}}} }

// Failed returns the result of a call that failed with an error.
func Failed(err error) Result {
	return Result{Parts: []Part{{Text: "Error: " + err.Error()}}, Error: true}
}

// Text returns the result's texts, joined by newlines.
func (r Result) Text() string {
	var texts []string
	for _, p := range r.Parts {
		if p.Type == "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}
