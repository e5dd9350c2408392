package lost

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/toolscript"
)

const (
	minName    = 6  // characters of the shortest name, as in lexer.Names
	minTelling = 12 // bytes of the shortest text that says something by itself
	minWords   = 3  // of a sentence
)

// canonical returns a name without the line or column that follows a file: both
// a.go:12:func and a.go:7 are a.go.
func canonical(name string) string {
	for i := 0; i+1 < len(name); i++ {
		if name[i] == ':' && name[i+1] >= '0' && name[i+1] <= '9' {
			return name[:i]
		}
		if name[i] == ':' && name[i+1] == '/' {
			break // an address
		}
	}
	return name
}

// name is a name in a text.
type name struct {
	text   string
	rooted bool // a path that begins with a slash
	quoted bool // it has quotes, a slash or an equals sign around it, or is a flag
}

// namesIn returns the names of a text as lexer.Names does, in their canonical form.
func namesIn(text string) iter.Seq[name] {
	return func(yield func(name) bool) {
		for from, to := lexer.NextRun(text, 0); from < to; from, to = lexer.NextRun(text, to) {
			run := canonical(text[from:to])
			if len(run) < minName || utf8.RuneCountInString(run) < minName || !lexer.IsName(run) {
				continue
			}
			n := name{text: run}
			before, after := byte(' '), byte(' ')
			if from > 0 {
				before = text[from-1]
			}
			if at := from + len(run); at < len(text) {
				after = text[at]
			}
			n.quoted = before == '-' || strings.IndexByte("`\"'/=", before) >= 0 && strings.IndexByte("`\"'/=", after) >= 0
			n.rooted = before == '/' && strings.Contains(run, "/") && (from < 2 || strings.IndexByte(" \t\n\"'`(=:[{,", text[from-2]) >= 0)
			if !yield(n) {
				return
			}
		}
	}
}

// samePath reports whether a is the end of the path b, or b that of a.
func samePath(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return strings.Contains(a, "/") && strings.HasSuffix(b, a) && (len(a) == len(b) || b[len(b)-len(a)-1] == '/' || a[0] == '/')
}

// telling reports whether a name says something that a reader would look for: it has a
// letter, and is not only words joined by hyphens or slashes such as well-known or and/or,
// or random as a digest is.
func telling(name string) bool {
	letters, digits, upper, hard := 0, 0, false, false
	for i, r := range name {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
			upper = upper || i > 0 && unicode.IsUpper(r)
		case r == '_' || r == '.' || r == '@' || r == '#' || r == ':':
			hard = true
		case r == '/':
			hard = hard || strings.Count(name, "/") > 1
		}
	}
	if letters == 0 || digits > letters {
		return false
	}
	return upper || hard || digits > 0
}

// seen is what the model sees after a compaction.
type seen struct {
	names map[string]bool
	text  strings.Builder // folded
	whole string
}

func newSeen() *seen { return &seen{names: make(map[string]bool)} }

// read adds a text.
func (s *seen) read(text string) {
	for name := range lexer.Names(text) {
		s.name(name)
		s.name(canonical(name))
	}
	s.text.WriteString(lexer.Fold(text))
	s.text.WriteByte('\n')
}

// name adds a name and its parts: the end of a path is a path too, and the method of a
// package a name.
func (s *seen) name(name string) {
	if s.names[name] {
		return
	}
	s.names[name] = true
	for part, at := range lexer.Parts(name) {
		s.names[part] = true
		s.names[name[at:]] = true
		s.names[name[:at+len(part)]] = true
	}
}

// hasName reports whether the name is visible. Of a path with folders, its end with at least
// one folder is enough.
func (s *seen) hasName(name string) bool {
	if s.names[name] {
		return true
	}
	for rest := name; ; {
		_, after, ok := strings.Cut(rest, "/")
		if !ok || !strings.Contains(after, "/") {
			return false
		}
		if s.names[after] {
			return true
		}
		rest = after
	}
}

// hasText reports whether a folded text is visible.
func (s *seen) hasText(text string) bool { return s.contains(lexer.Fold(text)) }

func (s *seen) contains(text string) bool {
	if s.whole == "" {
		s.whole = s.text.String()
	}
	return strings.Contains(s.whole, text)
}

// replies says which replies of a path contain a name or a sentence.
type replies struct {
	count     int
	names     map[string][]int32 // the replies, from 1, ascending
	sentences map[string][]int32
}

// laterReplies reads the replies of a path: what the assistant said and the arguments of
// its calls. Its messages in a row are one reply.
func laterReplies(path []furl.Record) *replies {
	r := &replies{names: make(map[string][]int32), sentences: make(map[string][]int32)}
	inReply := false
	for _, rec := range path {
		m, ok := rec.Body.(*furl.Message)
		if !ok {
			continue
		}
		if m.Role != furl.RoleAssistant {
			inReply = false
			continue
		}
		if !inReply {
			r.count++
		}
		inReply = true
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindText || b.Kind == furl.KindCall {
				for text := range toolscript.Texts(b) {
					r.read(text)
				}
			}
		}
	}
	return r
}

func (r *replies) read(text string) {
	for name := range lexer.Names(text) {
		note(r.names, canonical(name), r.count)
	}
	for s := range sentences(text) {
		note(r.sentences, s, r.count)
	}
}

func note(in map[string][]int32, what string, reply int) {
	list := in[what]
	if len(list) == 0 || list[len(list)-1] != int32(reply) {
		in[what] = append(list, int32(reply))
	}
}

// of returns how many replies after the first from contain a name.
func (r *replies) of(name string, from int) int { return after(r.names[name], from) }

func (r *replies) ofText(text string, from int) int {
	return max(after(r.sentences[trimSentence(text)], from), after(r.names[text], from))
}

func after(list []int32, from int) int {
	n := 0
	for i := len(list) - 1; i >= 0 && int(list[i]) > from; i-- {
		n++
	}
	return n
}

// spokenElements are the elements in which agents send what the user wrote.
var spokenElements = []string{"user_message", "user_query", "user-message", "user_request", "user_input"}

// spoken returns a text of the user without what agents add to it: elements whose name
// joins words, such as <system-reminder> and <environment_context>, the instructions of the
// project, skills, notes on interruptions, and summaries that continue an earlier session.
func spoken(text string) string {
	for _, start := range [...]string{"[Request interrupted by user", "Base directory for this skill: ", "This session is being continued from a previous conversation", "# AGENTS.md instructions", "Caveat: The messages below were generated by the user while running local commands"} {
		if strings.HasPrefix(strings.TrimSpace(text), start) {
			return ""
		}
	}
	var out strings.Builder
	for {
		at, name := elementIn(text)
		if at < 0 {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:at])
		rest := text[at+len(name)+2:]
		end := strings.Index(rest, "</"+name+">")
		if end < 0 {
			out.WriteString(rest)
			return out.String()
		}
		out.WriteByte('\n')
		text = rest[end+len(name)+3:]
	}
}

// elementIn returns where the first element that agents add begins, and its name; -1 if
// there is none.
func elementIn(text string) (int, string) {
	for i := 0; ; i++ {
		next := strings.IndexByte(text[i:], '<')
		if next < 0 {
			return -1, ""
		}
		i += next
		name := text[i+1:]
		end := strings.IndexFunc(name, func(r rune) bool { return r != '-' && r != '_' && !unicode.IsLetter(r) })
		if end < 0 || name[end] != '>' {
			continue
		}
		name = name[:end]
		if !strings.ContainsAny(name, "-_") {
			continue
		}
		spokenElement := false
		for _, n := range spokenElements {
			spokenElement = spokenElement || n == name
		}
		if !spokenElement {
			return i, name
		}
	}
}

// sentences returns the sentences of a text, folded: pieces of a line that end with a
// full stop, a question mark or an exclamation mark before a space, or with the line. They
// have at least minWords words and minTelling bytes.
func sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = lexer.Fold(line)
			for line != "" {
				end := sentenceEnd(line)
				s := trimSentence(line[:end])
				line = line[end:]
				if isSentence(s) && !yield(s) {
					return
				}
			}
		}
	}
}

// sentenceEnd returns where the first sentence of a folded line ends.
func sentenceEnd(line string) int {
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRuneInString(line[i:])
		i += n
		switch r {
		case '。', '！', '？':
			return i
		case '.', '!', '?':
			if i == len(line) || line[i] == ' ' {
				return i
			}
		}
	}
	return len(line)
}

// trimSentence removes quotes, list signs and markup around a sentence.
func trimSentence(s string) string {
	return strings.TrimRight(strings.TrimLeft(s, " \t\"'“”‘’*_>-#•"), " \t\"'“”‘’*_")
}

// isSentence reports whether a text has enough words of letters to say something. Text in
// scripts without spaces needs only its length.
func isSentence(s string) bool {
	if len(s) < minTelling {
		return false
	}
	words, inWord, wide := 0, false, 0
	for _, r := range s {
		letter := unicode.IsLetter(r)
		if letter && !inWord {
			words++
		}
		inWord = letter || unicode.IsMark(r) || r == '\'' || r == '’'
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) {
			wide++
		}
	}
	return words >= minWords || wide >= minTelling/3
}

// isProse reports whether at least three quarters of the words of a text consist of letters
// only, apart from punctuation around them.
func isProse(s string) bool {
	words, plain := 0, 0
	for word := range strings.FieldsSeq(s) {
		words++
		word = strings.Trim(word, ".,;:!?()\"'“”‘’")
		if word != "" && strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' && r != '-' }) < 0 {
			plain++
		}
	}
	return 4*plain >= 3*words
}
