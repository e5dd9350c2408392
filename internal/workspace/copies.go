package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/tool"
)

// ChatFiles is the folder, in that of furl's data, with the copies of the files that
// the tools of chats have changed. Each session has a folder in it.
const ChatFiles = "chat-files"

// ChatHistory is the file with the lines that were typed in chats.
const ChatHistory = "chat-history"

// CopiesOf is the folder of the copies of a session's files.
func CopiesOf(id furl.SessionID) (string, error) {
	data, err := config.DataDir()
	if err != nil {
		return "", err
	}
	if name := string(id); name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) {
		return "", fmt.Errorf("session %q: its id cannot be the name of a folder", id)
	}
	return filepath.Join(data, ChatFiles, string(id)), nil
}

// DeleteCopies deletes the copies of the files that a session's tools have changed. Only
// sessions of furl chat have some, on the machine where it ran.
func DeleteCopies(key furl.SessionKey) error {
	dir, err := CopiesOf(key.Session)
	if err != nil || key.Tenant != "" {
		return nil // without a folder
	}
	return os.RemoveAll(dir)
}

// RedactCopies removes copies of files that a session's tools have changed, if they contain
// what is redacted; all of them if whole blocks are, since their texts may be anywhere. It
// returns their number.
func RedactCopies(key furl.SessionKey, r *session.Redaction) (int, error) {
	dir, err := CopiesOf(key.Session)
	if err != nil || key.Tenant != "" {
		return 0, nil // without a folder
	}
	return tool.RemoveCopies(dir, r.DryRun, func(text []byte) bool {
		return len(r.Blocks) > 0 || slices.ContainsFunc(r.Patterns, func(p *regexp.Regexp) bool { return p.Match(text) })
	})
}
