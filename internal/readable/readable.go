// Package readable shows a session to people: as Markdown, or as one
// self-contained HTML page. All content of a session may be hostile; it is
// written as plain text only.
package readable

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
)

// Session is one conversation of a session's log.
type Session struct {
	ID, Title, Model string
	// Preamble contains instructions and tools, if known.
	Preamble []furl.Block
	Log      *furl.Log
	// State is the state at the end of the conversation; its records are
	// Log's.
	State *furl.State
	// View, if set, is shown instead of the transcript: what the model sees.
	View *furl.View
	// Structure leaves out everything that somebody wrote: texts, titles, names, paths and
	// dates. Roles, kinds, sizes and times since the start remain, and the names of tools
	// that common agents have built in.
	Structure bool
}

// Step is called after each entry with the number of entries written and the
// total. An error stops the writing and is returned.
type Step func(done, total int) error

// entry is one item on the page, from top to bottom.
type entry struct {
	Seq    furl.Seq // its record; 0 for a marker
	Who    string   // the role; "" if it is not a message
	At     string
	Size   string   // of a reply's prompt, as reported
	Hidden string   // what hides the whole entry, "" if it is visible
	By     furl.Seq // 0 if that is not on the page
	Blocks []block
	Marker *marker // of a reduction
	Note   string  // of other records
}

// block is one block of a message.
type block struct {
	Kind   string // as furl.Kind's String
	Label  string // one-line description
	Text   string // as recorded
	JSON   bool   // Text is JSON
	Failed bool
	Open   bool // short enough to be expanded
	// Hidden says what hides the block, if the whole message is not hidden.
	// Instead is then what the model sees instead.
	Hidden  string
	By      furl.Seq
	Instead string
	Bare    bool // the block has a label only
}

// marker is shown where something was reduced.
type marker struct {
	Title   string
	Reason  string
	Texts   []string // what the model sees instead of the messages
	Caption string   // of the texts
	Lifted  bool
}

// entries returns the entries, and their number.
func (s *Session) entries() (iter.Seq[entry], int) {
	if s.View != nil {
		return s.viewEntries(), len(s.View.Messages)
	}
	path := s.Log.Path(s.State.Head())
	return func(yield func(entry) bool) {
		b := newBuilder(s)
		for _, r := range path {
			if !yield(b.record(r)) {
				return
			}
		}
	}, len(path)
}

// builder makes entries from the records of a path.
type builder struct {
	s     *Session
	names map[string]string        // of tools, by call
	texts map[furl.Seq][]shownText // of reductions, as far as needed
	size  string                   // of the prompt that the next reply answers
	start time.Time                // of the first record, for a structure
}

func newBuilder(s *Session) *builder {
	b := &builder{s: s, names: make(map[string]string), texts: make(map[furl.Seq][]shownText)}
	for i := 0; i < s.State.Len() && b.start.IsZero(); i++ {
		b.start = s.State.Time(i)
	}
	return b
}

// at writes the time of a record.
func (b *builder) at(t time.Time) string {
	if b.s.Structure {
		return b.since(t)
	}
	return stamp(t)
}

func (b *builder) record(r furl.Record) entry {
	e := entry{Seq: r.Seq, At: b.at(r.At)}
	switch body := r.Body.(type) {
	case *furl.Message:
		b.message(&e, body)
	case *furl.Reduction:
		e.Marker = b.marker(r.Seq, body)
		if b.s.Structure {
			b.structureMarker(e.Marker, body)
		}
	case *furl.Takeover:
		e.Note = b.takenOver(body)
	case *furl.Restoration:
		e.Note = restored(body)
	case *furl.Exchange:
		if n := body.Usage.Prompt(); n > 0 {
			b.size = numbers.Thousands(n) + " tokens sent"
		}
		return entry{}
	}
	return e
}

func (b *builder) message(e *entry, m *furl.Message) {
	e.Who = b.role(m)
	if m.Role == furl.RoleAssistant {
		e.Size, b.size = b.size, ""
	}
	hidden := 0
	var first furl.Seq
	for i := range m.Blocks {
		blk := b.block(&m.Blocks[i])
		by := b.s.State.ShownBy(furl.Pos{Msg: e.Seq, Block: i})
		if by != 0 {
			blk.By, blk.Hidden = by, b.hiddenBy(by)
			var gone bool
			if blk.Instead, gone = b.instead(by, furl.Pos{Msg: e.Seq, Block: i}); gone {
				hidden++
				first = by
			}
			if b.s.Structure {
				blk.Instead = ""
			}
		}
		e.Blocks = append(e.Blocks, blk)
	}
	if hidden > 0 && hidden == len(m.Blocks) {
		e.By, e.Hidden = first, b.hiddenBy(first)
		for i := range e.Blocks {
			e.Blocks[i].Hidden = ""
		}
	}
}

// role returns the role of a message.
func (b *builder) role(m *furl.Message) string {
	if b.s.Structure {
		return roleOf(m.Role)
	}
	return string(m.Role)
}

// instead returns the text that reduction by shows instead of a block; gone
// reports that it shows none there.
func (b *builder) instead(by furl.Seq, p furl.Pos) (text string, gone bool) {
	list, ok := b.texts[by]
	if !ok {
		list = b.textsOf(by)
		b.texts[by] = list
	}
	i, found := slices.BinarySearchFunc(list, p, func(t shownText, p furl.Pos) int { return compare(t.First, p) })
	if !found {
		i--
	}
	if i < 0 || compare(p, list[i].Last) > 0 {
		return "", true
	}
	return list[i].text, false
}

// shownText is the text that a reduction shows instead of blocks.
type shownText struct {
	furl.Span
	text string
}

// textsOf lists the texts of a reduction in place, in the order of the path.
// No two items of a reduction cover the same block.
func (b *builder) textsOf(by furl.Seq) (list []shownText) {
	red, ok := b.s.State.Reduction(by)
	if !ok {
		return nil
	}
	for _, item := range red.Items {
		if in, ok := item.Show.(furl.In); ok {
			for _, sp := range item.Spans {
				list = append(list, shownText{sp, in.Text})
			}
		}
	}
	slices.SortFunc(list, func(a, b shownText) int { return compare(a.First, b.First) })
	return list
}

func compare(a, b furl.Pos) int {
	return cmp.Or(cmp.Compare(a.Msg, b.Msg), cmp.Compare(a.Block, b.Block))
}

func before(a, b furl.Pos) bool { return compare(a, b) < 0 }

func (b *builder) hiddenBy(by furl.Seq) string {
	red, ok := b.s.State.Reduction(by)
	if !ok {
		return "hidden"
	}
	if b.s.Structure {
		return fmt.Sprintf("hidden by record %d", by)
	}
	return fmt.Sprintf("hidden by %s, record %d", red.Stage, by)
}

const (
	shortText = 240 // size in bytes up to which a result is expanded
	hint      = 80  // number of characters shown of a collapsed text
)

func (b *builder) block(blk *furl.Block) block {
	if b.s.Structure {
		return b.structureBlock(blk)
	}
	out := block{Kind: blk.Kind.String(), Text: blk.Text, Failed: blk.Error}
	size := ""
	if blk.Tokens > 0 {
		size = ", " + numbers.Count(blk.Tokens, "token")
	}
	if blk.Observation {
		out.Label = "observation"
		if blk.Error {
			out.Label += ", failed"
		}
		out.Label += size
	}
	switch blk.Kind {
	case furl.KindCall:
		b.names[blk.ID] = blk.Name
		out.Label, out.Text, out.JSON = "call of "+blk.Name+size+": "+Line(string(blk.Args), hint), string(blk.Args), true
	case furl.KindResult:
		name := b.names[blk.ID]
		if name == "" {
			name = blk.ID
		}
		out.Label = "result of " + name
		if blk.Error {
			out.Label += ", failed"
		}
		out.Label += size
		if out.Open = len(blk.Text) <= shortText && strings.Count(blk.Text, "\n") < 4; !out.Open {
			out.Label += ": " + Line(blk.Text, hint)
		}
	case furl.KindThinking:
		out.Label = "thinking" + size
		if blk.Text == "" {
			out.Text = "(encrypted by the provider)"
		}
	case furl.KindOpaque:
		out.Label = blk.Name + size
	case furl.KindImage, furl.KindDocument:
		out.Label = blk.Kind.String() + size
	}
	for i := range blk.Media {
		if out.Text != "" {
			out.Text += "\n"
		}
		out.Text += media(&blk.Media[i])
	}
	return out
}

// media describes an image or a document, whose bytes are not shown.
func media(m *furl.Media) string {
	text := "[" + m.Kind.String()
	if m.Type != "" {
		text += " " + m.Type
	}
	if m.Width > 0 && m.Height > 0 {
		text += fmt.Sprintf(", %d×%d", m.Width, m.Height)
	}
	return text + fmt.Sprintf(", %s]", numbers.Count(m.Bytes, "byte"))
}

func (b *builder) marker(seq furl.Seq, red *furl.Reduction) *marker {
	on, _ := b.s.State.Reduction(seq)
	m := &marker{Reason: red.Reason, Lifted: on.Undone}
	messages, blocks := b.covered(red)
	for _, item := range red.Items {
		if mark, ok := item.Show.(furl.Mark); ok {
			for _, msg := range mark.Messages {
				m.Texts = append(m.Texts, words(msg))
			}
		}
	}
	m.Caption = "The model sees instead:"
	what := numbers.Count(blocks, "block") + " hidden"
	if len(m.Texts) > 0 {
		what = numbers.Count(messages, "message") + " hidden"
	}
	m.Title = red.Stage + " — " + what
	if sum := red.Summary; sum != nil {
		if sum.Messages > 0 {
			messages = sum.Messages
		}
		m.Title = summaryTitle(red, messages)
		if red.Stage != stageExtract && (sum.Model != "" || red.Stage == "compact") {
			m.Caption = "Summary from LLM:"
		}
		if sum.Text != "" {
			m.Texts = []string{sum.Text}
		}
	}
	switch freed := red.Before - red.After; {
	case red.Summary != nil && red.After == 0 && red.Before > 0: // not recorded; the summary remains
		m.Title += ", " + numbers.Count(red.Before, "token") + " before"
	case freed > 0:
		m.Title += ", ~" + numbers.Count(freed, "token") + " freed"
	}
	return m
}

// covered counts what a reduction covers: messages, and their blocks.
func (b *builder) covered(red *furl.Reduction) (messages, blocks int) {
	st := b.s.State
	for _, item := range red.Items {
		for _, sp := range item.Spans {
			lo, _ := st.Find(sp.First.Msg)
			hi, ok := st.Find(sp.Last.Msg)
			if !ok {
				continue
			}
			for i := lo; i <= hi; i++ {
				seq, m := st.Message(i)
				messages++
				for j := range max(1, len(m.Blocks)) {
					if p := (furl.Pos{Msg: seq, Block: j}); !before(p, sp.First) && !before(sp.Last, p) {
						blocks++
					}
				}
			}
		}
	}
	return messages, blocks
}

func words(m *furl.Message) string {
	var parts []string
	for i := range m.Blocks {
		parts = append(parts, m.Blocks[i].Text)
	}
	return strings.Join(parts, "\n")
}

// takenOver names the reductions of another branch that apply on this one.
func (b *builder) takenOver(t *furl.Takeover) string {
	var parts []string
	for seq, body := range t.Taken() {
		if red, ok := body.(*furl.Reduction); ok && b.s.Structure {
			parts = append(parts, fmt.Sprintf("record %d", seq))
		} else if ok {
			parts = append(parts, fmt.Sprintf("record %d (%s)", seq, red.Stage))
		}
	}
	text := fmt.Sprintf("taken over from the branch that ends at record %d", t.Branch)
	const most = 20
	switch n := len(parts); {
	case n == 0:
		return text
	case n > most:
		return text + ": " + strings.Join(parts[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	}
	return text + ": " + strings.Join(parts, ", ")
}

func restored(res *furl.Restoration) string {
	var text string
	switch {
	case res.Of != 0:
		text = fmt.Sprintf("record %d was undone: what it hid is visible again", res.Of)
	case res.Open:
		text = "expanded: " + spans(res.Spans)
	default:
		return map[furl.Hold]string{furl.Keep: "preferred: ", furl.Pin: "pinned: ", furl.Release: "unpinned: "}[res.Hold] + spans(res.Spans)
	}
	if res.Hold == furl.Pin {
		text += ", and pinned"
	}
	return text
}

func spans(list []furl.Span) string {
	var parts []string
	for i, sp := range list {
		if i == 20 {
			parts = append(parts, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		if sp.First.Msg == sp.Last.Msg {
			parts = append(parts, fmt.Sprintf("record %d", sp.First.Msg))
		} else {
			parts = append(parts, fmt.Sprintf("records %d to %d", sp.First.Msg, sp.Last.Msg))
		}
	}
	return strings.Join(parts, ", ")
}

// viewEntries returns what the model sees.
func (s *Session) viewEntries() iter.Seq[entry] {
	return func(yield func(entry) bool) {
		b := newBuilder(s)
		unit := 0
		for i := range s.View.Messages {
			sh := &s.View.Messages[i]
			for unit < len(s.View.Units)-1 && s.View.Units[unit].Last < i {
				unit++
			}
			e := entry{Seq: sh.Seq, Who: b.role(sh.Msg)}
			if sh.Index >= 0 {
				e.At = b.at(s.State.Time(sh.Index))
			} else {
				e.Note = "a marker"
				if u := &s.View.Units[unit]; u.Kind == furl.UnitMark && u.First <= i && i <= u.Last {
					e.Note = "in place of " + numbers.Count(u.Messages, "message")
					if u.Hidden > 0 {
						e.Note += " with " + numbers.Count(u.Hidden, "token")
					}
				}
				if e.Note += ", " + b.hiddenBy(sh.By); sh.By == 0 {
					e.Note = "as the client sent it, not recorded"
				}
			}
			for j := range sh.Blocks {
				sb := &sh.Blocks[j]
				blk := b.block(sb.Block)
				if sb.By != 0 {
					blk.Hidden = b.hiddenBy(sb.By)
					if !s.Structure {
						blk.Text, blk.Open = sb.Text, true
					}
				}
				e.Blocks = append(e.Blocks, blk)
			}
			if !yield(e) {
				return
			}
		}
	}
}

// given is one block of the preamble.
type given struct{ Label, Text string }

// given lists the preamble.
func (s *Session) given() (list []given) {
	for i := range s.Preamble {
		b := &s.Preamble[i]
		g := given{"instructions", b.Text}
		if b.Kind != furl.KindText {
			g.Label = "definition of a " + b.Name
		}
		if s.Structure {
			if g.Text = ""; b.Kind != furl.KindText {
				g.Label = "definition of a tool"
			}
			g.Label += ", " + numbers.Count(b.Tokens, "token")
		}
		list = append(list, g)
	}
	return list
}

// empty reports whether a record has nothing to show.
func (e *entry) empty() bool { return e.Who == "" && e.Marker == nil && e.Note == "" }

// stamp formats a time for people, in its recorded zone.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02 15:04:05 -07:00")
}

// stageExtract is the stage of extracts.
const stageExtract = "extract"

// summaryTitle is the title of a marker of a summary or an extract.
func summaryTitle(red *furl.Reduction, messages int) string {
	did := "Compacted"
	if red.Stage == stageExtract {
		did = "Extracted"
	}
	return fmt.Sprintf("Context %s #%d — %s archived", did, red.Summary.Number, numbers.Count(messages, "message"))
}
