package transcript

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// ExportOptions say what of a session is exported. The zero value exports the
// transcript of the head's path: every message, whatever is hidden.
type ExportOptions struct {
	// At is the record at the end of the path; the conversation is cut there
	// or at the step boundary before it. If 0, the log's head.
	At furl.Seq
	// View exports what the model sees at that point: what is hidden is left
	// out, and marks and texts stand in its place.
	View bool
	// Model is the model that sees the view; it decides which thinking is
	// shown. Its zero value sees all of it.
	Model furl.Model
	// Progress, if set, is called now and then with how much is done of how
	// much, in messages, or in records for furl's own format.
	Progress func(done, total int)
}

// Exported tells what became of a session.
type Exported struct {
	Format   string // as it was asked for; see ExportFormats
	Messages int    // recorded messages that were written
	Bytes    int64
	// Notes say what the format could not hold, for people.
	Notes []string
}

// UnknownExportError says that a name is none of those in ExportFormats.
type UnknownExportError struct{ Format string }

func (e *UnknownExportError) Error() string {
	var names []string
	for _, f := range exportFormats {
		names = append(names, f.Name)
	}
	return fmt.Sprintf("there is no export format %q; there are %s", e.Format, strings.Join(names, ", "))
}

// ExportFormat is one kind of file that a session can be written to.
type ExportFormat struct {
	Name      string
	Holds     string // what, for people
	Extension string // that its files bear, such as ".jsonl"
	// Whole says that it holds the whole log: ExportOptions.At and View
	// must be left out.
	Whole bool

	write func(x *exporter) error
}

var exportFormats = []ExportFormat{
	{"furl", "the whole session, to be read by furl again", ".jsonl", true, (*exporter).writeFurl},
	{"claude-code", "a session file of Claude Code", ".jsonl", false, (*exporter).writeClaude},
	{"anthropic", "a request body of Anthropic Messages", ".json", false, (*exporter).writeAnthropic},
	{"openai-chat", "a request body of OpenAI Chat Completions", ".json", false, (*exporter).writeChat},
	{"openai-responses", "a request body of OpenAI Responses", ".json", false, (*exporter).writeResponses},
	{"markdown", "a text to read", ".md", false, (*exporter).writeMarkdown},
	{"html", "a page to read", ".html", false, (*exporter).writeHTML},
}

// ExportFormats lists the formats that Export writes, furl's own first.
func ExportFormats() []ExportFormat { return slices.Clone(exportFormats) }

// Export writes a session in one of ExportFormats, by its name, or in "openai":
// openai-responses if the session is in that, otherwise openai-chat. A name that
// there is not is an *UnknownExportError, an At that is not in the log an error
// wrapping furl.ErrNotOnPath, an At or View with a format that is Whole
// an error, too; nothing is written then. Later errors are those
// of w and of ctx, which ends the export between two messages; what was
// written by then is of no use. What the format cannot hold is no error, it is
// in Exported.Notes.
func Export(ctx context.Context, w io.Writer, format string, s *Session, opts *ExportOptions) (*Exported, error) {
	if format == "openai" {
		format = string(furl.FormatChat)
		if s.Wire == furl.FormatResponses {
			format = string(furl.FormatResponses)
		}
	}
	i := slices.IndexFunc(exportFormats, func(f ExportFormat) bool { return f.Name == format })
	if i < 0 {
		return nil, &UnknownExportError{format}
	}
	f := exportFormats[i]
	x := &exporter{ctx: ctx, s: s, done: &Exported{Format: format}}
	if opts != nil {
		x.opts = *opts
	}
	if f.Whole && (x.opts.At != 0 || x.opts.View) {
		return nil, fmt.Errorf("export as %s: this format holds the whole session; leave out the place and the view", format)
	}
	if err := x.cut(f.Whole); err != nil {
		return nil, fmt.Errorf("export as %s: %w", format, err)
	}
	x.w = bufio.NewWriterSize(&countWriter{w: w, n: &x.done.Bytes}, 64<<10)
	err := f.write(x)
	if err == nil {
		err = x.w.Flush()
	}
	if err != nil {
		return nil, fmt.Errorf("export as %s: %w", format, err)
	}
	return x.done, nil
}

// exporter writes one session.
type exporter struct {
	ctx   context.Context // of the one call of Export
	w     *bufio.Writer   // its errors stick, so that Flush tells the first
	s     *Session
	opts  ExportOptions
	state *furl.State // at the end of the path
	done  *Exported
}

// cut finds the state at the end of the path.
func (x *exporter) cut(whole bool) error {
	log := x.s.Log
	if whole || x.opts.At == 0 {
		x.state = log.State()
		return nil
	}
	at := x.opts.At
	if at > furl.Seq(log.Len()) {
		return fmt.Errorf("there is no record %d: %w", at, furl.ErrNotOnPath)
	}
	if _, ok := log.At(at).Body.(*furl.Head); ok {
		at = log.At(at).Parent
	}
	state, err := furl.Fold(log, at)
	if err != nil {
		return err
	}
	if b := state.Boundary(at); b != at {
		x.note("the conversation is cut at record %d, where no call waits for its result", b)
		if state, err = furl.Fold(log, b); err != nil {
			return err
		}
	}
	x.state = state
	return nil
}

func (x *exporter) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(x.done.Notes, n) {
		x.done.Notes = append(x.done.Notes, n)
	}
}

func (x *exporter) put(b []byte) { x.w.Write(b) }

// progressEvery is after how many messages an export looks whether it is
// still wanted and tells how far it is.
const progressEvery = 64

// progress is called after each message.
func (x *exporter) progress(done, total int) error {
	if done%progressEvery != 0 && done != total {
		return nil
	}
	if x.opts.Progress != nil {
		x.opts.Progress(done, total)
	}
	if _, err := x.w.Write(nil); err != nil { // the one that stuck
		return err
	}
	return x.ctx.Err()
}

// countWriter counts what is written.
type countWriter struct {
	w io.Writer
	n *int64
}

func (c *countWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	*c.n += int64(n)
	return n, err
}
