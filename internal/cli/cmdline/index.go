package cmdline

import (
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/index"
)

// IndexFlag is the flag --no-index.
type IndexFlag struct{ off bool }

// Add adds the flag to a command.
func (f *IndexFlag) Add(fl *pflag.FlagSet) {
	fl.BoolVar(&f.off, "no-index", false, "read all files, and keep nothing in the index of recordings")
}

// Open returns the index of recordings in the data folder: nil, which knows nothing, if the flag is set or
// the folder has no place.
func (f *IndexFlag) Open() *index.Index {
	if f.off {
		return nil
	}
	dir, err := config.DataDir()
	if err != nil {
		return nil
	}
	return index.Open(filepath.Join(dir, index.Folder))
}
