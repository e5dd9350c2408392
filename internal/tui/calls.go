package tui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/tool"
)

const (
	maxErrorLines = 4    // of a failed call, folded
	maxDiffLines  = 12   // of a result with a diff, folded
	maxUnfolded   = 2000 // lines of an item that is unfolded
	maxUnfoldText = 1 << 20
)

// callLines is a call folded to a line, such as
//
//	⏺ read_file main.go · 120 lines · 0.2s
//
// followed by the start of an error or of a diff. result is nil if there is none.
func callLines(c agent.Call, result *tool.Result, took time.Duration, width int, sg *signs) []string {
	head := []string{callTitle(c)}
	var rest []string
	sign := green.Render(sg.call)
	switch {
	case result == nil:
		sign = dim.Render(sg.call)
		head = append(head, "no result")
	case result.Error:
		sign = red.Render(sg.failed)
		lines, more := firstLines(wrapPlain(strings.TrimSpace(clean(headOf(result.Text(), 4096))), width-4), maxErrorLines)
		rest = paint(red, lines)
		if more > 0 {
			rest = append(rest, dim.Render(fmt.Sprintf("%s %d more lines", sg.more, more)))
		}
	default:
		head = append(head, resultSize(*result))
		if text := result.Text(); isDiff(text) {
			lines, more := firstLines(diffLines(headOf(text, 64<<10), width-4), maxDiffLines)
			rest = lines
			if more > 0 {
				rest = append(rest, dim.Render(fmt.Sprintf("%s %d more lines (Ctrl+O)", sg.more, more)))
			}
		}
	}
	if took >= 500*time.Millisecond { // less says nothing about a tool
		head = append(head, seconds(took))
	}
	title, details := head[0], strings.Join(head[1:], " "+sg.dot+" ")
	if details != "" {
		details = " " + sg.dot + " " + details
	}
	room := width - 2 - len([]rune(details))
	if room < 12 {
		room, details = width-2, ""
	}
	lines := []string{sign + " " + cut(title, room, sg.more) + dim.Render(details)}
	return append(lines, indent(rest, "    ", "    ")...)
}

// callTitle is the name of a call's tool and its main argument.
func callTitle(c agent.Call) string {
	title := label(c.Name)
	if arg := mainArgument(c.Input); arg != "" {
		title += " " + arg
	}
	return title
}

// mainArgument is the value of the first field that says what a call is about, or of the
// first field that is a string.
func mainArgument(input json.RawMessage) string {
	if len(input) > 1<<20 {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(input))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	first := ""
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return first
		}
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return first
		}
		var value string
		if json.Unmarshal(raw, &value) != nil || value == "" {
			continue
		}
		value = label(headOf(value, 500))
		switch key {
		case "path", "file", "file_path", "command", "pattern", "query", "url", "name":
			return value
		}
		if first == "" {
			first = value
		}
	}
	return first
}

// resultSize says how large a result is.
func resultSize(r tool.Result) string {
	var parts []string
	if text := strings.TrimRight(r.Text(), "\n"); text != "" {
		n := strings.Count(text, "\n") + 1
		if n == 1 {
			parts = append(parts, "1 line")
		} else {
			parts = append(parts, numbers.Thousands(n)+" lines")
		}
	}
	media := 0
	for _, p := range r.Parts {
		if p.Type != "" {
			media++
		}
	}
	switch {
	case media == 1:
		parts = append(parts, "1 image")
	case media > 1:
		parts = append(parts, strconv.Itoa(media)+" images")
	}
	if len(parts) == 0 {
		return "empty"
	}
	return strings.Join(parts, ", ")
}

// seconds is a duration: 0.2s, 12s, 3m05s.
func seconds(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}

// folded is an item that is shown in a short form and can be printed as a whole.
type folded struct {
	title string
	call  *agent.Call
	res   *tool.Result
	text  string // of an item that is not a call
}

// lines is the whole item, within bounds.
func (f folded) lines(width int, sg *signs) []string {
	out := []string{bold.Render(cut(f.title, width, sg.more))}
	add := func(text string) {
		cutOff := len(text) > maxUnfoldText
		text = headOf(text, maxUnfoldText)
		var lines []string
		if isDiff(text) {
			lines = diffLines(text, width-2)
		} else {
			lines = wrapPlain(strings.TrimRight(clean(text), "\n"), width-2)
		}
		lines, more := firstLines(lines, maxUnfolded)
		out = append(out, indent(lines, "  ", "  ")...)
		if more > 0 || cutOff {
			out = append(out, dim.Render("  "+sg.more+" not shown completely"))
		}
	}
	if f.call == nil {
		add(f.text)
		return out
	}
	out = append(out, dim.Render("Input"))
	add(indented(f.call.Input))
	if f.res == nil {
		return append(out, dim.Render("No result"))
	}
	out = append(out, dim.Render("Result"))
	if text := f.res.Text(); text != "" {
		add(text)
	}
	for _, p := range f.res.Parts {
		if p.Type != "" {
			add(fmt.Sprintf("[%s, %s bytes]", p.Type, numbers.Thousands(len(p.Data))))
		}
	}
	return out
}

// indented is JSON with a field on each line, or the input if it is not valid.
func indented(input json.RawMessage) string {
	var b bytes.Buffer
	if len(input) > maxUnfoldText || json.Indent(&b, input, "", "  ") != nil {
		return string(input)
	}
	return b.String()
}
