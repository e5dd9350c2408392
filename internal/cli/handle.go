package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/recall"
)

// withSession puts the session that the first handle names before it, where a
// session was left out: furl:ID/12.0 alone means furl:12.0 of session ID. A
// name that could be a file's stays one unless it is alone.
func withSession(args []string) []string {
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

// noBlock says in the user's words that a handle names nothing here.
func (t *target) noBlock(handle string, err error) error {
	h, bad := recall.ParseHandle(handle)
	switch {
	case bad != nil || !errors.Is(err, furl.ErrNotOnPath):
		return err
	case h.Session != "" && h.Session != t.ID():
		return fmt.Errorf("%s is of another session than %s", h, t.name())
	}
	what := "no message"
	if h.Block >= 0 {
		what = "no such block"
	}
	return fmt.Errorf("%s has %s %s; furl show prints the numbers of its messages, furl search finds handles", t.name(), what, recall.HandleOf(h.Pos()).String())
}
