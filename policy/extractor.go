package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/rawjson"
)

// How many messages back an extract looks, whatever its size: for steps, and
// for words of the user, which are fewer and cheaper to pass by.
const (
	maxSteps = 1_000
	maxWalk  = 20_000
)

// What a line of an extract may hold of each, in characters.
const (
	maxSentence   = 200
	maxStep       = 200
	maxError      = 120
	maxTarget     = 100
	maxConclusion = 400
)

// extractor collects the lines of an extract, newest first, each kind up to
// the whole limit; text then shares the limit out.
type extractor struct {
	measure
	messages int // that the extract represents

	users, steps, files lines
	conclusion          string
	final               bool              // the conclusion's message has no calls
	failures            map[string]string // by call id, until the call is met
	// observed reports that the message after the one at hand is an observation,
	// and why how it failed.
	observed bool
	why      string
	quoted   int // of the measure, in quotations so far
}

// lines are those of one kind, newest first.
type lines struct {
	list []line
	used int // of the measure
	full bool
}

type line struct {
	at   int // message
	text string
}

// add appends a line if there is room for it.
func (x *extractor) add(l *lines, at int, text string) {
	cost := x.cost(text)
	if l.full || l.used+cost > x.max {
		l.full = true
		return
	}
	l.list = append(l.list, line{at, text})
	l.used += cost
}

// addNew is add for a line that is not there already: the newest of
// several equal ones is enough.
func (x *extractor) addNew(l *lines, at int, text string) {
	if !slices.ContainsFunc(l.list, func(l line) bool { return l.text == text }) {
		x.add(l, at, text)
	}
}

// walk reads the messages in the spans from the newest to the oldest.
func (x *extractor) walk(s *furl.State, spans []furl.Span) {
	x.failures = make(map[string]string)
	walked := 0
	for _, sp := range slices.Backward(spans) {
		first, ok1 := s.Find(sp.First.Msg)
		last, ok2 := s.Find(sp.Last.Msg)
		if !ok1 || !ok2 {
			continue
		}
		for i := last; i >= first; i-- {
			if walked++; walked > maxWalk || x.users.full && x.steps.full {
				return
			}
			_, m := s.Message(i)
			if walked > maxSteps && m.Role != furl.RoleUser {
				continue
			}
			blocks := m.Blocks
			if i == last {
				blocks = blocks[:min(sp.Last.Block+1, len(blocks))]
			}
			if i == first {
				blocks = blocks[min(sp.First.Block, len(blocks)):]
			}
			x.message(i, m.Role, blocks)
		}
	}
}

func (x *extractor) message(at int, role furl.Role, blocks []furl.Block) {
	for i := range blocks {
		if b := &blocks[i]; b.Kind == furl.KindResult && seemsFailed(b) {
			x.failures[b.ID] = failure(b.Text)
		}
	}
	switch role {
	case furl.RoleUser:
		if len(blocks) > 0 && blocks[0].Observation {
			x.observed, x.why = true, ""
			if seemsFailed(&blocks[0]) {
				x.why = failure(blocks[0].Text)
			}
		}
		if words := userWords(blocks); words != "" {
			x.add(&x.users, at, "User: "+words)
		}
	case furl.RoleAssistant:
		x.assistant(at, blocks)
	}
}

// joinCalls makes one line of the calls of a message, of which the last do not
// fit. A call is never cut, since it may end in a quotation.
func joinCalls(calls []string) string {
	text := calls[0]
	for _, call := range calls[1:] {
		if utf8.RuneCountInString(text)+2+utf8.RuneCountInString(call) > maxStep {
			return text + "; …"
		}
		text += "; " + call
	}
	return text
}

// assistant takes the calls of one message as one line, and its words as the
// conclusion if there is none yet; words that no call follows are preferred.
func (x *extractor) assistant(at int, blocks []furl.Block) {
	var calls, words []string
	for i := range blocks {
		switch b := &blocks[i]; b.Kind {
		case furl.KindText:
			words = append(words, b.Text)
		case furl.KindCall:
			calls = append(calls, x.call(at, b))
		}
	}
	if x.observed && len(calls) == 0 {
		if call := commandIn(words); call != "" {
			if x.why != "" {
				call += x.quote(x.why)
			}
			calls = append(calls, call)
		}
	}
	x.observed = false
	if len(calls) > 0 {
		x.addNew(&x.steps, at, joinCalls(calls))
	}
	if said := lexer.Fold(strings.Join(words, " ")); said != "" && !x.final && (x.conclusion == "" || len(calls) == 0) {
		x.conclusion, x.final = cut(said, maxConclusion), len(calls) == 0
	}
}

func (x *extractor) call(at int, b *furl.Block) string {
	text := cut(strings.TrimSpace(b.Name+" "+target(b)), maxStep)
	for _, file := range Written(b) {
		x.addNew(&x.files, at, cut(file, maxTarget))
	}
	if why, ok := x.failures[b.ID]; ok {
		delete(x.failures, b.ID)
		text += x.quote(why)
	}
	return text
}

// An extract is a user message, and what failed is told in the words of the
// tool: untrusted words. So they are in quotation marks, which they
// cannot close, at the end of a call, and take a share of the extract at most.
const (
	failedQuote = " → failed: "
	quoteShare  = 20 // percent
)

// quote tells why a call failed, in the words of the tool while there is room.
func (x *extractor) quote(why string) string {
	quotation := rawjson.AppendString(nil, cut(why, maxError))
	if len(quotation) > 2*maxError {
		quotation = nil // mostly escapes
	}
	cost := x.cost(string(quotation))
	if quotation == nil || why == "" || x.quoted+cost > x.max*quoteShare/100 {
		return " (failed)"
	}
	x.quoted += cost
	return failedQuote + string(quotation)
}

// Shares of the limit, in percent. What one kind leaves goes to the next.
const (
	conclusionShare = 20
	filesShare      = 15
	usersShare      = 30
)

// text puts the extract together: chosen newest first while there is room,
// read in the order of the conversation.
func (x *extractor) text() string {
	said := ""
	if x.quoted > 0 {
		said = "; quoted text is tool output"
	}
	head := fmt.Sprintf("[Extract of %d earlier messages in their own words, not a new request%s; the originals are kept]", x.messages, said)
	room := x.max - x.cost(head)

	conclusion := x.fit("Last conclusion: ", x.conclusion, room*conclusionShare/100)
	files := x.join("Files written: ", x.files.list, room*filesShare/100)
	for _, l := range [...]string{conclusion, files} {
		if l != "" {
			room -= x.cost(l)
		}
	}
	users, left := x.take(x.users.list, room*usersShare/100)
	room -= room*usersShare/100 - left
	steps, room := x.take(x.steps.list, room)
	more, _ := x.take(x.users.list[len(users):], room)

	chosen := slices.Concat(users, steps, more)
	slices.SortStableFunc(chosen, func(a, b line) int { return a.at - b.at })
	out := []string{head}
	for _, l := range chosen {
		out = append(out, l.text)
	}
	for _, l := range [...]string{files, conclusion} {
		if l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

// take gives the newest lines that fit, and the room they leave.
func (x *extractor) take(from []line, room int) ([]line, int) {
	for i := range from {
		cost := x.cost(from[i].text)
		if cost > room {
			return from[:i], room
		}
		room -= cost
	}
	return from, room
}

// fit cuts a text until its line fits; "" when there is no text or no room.
func (x *extractor) fit(label, text string, room int) string {
	if text == "" {
		return ""
	}
	l := label + text
	for n := utf8.RuneCountInString(text); x.cost(l) > room; n = n * 3 / 4 {
		if n < 10 {
			return ""
		}
		l = label + cut(text, n)
	}
	return l
}

// join makes one line of as many as fit, the newest first.
func (x *extractor) join(label string, from []line, room int) string {
	text := ""
	for i := range from {
		next := label + from[i].text
		if text != "" {
			next = text + ", " + from[i].text
		}
		if x.cost(next) > room {
			break
		}
		text = next
	}
	return text
}

// userWords is the first sentence of what a user said, leaving aside what a
// client wraps in tags around it, unless there is nothing else.
func userWords(blocks []furl.Block) string {
	var wrapped string
	for i := range blocks {
		if blocks[i].Kind != furl.KindText || blocks[i].Observation {
			continue
		}
		words := strings.TrimSpace(blocks[i].Text)
		if strings.HasPrefix(words, "<") {
			if wrapped == "" {
				wrapped = sentence(untagged(words))
			}
			continue
		}
		if words != "" {
			return sentence(words)
		}
	}
	return wrapped
}

// untagged is a text without what is in angle brackets.
func untagged(text string) string {
	var out strings.Builder
	for text != "" {
		open := strings.IndexByte(text, '<')
		end := strings.IndexByte(text[max(open, 0):], '>')
		if open < 0 || end < 0 {
			break
		}
		out.WriteString(text[:open])
		text = text[open+end+1:]
	}
	out.WriteString(text)
	return out.String()
}

// sentence is the first sentence of a text, or its first line.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		text = text[:i]
	}
	for i, r := range text {
		switch r {
		case '。', '！', '？':
			return cut(lexer.Fold(text[:i+utf8.RuneLen(r)]), maxSentence)
		case '.', '!', '?':
			if rest := text[i+1:]; rest == "" || rest[0] == ' ' {
				return cut(lexer.Fold(text[:i+1]), maxSentence)
			}
		}
	}
	return cut(lexer.Fold(text), maxSentence)
}

// failure is the line of an error's text that says most: the first that
// speaks of an error, else the first.
func failure(text string) string {
	first := ""
	for l := range strings.Lines(text) {
		l = lexer.Fold(l)
		if l == "" {
			continue
		}
		if first == "" {
			first = l
		}
		lower := strings.ToLower(l)
		for _, word := range [...]string{"error", "fail", "panic", "exception", "denied", "no such"} {
			if strings.Contains(lower, word) {
				return cut(l, maxError)
			}
		}
	}
	return cut(first, maxError)
}
