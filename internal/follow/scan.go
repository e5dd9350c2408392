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

// candidate is a file, or a folder or database that stores whole sessions, that has
// changed.
type candidate struct {
	path   string
	seen   seen
	folder bool
}

// unitCheck is when a folder of many files, or a database, was looked at.
type unitCheck struct {
	at   time.Time
	last seen
}

// unitEvery is how often folders that store a session in many files are looked at, and databases:
// each look costs as much as they have files, and a database is read as a whole.
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
	for _, place := range f.o.Places() {
		info, err := os.Stat(place)
		switch {
		case err != nil: // not yet
		case info.IsDir():
			for range reader.Walk(place) { // everything is skipped; folders that cannot be read are ignored
				continue
			}
		default:
			reader.SkipFolder(place)
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

// seenOf sums up the files of a folder, or a database and its write-ahead log.
func seenOf(path string) (sum seen) {
	if info, err := os.Stat(path + "-wal"); err == nil {
		sum = seen{size: info.Size(), at: info.ModTime()}
	}
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
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
