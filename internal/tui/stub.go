// Package tui is a stub.
package tui

import (
	"context"
	"io"

	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/chat"
)

// Options are options.
type Options struct {
	In      io.Reader
	Out     io.Writer
	History string
	First   []agent.Input
}

// Run runs.
func Run(context.Context, chat.Conversation, Options) error { return nil }
