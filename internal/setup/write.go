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

	"github.com/furlhq/furl/internal/filelock"
)

// ErrChanged is wrapped by the error of a plan that no longer fits, because a file or the
// record of the setup was changed after the plan was made.
var ErrChanged = errors.New("another program changed it meanwhile: run the command again")

// LockName returns the name of the file that processes lock while they apply a plan.
func LockName(folder string) string { return folder + ".lock" }

// Apply makes the changes. Backups and the record are written first. Other processes that
// apply a plan wait. If the files or the record are not those of the plan any more, nothing
// is changed, and the error wraps ErrChanged.
func (p *Plan) Apply() (err error) {
	if err := os.MkdirAll(filepath.Dir(p.folder), 0o700); err != nil {
		return err
	}
	unlock, err := filelock.Lock(LockName(p.folder))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := p.current(); err != nil {
		return err
	}
	if !p.undo {
		if err := p.save(); err != nil {
			return fmt.Errorf("keep a backup: %w", err)
		}
	}
	for i := range p.Files {
		if err := p.Files[i].write(); err != nil {
			return err
		}
	}
	if p.undo || len(p.record.Files) == 0 {
		return p.forget()
	}
	return nil
}

// current reports whether the record and the files are as they were when the plan was made.
func (p *Plan) current() error {
	_, text, err := readRecord(p.folder, p.name)
	if err != nil {
		return err
	}
	if !bytes.Equal(text, p.planned) {
		return fmt.Errorf("the setup of %s: %w", p.name, ErrChanged)
	}
	for i := range p.Files {
		if err := p.Files[i].current(); err != nil {
			return err
		}
	}
	return nil
}

// save writes the backups and the record.
func (p *Plan) save() error {
	if err := os.MkdirAll(p.folder, 0o700); err != nil {
		return err
	}
	p.record.Files = nil
	for i := range p.Files {
		f := &p.Files[i]
		if len(f.changes) == 0 && !f.whole {
			continue
		}
		r := fileRecord{
			Path: f.target, Existed: f.base.existed, Before: digest(f.base.data), After: digest(f.After),
			Others: f.base.others, Dirs: f.base.dirs, Changes: f.changes,
		}
		if len(r.Dirs) == 0 {
			r.Dirs = missingFolders(filepath.Dir(f.target))
		}
		if f.base.existed {
			r.Backup = fmt.Sprintf("%s.%d.backup", p.name, i+1)
			if err := writeFile(filepath.Join(p.folder, r.Backup), f.base.data, 0o600); err != nil {
				return err
			}
		}
		p.record.Files = append(p.record.Files, r)
	}
	data, err := json.MarshalIndent(p.record, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(recordName(p.folder, p.name), append(data, '\n'), 0o600)
}

// tempPattern is the name of files that are being written. Those of a process that was
// killed stay until the setup is undone.
const tempPattern = ".furl-setup-*"

func removeTemporary(folder string) {
	names, _ := filepath.Glob(filepath.Join(folder, tempPattern))
	for _, name := range names {
		_ = os.Remove(name)
	}
}

// forget removes the record and its backups.
func (p *Plan) forget() error {
	removeTemporary(p.folder)
	for _, r := range p.record.Files {
		removeTemporary(filepath.Dir(r.Path))
		// The inner folders first. Those with other files stay.
		for _, dir := range slices.Backward(r.Dirs) {
			_ = os.Remove(dir)
		}
	}
	if err := os.Remove(recordName(p.folder, p.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	backups, _ := filepath.Glob(filepath.Join(p.folder, p.name+".*.backup"))
	for _, name := range backups {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	_ = os.Remove(p.folder) // stays if it has other setups
	return nil
}

// missingFolders returns the folders of a path that do not exist, outer ones first.
func missingFolders(dir string) (missing []string) {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return missing
		}
		missing = slices.Insert(missing, 0, dir)
		dir = filepath.Dir(dir)
	}
}

// current reports whether the file is as it was when the plan was made.
func (f *File) current() error {
	now, err := os.ReadFile(f.target)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !f.Exists:
	case err != nil:
		return fmt.Errorf("write %s: %w", f.Path, err)
	case !f.Exists || !bytes.Equal(now, f.Before):
		return fmt.Errorf("write %s: %w", f.Path, ErrChanged)
	}
	return nil
}

// write makes the change of one file.
func (f *File) write() error {
	if !f.differs() {
		return nil
	}
	// Agents write their files at any time, without furl's lock.
	if err := f.current(); err != nil {
		return err
	}
	if f.Remove {
		return os.Remove(f.target)
	}
	if err := os.MkdirAll(filepath.Dir(f.target), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", f.Path, err)
	}
	if err := writeFile(f.target, f.After, f.mode); err != nil {
		return fmt.Errorf("write %s: %w", f.Path, err)
	}
	return nil
}

// writeFile replaces a file atomically. Its owner stays if the user may set it.
func writeFile(path string, data []byte, mode fs.FileMode) error {
	w, err := os.CreateTemp(filepath.Dir(path), tempPattern)
	if err != nil {
		return err
	}
	defer os.Remove(w.Name()) // fails once it has its real name
	_, err = w.Write(data)
	keepOwner(w, path)
	if err := errors.Join(err, w.Chmod(mode), w.Sync(), w.Close()); err != nil {
		return err
	}
	if err := os.Rename(w.Name(), path); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // not possible on every system
		_ = dir.Close()
	}
	return nil
}
