// Package recorded finds and chooses the sessions that agents have recorded on this machine,
// and imports them into a store.
package recorded

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/usage"
	"github.com/furlhq/furl/transcript"
)

// Strictly is the error of --strict for unreadable records, nil if there are none.
func Strictly(unreadable int) error {
	if unreadable == 0 {
		return nil
	}
	return fmt.Errorf("%s, and --strict is set", numbers.Count(unreadable, "unreadable record"))
}

// Stdin is the name of a recording from standard input.
const Stdin = "standard input"

// NoFile describes the error for a file or folder that does not exist. It returns other
// errors unchanged.
func NoFile(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such file or directory; name a recording or a folder of recordings", path.Path)
	}
	return err
}

// Pick finds a session of a recording by its id, the beginning of its id, or its
// number.
func Pick(rec *transcript.Recording, name, within string) (*transcript.Session, error) {
	if len(rec.Sessions) == 0 {
		return nil, fmt.Errorf("%s has no session", name)
	}
	if within == "" {
		return rec.Sessions[0], nil
	}
	if n, err := strconv.Atoi(within); err == nil && n >= 1 && n <= len(rec.Sessions) {
		return rec.Sessions[n-1], nil
	}
	var ids []string
	for i, s := range rec.Sessions {
		if s.ID != "" && strings.HasPrefix(s.ID, within) {
			return s, nil
		}
		ids = append(ids, fmt.Sprintf("%d %s", i+1, s.ID))
	}
	return nil, usage.Errorf("no session %q in %s: choose one of %s", within, name, strings.Join(ids, ", "))
}
