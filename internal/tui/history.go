package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxHistory      = 1000     // entries
	maxHistoryEntry = 16 << 10 // bytes of one entry
	maxHistoryFile  = 4 << 20  // bytes that are read
)

// history is the list of inputs, in a file that only the user can read. Each line of the
// file is a JSON string, so a line that was not written completely is ignored.
type history struct {
	path    string // "" for none
	entries []string
	at      int    // the entry that is shown, len(entries) for the draft
	draft   string // what the user was typing before looking at entries
}

// openHistory reads the file of a history, which need not exist.
func openHistory(path string) (*history, error) {
	h := &history{path: path}
	if path == "" {
		return h, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("read input history: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return h, fmt.Errorf("read input history: %w", err)
	}
	if !info.Mode().IsRegular() {
		h.path = ""
		return h, fmt.Errorf("read input history: %s is not a regular file", path)
	}
	if _, err := f.Seek(max(0, info.Size()-maxHistoryFile), io.SeekStart); err != nil {
		return h, fmt.Errorf("read input history: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxHistoryFile))
	if err != nil {
		return h, fmt.Errorf("read input history: %w", err)
	}
	for line := range bytes.Lines(data) {
		var s string
		if json.Unmarshal(line, &s) == nil && s != "" {
			h.entries = append(h.entries, s)
		}
	}
	if len(h.entries) > 2*maxHistory || info.Size() > maxHistoryFile {
		h.entries = slices.Clone(h.entries[max(0, len(h.entries)-maxHistory):])
		err = h.rewrite()
	}
	if info.Mode().Perm()&0o077 != 0 {
		err = errors.Join(err, os.Chmod(path, 0o600))
	}
	h.at = len(h.entries)
	return h, err
}

// rewrite replaces the file by one with the present entries.
func (h *history) rewrite() error {
	f, err := os.CreateTemp(filepath.Dir(h.path), filepath.Base(h.path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("shorten input history: %w", err)
	}
	defer os.Remove(f.Name())
	var b bytes.Buffer
	for _, s := range h.entries {
		b.Write(historyLine(s))
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), h.path)
	}
	if err != nil {
		return fmt.Errorf("shorten input history: %w", err)
	}
	return nil
}

func historyLine(s string) []byte {
	line, _ := json.Marshal(s) // a string always encodes
	return append(line, '\n')
}

// add appends an entry to the list and the file.
func (h *history) add(s string) error {
	h.draft = ""
	defer func() { h.at = len(h.entries) }()
	s = headOf(strings.ToValidUTF8(s, "\ufffd"), maxHistoryEntry)
	if strings.TrimSpace(s) == "" || len(h.entries) > 0 && h.entries[len(h.entries)-1] == s {
		return nil
	}
	h.entries = append(h.entries, s)
	if h.path == "" {
		return nil
	}
	f, err := os.OpenFile(h.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("save input history: %w", err)
	}
	line := historyLine(s)
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], info.Size()-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...) // the last line was not written completely
		}
	}
	_, err = f.Write(line)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("save input history: %w", err)
	}
	return nil
}

// move returns the entry by steps earlier (negative) or later, and whether there is one.
// draft is the present text of the input.
func (h *history) move(by int, draft string) (string, bool) {
	to := h.at + by
	if to < 0 || to > len(h.entries) {
		return "", false
	}
	if h.at == len(h.entries) {
		h.draft = draft
	}
	h.at = to
	if to == len(h.entries) {
		return h.draft, true
	}
	return h.entries[to], true
}

// find returns the newest entry before the index that contains text, and its index.
func (h *history) find(text string, before int) (string, int, bool) {
	for i := min(before, len(h.entries)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(h.entries[i]), strings.ToLower(text)) {
			return h.entries[i], i, true
		}
	}
	return "", 0, false
}
