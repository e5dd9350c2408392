package index

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// stamp is what changes if a file does.
type stamp struct {
	mode     fs.FileMode // the type of the file; 0 and no time: it does not exist
	size     int64
	modified time.Time
	inode    inode
	listing  string // of a folder: the names in it and below
}

func (s stamp) exists() bool { return !s.modified.IsZero() }

func (s stamp) String() string {
	if !s.exists() {
		return "none"
	}
	return fmt.Sprintf("%v %d %d %v %s", s.mode, s.size, s.modified.UnixNano(), s.inode, s.listing)
}

// settled reports whether the file has not changed for so long that each later change has another time.
func (s stamp) settled(now time.Time) bool { return !s.exists() || now.Sub(s.modified) > racy }

// stampOf returns the stamp of a file. A link counts as what it leads to.
func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{mode: info.Mode().Type(), size: info.Size(), modified: info.ModTime(), inode: inodeOf(info)}
}

// treeOf returns the stamp of a file, or that of a folder with all names below it. It reads a folder once.
func (x *Index) treeOf(path string) stamp {
	s := stampOf(path)
	if !s.mode.IsDir() {
		return s
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if known, ok := x.trees[path]; ok {
		return known
	}
	newest, names := time.Time{}, sha256.New()
	_ = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			fmt.Fprintf(names, "%q failed\n", name)
			return nil
		}
		fmt.Fprintf(names, "%q %v\n", name, d.Type())
		if d.IsDir() {
			if info, err := d.Info(); err == nil && info.ModTime().After(newest) {
				newest = info.ModTime()
			}
		}
		return nil
	})
	// The times of a folder change with files that come and go, which their names tell.
	s = stamp{mode: s.mode, modified: newest, listing: hex.EncodeToString(names.Sum(nil))}
	x.trees[path] = s
	return s
}

// identity is a stamp as it is kept.
func (s stamp) identity() string {
	if s.listing != "" {
		s.modified = time.Unix(1, 0)
	}
	return s.String()
}
