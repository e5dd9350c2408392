package mcptool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/tool"
)

// Server is an MCP server: a command or an address.
type Server struct {
	// Name begins the names of the tools. It has letters, digits, "-" and single "_".
	Name string

	// Command is the program to start, with its Args. Env is added to the minimal
	// environment of the program. Dir is its working folder; if empty, the current one.
	Command string
	Args    []string
	Env     map[string]string
	Dir     string

	// URL is the address of a server with the streamable HTTP transport. Header is
	// added to each request.
	URL    string
	Header http.Header

	// StartTimeout limits the time until the server is ready. If zero, defaults to
	// 30 seconds.
	StartTimeout time.Duration
	// CallTimeout limits the time of one call. If zero, defaults to 10 minutes.
	CallTimeout time.Duration
	// MaxResult limits the size of a result in bytes. If zero, defaults to 10 MB.
	MaxResult int
}

// Limits of what a server lists.
const (
	maxTools       = 512
	maxPages       = 512
	maxDescription = 8 << 10 // bytes
	maxSchema      = 64 << 10
)

// serverName has no "__", which separates it from the name of the tool.
var serverName = lazyregexp.New(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`)

// Check returns an error if the server cannot be connected to by its settings.
func (s *Server) Check() error {
	switch {
	case len(s.Name) > 32 || !serverName.MatchString(s.Name):
		return fmt.Errorf(`invalid name of an MCP server %.40q: expected 1 to 32 letters, digits, "-" and single "_"`, s.Name)
	case (s.Command == "") == (s.URL == ""):
		return fmt.Errorf("MCP server %s: expected a command or a URL, and not both", s.Name)
	case s.Command != "":
		return nil
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("MCP server %s: invalid URL: expected an http or https address", s.Name) // the URL may have a key
	}
	return nil
}

// Client is connected to a server. It is safe for concurrent use.
type Client struct {
	s      Server
	mcp    *mcp.Client
	closed context.Context // ends the calls in progress
	close  context.CancelFunc

	slot  chan struct{} // locks current while it is connected
	conn  *connection   // nil: there is none
	stale atomic.Bool   // the server has changed its list

	mu    sync.Mutex
	tools []tool.Tool // nil: not read
	notes []string
}

// Connect starts the command of a server or connects to its address. It returns when
// the server is ready. ctx limits this step only.
func Connect(ctx context.Context, s Server) (*Client, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	s.Args, s.Env, s.Header = slices.Clone(s.Args), maps.Clone(s.Env), s.Header.Clone()
	s.StartTimeout = cmp.Or(max(0, s.StartTimeout), 30*time.Second)
	s.CallTimeout = cmp.Or(max(0, s.CallTimeout), 10*time.Minute)
	s.MaxResult = cmp.Or(max(0, s.MaxResult), 10_000_000)
	c := &Client{s: s, slot: make(chan struct{}, 1)}
	c.closed, c.close = context.WithCancel(context.Background())
	c.mcp = mcp.NewClient(&mcp.Implementation{Name: "furl", Title: "furl", Version: version()}, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.stale.Store(true) },
	})
	if _, err := c.connected(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// Name returns the name of the server.
func (c *Client) Name() string { return c.s.Name }

// Close ends the calls in progress and the connection. A command is asked to end by
// closing its input, then killed. It returns nil if the client was closed before.
func (c *Client) Close() error {
	c.close()
	c.slot <- struct{}{}
	defer func() { <-c.slot }()
	if c.conn != nil {
		c.conn.end()
		c.conn = nil
	}
	return nil
}

// errClosed is the error of calls after Close.
var errClosed = errors.New("the connection to the MCP server is closed")

// connected returns the connection. If there is none, or the server has ended, it
// connects, once.
func (c *Client) connected(ctx context.Context) (*connection, error) {
	select {
	case c.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-c.slot }()
	if c.closed.Err() != nil {
		return nil, errClosed
	}
	if c.conn != nil {
		if !c.conn.ended() {
			return c.conn, nil
		}
		c.conn.end()
		c.conn = nil
	}
	ctx, cancel := c.limited(ctx, c.s.StartTimeout, errStartTimeout)
	defer cancel()
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	c.stale.Store(true) // the server may have another list after a restart
	return conn, nil
}

var (
	errStartTimeout = errors.New("start timeout")
	errCallTimeout  = errors.New("call timeout")
)

// limited returns a context that ends after a timeout, or when the client is closed.
func (c *Client) limited(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, d, cause)
	ctx, cancelCause := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.closed, func() { cancelCause(errClosed) })
	return ctx, func() {
		stop()
		cancelCause(nil)
		cancel()
	}
}

// call makes one request, or a few that belong together. It describes the error. The
// setting of the name limits the time.
func (c *Client) call(ctx context.Context, what, setting string, limit time.Duration, request func(context.Context, *mcp.ClientSession) error) error {
	conn, err := c.connected(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := c.limited(ctx, limit, errCallTimeout)
	defer cancel()
	err = request(ctx, conn.session)
	if err == nil {
		return nil
	}
	what += " on MCP server " + c.s.Name
	switch cause := context.Cause(ctx); {
	case cause == errCallTimeout:
		return fmt.Errorf("%s: no result after %s; %s sets the limit", what, limit, setting)
	case cause != nil:
		return fmt.Errorf("%s: %w", what, cause)
	}
	switch refusal, ok := errors.AsType[*jsonrpc.Error](err); {
	case !ok: // the connection is broken
		conn.failed.Store(true)
	case refusal.Code != codeRejected:
		return fmt.Errorf("%s: the server refused: %s", what, c.clean(refusal.Message, maxErrorText))
	}
	return fmt.Errorf("%s: %s", what, c.describe(conn, err))
}

// codeRejected is the code with which the SDK reports that an HTTP server was busy or
// away for a moment. The connection goes on.
const codeRejected = -32005
