package tui

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// maxEdited is the size of a text that is read from the editor.
const maxEdited = 4 << 20

// edited reports that the editor has ended.
type edited struct {
	in   *input
	path string
	err  error
}

// openEditor opens the text of an input in the user's editor, $VISUAL or $EDITOR.
func (m *model) openEditor(in *input) tea.Cmd {
	editor := m.getenv("VISUAL")
	if editor == "" {
		editor = m.getenv("EDITOR")
	}
	args, ok := shellWords(editor)
	if !ok || len(args) == 0 {
		m.printWarning("Set EDITOR to open your editor, for example EDITOR=vi.")
		return nil
	}
	f, err := os.CreateTemp("", "furl-*.md") // mode 0600
	if err == nil {
		_, err = f.WriteString(strings.TrimRight(in.value().Text, "\n") + "\n")
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		m.printError(fmt.Errorf("write the text for the editor: %w", err))
		return nil
	}
	cmd := exec.Command(args[0], append(args[1:], f.Name())...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = m.in, m.out, m.out
	m.display.close()
	m.away = true
	return tea.ExecProcess(cmd, func(err error) tea.Msg { return edited{in, f.Name(), err} })
}

// editorEnded takes the text that the editor has saved.
func (m *model) editorEnded(e edited) {
	m.display.open()
	m.away = false
	defer os.Remove(e.path)
	if e.err != nil {
		m.printError(fmt.Errorf("run the editor: %w", e.err))
		return
	}
	info, err := os.Stat(e.path)
	if err == nil && info.Size() > maxEdited {
		err = fmt.Errorf("%d bytes, expected at most %d", info.Size(), maxEdited)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(e.path)
	}
	if err != nil {
		m.printError(fmt.Errorf("read the text from the editor: %w", err))
		return
	}
	e.in.set(strings.TrimRight(string(text), "\n"))
}
