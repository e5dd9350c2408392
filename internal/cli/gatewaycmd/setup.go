package gatewaycmd

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/setup"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/internal/workspace"
)

// setupFlags are the flags of furl setup.
type setupFlags struct {
	program      cmdline.Program
	config, url  string
	anthropic    string
	openai       string
	only         []string
	apply, undo  bool
	dryRun, json bool
}

// SetupCommand returns furl setup.
func SetupCommand(p cmdline.Program) *cobra.Command {
	f := setupFlags{program: p}
	cmd := &cobra.Command{
		Use:   "setup [AGENT|service]",
		Short: "Connect an agent to furl, or undo that",
		Long: `Shows what it would change in the configuration files of an agent so that the agent
sends its requests to the gateway (url), recalls from its sessions with furl mcp
(mcp), and shows furl's status line (status). On a terminal it asks whether to make
the change; --apply makes it without asking. Comments, order and all other settings
stay byte for byte.

The gateway must run: furl setup service starts it at login.

A base URL of another provider is only replaced if the gateway forwards to it, because
its key would be sent elsewhere: name it with --anthropic or --openai, as for furl
serve, or set gateway.anthropic or gateway.openai in the configuration.

It keeps a backup in the data folder until --undo, which puts the original file back.
If you have changed the file since, --undo removes only what furl has added. Values
that furl did not write are shown as "…", because they may be credentials.

Without an agent, it lists the agents that it knows and those that are installed.`,
		Example: `  furl setup
  furl setup claude
  furl setup codex --apply --only mcp
  furl setup claude --undo
  furl setup service --apply`,
		Args: cmdline.AtMost(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append(setupNames(), setup.ServiceName), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.apply && f.undo {
				return cmdline.BadUsage("--apply and --undo exclude each other")
			}
			if len(args) == 0 {
				if f.apply || f.undo || f.dryRun || len(f.only) > 0 {
					return cmdline.BadUsage("%s requires an agent: %s, or service", cmd.CommandPath(), strings.Join(setupNames(), ", "))
				}
				return f.list(cmd)
			}
			return f.agent(cmd, args[0])
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.apply, "apply", false, "make the change without asking")
	fl.BoolVar(&f.undo, "undo", false, "undo the setup")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show the change, do not make it or ask")
	fl.StringSliceVar(&f.only, "only", nil, "set only these `parts`: url, mcp, status")
	fl.StringVar(&f.url, "url", "", "`address` of the gateway (default that of the configuration, else http://"+config.DefaultListen+")")
	fl.StringVar(&f.anthropic, "anthropic", "", "base `URL` to which the gateway forwards Messages (default that of the configuration)")
	fl.StringVar(&f.openai, "openai", "", "base `URL` to which the gateway forwards OpenAI's APIs (default that of the configuration)")
	fl.BoolVar(&f.json, "json", false, "print the list as JSON")
	cmdline.AddConfig(fl, &f.config)
	cmdline.Complete(cmd, "only", func() []string { return []string{"url", "mcp", "status"} })
	return cmd
}

// setupNames returns the agents with configuration files that furl edits.
func setupNames() []string {
	return slices.DeleteFunc(agents.ClientNames(), func(name string) bool {
		c, _ := agents.ClientNamed(name)
		return !editable(c)
	})
}

// editable reports whether furl setup edits files of a client.
func editable(c agents.Client) bool {
	return slices.ContainsFunc(c.Files, func(f agents.ConfigFile) bool { return !f.Project })
}

// setupFolder is where records and backups of setups are kept.
func setupFolder() (string, error) {
	dir, err := config.DataDir()
	return filepath.Join(dir, "setup"), err
}

// parts returns the parts that --only names, nil for all.
func (f *setupFlags) parts() (parts []agents.Part, err error) {
	for _, name := range f.only {
		part := agents.Part(strings.TrimSpace(name))
		if !slices.Contains(agents.Parts, part) {
			return nil, cmdline.BadUsage("unknown part %q: choose from url, mcp, status", name)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// gatewayURL is the address of the gateway for agents.
func (f *setupFlags) gatewayURL() (string, error) {
	if f.url != "" {
		if !strings.HasPrefix(f.url, "http://") && !strings.HasPrefix(f.url, "https://") {
			return "", cmdline.BadUsage("invalid --url %q: expected http://HOST:PORT", f.url)
		}
		return strings.TrimSuffix(strings.TrimSuffix(f.url, "/"), "/v1"), nil
	}
	c, _, err := config.Load(f.config, f.program.Policies)
	if err != nil {
		return "", err
	}
	return launch.GatewayAt(cmp.Or(c.Gateway.Listen, config.DefaultListen), c), nil
}

// plan plans the setup, or its undoing, of an agent or of the service.
func (f *setupFlags) plan(folder, name string) (*setup.Plan, error) {
	if f.undo {
		return setup.Undo(folder, name)
	}
	if name == setup.ServiceName {
		return f.service(folder)
	}
	c, _ := agents.ClientNamed(name)
	parts, err := f.parts()
	if err != nil {
		return nil, err
	}
	address, err := f.gatewayURL()
	if err != nil {
		return nil, err
	}
	conf, _, err := config.Load(f.config, f.program.Policies)
	if err != nil {
		return nil, err
	}
	p, err := setup.New(folder, c, &setup.Options{
		URL: address, Command: mcpServerCommand(), Parts: parts,
		Anthropic: cmp.Or(f.anthropic, conf.Gateway.Anthropic, workspace.AnthropicAddress), OpenAI: cmp.Or(f.openai, conf.Gateway.OpenAI, workspace.OpenaiAddress),
	})
	if err != nil {
		return nil, err
	}
	for _, flag := range []struct{ name, given, configured string }{{"anthropic", f.anthropic, conf.Gateway.Anthropic}, {"openai", f.openai, conf.Gateway.OpenAI}} {
		if flag.given != "" && flag.given != flag.configured {
			p.Notes = append(p.Notes, fmt.Sprintf("start the gateway with furl serve --%s %s, or set gateway.%[1]s in the configuration", flag.name, visible.QuoteArg(launch.WithoutPassword(flag.given))))
		}
	}
	return p, nil
}

func (f *setupFlags) service(folder string) (*setup.Plan, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	data, err := config.DataDir()
	if err != nil {
		return nil, err
	}
	data, err = filepath.Abs(data)
	if err != nil {
		return nil, err
	}
	o := &setup.ServiceOptions{OS: runtime.GOOS, Program: self, Data: data}
	if file := cmp.Or(f.config, os.Getenv("FURL_CONFIG")); file != "" {
		if o.Config, err = filepath.Abs(file); err != nil {
			return nil, err
		}
	}
	return setup.Service(folder, o)
}

// agent shows the change for one agent, and makes it.
func (f *setupFlags) agent(cmd *cobra.Command, name string) error {
	out := cmd.OutOrStdout()
	title := "The service"
	if name != setup.ServiceName {
		c, ok := agents.ClientNamed(name)
		switch {
		case ok && !editable(c) && c.PrintsEnv():
			return cmdline.BadUsage("%s reads no address from a configuration file: furl serve --print-env %s prints its settings", c.Title, c.Name)
		case !ok || !editable(c):
			return cmdline.BadUsage("unknown agent %q: choose one of %s, or service", name, strings.Join(setupNames(), ", "))
		}
		name, title = c.Name, c.Title
	}
	folder, err := setupFolder()
	if err != nil {
		return err
	}
	p, err := f.plan(folder, name)
	if err != nil {
		return fmt.Errorf("setup %s: %w", name, err)
	}
	showPlan(out, p)
	if !p.Changes() {
		if f.undo && setup.IsSetUp(folder, name) {
			return f.finish(cmd, p, name, title, folder)
		}
		switch {
		case f.undo:
			fmt.Fprintf(out, "%s is not set up: nothing to undo.\n", title)
		case !setup.IsSetUp(folder, name):
			fmt.Fprintf(out, "%s: nothing to change.\n", title)
		default:
			fmt.Fprintf(out, "%s is set up already: nothing to change.\n", title)
		}
		return nil
	}
	switch {
	case f.dryRun:
		return nil
	case f.apply || f.undo:
	case !cmdline.IsTerminal(cmd.InOrStdin()):
		fmt.Fprintf(out, "\nNothing was changed. furl setup %s --apply makes this change.\n", name)
		return nil
	default:
		if err := cmdline.Flush(out); err != nil {
			return err
		}
		yes, err := askYes(cmd, "Make this change?")
		if err != nil || !yes {
			fmt.Fprintln(out, "Nothing was changed.")
			return err
		}
	}
	return f.finish(cmd, p, name, title, folder)
}

// showPlan prints the changes of a plan.
func showPlan(out io.Writer, p *setup.Plan) {
	for i := range p.Files {
		fmt.Fprint(out, printableLines(p.Files[i].Diff()))
	}
	for _, note := range p.Notes {
		fmt.Fprintf(out, "Note: %s\n", cmdline.Printable(note))
	}
}

// applyPlan makes the change. If another furl setup ran meanwhile, and nobody was asked about
// the change, it plans again.
func (f *setupFlags) applyPlan(out io.Writer, p *setup.Plan, name, folder string) error {
	err := p.Apply()
	for tries := 0; errors.Is(err, setup.ErrChanged) && (f.apply || f.undo) && tries < 20; tries++ {
		if p, err = f.plan(folder, name); err != nil {
			return err
		}
		fmt.Fprintln(out, "Another program changed the files meanwhile. The change is now:")
		showPlan(out, p)
		err = p.Apply()
	}
	return err
}

// finish makes the change and says what to do next.
func (f *setupFlags) finish(cmd *cobra.Command, p *setup.Plan, name, title, folder string) error {
	out := cmd.OutOrStdout()
	if f.dryRun {
		return nil
	}
	service := name == setup.ServiceName && len(p.Files) > 0
	var problems []string
	if service && f.undo {
		problems = runService(p.Files[0].Path, false)
	}
	if service && !f.undo {
		// The unit may write to this folder only if it exists.
		if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
			return err
		}
	}
	if err := f.applyPlan(out, p, name, folder); err != nil {
		return fmt.Errorf("setup %s: %w", name, err)
	}
	if f.undo {
		fmt.Fprintf(out, "Undone: %s.\n", title)
	} else {
		fmt.Fprintf(out, "Done. To undo: furl setup %s --undo\n", name)
	}
	if service && !f.undo {
		problems = runService(p.Files[0].Path, true)
		if len(problems) == 0 {
			fmt.Fprintln(out, "The gateway is running, and starts at login.")
		}
	}
	for _, problem := range problems {
		fmt.Fprintln(out, problem)
	}
	if !service && !f.undo {
		if c, _ := agents.ClientNamed(name); f.setsURL(c) {
			fmt.Fprintln(out, "Start the gateway with furl serve, or at login with furl setup service.")
		} else if c.URLNote != "" && len(f.only) == 0 {
			fmt.Fprintf(out, "The base URL is not set: %s.\n", c.URLNote)
		}
	}
	return nil
}

// setsURL reports whether a setup sets the base URL of an agent.
func (f *setupFlags) setsURL(c agents.Client) bool {
	return c.Sets(agents.PartURL) && (len(f.only) == 0 || slices.Contains(f.only, string(agents.PartURL)))
}

// runService starts or stops the service. It returns what the user has to do if that
// is not possible.
func runService(path string, start bool) (problems []string) {
	for _, args := range setup.ServiceCommands(runtime.GOOS, path, start) {
		if text, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			reason := err.Error()
			if line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n"); line != "" {
				reason = line
			}
			problems = append(problems, fmt.Sprintf("%s: %s\nRun it yourself where the user's services run.", strings.Join(args, " "), cmdline.Printable(reason)))
			return problems
		}
	}
	return nil
}

// askYes asks a question on a terminal.
func askYes(cmd *cobra.Command, question string) (bool, error) {
	fmt.Fprint(cmd.ErrOrStderr(), question+" [y/N] ")
	answer, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 100)).ReadString('\n')
	if err != nil && answer == "" && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	a := strings.ToLower(strings.TrimSpace(answer))
	return a == "y" || a == "yes", nil
}

// printableLines makes each line of a text safe to print.
func printableLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, end := strings.TrimSuffix(line, "\n"), "\n"
		b.WriteString(strings.ReplaceAll(cmdline.Printable(strings.ReplaceAll(line, "\t", "    ")), "\n", " ") + end)
	}
	return b.String()
}

// setupState is an agent in the list of furl setup.
type setupState struct {
	Name      string   `json:"name"`
	Title     string   `json:"title"`
	Installed bool     `json:"installed"`
	SetUp     bool     `json:"set_up"`
	Parts     []string `json:"parts"`
	Files     []string `json:"files"`
	Note      string   `json:"note,omitempty"`
}

// list prints the agents that furl can set up.
func (f *setupFlags) list(cmd *cobra.Command) error {
	folder, err := setupFolder()
	if err != nil {
		return err
	}
	var states []setupState
	for _, name := range setupNames() {
		c, _ := agents.ClientNamed(name)
		s := setupState{Name: name, Title: c.Title, SetUp: setup.IsSetUp(folder, name), Note: c.URLNote, Parts: []string{}, Files: []string{}}
		for _, program := range c.Programs() {
			if _, err := exec.LookPath(program); err == nil {
				s.Installed = true
			}
		}
		for _, part := range agents.Parts {
			if c.Sets(part) {
				s.Parts = append(s.Parts, string(part))
			}
		}
		for _, file := range c.Files {
			for _, path := range file.Paths() {
				if _, err := os.Stat(path); err == nil {
					s.Installed = true
					s.Files = append(s.Files, path)
				}
			}
		}
		states = append(states, s)
	}
	out := cmd.OutOrStdout()
	if f.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(states)
	}
	t := cmdline.NewTable(out, cmdline.Text("NAME"), cmdline.Text("AGENT"), cmdline.Text("STATE"), cmdline.Text("CAN SET"))
	for _, s := range states {
		state := "not found"
		switch {
		case s.SetUp:
			state = "set up"
		case s.Installed:
			state = "installed"
		}
		t.Add(s.Name, s.Title, state, strings.Join(s.Parts, ", "))
	}
	t.Print()
	service := "not installed"
	if setup.IsSetUp(folder, setup.ServiceName) {
		service = "installed"
	}
	fmt.Fprintf(out, "\nThe service that starts the gateway at login is %s: furl setup service.\nfurl setup NAME shows the change for an agent; --apply makes it.\n", service)
	return nil
}
