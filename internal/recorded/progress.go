package recorded

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/replay"
)

// Progress is how far a replay is through its files. A nil one counts nothing.
type Progress struct {
	files, total int   // reached, of all
	bytes, all   int64 // of the files before the current one, of all
	current      int64 // bytes of the current file
	sizes        map[string]int64
	started      time.Time
}

// CountFiles lists the files to replay and their sizes, without reading them.
func CountFiles(paths []string, skip func(string) bool) *Progress {
	p := &Progress{sizes: make(map[string]int64), started: time.Now()}
	add := func(path string, fi fs.FileInfo) {
		p.sizes[path] = fi.Size()
		p.total++
		p.all += fi.Size()
	}
	for _, root := range paths {
		if fi, err := os.Stat(root); err != nil || !fi.IsDir() {
			if err == nil {
				add(root, fi)
			}
			continue
		}
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil: // the replay reports it
			case path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
				if d.IsDir() {
					return fs.SkipDir
				}
			case d.Type().IsRegular() && !skip(path):
				if fi, err := d.Info(); err == nil {
					add(path, fi)
				}
			}
			return nil
		})
	}
	return p
}

// next moves on to a file.
func (p *Progress) next(path string) {
	if p == nil {
		return
	}
	if size, ok := p.sizes[path]; ok {
		p.files++
		p.bytes += p.current
		p.current = size
	}
}

// Before the first estimate of the time left. The first files say little.
const (
	leastTime  = 2 * time.Second
	leastShare = 0.03
)

// Line describes the progress: the files, the time that the rest is likely to take,
// and the current file.
func (p *Progress) Line(at replay.Progress, now time.Time) string {
	file := visible.Line(filepath.Base(at.File))
	if p.files == 0 || at.Total <= 0 { // standard input
		return "replaying " + file
	}
	done := float64(p.bytes) + float64(p.current)*float64(at.Done)/float64(at.Total)
	share := 0.0
	if p.all > 0 {
		share = min(done/float64(p.all), 1)
	}
	const cells = 20
	full := int(cells * share)
	left := ""
	if took := now.Sub(p.started); took >= leastTime && share >= leastShare {
		left = ", " + Roughly(time.Duration(float64(took)*(1-share)/share)) + " left"
	}
	return fmt.Sprintf("%s%s file %s of %s%s: %s", strings.Repeat("█", full), strings.Repeat("░", cells-full), numbers.Thousands(p.files), numbers.Thousands(p.total), left, file)
}

// Roughly writes a duration in one unit: 40 s, 3 min, 2 h.
func Roughly(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", max(1, int(d.Round(time.Second).Seconds())))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Round(time.Hour).Hours()))
}
