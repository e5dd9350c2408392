package lost

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/toolscript"
	"github.com/furlhq/furl/recall"
)

// maxItem is the length of the longest text that is listed, in bytes. Longer ones are no
// sentences of a person.
const maxItem = 2000

// askTools are the tools with which agents ask the user, in lower case: of Claude Code and
// Kimi Code, Codex, Gemini CLI, opencode, Qwen Code, Cline and Roo Code, and Droid.
var askTools = []string{"askuserquestion", "request_user_input", "ask_user", "question", "ask_user_question", "ask_followup_question", "askuser"}

// originals are the messages that a compaction replaced.
type originals struct {
	seen  *seen
	later *replies
	from  int // replies before the compaction
	// command is set after a text of the user that names a command of the agent: the next
	// text is the prompt of the command, which the user has not written.
	command bool
	asked   map[string]*furl.Block

	answers, sentences, names items
}

// read reads a block of a message.
func (o *originals) read(p furl.Pos, m *furl.Message) {
	b := &m.Blocks[p.Block]
	if b.Kind == furl.KindThinking || b.Kind == furl.KindOpaque {
		return
	}
	if b.Kind == furl.KindCall && slices.Contains(askTools, strings.ToLower(b.Name)) {
		o.asked[b.ID] = b
	}
	weight := inResult
	switch {
	case b.IsResult():
		if ask := o.asked[b.ID]; ask != nil && b.Kind == furl.KindResult && !b.Error {
			for _, a := range answersOf(ask, b.Text) {
				o.addText(&o.answers, a.text, a.question, p, 0)
			}
		}
	case b.Kind == furl.KindText && m.Role == furl.RoleUser:
		prompt := o.command
		if o.command = strings.HasPrefix(b.Text, "<command-message>"); !prompt {
			weight = ofUser
			o.said(p, spoken(b.Text))
		}
	case b.Kind == furl.KindCall:
		weight = inCall
	case m.Role == furl.RoleAssistant:
		weight = ofAssistant
	}
	if m.Role == furl.RoleAssistant {
		o.command = false
	}
	text := b.Text
	if b.Kind == furl.KindCall {
		text = string(b.Args)
	}
	for part := range toolscript.Texts(b) {
		for n := range namesIn(part) {
			if b.Kind == furl.KindCall && !strings.Contains(text, n.text) { // escaped in JSON
				continue
			}
			it := o.names.add(n.text, "", p, weight, func() (int, bool) {
				later := o.later.of(n.text, o.from)
				return later, !o.seen.hasName(n.text) && (later > 0 || telling(n.text))
			})
			if it != nil {
				it.rooted = it.rooted || n.rooted && it.Pos == p
				it.isName = it.isName || n.quoted || telling(n.text)
			}
		}
	}
}

// maxSpoken is the number of sentences up to which a message is taken for what a person
// wrote, not for a log or a document that was pasted, or the prompt of a command.
const maxSpoken = 20

// said adds the sentences of a message of the user.
func (o *originals) said(p furl.Pos, text string) {
	list := slices.Collect(sentences(text))
	for _, s := range list {
		switch {
		case len(list) <= maxSpoken:
			o.addText(&o.sentences, s, "", p, ofUser)
		case isProse(s):
			o.addText(&o.sentences, s, "", p, 0)
		}
	}
}

func (o *originals) addText(to *items, text, question string, p furl.Pos, weight int) {
	if len(text) > maxItem {
		return
	}
	it := to.add(text, question, p, weight, func() (int, bool) {
		return o.later.ofText(text, o.from), !o.seen.hasText(text) || question != "" && len(text) < minTelling && !o.seen.hasText(question)
	})
	if it != nil {
		it.isName = true
	}
}

// What weighs more is listed first, among items that as many later replies contain.
const (
	inResult = iota
	ofAssistant
	inCall
	ofUser
)

// items collects what was lost of a kind.
type items struct {
	byText map[[2]string]*Item // nil: not lost
	lost   []*Item
}

// add adds a text of a block, and returns its item, nil if it is not lost. check says, once for each text, how many later replies
// contain it and whether it is lost.
func (l *items) add(text, question string, p furl.Pos, weight int, check func() (int, bool)) *Item {
	key := [2]string{text, question}
	it, known := l.byText[key]
	if !known {
		if l.byText == nil {
			l.byText = make(map[[2]string]*Item)
		}
		if n, lost := check(); lost {
			it = &Item{Text: text, Question: question, Replies: n}
			l.lost = append(l.lost, it)
		}
		l.byText[key] = it
	}
	if it == nil || it.Blocks > 0 && it.last == p {
		return it
	}
	it.Blocks++
	it.last = p
	if weight >= it.weight {
		it.Pos, it.weight, it.rooted = p, weight, false
	}
	return it
}

// list orders what was lost and cuts it.
func (l *items) list(s *seen) List {
	l.lost = slices.DeleteFunc(l.lost, func(it *Item) bool { return !it.isName })
	slices.SortStableFunc(l.lost, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(b.Replies, a.Replies), cmp.Compare(b.weight, a.weight), cmp.Compare(b.Blocks, a.Blocks),
			cmp.Compare(b.Pos.Msg, a.Pos.Msg))
	})
	out := List{Total: len(l.lost), Items: []Item{}}
	for _, it := range l.lost {
		if it.Replies > 0 {
			out.Used++
		}
		if len(out.Items) == Shown {
			continue
		}
		if it.Question == "" && s.contains(it.Text) { // as a part of a longer word
			out.Total--
			if it.Replies > 0 {
				out.Used--
			}
			continue
		}
		if slices.ContainsFunc(out.Items, func(listed Item) bool { return samePath(listed.Text, it.Text) }) {
			continue
		}
		if it.rooted {
			it.Text = "/" + it.Text
		}
		it.Handle = recall.HandleOf(it.Pos).String()
		out.Items = append(out.Items, *it)
	}
	return out
}

// answer is what the user answered to a question.
type answer struct{ question, text string }

// answersOf returns the answers in the result of a call that asks the user: the pairs
// "question"="answer" of Claude Code, the strings of a JSON value, else the whole text.
func answersOf(ask *furl.Block, text string) (list []answer) {
	asked := stringsAt(ask.Args, "question")
	question := func(i int) string {
		if i < len(asked) {
			return asked[i]
		}
		return ""
	}
	rest := text
	for i := 0; ; i++ {
		_, after, ok := strings.Cut(rest, `"="`)
		if !ok {
			break
		}
		end := answerEnd(after)
		if said := strings.TrimSpace(after[:end]); said != "" {
			list = append(list, answer{question(i), said})
		}
		rest = after[end:]
	}
	if list != nil {
		return list
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		for i, said := range stringsAt(json.RawMessage(text), "") {
			if said = strings.TrimSpace(said); said != "" && strings.Contains(text, said) {
				list = append(list, answer{question(i), said})
			}
		}
		return list
	}
	if text = strings.TrimSpace(text); text != "" {
		list = append(list, answer{question(0), text})
	}
	return list
}

// answerEnd returns where the quote ends that an answer is in, which may contain quotes.
func answerEnd(text string) int {
	end := len(strings.TrimRight(text, `"`))
	for _, next := range [...]string{`", "`, `". `, "\"\n", `" user notes: `, `" selected preview:`} {
		if i := strings.Index(text[:min(end+2, len(text))], next); i >= 0 {
			end = min(end, i)
		}
	}
	return end
}

// stringsAt returns the strings in a JSON value, in the order of their keys: those with a
// key, or all if it is "".
func stringsAt(value json.RawMessage, key string) (list []string) {
	var decoded any
	if json.Unmarshal(value, &decoded) != nil {
		return nil
	}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case string:
			if key == "" || at == key {
				list = append(list, v)
			}
		case []any:
			for _, e := range v {
				walk(at, e)
			}
		case map[string]any:
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			for _, k := range keys {
				walk(k, v[k])
			}
		}
	}
	walk("", decoded)
	return list
}
