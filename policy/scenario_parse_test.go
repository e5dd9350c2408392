package policy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
)

// The language of scenarios is described in testdata/scenarios/README.md.

// parseTranscript reads messages: lines without an empty line between them, as
// far as one side speaks, are one message.
func parseTranscript(text string) ([]*furl.Message, error) {
	var p transcriptParser
	for n, l := range strings.Split(text, "\n") {
		if err := p.line(l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	p.end()
	return p.messages, nil
}

type transcriptParser struct {
	messages []*furl.Message
	open     *furl.Message
	texts    []string // of the open message's last block
}

func (p *transcriptParser) line(l string) error {
	switch {
	case strings.TrimSpace(l) == "":
		p.end()
		return nil
	case strings.HasPrefix(l, "#"):
		return nil
	case l[0] == ' ' || l[0] == '\t':
		if p.open == nil {
			return fmt.Errorf("a continued line without a message: %q", l)
		}
		p.texts = append(p.texts, strings.TrimSpace(l))
		return nil
	}
	p.text()
	head, rest, _ := strings.Cut(l, ":")
	words := strings.Fields(head)
	switch words[0] {
	case "system", "developer", "user", "assistant":
		p.block(furl.Role(words[0]), furl.Block{Kind: furl.KindText})
		p.texts = []string{strings.TrimSpace(rest)}
	case "call":
		words := strings.SplitN(l, " ", 4)
		if len(words) < 3 {
			return fmt.Errorf("a call needs an id and a tool: %q", l)
		}
		args := json.RawMessage("{}")
		if len(words) == 4 {
			args = json.RawMessage(pad(words[3]))
		}
		if !json.Valid(args) {
			return fmt.Errorf("arguments %s are no JSON", args)
		}
		p.block(furl.RoleAssistant, furl.Block{Kind: furl.KindCall, ID: words[1], Name: words[2], Args: args})
	case "result":
		if len(words) < 2 {
			return fmt.Errorf("a result needs the id of its call: %q", l)
		}
		p.block(furl.RoleUser, furl.Block{Kind: furl.KindResult, ID: words[1], Error: len(words) > 2 && words[2] == "error"})
		p.texts = []string{strings.TrimSpace(rest)}
	case "image":
		return p.image(words)
	default:
		return fmt.Errorf("a line begins with a role, call, result or image: %q", l)
	}
	return nil
}

// block adds a block to the open message if its role speaks, else to a new one.
func (p *transcriptParser) block(role furl.Role, b furl.Block) {
	if p.open == nil || p.open.Role != role || b.Kind == furl.KindResult && p.open.Blocks[len(p.open.Blocks)-1].Kind == furl.KindText {
		p.end()
		p.open = &furl.Message{Role: role}
	}
	p.open.Blocks = append(p.open.Blocks, b)
}

// image adds "image WIDTHxHEIGHT N bytes" to the result or the words before.
func (p *transcriptParser) image(words []string) error {
	var m furl.Media
	if len(words) != 4 || p.open == nil {
		return fmt.Errorf("want image WIDTHxHEIGHT N bytes in a message")
	}
	if _, err := fmt.Sscanf(words[1]+" "+words[2], "%dx%d %d", &m.Width, &m.Height, &m.Bytes); err != nil {
		return err
	}
	m.Kind, m.Type = furl.KindImage, "image/png"
	if b := &p.open.Blocks[len(p.open.Blocks)-1]; b.Kind == furl.KindResult {
		b.Media = append(b.Media, m)
		return nil
	}
	p.open.Blocks = append(p.open.Blocks, furl.Block{Kind: furl.KindImage, Media: []furl.Media{m}})
	return nil
}

// text closes the last block's words.
func (p *transcriptParser) text() {
	if p.open == nil || p.texts == nil {
		return
	}
	for i := len(p.open.Blocks) - 1; i >= 0; i-- {
		if b := &p.open.Blocks[i]; b.Kind == furl.KindText || b.Kind == furl.KindResult {
			b.Text = pad(strings.Join(p.texts, "\n"))
			break
		}
	}
	p.texts = nil
}

func (p *transcriptParser) end() {
	p.text()
	if p.open != nil {
		p.messages = append(p.messages, p.open)
	}
	p.open = nil
}

var padding = regexp.MustCompile(`\*(\d+)`)

// pad replaces *500 by as many words of filling.
func pad(text string) string {
	return padding.ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.Atoi(s[1:])
		return strings.TrimSpace(strings.Repeat("bla ", n))
	})
}

// unpad is the reverse of pad, for reading.
func unpad(text string) string {
	return blas.ReplaceAllStringFunc(text, func(s string) string {
		return "*" + strconv.Itoa(len(strings.Fields(s)))
	})
}

var blas = regexp.MustCompile(`bla( bla)+`)

// parsePolicy reads a preset's name and "key: value" lines: the budget's, the
// settings', which it adds to set, and the options of the preset, or of another
// one whose name is before the key.
func parsePolicy(text string, set Settings) (furl.Policy, furl.Budget, error) {
	b := furl.Budget{Counter: words{}, Recall: true}
	name := ""
	fields := map[string]map[string]json.RawMessage{}
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if l == "" || l[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(l, ": ")
		if !ok {
			name = l
			continue
		}
		n, _ := strconv.Atoi(value)
		switch key {
		case "window":
			b.Window, b.Model.Window = n, n
		case "reserve":
			b.Reserve = n
		case "fixed":
			b.Fixed = n
		case "recall":
			b.Recall = value == "yes"
		case "images":
			b.MaxImages = n
		case "bytes":
			b.MaxBytes = n
		case "format":
			window := b.Model.Window
			b.Model = catalog.Unknown("", furl.Format(value))
			b.Model.Window = window
		case "rolling_context":
			set.RollingContext = new(value == "true")
		default:
			raw := json.RawMessage(value)
			if !json.Valid(raw) {
				raw, _ = json.Marshal(value)
			}
			of, option, ok := strings.Cut(key, " ")
			if !ok {
				of, option = name, key
			}
			if fields[of] == nil {
				fields[of] = map[string]json.RawMessage{}
			}
			fields[of][option] = raw
		}
	}
	policies := withAgents(NewSet())
	for of, options := range fields {
		raw, err := json.Marshal(options)
		if err != nil {
			return nil, b, err
		}
		if err := policies.Configure(of, raw); err != nil {
			return nil, b, err
		}
	}
	if st, ok := alone[name]; ok {
		return &Pipeline{Label: name, Stages: []Stage{st}}, b, nil
	}
	p, err := policies.Policy(name, set)
	return p, b, err
}

// alone are stages that belong to no preset.
var alone = map[string]Stage{
	"shorten":     &Shorten{NameTokens: 8, MinGain: 10},
	"placeholder": &Mask{KeepSteps: 1, Text: Placeholder(12)},
}
