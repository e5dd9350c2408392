package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// record says what a setup has changed. It is written before the files, so that a
// setup that was interrupted can be undone.
type record struct {
	Agent string       `json:"agent"`
	Files []fileRecord `json:"files"`
}

// fileRecord is what was changed in a file. Digests are SHA-256 in hex.
type fileRecord struct {
	Path    string   `json:"path"` // without links
	Existed bool     `json:"existed"`
	Backup  string   `json:"backup,omitempty"` // name in the folder of records
	Before  string   `json:"before"`
	After   string   `json:"after"`
	Others  []string `json:"others,omitempty"` // of what earlier setups wrote
	Dirs    []string `json:"dirs,omitempty"`   // folders that were made, outer ones first
	Changes []change `json:"changes,omitempty"`
}

func recordName(folder, name string) string { return filepath.Join(folder, name+".json") }

// readRecord reads the record of a setup, also as the text of its file. If there is none,
// both are empty.
func readRecord(folder, name string) (r *record, text []byte, err error) {
	r = &record{Agent: name}
	text, err = os.ReadFile(recordName(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the record of the setup: %s: %w", recordName(folder, name), err)
	}
	return r, text, nil
}

// Done returns the names of the setups that were made.
func Done(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names, err
}

func (r *record) file(path string) *fileRecord {
	i := slices.IndexFunc(r.Files, func(f fileRecord) bool { return f.Path == path })
	if i < 0 {
		return nil
	}
	return &r.Files[i]
}

// undo returns the content of a file without furl's changes. If nothing else was
// changed since, that is the content before the setup. Otherwise only furl's values are
// removed; left says which ones it could not remove.
func (r *fileRecord) undo(folder string, f *File) (b base, left []string, err error) {
	b = base{data: f.Before, existed: f.Exists, dirs: r.Dirs}
	now := digest(f.Before)
	if !f.Exists {
		return b, nil, nil // the user removed it
	}
	if now == r.Before && r.Existed {
		return b, nil, nil
	}
	var original []byte
	backup := false
	if r.Existed {
		original, err = os.ReadFile(filepath.Join(folder, r.Backup))
		backup = err == nil && digest(original) == r.Before
	}
	if (now == r.After || slices.Contains(r.Others, now)) && (backup || !r.Existed) {
		b.data, b.existed = original, r.Existed
		return b, nil, nil
	}
	if len(r.Changes) == 0 { // a whole file
		return b, []string{f.Path + " was changed since furl setup wrote it, so it stays: remove it yourself"}, nil
	}
	d, err := parse(f.Path, f.Before)
	if err != nil {
		return b, nil, fmt.Errorf("%s: %w; correct the file, then run furl setup again", f.Path, err)
	}
	for _, c := range slices.Backward(r.Changes) {
		if err := d.revert(c); err != nil {
			left = append(left, fmt.Sprintf("%s: %s stays: %v", f.Path, strings.Join(c.Path, "."), err))
		}
	}
	b.data = d.bytes()
	if m, ok := d.tree.(map[string]any); ok && len(m) == 0 && onlyBraces(d.data) {
		// Nothing of the user's was in the file.
		switch {
		case !r.Existed:
			b.data, b.existed = nil, false
		case backup && len(bytes.TrimSpace(bytes.TrimPrefix(original, mark))) == 0:
			b.data = original
		}
	}
	return b, left, nil
}

// onlyBraces reports whether a document has no comments.
func onlyBraces(data []byte) bool {
	text := strings.Join(strings.Fields(string(data)), "")
	return text == "" || text == "{}"
}

// Undo plans to undo a setup. The plan has no files if there is none.
func Undo(folder, name string) (*Plan, error) {
	r, text, err := readRecord(folder, name)
	if err != nil {
		return nil, err
	}
	p := &Plan{name: name, folder: folder, record: r, planned: text, undo: true}
	for _, done := range r.Files {
		f, err := openFile(done.Path)
		if err != nil {
			return nil, err
		}
		b, left, err := done.undo(folder, f)
		if err != nil {
			return nil, err
		}
		f.base, f.After, f.Remove = b, b.data, f.Exists && !b.existed
		for _, c := range done.Changes {
			f.own(c.Value)
		}
		p.Notes = append(p.Notes, left...)
		p.Files = append(p.Files, *f)
	}
	return p, nil
}

// IsSetUp reports whether a setup was made and not undone.
func IsSetUp(folder, name string) bool {
	_, err := os.Stat(recordName(folder, name))
	return err == nil
}
