package gatewaycmd

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/mcpserver"
)

// auditMCP writes down the calls of an MCP client and their results.
func auditMCP(log *audit.Log, required bool, logger *slog.Logger) func(context.Context, mcpserver.Access) (func(furl.SessionID, error), error) {
	who := cmdline.ShellUser()
	write := func(e audit.Entry) error {
		err := log.Append(e)
		if err != nil {
			logger.Error("audit log cannot be written", "error", err)
		}
		return err
	}
	return func(_ context.Context, a mcpserver.Access) (func(furl.SessionID, error), error) {
		e := audit.Entry{Action: a.Action, Via: "mcp", Who: who, By: string(access.ByShell), Session: a.Session, Target: a.Name}.Allow()
		if write(e) != nil && required {
			return nil, errors.New("the audit log cannot be written; call refused (audit.required is set)")
		}
		return func(session furl.SessionID, err error) {
			result := e.Result(cmdline.ResultOf(err))
			result.Session = cmp.Or(string(session), e.Session)
			_ = write(result) // logged
		}, nil
	}
}
