package mcptool

import (
	"context"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connection is a connection to a server, and its process if it is a command.
type connection struct {
	session *mcp.ClientSession
	process *process      // nil: HTTP
	done    chan struct{} // closed when the connection has ended
	failed  atomic.Bool
}

// ended reports whether calls on the connection cannot succeed.
func (k *connection) ended() bool {
	select {
	case <-k.done:
		return true
	default:
		return k.failed.Load()
	}
}

// end ends the connection and the process, and waits for both.
func (k *connection) end() {
	if k.process != nil {
		k.process.stop()
	}
	_ = k.session.Close() // the connection may be broken
	<-k.done
}

// legacyVersion is the revision of the protocol before server/discover.
const legacyVersion = "2025-11-25"

// dial connects to the server. Some older servers end at a request that they do not
// know before "initialize", so a command that ends at once is started again for their
// revision of the protocol.
func (c *Client) dial(ctx context.Context) (*connection, error) {
	k, err := c.dialVersion(ctx, "")
	if err != nil && k != nil && k.process != nil && ctx.Err() == nil && k.process.endedItself {
		k, err = c.dialVersion(ctx, legacyVersion)
	}
	if err == nil {
		return k, nil
	}
	what := "start MCP server " + c.s.Name
	if c.s.Command == "" {
		what = "connect to MCP server " + c.s.Name
	}
	switch cause := context.Cause(ctx); {
	case cause == errStartTimeout:
		text := ""
		if k != nil && k.process != nil {
			text = c.lastOutput(k.process)
		}
		return nil, fmt.Errorf("%s: not ready after %s; start_timeout sets the limit%s", what, c.s.StartTimeout, text)
	case cause != nil:
		return nil, fmt.Errorf("%s: %w", what, cause)
	}
	return nil, fmt.Errorf("%s: %s", what, c.describe(k, err))
}

// dialVersion connects with a revision of the protocol, "" for the newest. After an
// error the connection, if not nil, has the process that has been stopped.
func (c *Client) dialVersion(ctx context.Context, version string) (*connection, error) {
	k := &connection{done: make(chan struct{})}
	var transport mcp.Transport
	if c.s.Command != "" {
		var err error
		if k.process, err = startProcess(&c.s); err != nil {
			return nil, err
		}
		transport = &mcp.IOTransport{Reader: k.process.stdout(), Writer: k.process, MaxLineLength: -1} // stdout has a limit
	} else {
		transport = &mcp.StreamableClientTransport{Endpoint: c.s.URL, HTTPClient: httpClient(&c.s), MaxEventSize: maxMessage(&c.s), MaxRetries: 2}
	}
	stop := context.AfterFunc(ctx, func() {
		if k.process != nil {
			k.process.kill() // the handshake waits for it
		}
	})
	session, err := c.mcp.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		if session != nil {
			_ = session.Close()
		}
		if k.process != nil {
			k.process.endedItself = k.process.eof.Load() && k.process.hasExited(exitWait) && ctx.Err() == nil
			k.process.stop()
		}
		return k, err
	}
	k.session = session
	go func() { // ends with the connection; end waits for it
		defer close(k.done)
		_ = session.Wait() // the error of the call says why
	}()
	return k, nil
}

// exitWait is how long to wait for the end of a process that has closed its streams.
const exitWait = time.Second

// maxErrorText limits the text of a server in an error, in bytes.
const maxErrorText = 1000

// describe says why a request failed without an answer of the server.
func (c *Client) describe(k *connection, err error) string {
	if k == nil || k.process == nil {
		text := err.Error()
		if u, bad := url.Parse(c.s.URL); bad == nil && c.s.URL != "" {
			text = strings.ReplaceAll(text, c.s.URL, u.Scheme+"://"+u.Host+u.Path) // the query may have a key
			text = strings.ReplaceAll(text, u.Redacted(), u.Scheme+"://"+u.Host+u.Path)
		}
		return c.clean(text, maxErrorText)
	}
	p := k.process
	if reason := p.reason(); reason != "" {
		return reason
	}
	if p.eof.Load() && p.hasExited(exitWait) {
		return "the server ended (" + p.status() + ")" + c.lastOutput(p)
	}
	text := c.clean(err.Error(), maxErrorText)
	if strings.Contains(text, "invalid character") {
		text += "; its standard output must have only messages of the protocol"
	}
	return text + c.lastOutput(p)
}

// lastOutput returns the end of what a process has written to its standard error.
func (c *Client) lastOutput(p *process) string {
	text := c.clean(p.stderr.last(), maxErrorText)
	if text == "" {
		return ""
	}
	return "; its last output: " + text
}

// version is the version of this module in the program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == "github.com/furlhq/furl" && m.Version != "" && m.Version != "(devel)" {
				return m.Version
			}
		}
	}
	return "devel"
}
