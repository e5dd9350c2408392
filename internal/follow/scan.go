package follow

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/furlhq/furl/transcript"
)

// seen is what is known of a file that was read.
type seen struct {
	size int64
	at   time.Time // when it was last changed
	// held reports that its last step was not imported, because the file had just
	// changed.
	held bool
}

// candidate is a file, or a folder that stores a session in many files, that has
// changed.
type candidate struct {
	path   string
	seen   seen
	folder bool
}

// unitCheck is when a folder of many files was looked at.
type unitCheck struct {
	at   time.Time
	last seen
}

// unitEvery is how often folders that store a session in many files are looked at: each
// look costs as much as they have files.
const unitEvery = time.Minute

// changed returns what has changed since it was read.
func (f *Follower) changed() []candidate {
	var found []candidate
	now := time.Now()
	reader := transcript.Reader{
		Skip: func(path string) bool {
			info, err := os.Stat(path)
			if err == nil && f.isDue(path, seen{size: info.Size(), at: info.ModTime()}, now) {
				found = append(found, candidate{path: path, seen: seen{size: info.Size(), at: info.ModTime()}})
			}
			return true
		},
		SkipFolder: func(dir string) bool {
			unit := f.units[dir]
			if now.Sub(unit.at) >= unitEvery {
				unit = unitCheck{now, seenOf(dir)}
				f.units[dir] = unit
			}
			if f.isDue(dir, unit.last, now) {
				found = append(found, candidate{path: dir, seen: unit.last, folder: true})
			}
			return true
		},
	}
	for _, folder := range f.o.Folders {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			continue // not yet
		}
		for range reader.Walk(folder) { // everything is skipped; folders that cannot be read are ignored
			continue
		}
	}
	return found
}

// isDue reports whether a file has changed since it was read and may be read now.
func (f *Follower) isDue(path string, now seen, at time.Time) bool {
	was, known := f.state.files[path]
	if now.size == 0 || known && was.size == now.size && was.at.Equal(now.at) && (!was.held || at.Sub(now.at) < f.o.Settle) {
		return false
	}
	return !at.Before(f.next[path])
}

// seenOf sums up the files of a folder.
func seenOf(dir string) (sum seen) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum.size += info.Size()
			if info.ModTime().After(sum.at) {
				sum.at = info.ModTime()
			}
		}
		return nil
	})
	return sum
}
