package cli

import (
	"context"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/tool"
)

// chatTools are the tools of a chat.
type chatTools struct {
	list []tool.Tool
}

// openTools opens the tools of the working folder and of the configured MCP servers.
func (f *chatFlags) openTools(context.Context, *conversation) (*chatTools, error) {
	return &chatTools{}, nil
}

func (t *chatTools) close() {}

// restoreFiles offers to put back the files that tools have changed since a record, and
// says what was done.
func (t *chatTools) restoreFiles(*slashRun, furl.Seq) string { return "" }
