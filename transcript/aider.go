package transcript

import (
	"bytes"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/wire/openai"
)

// Aider's chat history is one Markdown file for all chats in a folder. A
// heading starts a chat, "#### " starts a line of the user, "> " a line of
// aider's terminal output, and everything else was written by the model.
// Aider ends lines of the first two kinds with two spaces, which
// distinguishes them from the model's headings and quotes. If terminal output
// has several lines, only the first has the prefix and only the last has the
// two spaces.
//
// The file contains text only. Terminal output was not sent to the model and
// is skipped, except for the name of the model. Commands ("/add", "/undo")
// are skipped too, unless the model answered them. "/clear" and "/reset"
// start a new conversation. The files and the system prompt that aider sends
// are not in the history.

var aider = &format{
	name:  "aider",
	agent: "Aider",
	detect: func(p *probe) bool {
		return !isSpecStory(p) && (bytes.HasPrefix(p.text, []byte(aiderHeading)) || bytes.Contains(p.text, []byte("\n"+aiderHeading)))
	},
	read: readAider,
}

const aiderHeading = "# aider chat started at "

// aiderReader reads the file line by line.
type aiderReader struct {
	in       *input
	marked   bool // lines of the user and of aider end with two spaces
	sessions []*Session
	empty    int // chats without messages

	b       *builder
	model   string
	at      time.Time // time of the next message; known only for the first message of a chat
	speaker byte      // 'u' user, 'm' model, 'c' aider itself, 0 none yet
	line    int       // first line of the speaker's text
	words   []string
	command *aiderSaid // a command without an answer so far
	cleared bool       // the next message starts a conversation
}

// aiderSaid is a text and the line where it starts.
type aiderSaid struct {
	line int
	text string
}

func readAider(in *input) ([]*Session, error) {
	a := &aiderReader{in: in, marked: bytes.Contains(in.data, []byte("  \n")) || bytes.Contains(in.data, []byte("  \r\n"))}
	a.begin("")
	data := in.data
	for n := 1; len(data) > 0; n++ {
		end := firstLine(data)
		a.read(n, strings.TrimRight(string(data[:end]), "\r\n"))
		data = data[end:]
	}
	a.end()
	if a.empty > 0 {
		in.note("skipped %s without messages", plural(a.empty, "chat"))
	}
	return a.sessions, nil
}

func (a *aiderReader) read(n int, line string) {
	if started, ok := strings.CutPrefix(line, aiderHeading); ok {
		a.end()
		a.begin(started)
		return
	}
	if n == 1 && strings.HasPrefix(line, "-*-") {
		return // commands for an editor
	}
	if a.speaker == 'c' { // until the last line of its output
		if strings.HasSuffix(line, "  ") {
			a.speaker = 0
		}
		if !strings.HasPrefix(line, "#### ") {
			return
		}
		a.speaker = 0
	}
	if said, ok := a.client(line, "####"); ok {
		a.say('u', n, said)
		return
	}
	if said, ok := a.client(line, ">"); ok {
		a.flush()
		if m := aiderModel.FindStringSubmatch(said); m != nil {
			a.model = m[1]
		}
		return
	}
	if a.speaker != 'm' && strings.HasPrefix(line, "> ") {
		a.flush()
		a.speaker = 'c'
		return
	}
	if a.speaker == 'u' && strings.TrimSpace(line) == "" {
		a.flush()
		return
	}
	a.say('m', n, line)
}

// client returns the text of a line that aider marked, without the prefix.
func (a *aiderReader) client(line, mark string) (said string, ok bool) {
	said, ok = strings.CutPrefix(line, mark)
	if !ok || said != "" && said[0] != ' ' || a.marked && !strings.HasSuffix(said, "  ") {
		return "", false
	}
	return strings.TrimSuffix(strings.TrimPrefix(said, " "), "  "), true
}

// aiderModel matches the lines in which aider names the model: at the start
// and after a change of model.
var aiderModel = lazyregexp.New(`^(?:Main model|Models?): ([^\s,⚡]+)⚡? with `)

func (a *aiderReader) begin(started string) {
	a.b = newBuilder(a.in, openai.Chat)
	a.b.ID = strings.TrimSpace(started)
	a.model = ""
	a.at, _ = time.Parse(time.DateTime, a.b.ID)
}

func (a *aiderReader) end() {
	a.flush()
	a.command = nil
	a.cleared = false
	if a.b.Messages == 0 {
		if a.b.ID != "" {
			a.empty++
		}
		return
	}
	a.sessions = append(a.sessions, a.b.finish())
}

// say adds a line to the speaker's text.
func (a *aiderReader) say(speaker byte, n int, line string) {
	if a.speaker != speaker {
		a.flush()
		a.speaker, a.line = speaker, n
	}
	a.words = append(a.words, line)
}

// flush adds the speaker's text as one message.
func (a *aiderReader) flush() {
	said := aiderSaid{a.line, strings.TrimSpace(strings.Join(a.words, "\n"))}
	speaker := a.speaker
	a.speaker, a.words = 0, nil
	if said.text == "" || speaker == 'c' {
		return
	}
	if a.cleared && (speaker == 'm' || !strings.HasPrefix(said.text, "/")) {
		a.cleared = false
		a.b.rewind(a.at, 0)
	}
	if speaker == 'm' {
		if a.command != nil {
			a.add(furl.RoleUser, *a.command)
			a.command = nil
		}
		a.b.reply(a.at, furl.Exchange{Model: a.model})
		a.add(furl.RoleAssistant, said)
		return
	}
	a.command = nil
	if !strings.HasPrefix(said.text, "/") {
		a.add(furl.RoleUser, said)
		return
	}
	a.command = &said
	// Aider accepts any unambiguous prefix of a command.
	switch word, _, _ := strings.Cut(said.text, " "); word {
	case "/cle", "/clea", "/clear", "/res", "/rese", "/reset":
		a.cleared = true
	}
}

func (a *aiderReader) add(role furl.Role, said aiderSaid) {
	a.b.blocks(a.at, said.line, role, furl.Block{Kind: furl.KindText, Text: said.text})
	if a.b.Title == "" && role == furl.RoleUser {
		a.b.Title = headline(said.text)
	}
	a.at = time.Time{}
}
