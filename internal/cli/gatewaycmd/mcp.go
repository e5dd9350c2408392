package gatewaycmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/follow"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/mcpserver"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/models"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// mcpFlags are the flags of furl mcp.
type mcpFlags struct {
	cmdline.StoreFlags
	listen, tokenEnv, project, level, printConfig string
	follow                                        bool
	folders                                       []string
	interval, settle                              time.Duration // of the follower; 0: its defaults
	pause                                         int           // the same
}

// MCPCommand returns furl mcp.
func MCPCommand(p cmdline.Program) *cobra.Command {
	f := mcpFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Run an MCP server for recall from sessions",
		Long: `Runs an MCP server with which agents search the sessions of the store. Its tools are
memory_search, memory_get, memory_pin, memory_unpin, memory_restore, session_list and
context_status; mcp.operations in the configuration chooses what it may change. An agent
starts it and talks to it on standard input and output. --print-config prints the
entry for an agent's configuration. Logs go to standard error.

With --follow, it imports the recordings of the agents on this machine in the
background, and what agents add to them while they work. If several furl mcp run,
one of them does this.

With --listen, it serves the streamable HTTP transport at /mcp instead. On addresses
other than loopback it requires a bearer token (--token-env).`,
		Example: `  furl mcp --print-config claude
  furl mcp --follow
  furl mcp --follow --listen 127.0.0.1:7411
  claude mcp add --scope user furl -- furl mcp --follow`,
		Args: cmdline.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.printConfig != "" {
				return f.printEntry(cmd)
			}
			return f.run(cmd)
		},
	}
	f.Add(cmd)
	fl := cmd.Flags()
	_ = fl.MarkHidden("json")
	fl.BoolVar(&f.follow, "follow", false, "import recordings in the background, also while they grow (default that of the configuration)")
	fl.StringSliceVar(&f.folders, "folder", nil, "follow this `folder` instead of those of the agents; may be repeated")
	fl.StringVar(&f.project, "project", "", "`folder` whose sessions are preferred (default the working folder)")
	fl.StringVar(&f.listen, "listen", "", "serve HTTP on this `address` instead of standard input")
	fl.StringVar(&f.tokenEnv, "token-env", "", "environment `variable` with the bearer token for --listen (default that of the configuration)")
	fl.StringVar(&f.level, "log", "warn", "log `level`: debug, info, warn, error")
	fl.StringVar(&f.printConfig, "print-config", "", "print the entry for this `agent` and exit: "+strings.Join(agents.MCPAgents(), ", "))
	cmdline.Complete(cmd, "log", func() []string { return []string{"debug", "info", "warn", "error"} })
	cmdline.Complete(cmd, "print-config", agents.MCPAgents)
	return cmd
}

// mcpServerCommand is the command with which agents start the server: furl by its name
// if the shell finds this program by it, else by its path.
func mcpServerCommand() []string {
	name := "furl"
	if own, err := os.Executable(); err == nil {
		found, err := exec.LookPath(name)
		if err == nil {
			found, err = filepath.EvalSymlinks(found)
		}
		if real, e := filepath.EvalSymlinks(own); e != nil || err != nil || real != found {
			name = own
		}
	}
	return []string{name, "mcp", "--follow"}
}

// printEntry prints the entry on standard output, so that it can be redirected, and
// where it belongs on standard error.
func (f *mcpFlags) printEntry(cmd *cobra.Command) error {
	e, ok := agents.MCP(f.printConfig, mcpServerCommand())
	if !ok {
		return cmdline.BadUsage("unknown agent %q: choose one of %s", f.printConfig, strings.Join(agents.MCPAgents(), ", "))
	}
	errs := cmd.ErrOrStderr()
	switch {
	case e.Format == "file":
		fmt.Fprintf(errs, "%s has no MCP client. Save this skill as %s:\n", e.Agent, cmdline.Printable(e.File))
	case e.Command != nil:
		words := make([]string, len(e.Command))
		for i, word := range e.Command {
			if words[i] = word; !strings.HasPrefix(word, "--") { // an option stays one
				words[i] = visible.QuoteArg(word)
			}
		}
		fmt.Fprintf(errs, "For %s, run: %s\nOr add this to %s:\n", e.Agent, cmdline.Printable(strings.Join(words, " ")), cmdline.Printable(e.File))
	default:
		fmt.Fprintf(errs, "For %s, add this to %s:\n", e.Agent, cmdline.Printable(e.File))
	}
	_, err := io.WriteString(cmd.OutOrStdout(), e.Text)
	return err
}

// protocolOut writes each message of the protocol at once.
type protocolOut struct{ cmdline.Flushed }

func (protocolOut) Close() error { return nil }

func (f *mcpFlags) run(cmd *cobra.Command) (err error) {
	membudget.SoftLimit(membudget.CommandMemory)
	c, file, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return cmdline.BadUsage("invalid --log %q: choose debug, info, warn or error", f.level)
	}
	f.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
	was := log.Writer() // libraries log there
	log.SetOutput(serving.LibraryLog(f.Log).Writer())
	defer log.SetOutput(was)
	token, err := f.token(c)
	if err != nil {
		return err
	}
	store, err := f.Open(cmd.Context())
	if err != nil {
		return err
	}
	defer workspace.CloseStore(store, &err)
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	o, err := f.SessionOptions(c, file)
	if err != nil {
		return err
	}
	o.LastWindow, o.MaxMemory, o.KeepBytes, o.Logger = true, membudget.SessionMemory, mcpKeep, f.Log
	if o.Vectors, err = workspace.VectorsOf(store, c); err != nil {
		return err
	}
	all, err := session.New(store, o)
	if err != nil {
		return err
	}
	own := mcpserver.Options{Project: f.workingFolder(), Version: workspace.Version(), Logger: f.Log}
	own.Compactor = func(s *session.Session) operation.Compactor { return models.CompactorOf(c, s) }
	if own.Operations, err = modelOperations(c); err != nil {
		return err
	}
	accesses, err := workspace.OpenAudit(c, file)
	if err != nil {
		return err
	}
	if accesses != nil {
		defer func() { err = errors.Join(err, accesses.Close()) }()
		own.Access = auditMCP(accesses, c.Audit.Required, f.Log)
	}
	group, working := errgroup.WithContext(ctx)
	if f.follow || c.MCP.Follow && !cmd.Flags().Changed("follow") {
		follower, err := f.follower(working, store, c)
		if err != nil {
			return err
		}
		own.Importing = func() string { return importing(follower.Status()) }
		group.Go(func() error { return follower.Run(working) })
		if o.Vectors != nil {
			group.Go(func() error { return ended(working, o.Vectors.Run(working)) })
		}
	}
	server := mcpserver.New(all, &own)
	group.Go(func() error { return serving.WhenIdle(working, all) })
	group.Go(func() error {
		defer cancel()
		if f.listen != "" {
			return f.serveHTTP(working, cmd, server.Handler(mcpserver.HTTPOptions{Token: token, Hosts: c.MCP.Hosts, Origins: c.MCP.Origins}))
		}
		return ended(working, server.Serve(working, io.NopCloser(bufio.NewReader(cmd.InOrStdin())), protocolOut{cmdline.Flushed{Writer: cmd.OutOrStdout()}}))
	})
	return group.Wait()
}

// mcpKeep is how many bytes of unused sessions stay in memory: searches need none.
const mcpKeep = 32 << 20

// ended returns nil if ctx has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// workingFolder returns the folder whose sessions are preferred. A home folder or the
// root has no sessions of its own, but would be the parent of all projects.
func (f *mcpFlags) workingFolder() string {
	dir, err := filepath.Abs(cmp.Or(f.project, "."))
	if err != nil {
		return ""
	}
	if f.project == "" {
		if home, err := os.UserHomeDir(); err == nil && dir == home || dir == filepath.Dir(dir) {
			return ""
		}
	}
	return dir
}

// token returns the bearer token that HTTP clients must send, "" if none.
func (f *mcpFlags) token(c *config.Config) (string, error) {
	if f.listen == "" {
		return "", nil
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return "", cmdline.BadUsage("invalid --listen %q: expected an address such as 127.0.0.1:7411", f.listen)
	}
	variable := cmp.Or(f.tokenEnv, c.MCP.TokenEnv)
	token := ""
	if variable != "" {
		if token = os.Getenv(variable); token == "" {
			return "", fmt.Errorf("$%s has no token; set it where furl runs", variable)
		}
	}
	ip, err := netip.ParseAddr(host)
	if token == "" && host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return "", cmdline.BadUsage("--listen %s: other machines could read every session; name a bearer token with --token-env, or listen on 127.0.0.1", f.listen)
	}
	return token, nil
}

// mcpShutdown is the time for requests in progress when the server stops.
const mcpShutdown = 5 * time.Second

func (f *mcpFlags) serveHTTP(ctx context.Context, cmd *cobra.Command, handler http.Handler) error {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: the address is in use; choose another one with --listen", f.listen)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", f.listen, err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "furl mcp listens on %s%s\n", launch.ReachedAt(ln.Addr().String()), mcpserver.Path)
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: serving.HeaderTimeout, IdleTimeout: serving.IdleTimeout, MaxHeaderBytes: serving.MaxHeader,
		ErrorLog: serving.LibraryLog(f.Log),
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		serving.Drain(srv, mcpShutdown)
	}()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	<-stopped
	return nil
}

// importing says that results may be incomplete, "" if all recordings are imported.
func importing(s follow.Status) string {
	if s.First || s.Elsewhere {
		return ""
	}
	if s.Found == 0 {
		return "Recordings are still being imported, so results may be incomplete."
	}
	return fmt.Sprintf("Recordings are still being imported (%d of %d files), so results may be incomplete.", s.Done, s.Found)
}

// isEmpty reports whether a store has no sessions.
func isEmpty(ctx context.Context, store storage.Store) (bool, error) {
	for _, err := range store.Sessions(ctx, tenants.Local, storage.SessionQuery{Limit: 1}) {
		return false, err
	}
	return true, nil
}

// modelOperations returns what the configuration allows the model of an MCP client.
func modelOperations(c *config.Config) ([]*operation.Operation, error) {
	names := c.MCP.Operations
	if names == nil {
		names = mcpserver.DefaultOperations()
	}
	list, err := mcpserver.OperationsFor(names)
	if err != nil {
		return nil, fmt.Errorf("mcp.operations: %w", err)
	}
	return list, nil
}
