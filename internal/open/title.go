package open

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/furlhq/furl"
)

const (
	// maxTitle is the longest automatic title in characters.
	maxTitle = 60
	// maxTitleLine is how many bytes of a line are used for a title. A line can be
	// as long as a request, and splitting it into words takes many times its memory.
	maxTitleLine = 16 * maxTitle
	// maxTitleText is how many bytes of a text are searched for a title, and
	// maxTitleMessages how many user messages.
	maxTitleText     = 256 << 10
	maxTitleMessages = 24
)

// title returns the automatic title by new records, "" to keep the one that the
// session has. A title that says nothing, such as "hi", is replaced by that of a
// later message.
func (s *Session) title(fresh []furl.Record) string {
	had := s.meta.Title
	if s.meta.TitleBy != "" {
		return ""
	}
	if had != "" {
		if _, good := titleOf(had); good {
			return ""
		}
	}
	title, good := titleIn(fresh)
	if had != "" && !good {
		return ""
	}
	return title
}

// Title returns the automatic title of a session: the first line of the user's
// messages that says what the session is about. It skips what agents insert, such
// as AGENTS.md and reminders, and prefers any other line to a greeting or a command
// without arguments. It returns "" if the records have no user text.
func Title(records []furl.Record) string {
	title, _ := titleIn(records)
	return title
}

// titleIn returns the automatic title by records, and whether it says what the
// session is about.
func titleIn(records []furl.Record) (title string, good bool) {
	second, messages := "", 0
	for _, r := range records {
		m, ok := r.Body.(*furl.Message)
		if !ok || m.Role != furl.RoleUser {
			continue
		}
		title, good := MessageTitle(m)
		if good {
			return title, true
		}
		if second == "" {
			second = title
		}
		if messages++; messages == maxTitleMessages {
			break
		}
	}
	return second, false
}

// MessageTitle is Title for one message, and whether it says what the session is about.
func MessageTitle(m *furl.Message) (title string, good bool) {
	second := ""
	for i := range m.Blocks {
		if m.Blocks[i].Kind != furl.KindText {
			continue
		}
		title, good := titleOf(m.Blocks[i].Text)
		if good {
			return title, true
		}
		if second == "" {
			second = title
		}
	}
	return second, false
}

// titleOf returns the first line of a text that the user wrote, shortened, and
// whether it says what the session is about. If none does, it returns another line,
// or "".
func titleOf(text string) (title string, good bool) {
	second := ""
	for text = cut(text, maxTitleText); ; {
		if text = strings.TrimSpace(text); text == "" {
			return second, false
		}
		if name, after, ok := openingTag(text); ok {
			switch {
			case strings.HasPrefix(name, "command-"):
				var line string
				line, text = command(text)
				if strings.Contains(line, " ") {
					return shorten(line), true
				}
				if second == "" {
					second = shorten(line)
				}
			case slices.Contains(wordsOfUser, strings.ToLower(name)):
				text = after
			default:
				_, text, _ = strings.Cut(after, "</"+name+">")
			}
			continue
		}
		line, rest, _ := strings.Cut(text, "\n")
		line = strings.Join(strings.Fields(cut(line, maxTitleLine)), " ")
		if i := strings.Index(line, "</"); i >= 0 { // of an element with the user's words
			line = line[:i]
		}
		text = rest
		switch {
		case isCompaction(line):
			return second, false
		case isInserted(line):
			continue
		}
		if line = unmarked(line); line == "" {
			continue
		}
		if says(line) {
			return shorten(line), true
		}
		if second == "" {
			second = shorten(line)
		}
	}
}

// wordsOfUser are the elements in which agents wrap what the user wrote.
var wordsOfUser = []string{"task", "user_query", "user_message", "user-message", "user_input", "user_request", "query", "prompt", "feedback"}

// openingTag returns the name of the XML element that a text starts with, as agents
// insert them, and the text after the opening tag.
func openingTag(text string) (name, after string, ok bool) {
	open, _, found := strings.Cut(cut(text, maxTitleLine), ">")
	if !found || !strings.HasPrefix(open, "<") {
		return "", "", false
	}
	name, _, _ = strings.Cut(open[1:], " ")
	if name == "" || !unicode.IsLetter(rune(name[0])) || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_:.", r)
	}) {
		return "", "", false
	}
	return name, text[len(open)+1:], true
}

// command returns the command line that Claude Code wraps in elements, such as
// "/review 12", and the text after them.
func command(text string) (line, rest string) {
	var name, args string
	for {
		tag, after, ok := openingTag(strings.TrimSpace(text))
		if !ok || !strings.HasPrefix(tag, "command-") {
			break
		}
		inner, after, _ := strings.Cut(after, "</"+tag+">")
		inner = strings.Join(strings.Fields(cut(inner, maxTitleLine)), " ")
		switch tag {
		case "command-name":
			name = inner
		case "command-args":
			args = inner
		}
		text = after
	}
	if name != "" && !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	return strings.TrimSpace(name + " " + args), text
}

// isCompaction reports whether a line begins the summary with which an agent
// continues a conversation.
func isCompaction(line string) bool {
	return strings.HasPrefix(line, "This session is being continued from a previous conversation")
}

// insertedLines begin lines that agents insert before the user's words, or that say
// only that a plan follows. They are in lower case.
var insertedLines = []string{
	"# agents.md instructions", "# claude.md", "caveat: the messages below were generated by the user",
	"[request interrupted", "[the beginning was not recorded", "base directory for this skill:",
	"implement the following plan", "implement this plan", "please implement the following plan", "please implement this plan",
	"execute the following plan", "execute this plan", "here is the plan", "here's the plan", "# context from my ide setup",
	"/rolling-context", "furl: rolling-context", "furl: context", // commands to furl
}

func isInserted(line string) bool {
	lower := strings.ToLower(cut(line, 100))
	return slices.ContainsFunc(insertedLines, func(begin string) bool { return strings.HasPrefix(lower, begin) })
}

// unmarked returns a line without the Markdown around it, "" for a line without
// letters or digits.
func unmarked(line string) string {
	if !strings.ContainsFunc(line, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsSymbol(r) && r > unicode.MaxASCII
	}) {
		return ""
	}
	if strings.HasPrefix(line, "```") {
		return ""
	}
	if strings.HasPrefix(line, "[Image") {
		if _, after, ok := strings.Cut(line, "]"); ok {
			line = strings.TrimSpace(after)
		}
	}
	heading := strings.HasPrefix(line, "#")
	line = strings.TrimSpace(strings.TrimLeft(line, "#>"))
	for _, mark := range []string{"- ", "* "} {
		line = strings.TrimPrefix(line, mark)
	}
	if bold, ok := strings.CutPrefix(line, "**"); ok {
		line = strings.Replace(bold, "**", "", 1)
	}
	if heading {
		for _, begin := range []string{"Plan:", "Plan –", "Plan -", "Implementation Plan:"} {
			if after, ok := strings.CutPrefix(line, begin); ok && strings.TrimSpace(after) != "" {
				line = strings.TrimSpace(after)
				break
			}
		}
		switch strings.ToLower(line) {
		case "plan", "context", "overview", "goal", "summary", "task", "background", "instructions":
			return "" // the next line says more
		}
	}
	return line
}

// greetings are whole messages that could begin any session, in lower case.
var greetings = []string{
	"hi", "hello", "hey", "yo", "test", "ping", "quota", "warmup", "continue", "go on", "go ahead", "proceed", "resume",
	"ok", "okay", "yes", "y", "no", "sure", "thanks", "thank you", "do it", "please continue", "start", "hi there", "hello there",
}

// says reports whether a line can tell a session from others.
func says(line string) bool {
	if strings.HasPrefix(line, "/") && !strings.ContainsAny(line[1:], " /") {
		return false // a command without arguments
	}
	return !slices.Contains(greetings, strings.ToLower(strings.Trim(line, " .,!?…")))
}

func shorten(line string) string {
	if utf8.RuneCountInString(line) <= maxTitle {
		return line
	}
	return string([]rune(line)[:maxTitle-1]) + "…"
}

// cut returns at most n bytes of a text, without a part of a character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}
