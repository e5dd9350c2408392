package tui

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/furlhq/furl/agent"
)

// maxInputRows is how far an input grows.
const maxInputRows = 8

// input is the text that the user types, with folded parts.
type input struct {
	area  textarea.Model
	folds []fold
}

func newInput(prompt string) input {
	a := textarea.New()
	a.Prompt = ""
	a.ShowLineNumbers = false
	a.DynamicHeight = true
	a.MinHeight = 1
	a.MaxHeight = maxInputRows
	a.MaxWidth = 0
	a.MaxContentHeight = 10000
	a.SetPromptFunc(2, func(i textarea.PromptInfo) string {
		if i.LineNumber == 0 {
			return prompt + " "
		}
		return "  "
	})
	a.KeyMap.InsertNewline.SetEnabled(false) // see model.inputKey
	a.KeyMap.Paste.SetEnabled(false)         // the terminal pastes
	a.SetVirtualCursor(false)
	a.SetStyles(textarea.Styles{
		Focused: textarea.StyleState{Prompt: cyan, Placeholder: dim, Selection: lipgloss.NewStyle().Reverse(true)},
		Blurred: textarea.StyleState{Prompt: dim, Placeholder: dim},
	})
	a.Focus()
	return input{area: a}
}

// resize sets the width and the largest height.
func (in *input) resize(width, rows int) {
	in.area.MaxHeight = max(1, min(maxInputRows, rows))
	in.area.SetWidth(max(width, 4))
}

// lines returns what is shown, and the place of the cursor.
func (in *input) lines() ([]string, place) {
	lines := strings.Split(in.area.View(), "\n")
	for i, l := range lines {
		lines[i] = trimRight(onlyColors(l))
	}
	if lines[0] == "" {
		lines[0] = " "
	}
	var at place
	if c := in.area.Cursor(); c != nil {
		at = place{c.Y, c.X}
	}
	at.row = min(max(at.row, 0), len(lines)-1)
	return lines, at
}

func (in *input) text() string { return in.area.Value() }

func (in *input) empty() bool { return in.text() == "" }

// set replaces the text. The folds stay, so that labels in the text keep their meaning.
func (in *input) set(text string) {
	in.area.SetValue(cleanPaste(text))
	in.area.MoveToEnd()
}

func (in *input) clear() {
	in.area.Reset()
	in.folds = nil
}

// key passes a key on to the text area.
func (in *input) key(msg tea.KeyPressMsg) tea.Cmd {
	if msg.String() == "backspace" && !in.area.HasSelection() && in.deleteLabel() {
		return nil
	}
	if msg.Text != "" && cleanPaste(msg.Text) != msg.Text {
		return nil
	}
	var cmd tea.Cmd
	in.area, cmd = in.area.Update(msg)
	return cmd
}

// beforeCursor returns the part of the cursor's line that is before it.
func (in *input) beforeCursor() string {
	lines := strings.Split(in.text(), "\n")
	line := []rune(lines[min(in.area.Line(), len(lines)-1)])
	return string(line[:min(in.area.Column(), len(line))])
}

// atTop and atBottom report that the cursor is in the first or the last row.
func (in *input) atTop() bool {
	return in.area.Line() == 0 && in.area.LineInfo().RowOffset == 0
}

func (in *input) atBottom() bool {
	info := in.area.LineInfo()
	return in.area.Line() == in.area.LineCount()-1 && info.RowOffset >= info.Height-1
}

// deleteLabel deletes the label before the cursor as a whole.
func (in *input) deleteLabel() bool {
	before := in.beforeCursor()
	i := slices.IndexFunc(in.folds, func(f fold) bool { return strings.HasSuffix(before, f.label) })
	if i < 0 {
		return false
	}
	in.deleteBack(len([]rune(in.folds[i].label)))
	in.folds = slices.Delete(in.folds, i, i+1)
	return true
}

// deleteBack deletes n characters before the cursor.
func (in *input) deleteBack(n int) {
	for range n {
		in.area, _ = in.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
}

// paste inserts pasted text. It returns an error for an image that cannot be attached;
// the path is inserted then.
func (in *input) paste(text string) error {
	if paths := imagePaths(text); paths != nil {
		var folds []fold
		for _, p := range paths {
			part, err := readImage(p)
			if err == nil && in.images()+len(folds) >= maxImages {
				err = fmt.Errorf("attach %s: expected at most %d images", label(filepath.Base(p)), maxImages)
			}
			if err != nil {
				in.insert(cleanPaste(text))
				return err
			}
			name := strings.NewReplacer("[", "(", "]", ")").Replace(cleanPaste(label(filepath.Base(p))))
			folds = append(folds, fold{label: fmt.Sprintf("[image %d: %s]", in.images()+len(folds)+1, cut(name, 40, "…")), image: part})
		}
		for i, f := range folds {
			in.folds = append(in.folds, f)
			if i > 0 {
				in.insert(" ")
			}
			in.insert(f.label)
		}
		return nil
	}
	in.pasteText(text)
	return nil
}

// pasteText inserts pasted text, as a label if it is long.
func (in *input) pasteText(text string) {
	text = cleanPaste(text)
	if !needsFold(text) {
		in.insert(text)
		return
	}
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	size := fmt.Sprintf("%d lines", lines)
	if lines == 1 {
		size = fmt.Sprintf("%d characters", len([]rune(text)))
	}
	f := fold{label: fmt.Sprintf("[pasted %s]", size), text: text}
	for n := 2; slices.ContainsFunc(in.folds, func(o fold) bool { return o.label == f.label }); n++ {
		f.label = fmt.Sprintf("[pasted %s, %d]", size, n)
	}
	in.folds = append(in.folds, f)
	in.insert(f.label)
}

// insert inserts text at the cursor, in place of what is selected.
func (in *input) insert(text string) {
	in.area.DeleteSelection()
	in.area.InsertString(text)
	in.area, _ = in.area.Update(nil) // sets the height
}

func (in *input) images() (n int) {
	for _, f := range in.folds {
		if f.image != nil {
			n++
		}
	}
	return n
}

// value returns the message: labels of pasted text are replaced by the text, and images
// whose labels are in the text are attached.
func (in *input) value() agent.Input {
	var pairs []string
	out := agent.Input{}
	text := in.text()
	for _, f := range in.folds {
		switch {
		case !strings.Contains(text, f.label):
		case f.image != nil:
			out.Media = append(out.Media, *f.image)
		default:
			pairs = append(pairs, f.label, f.text)
		}
	}
	out.Text = strings.NewReplacer(pairs...).Replace(text) // replaces each place once
	return out
}

// draft is the state of an input, to set it again.
type draft struct {
	text  string
	folds []fold
}

func (in *input) draft() draft { return draft{in.text(), slices.Clone(in.folds)} }

// take puts a draft before the text of the input.
func (in *input) take(d draft) {
	text := d.text
	if rest := in.text(); rest != "" {
		text += "\n" + rest
	}
	in.folds = append(slices.Clone(d.folds), in.folds...)
	in.set(text)
}
