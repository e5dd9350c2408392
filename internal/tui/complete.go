package tui

import (
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/chat"
)

// completion is the state of completing a slash command with Tab.
type completion struct {
	start  string   // the part of the line before the word
	values []string // what the word can be
	at     int      // the one that is shown, -1 for none
	hint   string
}

// complete completes the word at the end of a slash command. Called again, it shows the
// next possibility, or with by = -1 the one before.
func (m *model) complete(by int) {
	c := &m.completion
	if len(c.values) > 1 {
		c.at = max((c.at+by+len(c.values))%len(c.values), 0)
		m.input.set(c.start + c.values[c.at])
		return
	}
	start, values := m.completions(m.input.text())
	switch len(values) {
	case 0:
		return
	case 1:
		m.input.set(start + values[0] + " ")
		return
	}
	*c = completion{start: start, values: values, at: -1, hint: strings.Join(values, "  ")}
	if p := commonPrefix(values); start+p != m.input.text() {
		m.input.set(start + p)
		return
	}
	m.complete(by)
}

// completions returns the possible words at the end of a line, and the line before them.
func (m *model) completions(line string) (start string, values []string) {
	rest, ok := strings.CutPrefix(line, "/")
	if !ok || strings.Contains(line, "\n") {
		return "", nil
	}
	name, arg, isArg := strings.Cut(rest, " ")
	if !isArg {
		for _, c := range m.conv.Commands() {
			if strings.HasPrefix(c.Name, name) {
				values = append(values, c.Name)
			}
		}
		return "/", values
	}
	for _, c := range m.conv.Commands() {
		if c.Name != name || c.Values == nil {
			continue
		}
		for _, v := range c.Values() {
			v = cleanPaste(label(v))
			if strings.HasPrefix(v, strings.TrimLeft(arg, " ")) && v != "" {
				values = append(values, v)
			}
		}
	}
	return "/" + name + " ", values
}

// commandHint describes the slash command that is being typed.
func (m *model) commandHint() string {
	text := m.input.text()
	rest, ok := strings.CutPrefix(text, "/")
	if !ok || strings.Contains(text, "\n") {
		return ""
	}
	name, _, isArg := strings.Cut(rest, " ")
	cmds := slices.DeleteFunc(slices.Clone(m.conv.Commands()), func(c chat.Command) bool {
		return isArg && c.Name != name || !strings.HasPrefix(c.Name, name)
	})
	if i := slices.IndexFunc(cmds, func(c chat.Command) bool { return c.Name == name }); i >= 0 || len(cmds) == 1 {
		c := cmds[max(i, 0)]
		return strings.TrimSpace("/"+c.Name+" "+c.Usage) + " " + m.signs.dot + " " + c.Short
	}
	var names []string
	for _, c := range cmds {
		names = append(names, "/"+c.Name)
	}
	return strings.Join(names, "  ")
}

func commonPrefix(values []string) string {
	p := values[0]
	for _, v := range values[1:] {
		for !strings.HasPrefix(v, p) {
			p = p[:len(p)-1]
		}
	}
	return strings.ToValidUTF8(p, "")
}
