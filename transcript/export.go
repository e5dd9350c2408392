package transcript

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// ExportOptions selects what is exported of a session. The zero value exports
// the transcript of the current branch: every message, hidden or not.
type ExportOptions struct {
	// At is the last record of the exported path. If calls are open there,
	// the path ends at the step boundary before it. If 0, it is the last
	// record of the log's current branch.
	At furl.Seq
	// View exports what the model sees at that point: hidden messages are
	// omitted, and their markers and placeholders are written instead.
	View bool
	// Shown, if set, is the view to export instead of that of At, which must then be
	// 0. Its state's path must be in the log. It requires View.
	Shown *furl.View
	// Model is the model that receives the view; it decides which thinking is
	// shown. The zero value shows all thinking.
	Model furl.Model
	// Provider is the provider that continues the session in Codex, as its configuration
	// names it; Codex does not open a session without one. If empty, it is openai. It is for
	// the format codex only.
	Provider string
	// Structure leaves out everything that somebody wrote: texts, titles, names, paths
	// and dates. Roles, kinds, sizes and times since the start remain. It is for the
	// format html only.
	Structure bool
	// Progress, if set, is called from time to time with the amount done and
	// the total, in messages, or in records for the furl format.
	Progress func(done, total int)

	// beside writes the other files of formats that have several; nil leaves
	// them out. See ExportTask.
	beside func(name string, data []byte) error
}

// Exported describes a finished export.
type Exported struct {
	Format   string // the requested format; see ExportFormats
	Messages int    // recorded messages that were written
	Bytes    int64
	// Notes say, for people, what the format could not represent.
	Notes []string
}

// UnknownExportError reports a name that is not in ExportFormats.
type UnknownExportError struct{ Format string }

func (e *UnknownExportError) Error() string {
	var names []string
	for _, f := range exportFormats {
		names = append(names, f.Name)
	}
	return fmt.Sprintf("unknown export format %q: choose one of %s", e.Format, strings.Join(names, ", "))
}

// ExportFormat is a kind of file to which a session can be written.
type ExportFormat struct {
	Name      string
	Holds     string // description for people
	Extension string // file name extension, such as ".jsonl"
	// Whole reports that the format contains the whole log. ExportOptions.At
	// and View must then be zero.
	Whole bool
	// Readable reports that the format is for people. It says which reductions show
	// the placeholders of a view.
	Readable bool

	write func(x *exporter) error
}

var exportFormats = []ExportFormat{
	{"furl", "the whole session, for import by furl", ".jsonl", true, false, (*exporter).writeFurl},
	{"claude-code", "a session file of Claude Code", ".jsonl", false, false, (*exporter).writeClaude},
	{"codex", "a rollout of Codex", ".jsonl", false, false, (*exporter).writeCodex},
	{"qwen-code", "a chat of Qwen Code", ".jsonl", false, false, (*exporter).writeQwen},
	{"pi", "a session file of pi", ".jsonl", false, false, (*exporter).writePi},
	{"opencode", "a session for opencode import", ".json", false, false, (*exporter).writeOpencode},
	{"roo", "a task of Roo Code or Zoo Code", ".json", false, false, (*exporter).writeRoo},
	{"anthropic", "a request body of Anthropic Messages", ".json", false, false, (*exporter).writeAnthropic},
	{"openai-chat", "a request body of OpenAI Chat Completions", ".json", false, false, (*exporter).writeChat},
	{"openai-responses", "a request body of OpenAI Responses", ".json", false, false, (*exporter).writeResponses},
	{"markdown", "a text for reading", ".md", false, true, (*exporter).writeMarkdown},
	{"html", "a web page for reading", ".html", false, true, (*exporter).writeHTML},
}

// ExportFormats lists the formats that Export writes; the furl format is
// first.
func ExportFormats() []ExportFormat { return slices.Clone(exportFormats) }

// Export writes a session to w. format is the name of one of ExportFormats,
// or "openai": openai-responses if the session is in that format, otherwise
// openai-chat.
//
// Export returns an *UnknownExportError for an unknown name, an error
// wrapping furl.ErrNotOnPath if At is not in the log, and an error if At or
// View is set for a format that is Whole, or Structure for one other than html; nothing has been written then.
// Later errors come from w or from ctx, which is checked between messages;
// the output is then incomplete. Content that the format cannot represent is
// not an error; it is listed in Exported.Notes.
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
		return nil, fmt.Errorf("export as %s: this format contains the whole session: remove the record and the view", format)
	}
	if x.opts.Structure && f.Name != "html" {
		return nil, fmt.Errorf("export as %s: only the format html can have the structure without content", format)
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
	ctx   context.Context // of the single call of Export
	w     *bufio.Writer   // its first error sticks and is returned by Flush
	s     *Session
	opts  ExportOptions
	state *furl.State // at the end of the path
	done  *Exported
}

// cut finds the state at the end of the path.
func (x *exporter) cut(whole bool) error {
	log := x.s.Log
	switch {
	case x.opts.Shown != nil:
		x.state = x.opts.Shown.State
		return nil
	case whole || x.opts.At == 0:
		x.state = log.State()
		return nil
	}
	at := x.opts.At
	if at > furl.Seq(log.Len()) {
		return fmt.Errorf("record %d: %w", at, furl.ErrNotOnPath)
	}
	if _, ok := log.At(at).Body.(*furl.Head); ok {
		at = log.At(at).Parent
	}
	state, err := furl.Fold(log, at)
	if err != nil {
		return err
	}
	if b := state.Boundary(at); b != at {
		x.note("the export ends at record %d, the last one without open calls", b)
		if state, err = furl.Fold(log, b); err != nil {
			return err
		}
	}
	x.state = state
	return nil
}

// project returns the folder that the agent worked in, "" if unknown.
func (s *Session) project() string { return cmp.Or(s.Project, s.Meta.Project) }

func (x *exporter) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(x.done.Notes, n) {
		x.done.Notes = append(x.done.Notes, n)
	}
}

func (x *exporter) put(b []byte) { x.w.Write(b) }

// progressEvery is the number of messages after which an export checks its
// context and reports progress.
const progressEvery = 64

// progress is called after each message.
func (x *exporter) progress(done, total int) error {
	if done%progressEvery != 0 && done != total {
		return nil
	}
	if x.opts.Progress != nil {
		x.opts.Progress(done, total)
	}
	if _, err := x.w.Write(nil); err != nil { // returns the sticky error
		return err
	}
	return x.ctx.Err()
}

// countWriter counts the bytes written.
type countWriter struct {
	w io.Writer
	n *int64
}

func (c *countWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	*c.n += int64(n)
	return n, err
}
