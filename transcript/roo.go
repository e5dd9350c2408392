package transcript

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/anthropic"
)

// Roo Code stores a task's conversation as one array of Anthropic messages,
// api_conversation_history.json, for every provider. It hides messages
// without removing them: a message with a condenseParent is hidden while the
// summary with that condenseId is in the file, and a message with a
// truncationParent while the marker with that truncationId is
// (RooCodeInc/Roo-Code, src/core/condense and src/core/context-management).
// Since 2026 a summary is a message of the user, and Roo Code sends only what
// follows the last one, whatever the messages before it are tagged with.
// The importer turns summaries and markers that hide something into
// reductions, and the hidden messages become visible again after a rewind to
// before them. Cline's histories have the same form without hiding.

var roo = &format{
	name:   "roo",
	agent:  "Roo Code",
	detect: detectRoo,
	read:   readRoo,
}

// rooBeside are other files that Roo Code writes next to a history.
var rooBeside = &format{
	name:  "roo-beside",
	agent: "Roo Code",
	detect: func(p *probe) bool {
		switch o := first(p); {
		case p.is('['):
			return o.has("ts", "type") && (o.has("say") || o.has("ask"))
		case p.is('{'):
			return o.has("files_in_context") || o.has("task", "tokensIn", "tokensOut") || firstIn(o["entries"]).has("task", "tokensIn", "tokensOut")
		}
		return false
	},
}

func first(p *probe) object {
	if len(p.objects) == 0 {
		return object{}
	}
	return p.objects[0]
}

// detectRoo distinguishes a list of Anthropic messages from one of OpenAI's:
// all roles are user or assistant, and some messages have content that only
// Anthropic's format has.
func detectRoo(p *probe) bool {
	if !p.is('[') {
		return false
	}
	sure := false
	for _, o := range p.objects {
		switch o.str("role") {
		case "system", "developer", "tool", "function":
			return false
		case "user", "assistant":
		default:
			continue // broken
		}
		if o.has("tool_calls") {
			return false
		}
		if o.has("ts") || o.has("condenseParent") || o.has("truncationParent") || o.flag("isSummary") || o.flag("isTruncationMarker") {
			sure = true
		}
		sure = sure || hasOwnPart(o["content"])
	}
	return sure
}

// rooMessage is one element of the array.
type rooMessage struct {
	role    string
	at      time.Time
	parts   []part
	summary string // the condenseId of a summary
	marker  string // the truncationId of a marker
	parents [2]string
	model   string
	usage   *furl.Usage // of the request, since late 2025 in Cline
	unsent  bool        // a marker that was never sent
	copies  bool        // a marker that is a changed copy of the message before it

	cut *rooCut // the reduction that shows it
	ref ref
}

// rooCut is a summary or marker that hides something.
type rooCut struct {
	index   int   // of its first message
	shows   []int // its messages, by index
	copies  []int // changed copies of the messages before them
	after   int   // index of the last message when it was made
	hides   []int // messages, by index
	over    []*rooCut
	under   *rooCut // the one that hides it
	at      time.Time
	said    object // its entry in ui_messages.json
	ref     ref
	ordered bool
}

func readRoo(in *input) ([]*Session, error) {
	var msgs []rooMessage
	r := rawjson.NewReader(in.data)
	for i := range r.Elements() {
		raw := r.Raw()
		if raw == nil {
			break
		}
		if !in.countLine() || !in.decodable(raw) {
			return nil, nil
		}
		if m, ok := readRooMessage(in, i, raw); ok {
			msgs = append(msgs, m)
		}
	}
	if err := r.End(); err != nil {
		in.skip(0, "after message %d: %v", len(msgs), err)
	}
	events := readRooEvents(in)
	startAfresh(msgs)
	cuts := findCuts(in, msgs)
	for _, c := range cuts {
		c.place(msgs, events)
	}
	b := newBuilder(in, anthropic.Codec)
	if in.dir != "" && strings.HasPrefix(filepath.Base(in.rec.File), "api_conversation_history") {
		b.ID = filepath.Base(in.dir)
	}
	b.Title = events.title
	describeRoo(in, b)
	events.assign(msgs)
	sayRoo(b, msgs, order(cuts), events.failed)
	return []*Session{b.finish()}, nil
}

func readRooMessage(in *input, index int, raw []byte) (rooMessage, bool) {
	o := objectOf(raw)
	m := rooMessage{role: o.str("role"), at: rooTime(o["ts"])}
	if m.role != "user" && m.role != "assistant" {
		in.skip(0, "message %d: unknown role %q", index, m.role)
		return m, false
	}
	var others int
	if m.parts, others = partsOf(o["content"]); others > 0 {
		in.skip(0, "message %d: content blocks that are not JSON objects: %d", index, others)
	}
	m.parts = slices.DeleteFunc(m.parts, func(p part) bool { return !sendable(p.typ) })
	if o.flag("isSummary") {
		m.summary = cmp.Or(o.str("condenseId"), "message "+strconv.Itoa(index))
	}
	if o.flag("isTruncationMarker") {
		m.marker = o.str("truncationId")
		m.copies = o.flag(rooCopy)
	}
	m.parents = [2]string{o.str("condenseParent"), o.str("truncationParent")}
	m.model = o.object("modelInfo").str("modelId")
	if tokens := o.object("metrics").object("tokens"); tokens.has("prompt", "completion") {
		cached := max(0, min(tokens.num("cached"), tokens.num("prompt")))
		m.usage = &furl.Usage{Input: tokens.num("prompt") - cached, CacheRead: cached, Output: tokens.num("completion")}
	}
	return m, true
}

// rooAgents are the agents whose extension has a name, which is also that of its folder.
var rooAgents = map[string]string{
	"saoudrizwan.claude-dev":       "Cline",
	"zoocodeorganization.zoo-code": "Zoo Code",
}

// describeRoo takes from the folder whose task it is, and from the file beside it what it was about.
func describeRoo(in *input, b *builder) {
	if in.dir == "" {
		return
	}
	extension := filepath.Base(filepath.Dir(filepath.Dir(in.dir))) // EXTENSION/tasks/ID
	in.rec.Agent = cmp.Or(rooAgents[extension], in.rec.Agent)
	about := objectOf(in.beside("history_item.json"))
	b.Title = cmp.Or(b.Title, headline(about.str("task")))
	b.Project, b.Parent = about.str("workspace"), about.str("parentTaskId")
}

// sendable reports whether Anthropic knows a type of content block. Roo Code
// stores the reasoning of other providers in its own block types, which it
// removes before sending.
func sendable(typ string) bool { return typ != "reasoning" && typ != "thoughtSignature" }

// rooTime reads a time in Unix milliseconds; zero if the value is not a time.
func rooTime(raw []byte) time.Time {
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || ms <= 0 || ms > 1e14 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// rooEvents is what only ui_messages.json contains.
type rooEvents struct {
	title    string
	cuts     map[string]object // by condenseId or truncationId, with ts
	requests []rooRequest
	failed   map[int][]rooRequest // by the index of the reply after them
}

// rooRequest is a request with what it used.
type rooRequest struct {
	at    time.Time
	usage furl.Usage
}

// rooSpent reads the text of an api_req_started. The input includes the cache in newer versions; in older ones
// not, which shows if it is less.
func rooSpent(said object) (u furl.Usage, ok bool) {
	o := objectOf([]byte(said.str("text")))
	u = furl.Usage{Input: o.num("tokensIn"), CacheRead: o.num("cacheReads"), CacheWrite: o.num("cacheWrites"), Output: o.num("tokensOut")}
	if cached := u.CacheRead + u.CacheWrite; u.Input >= cached {
		u.Input -= cached
	}
	return u, u != furl.Usage{} && u.Input >= 0 && u.CacheRead >= 0 && u.CacheWrite >= 0 && u.Output >= 0
}

// assign gives replies the usage of their requests: the last one sent before the reply was complete. Those before it
// failed. Without times, each reply has one if the numbers are equal.
func (ev *rooEvents) assign(msgs []rooMessage) {
	ev.failed = make(map[int][]rooRequest)
	var replies []int
	timed := true
	for i := range msgs {
		if msgs[i].role == "assistant" && msgs[i].summary == "" && msgs[i].marker == "" {
			replies = append(replies, i)
			timed = timed && !msgs[i].at.IsZero()
		}
	}
	list := ev.requests
	if !timed && len(list) != len(replies) {
		return
	}
	for _, i := range replies {
		m, n := &msgs[i], 0
		for n < len(list) && (timed && !list[n].at.After(m.at) || !timed && n == 0) {
			n++
		}
		if n > 0 {
			if m.usage == nil {
				m.usage = &list[n-1].usage
			}
			ev.failed[i] = list[:n-1]
			list = list[n:]
		}
	}
}

func readRooEvents(in *input) rooEvents {
	ev := rooEvents{cuts: make(map[string]object)}
	r := rawjson.NewReader(in.beside("ui_messages.json"))
	if r.Kind() != '[' {
		return ev
	}
	for range r.Elements() {
		raw := r.Raw()
		if raw == nil {
			break
		}
		o := objectOf(raw)
		var id string
		var said object
		switch o.str("say") {
		case "text", "task":
			if ev.title == "" {
				ev.title = headline(o.str("text"))
			}
			continue
		case "api_req_started":
			if u, ok := rooSpent(o); ok {
				ev.requests = append(ev.requests, rooRequest{rooTime(o["ts"]), u})
			}
			continue
		case "condense_context":
			said = o.object("contextCondense")
			id = said.str("condenseId")
		case "sliding_window_truncation":
			said = o.object("contextTruncation")
			id = said.str("truncationId")
		}
		if id != "" {
			said["ts"] = o["ts"]
			ev.cuts[id] = said
		}
	}
	return ev
}

// headline returns the first line of a text, at most 80 characters of it.
func headline(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if letters := []rune(text); len(letters) > 80 {
		return string(letters[:79]) + "…"
	}
	return text
}

// startAfresh sets the parents of messages to what Roo Code does if the last
// summary is a message of the user: it sends that summary and what follows it.
// A summary tags everything before it, so a marker before it without a tag was
// added later, and was never sent. A marker after it is sent even if all that
// it hid is before it, and is a message then.
func startAfresh(msgs []rooMessage) {
	last := len(msgs) - 1
	for last >= 0 && msgs[last].summary == "" {
		last--
	}
	if last < 0 || msgs[last].role != "user" {
		return
	}
	summaries, markers := make(map[string]bool), make(map[string]bool)
	for i := range last {
		m := &msgs[i]
		if m.summary != "" {
			summaries[m.summary] = true
		}
		if m.marker != "" {
			markers[m.marker] = true
		}
	}
	hides := make(map[string]bool) // markers that hide something after the summary
	for i := range msgs {
		switch m := &msgs[i]; {
		case i >= last:
			m.parents[0] = ""
			if markers[m.parents[1]] {
				m.parents[1] = ""
			}
			hides[m.parents[1]] = true
		case summaries[m.parents[0]] || m.parents[0] == msgs[last].summary:
		case m.marker != "":
			m.marker, m.unsent = "", true
		default:
			m.parents[0] = msgs[last].summary
		}
	}
	for i := last; i < len(msgs); i++ {
		if m := &msgs[i]; m.marker != "" && !hides[m.marker] {
			m.marker = ""
		}
	}
}

// findCuts finds the summaries and markers that hide something. Each parent
// is checked separately: one that is not in the file hides nothing.
func findCuts(in *input, msgs []rooMessage) []*rooCut {
	byID := [2]map[string][]int{make(map[string][]int), make(map[string][]int)}
	for i := range msgs {
		if m := &msgs[i]; m.summary != "" {
			byID[0][m.summary] = []int{i}
		}
		if m := &msgs[i]; m.marker != "" {
			list := byID[1][m.marker]
			if len(list) > 0 && !m.copies && !msgs[list[0]].copies && i != list[len(list)-1]+1 {
				list = nil // the id occurs twice
			}
			byID[1][m.marker] = append(list, i)
		}
	}
	var cuts []*rooCut
	cutAt := func(list []int) *rooCut {
		first := &msgs[list[0]]
		if first.cut == nil && len(cuts) == maxCuts {
			in.skip(0, "message %d: more than %d reductions", list[0], maxCuts)
			return &rooCut{index: list[0]}
		}
		if first.cut == nil {
			c := &rooCut{index: list[0], after: list[len(list)-1]}
			for _, i := range list {
				if msgs[i].cut = c; isRooCopy(msgs, i) {
					c.copies = append(c.copies, i)
				} else {
					c.shows = append(c.shows, i)
				}
			}
			cuts = append(cuts, c)
		}
		return first.cut
	}
	for i := range msgs {
		for kind, parent := range msgs[i].parents {
			if list := byID[kind][parent]; len(list) > 0 && parent != "" && list[0] != i {
				c := cutAt(list)
				if kind == 0 || i+1 >= len(msgs) || msgs[i+1].cut != c || !isRooCopy(msgs, i+1) {
					c.hides = append(c.hides, i)
				}
				c.after = max(c.after, i)
			}
		}
	}
	// If two hide each other, the later one is shown.
	slices.SortFunc(cuts, func(a, b *rooCut) int { return b.index - a.index })
	for _, c := range cuts {
		for _, i := range c.hides {
			if o := msgs[i].cut; o != nil && o.under != c && !c.isUnder(o) {
				c.over = append(c.over, o)
				o.under = c
			}
		}
	}
	return cuts
}

// isRooCopy reports whether a marker is a changed copy of the message before it, which it
// hides; see rooWriter.
func isRooCopy(msgs []rooMessage, i int) bool {
	return i > 0 && msgs[i].copies && msgs[i-1].parents[1] == msgs[i].marker && msgs[i-1].role == msgs[i].role
}

// isUnder reports whether o hides c, directly or not.
func (c *rooCut) isUnder(o *rooCut) bool {
	for u := c; u != nil; u = u.under {
		if u == o {
			return true
		}
	}
	return false
}

// place finds out when a reduction was made, and so after which message. Its
// own message is stored before the messages it kept, and its time is not
// exact.
func (c *rooCut) place(msgs []rooMessage, events rooEvents) {
	m := &msgs[c.index]
	c.at = m.at
	c.said = events.cuts[cmp.Or(m.summary, m.marker)]
	if at := rooTime(c.said["ts"]); !at.IsZero() {
		c.at = at
		for i := len(msgs) - 1; i > c.after; i-- {
			if !msgs[i].at.IsZero() && !msgs[i].at.After(at) {
				c.after = i
				break
			}
		}
	}
}

// order sorts reductions by time; a reduction that hides another follows it.
func order(cuts []*rooCut) (sorted []*rooCut) {
	var add func(c *rooCut)
	add = func(c *rooCut) {
		if c.ordered {
			return
		}
		c.ordered = true
		for _, o := range c.over {
			add(o)
			c.after = max(c.after, o.after)
		}
		sorted = append(sorted, c)
	}
	slices.SortStableFunc(cuts, func(a, b *rooCut) int { return cmp.Or(a.after-b.after, a.index-b.index) })
	for _, c := range cuts {
		add(c)
	}
	slices.SortStableFunc(sorted, func(a, b *rooCut) int { return a.after - b.after })
	return sorted
}

// sayRoo adds the messages, and each reduction at the position where it was
// made. Requests that failed are on branches of their own.
func sayRoo(b *builder, msgs []rooMessage, cuts []*rooCut, failed map[int][]rooRequest) {
	model := ""
	for i := range msgs {
		m := &msgs[i]
		if m.role == "user" {
			model = cmp.Or(rooModel(m.parts), model)
		}
		if raw := spliced(m.role, m.parts); m.cut == nil && !m.unsent && raw != nil {
			if m.role == "assistant" {
				model := cmp.Or(m.model, model)
				from := b.last
				for _, r := range failed[i] {
					b.reply(r.at, furl.Exchange{Model: model, Usage: r.usage})
					b.rewind(r.at, from)
				}
				ex := b.reply(m.at, furl.Exchange{Model: model})
				if m.usage != nil {
					ex.Usage = *m.usage
				}
			}
			m.ref = b.raw(m.at, 0, raw)
		}
		for len(cuts) > 0 && cuts[0].after <= i {
			cuts[0].say(b, msgs)
			cuts = cuts[1:]
		}
	}
}

// say adds a reduction. Calls that a summary repeats for results after it are
// skipped: the results are hidden with the step they belong to.
func (c *rooCut) say(b *builder, msgs []rooMessage) {
	words := c.sayCopies(b, msgs)
	if len(c.shows) == 0 {
		return
	}
	cut := compaction{words: words, stage: "truncate", exact: true, before: c.said.num("prevContextTokens"), after: c.said.num("newContextTokens")}
	for _, i := range c.shows {
		m := &msgs[i]
		words := slices.DeleteFunc(slices.Clone(m.parts), func(p part) bool { return p.typ != "text" })
		raw := spliced(m.role, words)
		if raw == nil {
			raw = spliced(m.role, []part{{raw: []byte(`{"type":"text","text":"[hidden]"}`)}})
		}
		shown, err := b.codec.DecodeMessage(raw)
		if err != nil {
			b.in.skip(0, "message %d: %v", i, err)
			return
		}
		cut.show = append(cut.show, shown)
		if m.summary != "" {
			cut.stage, cut.summary = "compact", &furl.Summary{Text: textOfBlocks(shown)}
		}
	}
	for _, i := range c.hides {
		if msgs[i].ref != 0 {
			cut.hide = append(cut.hide, msgs[i].ref)
		}
	}
	for _, o := range c.over {
		if o.ref != 0 {
			cut.over = append(cut.over, o.ref)
		}
	}
	c.ref = b.compact(c.at, 0, cut)
}

// sayCopies adds what is different in the changed copies of messages as a
// reduction in place. It returns the messages whose text after the results is
// missing in the copy.
func (c *rooCut) sayCopies(b *builder, msgs []rooMessage) (words []ref) {
	m := masking{reason: "imported"}
	for _, i := range c.copies {
		raw, of := spliced(msgs[i].role, msgs[i].parts), msgs[i-1].ref
		if raw == nil || of == 0 {
			continue
		}
		shown, err := b.codec.DecodeMessage(raw)
		if err != nil {
			b.in.skip(0, "message %d: %v", i, err)
			continue
		}
		list, lost := changes(of, b.entries[of-1].msg, shown)
		m.hide = append(m.hide, list...)
		if lost {
			words = append(words, of)
		}
	}
	if len(m.hide) > 0 {
		c.ref = b.mask(c.at, 0, m)
	}
	return words
}

// changes finds the blocks of a message that a copy of it shows changed. Only
// thinking and results may be missing in the copy; results are hidden
// with their calls. lost reports that the last text is missing too.
func changes(of ref, m, shown *furl.Message) (list []hiding, lost bool) {
	next := 0
	for i := range m.Blocks {
		b := &m.Blocks[i]
		var s *furl.Block
		if next < len(shown.Blocks) {
			s = &shown.Blocks[next]
		}
		switch {
		case s != nil && b.Kind == s.Kind && b.ID == s.ID:
			next++
			h := hiding{of: of, block: i + 1, text: s.Text}
			was := b.Text
			switch b.Kind {
			case furl.KindCall:
				h.text, was = string(s.Args), string(b.Args)
			case furl.KindResult:
				h.call = b.ID
				if len(b.Media) != len(s.Media) {
					was = ""
				}
			case furl.KindText:
			default:
				continue
			}
			if h.text != was {
				list = append(list, h)
			}
		case b.Kind == furl.KindThinking:
			list = append(list, hiding{of: of, block: i + 1, gone: true})
		case b.Kind == furl.KindResult:
		case s != nil && s.Kind == furl.KindText:
			next++
			list = append(list, hiding{of: of, block: i + 1, text: s.Text})
		case b.Kind == furl.KindText:
			lost = true
		}
	}
	return list, lost
}

// rooModel finds the model that a message of the user names in the details of
// its environment; "" if it names none.
func rooModel(parts []part) string {
	for i := range parts {
		if parts[i].typ != "text" {
			continue
		}
		_, after, ok := strings.Cut(string(parts[i].raw), "<model>")
		if !ok {
			continue
		}
		if model, _, ok := strings.Cut(after, "</model>"); ok && len(model) < 200 && !strings.ContainsAny(model, "<\"\\ ") {
			return model
		}
	}
	return ""
}
