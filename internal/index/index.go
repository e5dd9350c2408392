// Package index remembers, in a folder of furl's data, what furl has computed from files that have
// not changed since: so that they are not read again. Losing it costs time only. It may be deleted at
// any time, also while furl uses it; damaged and outdated entries are ignored.
//
//	x := index.Open(dir)
//	defer x.Close()
//	f := x.File(path)
//	data, ok := f.Get("replay", key)
//	if !ok {
//		data = … // read the file
//		f.Put("replay", key, data)
//		f.Save()
//	}
//
// # What is in it
//
// Each file has one entry file, named by the hash of its path. Only its path and sizes are readable
// there. What Put gets is encrypted with a key made of bytes of the file itself, from its start, its
// middle and its end. So the index tells nothing to a reader who does not have the file, and nothing
// at all once the file is deleted or changed. It is encrypted because names of models and tools are in it:
// callers put no text of conversations there all the same.
//
// # When an entry is valid
//
// While the file has the same path, size, time of change in nanoseconds, inode and times of its
// inode, and the same bytes in the key; the write-ahead log next to it, which SQLite databases have, is
// the same; so are the files and folders of Uses; and the same build of furl reads it.
package index

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// Format is the number of the layout of entry files.
const Format = 1

const (
	// racy is how old the newest change of a file must be. A later change may have the same time.
	racy = 2 * time.Second
	// maxPerSection is how many entries a section has for one file; the oldest are dropped.
	maxPerSection = 8
	// maxEntry, maxFile and maxTotal are in bytes. What is larger is not kept; in total, the entry
	// files that were written first are dropped.
	maxEntry = 32 << 20
	maxFile  = 64 << 20
	maxTotal = 512 << 20
	maxCount = 20_000 // entry files
	// tidyEach is how often what belongs to deleted files is dropped, if nothing is written.
	tidyEach = 24 * time.Hour
	// maxTemp is the age at which a temporary file belongs to no process.
	maxTemp = time.Hour
)

// Folder is the name of the index in furl's data folder.
const Folder = "index"

// Names in the folder.
const (
	suffix     = ".idx"
	tempPrefix = "tmp-"
	tidied     = "tidied" // its time says when the folder was tidied
)

// Index is the entries in one folder. A nil one has none and keeps none. Its methods may be called
// concurrently, those of one File may not.
type Index struct {
	dir   string
	build [sha256.Size]byte

	mu    sync.Mutex
	wrote bool
	trees map[string]stamp // of folders that are in Uses
}

// Open returns the index in a folder. The folder is made when something is written. If dir is empty or
// the program cannot be told from others, Open returns nil.
func Open(dir string) *Index {
	build, ok := buildOf()
	if dir == "" || !ok {
		return nil
	}
	return &Index{dir: dir, build: build, trees: make(map[string]stamp)}
}

// buildOf identifies the program: by what it was built from, and by its file, since a build in
// development says nothing of it.
var buildOf = sync.OnceValues(func() (build [sha256.Size]byte, ok bool) {
	exe, err := os.Executable()
	if err != nil {
		return build, false
	}
	st := stampOf(exe)
	if !st.exists() {
		return build, false
	}
	info := ""
	if b, ok := debug.ReadBuildInfo(); ok {
		info = b.String()
	}
	return sha256.Sum256([]byte(info + "\x00" + st.String())), true
})

// Close drops the entries of files that do not exist any more, and what is too much.
func (x *Index) Close() {
	if x == nil {
		return
	}
	last, err := os.Stat(filepath.Join(x.dir, tidied))
	if !x.wrote && (errors.Is(err, fs.ErrNotExist) || err == nil && time.Since(last.ModTime()) < tidyEach) {
		return
	}
	x.tidy(time.Now())
}

// tidy is Close at a time. Other processes may write and tidy at the same time.
func (x *Index) tidy(now time.Time) {
	list, err := os.ReadDir(x.dir)
	if err != nil {
		return
	}
	type entryFile struct {
		path string
		info fs.FileInfo
	}
	var kept []entryFile
	var total int64
	for _, d := range list {
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		path := filepath.Join(x.dir, d.Name())
		switch {
		case strings.HasPrefix(d.Name(), tempPrefix):
			if now.Sub(info.ModTime()) > maxTemp {
				_ = os.Remove(path)
			}
		case filepath.Ext(path) != suffix:
		case !x.wanted(path):
			_ = os.Remove(path)
		default:
			kept, total = append(kept, entryFile{path, info}), total+info.Size()
		}
	}
	slices.SortFunc(kept, func(a, b entryFile) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	count := len(kept)
	for _, f := range kept {
		if total <= maxTotal && count <= maxCount {
			break
		}
		_ = os.Remove(f.path)
		total, count = total-f.info.Size(), count-1
	}
	marker := filepath.Join(x.dir, tidied)
	if os.Chtimes(marker, now, now) != nil {
		_ = os.WriteFile(marker, nil, 0o600)
	}
}

// wanted reports whether an entry file is in the current layout and its file still exists. That of another
// build is wanted for a while: two versions may be in use.
func (x *Index) wanted(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true // another process has just removed it, or it will be replaced
	}
	defer f.Close()
	h, _, err := readHeader(f)
	if err != nil {
		return false
	}
	_, err = os.Stat(h.Path)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}

// nameOf is the name of the entry file of a path.
func nameOf(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16]) + suffix
}

// Files returns the paths of the files of the index in a folder, and their bytes.
func Files(dir string) (paths []string, size int64) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0
	}
	for _, d := range list {
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if name := d.Name(); filepath.Ext(name) == suffix || strings.HasPrefix(name, tempPrefix) || name == tidied {
			paths, size = append(paths, filepath.Join(dir, name)), size+info.Size()
		}
	}
	return paths, size
}
