package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/protocol"
)

// Script is a player of written answers in a txtar archive. Text before the
// first file is a comment. Each file is an answer with an arbitrary name. Its
// lines are:
//
//	think: WORDS              thinking
//	text: WORDS               a text
//	call: NAME {ARGUMENTS}    a call; without arguments, {}
//	stop: REASON              the stop reason, in Anthropic's words
//	fault: FAULT              an injected error, see ParseFault
//	repeat: N                 answers N requests, not one
//	when: REGEXP              answers every request whose newest text or
//	                          results match, and only those
//
// Other lines continue the previous one. Requests get the answers without a
// "when" in order; when all are used, requests are refused.
type Script struct {
	mu    sync.Mutex
	lines []scripted
	when  []scripted
	at    int // next of lines
	used  int // times lines[at] was used
}

type scripted struct {
	name   string
	reply  Reply
	repeat int
	when   *regexp.Regexp
}

// ParseScript parses a script. name is used in errors.
func ParseScript(name string, data []byte) (*Script, error) {
	s := new(Script)
	for _, file := range txtar.Parse(data).Files {
		part, err := parsePart(file.Name, string(file.Data))
		if err != nil {
			return nil, fmt.Errorf("%s: answer %q: %w", name, file.Name, err)
		}
		if part.when != nil {
			s.when = append(s.when, part)
		} else {
			s.lines = append(s.lines, part)
		}
	}
	if len(s.lines)+len(s.when) == 0 {
		return nil, fmt.Errorf(`%s: no answers: each starts with a line such as "-- 1 --"`, name)
	}
	return s, nil
}

var directive = lazyregexp.New(`^(think|text|call|stop|fault|repeat|when):(?: |$)`)

func parsePart(name, data string) (scripted, error) {
	p := scripted{name: name, repeat: 1}
	key, value := "", ""
	for line := range strings.Lines(data) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		m := directive.FindString(line)
		if m == "" {
			if key == "" && strings.TrimSpace(line) != "" {
				return p, fmt.Errorf("line %q: expected think, text, call, stop, fault, repeat or when", line)
			}
			value += "\n" + line
			continue
		}
		if err := p.set(key, value); err != nil {
			return p, err
		}
		key, value = strings.TrimRight(m, ": "), line[len(m):]
	}
	if err := p.set(key, value); err != nil {
		return p, err
	}
	if len(p.reply.Blocks) == 0 && p.reply.Fault == nil {
		return p, fmt.Errorf("empty answer: expected a text, a call or a fault")
	}
	return p, nil
}

func (p *scripted) set(key, value string) (err error) {
	value = strings.TrimRight(value, "\n")
	add := func(b furl.Block) { p.reply.Blocks = append(p.reply.Blocks, b) }
	switch key {
	case "text":
		add(furl.Block{Kind: furl.KindText, Text: value})
	case "think":
		add(furl.Block{Kind: furl.KindThinking, Text: value})
	case "call":
		name, args, _ := strings.Cut(strings.TrimSpace(value), " ")
		args = strings.TrimSpace(args)
		if args == "" {
			args = "{}"
		}
		var object map[string]json.RawMessage
		if name == "" || json.Unmarshal([]byte(args), &object) != nil {
			return fmt.Errorf("call: %s: expected a name and a JSON object", value)
		}
		add(furl.Block{Kind: furl.KindCall, Name: name, Args: json.RawMessage(args)})
	case "stop":
		p.reply.Stop = strings.TrimSpace(value)
	case "fault":
		f, err := ParseFault(value)
		if err != nil {
			return err
		}
		p.reply.Fault = &f
	case "repeat":
		if p.repeat, err = strconv.Atoi(strings.TrimSpace(value)); err != nil || p.repeat < 1 {
			return fmt.Errorf("repeat: %s: expected a number from 1", value)
		}
	case "when":
		if p.when, err = regexp.Compile(strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("when: %w", err)
		}
	}
	return nil
}

// Play returns the next answer.
func (s *Script) Play(_ context.Context, req *protocol.Request) (Reply, error) {
	newest := newestText(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.when {
		if s.when[i].when.MatchString(newest) {
			return s.when[i].copied(), nil
		}
	}
	if s.at >= len(s.lines) {
		return Reply{}, refused(fmt.Sprintf("furl sim: the script has no answer left, it had %d", len(s.lines)))
	}
	line := &s.lines[s.at]
	if s.used++; s.used >= line.repeat {
		s.at, s.used = s.at+1, 0
	}
	return line.copied(), nil
}

// copied returns a copy, so that callers cannot change the script.
func (p *scripted) copied() Reply {
	r := p.reply
	r.Blocks = append([]furl.Block(nil), r.Blocks...)
	return r
}

// newestText returns the input since the model's last message, text and
// results.
func newestText(req *protocol.Request) string {
	var parts []string
	for i := len(req.Messages) - 1; i >= 0 && req.Messages[i].Role != furl.RoleAssistant; i-- {
		for j := len(req.Messages[i].Blocks) - 1; j >= 0; j-- {
			if b := &req.Messages[i].Blocks[j]; b.Kind == furl.KindText || b.Kind == furl.KindResult {
				parts = append(parts, b.Text)
			}
		}
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
		b.WriteByte('\n')
	}
	return b.String()
}
