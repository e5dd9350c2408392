// Package toolscript finds the tool calls that a program of the model makes.
//
// In Codex's code mode (gpt-5.6 and newer) the model has one tool, exec. Its input is the source of
// a JavaScript module that calls the tools: await tools.exec_command({cmd: "ls"}),
// tools.apply_patch(patch). The transcript has no other record of these calls:
// the result is what the script prints. (github.com/openai/codex, codex-rs/code-mode.)
// Other agents have such tools too, see languages.
//
// Where a provider runs the program (code_execution of Anthropic, programs of OpenAI's
// Responses), the calls are in the transcript as blocks with a Caller, and nothing is to
// be found here.
//
// Nothing is executed: the package knows the values of literals, of names that have
// them, and of texts and lists put together from them.
package toolscript

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// language is how the scripts of a tool call tools.
type language struct {
	// argument has the script, where it is not the whole input.
	argument string
	// toolbox are the objects whose methods are the tools. If there are none, they are
	// functions.
	toolbox []string
}

// languages are those of the tools whose input is a script, by their names.
var languages = map[string]language{
	"exec":     {"input", []string{"tools"}},            // Codex
	"codemode": {"code", []string{"tools", "codemode"}}, // pi, @cloudflare/codemode
	// github.com/docker/cagent, pkg/codemode.
	"run_tools_with_javascript": {"script", nil},
}

// Calls returns the calls that a call stands for: those that its script makes, in
// the order of the script, or itself if it is no script or calls nothing that can be
// recognised. The calls of a script have its ID. In their arguments, parts of texts that
// are unknown are Hole, and other unknown values are missing or null.
func Calls(b *furl.Block) []*furl.Block {
	if calls, _ := Inside(b); len(calls) > 0 {
		return calls
	}
	return []*furl.Block{b}
}

// Inside returns the calls that the script of a call makes. It returns none for calls
// without a script. unread reports whether the script may make others, or edits whose
// text is not known.
func Inside(b *furl.Block) (calls []*furl.Block, unread bool) {
	source, ok := sourceOf(b)
	if !ok {
		return nil, false
	}
	if len(source) > maxSource {
		return nil, true
	}
	l := lexer{source: source}
	toolboxes := languages[b.Name].toolbox
	r := reader{bare: len(toolboxes) == 0}
	r.read(l.tokens(0), toolboxes)
	unread = l.broken || r.broken
	for i := range r.calls {
		c := &r.calls[i]
		unread = unread || c.name == "" || c.hidesText()
		if c.name == "" {
			continue
		}
		args := c.input.appendJSON(nil, 0)
		if c.input.kind == kindUnknown || len(args) > maxArguments {
			args = []byte("{}")
		}
		calls = append(calls, &furl.Block{Kind: furl.KindCall, ID: b.ID, Name: c.name, Args: args})
	}
	return calls, unread
}

// Has reports whether a call has a script.
func Has(b *furl.Block) bool {
	_, ok := sourceOf(b)
	return ok
}

// textKeys are the arguments in which tools expect commands, patches and the texts of
// edits.
var textKeys = []string{"cmd", "command", "script", "input", "patch", "old_string", "oldString", "old_str", "oldText", "old_text"}

// hidesText reports whether the call may edit text that is not known.
func (c *call) hidesText() bool {
	switch c.input.kind {
	case kindUnknown:
		return true
	case kindText:
		return hidden(c.input)
	case kindObject:
		for _, f := range *c.input.fields {
			if slices.Contains(textKeys, f.name) && hidden(f.value) {
				return true
			}
		}
	}
	return false
}

// hidden reports whether a text is unknown, or a patch with unknown parts in the lines
// that it is about.
func hidden(v value) bool {
	if v.kind == kindUnknown || v.text == Hole {
		return true
	}
	if v.kind != kindText || !strings.Contains(v.text, Hole) || !strings.Contains(v.text, "*** ") {
		return false
	}
	for line := range strings.Lines(v.text) {
		if strings.Contains(line, Hole) && !strings.HasPrefix(line, "*** ") && !strings.HasPrefix(line, "+") {
			return true
		}
	}
	return false
}

// sourceOf returns the script of a call; ok is false if it has none.
func sourceOf(b *furl.Block) (source string, ok bool) {
	if b.Kind != furl.KindCall {
		return "", false
	}
	lang, ok := languages[b.Name]
	if !ok || lang.toolbox != nil && !slices.ContainsFunc(lang.toolbox, func(name string) bool { return bytes.Contains(b.Args, []byte(name)) }) {
		return "", false
	}
	raw := []byte(b.Args)
	if r := rawjson.NewReader(raw); r.Kind() == '{' {
		raw = rawjson.Field(raw, lang.argument)
	}
	r := rawjson.NewReader(raw)
	if r.Kind() != '"' {
		return "", false
	}
	source, ok = r.String()
	return source, ok && r.End() == nil
}

// Texts returns the texts of a block as Block.Texts does, but of a script the texts in
// it, decoded, and of what a script printed those in JSON too.
func Texts(b *furl.Block) iter.Seq[string] {
	if source, ok := sourceOf(b); ok && len(source) <= maxSource {
		return func(yield func(string) bool) {
			l := lexer{source: source}
			texts(l.tokens(0), yield)
		}
	}
	if b.Kind == furl.KindResult && strings.HasPrefix(b.Text, printed) {
		return func(yield func(string) bool) { outputs(b.Text, yield) }
	}
	return b.Texts()
}

// ShownTexts returns what can be read in a block as shown, as ShownBlock.Texts does; see
// Texts.
func ShownTexts(sb *furl.ShownBlock) iter.Seq[string] {
	if sb.By == 0 {
		return Texts(sb.Block)
	}
	return sb.Texts()
}

func texts(tokens []token, yield func(string) bool) bool {
	raw := false
	for i := range tokens {
		t := &tokens[i]
		switch {
		case t.kind == tokenString && i+1 < len(tokens) && tokens[i+1].is(":") && i > 0 && (tokens[i-1].is("{") || tokens[i-1].is(",")):
			// a key
		case t.kind == tokenString && t.text != "":
			if !yield(t.text) {
				return false
			}
		case t.kind == tokenTemplate:
			for j, p := range t.parts {
				s := p.text
				if raw {
					s = p.raw
				}
				if s != "" && !yield(s) || j < len(t.inserts) && !texts(t.inserts[j], yield) {
					return false
				}
			}
		}
		raw = t.isName("raw")
	}
	return true
}

// printed is what the result of a script begins with, before how it ended.
const printed = "Script "

// outputs yields a printed text: lines that are JSON as the texts in them, the others
// together.
func outputs(text string, yield func(string) bool) {
	for text != "" {
		plain := len(text)
		var json string
		for at := 0; at < len(text); {
			line := text[at:]
			if n := strings.IndexByte(line, '\n'); n >= 0 {
				line = line[:n+1]
			}
			if (line[0] == '{' || line[0] == '[') && rawjson.Check([]byte(line)) == nil {
				plain, json = at, line
				break
			}
			at += len(line)
		}
		if plain > 0 && !yield(text[:plain]) {
			return
		}
		text = text[plain+len(json):]
		for s := range (&furl.Block{Args: []byte(json)}).Texts() {
			if !yield(s) {
				return
			}
		}
	}
}
