package follow

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// state remembers which files were imported.
type state struct {
	name  string
	log   *slog.Logger
	files map[string]seen
	dirty bool
	saved time.Time
}

// stateFile is the format of the file.
type stateFile struct {
	Version int                  `json:"version"`
	Files   map[string]stateSeen `json:"files"`
}

type stateSeen struct {
	Size int64     `json:"size"`
	At   time.Time `json:"at"`
	Held bool      `json:"held,omitempty"`
}

// stateVersion changes when files must be read again.
const stateVersion = 1

// saveEvery is how often the state is saved while files change.
const saveEvery = 10 * time.Second

// loadState reads the state. Without a readable file, all files are read again, which
// costs time only.
func loadState(name string, forget bool, log *slog.Logger) *state {
	s := &state{name: name, log: log, files: make(map[string]seen), saved: time.Now()}
	if name == "" || forget {
		return s
	}
	var file stateFile
	data, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil || file.Version != stateVersion {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("cannot read which recordings were imported; reading all", "error", err)
		}
		return s
	}
	for path, f := range file.Files {
		if _, err := os.Stat(path); err == nil {
			s.files[path] = seen{f.Size, f.At, f.Held}
		}
	}
	return s
}

func (s *state) set(path string, f seen) { s.files[path], s.dirty = f, true }

func (s *state) saveSometimes() {
	if time.Since(s.saved) >= saveEvery {
		s.save()
	}
}

// save writes the file, by renaming a new one.
func (s *state) save() {
	if s.name == "" || !s.dirty {
		return
	}
	file := stateFile{Version: stateVersion, Files: make(map[string]stateSeen, len(s.files))}
	for path, f := range s.files {
		file.Files[path] = stateSeen{f.size, f.at, f.held}
	}
	data, err := json.Marshal(file)
	if err == nil {
		err = replace(s.name, data)
	}
	if err != nil {
		s.log.Warn("cannot save which recordings were imported", "error", err)
	}
	s.dirty, s.saved = false, time.Now()
}

func replace(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	w, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(w.Name())
	_, err = w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return os.Rename(w.Name(), name)
}
