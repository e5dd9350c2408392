package cmdline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/recall"
)

// WithSession adds the session argument if it was omitted and the first handle names
// the session: furl:ID/12.0 becomes ID furl:12.0. With several arguments, only a
// first argument that starts with "furl:" is a handle; others may be file names.
func WithSession(args []string) []string {
	if len(args) == 0 || len(args) > 1 && !strings.HasPrefix(args[0], "furl:") {
		return args
	}
	h, err := recall.ParseHandle(args[0])
	if err != nil || h.Session == "" {
		return args
	}
	id := string(h.Session)
	h.Session = ""
	return append([]string{id, h.String()}, args[1:]...)
}

// NoBlock returns an error for a handle that the session does not have.
func (t *Target) NoBlock(handle string, err error) error {
	h, bad := recall.ParseHandle(handle)
	switch {
	case bad != nil || !errors.Is(err, furl.ErrNotOnPath):
		return err
	case h.Session != "" && h.Session != t.ID():
		return fmt.Errorf("%s is a handle of another session than %s", h, t.Name())
	}
	what := "no message"
	if h.Block >= 0 {
		what = "no such block"
	}
	return fmt.Errorf("%s has %s %s; furl show prints record numbers, furl search prints handles", t.Name(), what, recall.HandleOf(h.Pos()).String())
}

// Own returns a handle without its session if that is this one or the beginning of
// its id, as furl search prints it.
func (t *Target) Own(handle string) string {
	h, err := recall.ParseHandle(handle)
	if err != nil || !strings.HasPrefix(string(t.ID()), string(h.Session)) {
		return handle
	}
	h.Session = ""
	return h.String()
}
