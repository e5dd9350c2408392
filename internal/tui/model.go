package tui

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/chat"
)

// display shows the frame, and lines above it. It is a screen, except in tests.
type display interface {
	open()
	close()
	resize(width int)
	draw(above, frame []string, cursor *place)
}

// model is the state of the chat. Only Update changes it.
type model struct {
	base    context.Context // of all runs and commands; Bubble Tea passes none to Update
	conv    chat.Conversation
	asker   chat.Asker
	send    func(tea.Msg) // from other goroutines to Update
	display display
	signs   *signs
	now     func() time.Time
	getenv  func(string) string
	in      io.Reader
	out     io.Writer
	log     *slog.Logger
	first   []agent.Input  // to send when the entries are shown
	jobs    sync.WaitGroup // the goroutines that use send

	width, height int
	ready         bool // the size is known
	away          bool // another program has the terminal
	quitting      bool
	above         []string // lines to print above the frame
	rows          int      // of the frame that was drawn last
	stale         bool     // the frame has changed since

	info       chat.Info
	meter      *chat.Meter // nil if it is not known
	loading    bool        // Entries runs
	metering   bool        // Meter runs
	meterAgain bool        // and has to run again
	warned     bool        // the warning of this approach to the threshold is printed

	printed   bool           // something is printed
	lastKind  chat.EntryKind // of the last printed entry
	markdown  markdown
	foldables []folded // the newest last
	unfoldAt  int      // the one that Ctrl+O printed last

	stream stream
	run    *job
	// command is a slash command that runs.
	command *job
	ticking bool
	queued  []queued // input that was sent and is not delivered

	input      input
	history    *history
	search     *search
	completion completion
	chord      bool      // Ctrl+X was pressed
	interrupt  time.Time // when Ctrl+C was pressed last
	note       string    // in the line above the input, until the next key
	questions  []*question
}

func newModel(ctx context.Context, conv chat.Conversation, h *history, sg *signs) *model {
	m := &model{
		base: ctx, conv: conv, history: h, signs: sg, now: time.Now, getenv: func(string) string { return "" },
		log: slog.New(slog.DiscardHandler), info: conv.Info(),
	}
	m.markdown.signs = sg
	m.input = newInput(sg.prompt)
	m.asker = asker(func(msg tea.Msg) { m.send(msg) })
	return m
}

// Init does nothing: the chat starts when the size of the terminal is known.
func (m *model) Init() tea.Cmd { return nil }

// View is empty: Update draws, see screen.
func (m *model) View() tea.View { return tea.NewView("") }

// roomyHeight is the height from which an empty line is above the input.
const roomyHeight = 12

// tick redraws while something runs: the time, and text that has arrived.
type tick struct{}

const tickTime = 100 * time.Millisecond

// Update handles a message and draws.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	lazy := false // the next tick may draw
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		m.note = ""
		cmd = m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.ResumeMsg:
		m.display.open()
		m.away = false
	case edited:
		m.editorEnded(msg)
	case tick:
		m.ticking = false
	case runEvent:
		lazy = m.runEvent(msg)
	case runEnded:
		m.runEnded(msg.job)
	case commandReplied:
		cmd = m.commandReplied(msg)
	case entriesLoaded:
		m.entriesLoaded(msg)
	case meterRead:
		m.meterRead(msg)
	case asked:
		m.ask(msg)
	case questionGone:
		m.dropQuestion(msg.answer)
	default:
		return m, nil
	}
	m.draw(lazy)
	if m.quitting {
		return m, tea.Quit
	}
	if (m.run != nil || m.command != nil) && !m.ticking {
		m.ticking = true
		cmd = tea.Batch(cmd, tea.Tick(tickTime, func(time.Time) tea.Msg { return tick{} }))
	}
	if m.meter != nil && m.meter.Next != nil && !m.ticking { // the cache's time runs on
		m.ticking = true
		cmd = tea.Batch(cmd, tea.Tick(time.Second, func(time.Time) tea.Msg { return tick{} }))
	}
	return m, cmd
}

// resize sets the size of the terminal. The first time it starts the chat.
func (m *model) resize(width, height int) {
	if width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	m.width, m.height = max(width, 4), max(height, 3)
	m.resizeInputs()
	m.stream.resize(m.width)
	m.display.resize(m.width)
	if m.ready {
		return
	}
	m.ready = true
	m.greet()
	m.loadEntries()
	m.readMeter()
}

func (m *model) resizeInputs() {
	m.input.resize(m.width, m.height-3)
	for _, q := range m.questions {
		if q.edit != nil {
			q.edit.resize(m.width, m.height-5)
		}
	}
}

// draw prints what is new and shows the frame. If lazy is set and the height of the
// frame stays, the next tick does it.
func (m *model) draw(lazy bool) {
	if !m.ready || m.away {
		return
	}
	frame, cursor := m.frame()
	if lazy && len(m.above) == 0 && len(frame) == m.rows {
		m.stale = true
		return
	}
	m.rows, m.stale = len(frame), false
	m.display.draw(m.above, frame, cursor)
	m.above = nil
}

// frame returns the lines at the bottom of the terminal: the end of the reply that
// arrives, queued input, a line for what runs, the input or a question, and the status.
func (m *model) frame() (lines []string, cursor *place) {
	var below []string
	if len(m.questions) > 0 {
		below, cursor = m.questionFrame()
	} else {
		for _, q := range m.queued[max(0, len(m.queued)-3):] {
			below = append(below, dim.Render(cut(m.signs.prompt+" "+label(headOf(q.draft.text, 1000)), max(4, m.width-9), m.signs.more)+" (queued)"))
		}
		below = append(below, m.workLine())
		text, at := m.input.lines()
		cursor = &place{len(below) + at.row, at.col}
		below = append(below, text...)
	}
	below = append(below, statusLine(m.info, m.meter, time.Now(), m.width, m.signs))
	if m.height >= roomyHeight {
		below = append([]string{""}, below...)
		if cursor != nil {
			cursor.row++
		}
	}
	if n := len(below) - m.height; n > 0 { // a very small terminal
		below = below[n:]
		if cursor != nil {
			cursor.row = max(0, cursor.row-n)
		}
	}
	if lines = m.stream.lines(m.height - len(below) - 2); len(lines) > 0 && m.printed {
		lines = append([]string{""}, lines...)
	}
	if cursor != nil {
		cursor.row += len(lines)
		cursor.col = min(cursor.col, m.width-1)
	}
	return append(lines, below...), cursor
}

// workLine is the line above the input: what runs, or a hint.
func (m *model) workLine() string {
	switch {
	case m.search != nil:
		return m.search.line(m.width)
	case m.note != "":
		return yellow.Render(cut(m.note, m.width, m.signs.more))
	case m.completion.hint != "":
		return dim.Render(cut(m.completion.hint, m.width, m.signs.more))
	}
	j := m.run
	if j == nil {
		j = m.command
	}
	if j == nil {
		if hint := m.commandHint(); hint != "" {
			return dim.Render(cut(hint, m.width, m.signs.more))
		}
		hint := "Enter sends, Alt+Enter starts a line, /help lists commands"
		if m.info.Resumable && m.input.empty() {
			hint = "The last run has not ended. Enter continues it."
		}
		return dim.Render(cut(hint, m.width, m.signs.more))
	}
	elapsed := m.now().Sub(j.started)
	spin := m.signs.spinner[int(elapsed/tickTime)%len(m.signs.spinner)]
	text := j.doing()
	if text == "" {
		text = "Working"
	}
	return cyan.Render(spin) + " " + cut(text, max(4, m.width-30), m.signs.more) +
		dim.Render(cut(" "+m.signs.dot+" "+wholeSeconds(elapsed)+" "+m.signs.dot+" Esc interrupts", m.width-2-ansi.StringWidth(cut(text, max(4, m.width-30), m.signs.more)), ""))
}

func wholeSeconds(d time.Duration) string {
	if d < time.Minute {
		return d.Truncate(time.Second).String()
	}
	return seconds(d)
}

// print adds lines above the frame.
func (m *model) print(lines ...string) {
	m.printed = true
	m.above = append(m.above, lines...)
}

// printBlock prints the lines of an entry. Calls follow each other without an empty
// line; other entries have one before them.
func (m *model) printBlock(kind chat.EntryKind, lines []string) {
	if len(lines) == 0 {
		return
	}
	if m.printed && (kind != chat.Call || m.lastKind != chat.Call) {
		m.print("")
	}
	m.lastKind = kind
	m.print(lines...)
}

// printNote prints a line about what the user did.
func (m *model) printNote(text string) {
	m.printBlock(chat.Call, paint(dim, wrapPlain(clean(text), m.width)))
}

func (m *model) printWarning(text string) {
	m.printBlock(chat.Marker, warningLines(text, m.width))
}

func (m *model) printError(err error) {
	m.printBlock(chat.Marker, paint(red, wrapPlain("Error: "+clean(err.Error()), m.width)))
}

// foldable remembers an item for Ctrl+O. f may be nil.
func (m *model) foldable(f *folded) {
	const most = 50
	if f == nil {
		return
	}
	if m.foldables = append(m.foldables, *f); len(m.foldables) > most {
		m.foldables = append([]folded(nil), m.foldables[len(m.foldables)-most:]...)
	}
	m.unfoldAt = len(m.foldables)
}

// unfold prints the last folded item, and the one before it when called again.
func (m *model) unfold() {
	if len(m.foldables) == 0 {
		m.note = "Nothing to unfold."
		return
	}
	m.unfoldAt = min(m.unfoldAt, len(m.foldables)) - 1
	if m.unfoldAt < 0 {
		m.unfoldAt = len(m.foldables) - 1
	}
	m.printBlock(chat.Marker, m.foldables[m.unfoldAt].lines(m.width, m.signs))
}

// greet prints the head of the chat.
func (m *model) greet() {
	var head strings.Builder
	head.WriteString(bold.Render("furl chat"))
	for _, part := range []string{m.info.Provider, m.info.Model, m.info.Dir} {
		if part != "" {
			head.WriteString(dim.Render(" " + m.signs.dot + " " + label(part)))
		}
	}
	m.print(cut(head.String(), m.width, m.signs.more))
	for _, n := range m.info.Notices {
		m.print(warningLines(n, m.width)...)
	}
	m.lastKind = chat.Marker
}

// rule is a line across the terminal with a title.
func rule(title string, width int, sg *signs) string {
	title = cut(label(title), max(0, width-8), sg.more)
	if title != "" {
		title = " " + title + " "
	}
	n := max(0, width-2-ansi.StringWidth(title))
	return dim.Render(strings.Repeat(sg.rule, min(2, width)) + title + strings.Repeat(sg.rule, n))
}

// stripColors removes styles, to apply another one.
func stripColors(line string) string { return ansi.Strip(line) }
