package chatcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/cli/storecmd"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/conversation"
	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/models"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// chatRun is a conversation with its slash commands.
type chatRun struct {
	*conversation.Conversation
	f     *chatFlags
	color bool // of the output of commands
}

// open opens the session that the flags name.
func (f *chatFlags) open(ctx context.Context, store storage.Store) (*chatRun, error) {
	c, err := conversation.Open(ctx, &f.Workspace, store, f.Options, func(all *session.Sessions, dir string) (*session.Session, error) { return f.pick(ctx, all, dir) })
	return &chatRun{Conversation: c, f: f}, err
}

// target returns the conversation's session for furl's own commands.
func (c *chatRun) target() *cmdline.Target {
	return &cmdline.Target{Session: c.Session(), All: c.All, Store: c.Store, Shared: true, ChatModel: c.Agent().Model().ID}
}

// exportName is the default file of /export.
func (c *chatRun) exportName() string {
	return filepath.Join(c.Dir, "chat-"+shortSession(c.Session().ID())+".md")
}

// slash is a slash command.
type slash struct {
	chat.Command
	run func(c *chatRun, x *slashRun) chat.Reply
}

// slashRun is one use of a slash command.
type slashRun struct {
	context.Context
	ask   chat.Asker
	args  []string
	text  string // the arguments as typed
	width int
}

// Slashes lists the slash commands in the order of /help.
func Slashes() []slash {
	return []slash{
		{chat.Command{Name: "context", Short: "Show what takes up the context window"}, furlCommand("context")},
		{chat.Command{Name: "compact", Usage: "[HANDLE...] [FOCUS]", Short: "Replace old or chosen messages by a summary"}, (*chatRun).compact},
		{chat.Command{Name: "rolling-context", Usage: "[on|off]", Short: "Hide old tool results as they age", Values: switches}, (*chatRun).rolling},
		{chat.Command{Name: "policy", Usage: "[NAME]", Short: "Choose how the context is reduced"}, (*chatRun).policy},
		{chat.Command{Name: "summary", Usage: "[approve|refuse]", Short: "Show summaries, approve one that waits", Values: values("approve", "refuse")}, (*chatRun).summaries},
		{chat.Command{Name: "edit-summary", Usage: "[NUMBER]", Short: "Edit a summary"}, (*chatRun).editSummary},
		{chat.Command{Name: "search", Usage: "WORDS", Short: "Search this session, also what is hidden"}, (*chatRun).search},
		{chat.Command{Name: "get", Usage: "HANDLE", Short: "Print a message or result as recorded"}, needs("a handle, such as furl:12", furlCommand("get"))},
		operated("hide"), operated("restore"), operated("pin"), operated("prefer"), operated("unpin"),
		{chat.Command{Name: "rewind", Usage: "[RECORD]", Short: "Go back to an earlier message"}, (*chatRun).rewind},
		{chat.Command{Name: "branches", Short: "List the branches of the session"}, furlCommand("branches")},
		{chat.Command{Name: "fork", Usage: "[RECORD]", Short: "Continue in a copy of the session"}, (*chatRun).fork},
		{chat.Command{Name: "new", Short: "Start a new session"}, (*chatRun).startNew},
		{chat.Command{Name: "resume", Usage: "[SESSION]", Short: "Continue another session"}, (*chatRun).resume},
		{chat.Command{Name: "model", Usage: "[NAME]", Short: "Choose the model"}, (*chatRun).chooseModel},
		{chat.Command{Name: "settings", Usage: "[KEY=VALUE]...", Short: "Change or list the session's settings"}, (*chatRun).settings},
		{chat.Command{Name: "tools", Short: "List the tools of the model"}, (*chatRun).listTools},
		{chat.Command{Name: "export", Usage: "[FILE]", Short: "Export the session to a file"}, (*chatRun).export},
		{chat.Command{Name: "help", Short: "List the commands"}, (*chatRun).help},
		{chat.Command{Name: "quit", Short: "End the chat"}, func(*chatRun, *slashRun) chat.Reply { return chat.Reply{Quit: true} }},
	}
}

func values(list ...string) func() []string { return func() []string { return list } }

var switches = values("on", "off")

// Commands implements chat.Conversation.
func (c *chatRun) Commands() []chat.Command {
	list := make([]chat.Command, 0, 24)
	for _, s := range Slashes() {
		switch s.Name {
		case "policy":
			s.Values = c.policyNames
		case "model":
			s.Values = func() []string { return models.KeyedNames(c.Config) }
		}
		list = append(list, s.Command)
	}
	return list
}

func (c *chatRun) policyNames() []string { return c.Config.Set().Names() }

// Command implements chat.Conversation.
func (c *chatRun) Command(ctx context.Context, ask chat.Asker, line string, width int) chat.Reply {
	name, text := chat.Split(line)
	if name == "exit" {
		name = "quit"
	}
	for _, s := range Slashes() {
		if s.Name == name {
			return s.run(c, &slashRun{ctx, ask, strings.Fields(text), text, width})
		}
	}
	return chat.Reply{Err: errors.New(noSlash(name))}
}

// noSlash is the error for an unknown slash command.
func noSlash(name string) string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, s := range Slashes() {
		all.AddCommand(&cobra.Command{Use: s.Name, Run: func(*cobra.Command, []string) {}})
	}
	hint := ""
	if near := all.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean /" + strings.Join(near, " or /") + "? "
	}
	return "unknown command /" + name + ": " + hint + "/help lists the commands"
}

// furl runs a command of furl on the session. name is the command's name, with that of
// a subcommand, and args are its own flags and arguments. The flags of the chat that
// choose the store and the configuration are put between them, because args may have a
// "--", after which nothing is a flag.
func (c *chatRun) furl(x *slashRun, name string, args ...string) chat.Reply {
	out := &cmdline.Screen{Cols: x.width, Color: c.color}
	p := c.f.Program
	cmd := cmdline.NewRoot(p)
	cmd.AddCommand(storecmd.ContextCommand(p), storecmd.GetCommand(p), storecmd.BranchesCommand(p), storecmd.SetCommand(p), storecmd.SummaryCommand(p), storecmd.SearchCommand(p), storecmd.ExportCommand(p))
	cmd.SetArgs(slices.Concat(strings.Fields(name), c.f.Given(), args))
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(out)
	cmd.SetErr(out)
	err := cmd.ExecuteContext(cmdline.WithOpen(x, c.target()))
	id := string(c.Session().ID())
	r := chat.Reply{Text: strings.TrimRight(asSlash(out.String(), id), "\n")}
	if err != nil {
		r.Err = errors.New(asSlash(err.Error(), id))
	}
	return r
}

// asSlash names the slash commands in place of the commands of furl.
func asSlash(text, id string) string {
	return mentioned.ReplaceAllStringFunc(strings.ReplaceAll(text, " "+id, ""), func(s string) string {
		name := strings.TrimPrefix(s, "furl ")
		if name == "show" {
			return "/branches"
		}
		if name == "set" {
			return "/settings"
		}
		return "/" + name
	})
}

var mentioned = lazyregexp.New(`\bfurl (context|summary|edit-summary|search|get|restore|rewind|branches|set|export|show)\b`)

// furlCommand runs the command of furl with the session and the arguments.
func furlCommand(name string) func(*chatRun, *slashRun) chat.Reply {
	return func(c *chatRun, x *slashRun) chat.Reply {
		return c.furl(x, name, append([]string{"--", string(c.Session().ID())}, x.args...)...)
	}
}

// operated is the slash command of an operation.
func operated(name string) slash {
	o := operation.Named(name)
	return slash{chat.Command{Name: o.Slash, Usage: o.Usage(), Short: o.Short}, func(c *chatRun, x *slashRun) chat.Reply {
		in := o.Input()
		flags := pflag.NewFlagSet(o.Name, pflag.ContinueOnError)
		flags.SetOutput(io.Discard)
		operation.Flags(flags, in)
		err := flags.Parse(x.args)
		if err == nil {
			err = operation.Arguments(in, flags.Args())
		}
		if err != nil {
			return chat.Reply{Err: fmt.Errorf("%w; the form is /%s", err, strings.TrimSpace(o.Slash+" "+o.Usage()))}
		}
		return c.operate(x, o, in)
	}}
}

// operate does an operation on the session, and says what it has done.
func (c *chatRun) operate(x *slashRun, o *operation.Operation, in any) chat.Reply {
	call := &operation.Call{Context: x, Sessions: c.All, Session: c.Session(), Compactor: chatCompactor{a: c.Agent()}}
	done, err := o.Do(call, in)
	if wrong, ok := errors.AsType[operation.Invalid](err); ok {
		return chat.Reply{Err: fmt.Errorf("%w; the form is /%s", wrong, strings.TrimSpace(o.Slash+" "+o.Usage()))}
	}
	if err != nil {
		return chat.Reply{Err: err}
	}
	return chat.Reply{Text: chatText(call, done)}
}

// chatText says what an operation has done, and the command that undoes it.
func chatText(call *operation.Call, done *operation.Result) string {
	lines := storecmd.ResultLines(call, done)
	if done.Undo != nil && !call.Preview {
		lines = append(lines, "To undo this: /"+storecmd.TypedCommand(operation.Named(done.Undo.Operation).Slash, done.Undo, ""))
	}
	return cmdline.Printable(strings.Join(lines, "\n"))
}

// needs returns an error if there are no arguments.
func needs(what string, run func(*chatRun, *slashRun) chat.Reply) func(*chatRun, *slashRun) chat.Reply {
	return func(c *chatRun, x *slashRun) chat.Reply {
		if len(x.args) == 0 {
			return chat.Reply{Err: errors.New("missing argument: expected " + what)}
		}
		return run(c, x)
	}
}

func (c *chatRun) rolling(x *slashRun) chat.Reply {
	switch x.text {
	case "":
		for _, s := range c.Session().Settings() {
			if s.Name == "rolling_context" {
				return chat.Reply{Text: "Rolling context is " + onOrOff(s.Value) + ". To change it: /rolling-context on, or off."}
			}
		}
	case "on", "off":
		return c.set(x, "rolling_context="+x.text)
	}
	return chat.Reply{Err: fmt.Errorf("invalid value %q: expected on or off", x.text)}
}

// set changes settings of the session.
func (c *chatRun) set(x *slashRun, pairs ...string) chat.Reply {
	return c.operate(x, operation.Named("set"), &operation.SetInput{Pairs: pairs})
}

func (c *chatRun) settings(x *slashRun) chat.Reply {
	if len(x.args) == 0 {
		return furlCommand("set")(c, x)
	}
	return operated("set").run(c, x)
}

func onOrOff(value string) string {
	if value == "on" {
		return "on"
	}
	return "off"
}

func (c *chatRun) policy(x *slashRun) chat.Reply {
	name := x.text
	if name == "" {
		now := ""
		for _, s := range c.Session().Settings() {
			if s.Name == "policy" {
				now = s.Value
			}
		}
		var err error
		if name, err = choose(x, "Choose a policy", c.policyNames(), now); err != nil {
			return chat.Reply{Text: "The policy is " + cmdline.Printable(now) + ". /policy NAME changes it: " + strings.Join(c.policyNames(), ", ") + "."}
		}
	}
	return c.set(x, "policy="+name)
}

// choose asks the user for one of several names.
func choose(x *slashRun, title string, names []string, now string) (string, error) {
	if x.ask == nil {
		return "", conversation.ErrNoAnswer
	}
	q := chat.Question{Title: title, Default: max(0, slices.Index(names, now))}
	for _, n := range names {
		q.Options = append(q.Options, chat.Option{Label: n})
	}
	answer, err := x.ask(x, q)
	if err != nil {
		return "", err
	}
	return names[answer.Option], nil
}

func (c *chatRun) summaries(x *slashRun) chat.Reply {
	switch x.text {
	case "":
		return c.furl(x, "summary", string(c.Session().ID()))
	case "approve", "refuse":
		return c.operate(x, operation.Named(x.text), &operation.DecideInput{})
	}
	return chat.Reply{Err: fmt.Errorf("invalid argument %q: expected approve or refuse", x.text)}
}

func (c *chatRun) editSummary(x *slashRun) chat.Reply {
	in := &operation.EditInput{}
	if err := operation.Arguments(in, x.args); err != nil {
		return chat.Reply{Err: err}
	}
	r, err := operation.SummaryOf(c.Session(), in.Reduction)
	if err != nil {
		return chat.Reply{Err: fmt.Errorf("%w; /summary lists the summaries", err)}
	}
	if x.ask == nil {
		return chat.Reply{Err: conversation.ErrNoAnswer}
	}
	answer, err := x.ask(x, chat.Question{Title: "Edit the summary", Body: r.Summary, Edit: true})
	if err != nil {
		return chat.Reply{Text: "The summary is unchanged."}
	}
	in.Text = answer.Text
	return c.operate(x, operation.Named("edit-summary"), in)
}

func (c *chatRun) search(x *slashRun) chat.Reply {
	if x.text == "" {
		return chat.Reply{Err: errors.New("empty search: expected words to find")}
	}
	return c.furl(x, "search", "--session", string(c.Session().ID()), "--", x.text)
}

// fork copies the session and continues in the copy.
func (c *chatRun) fork(x *slashRun) chat.Reply {
	s := c.Session()
	in := &operation.ForkInput{}
	err := operation.Arguments(in, x.args)
	if err != nil {
		return chat.Reply{Err: err}
	}
	done, err := operation.Named("fork").Do(&operation.Call{Context: x, Sessions: c.All, Session: s}, in)
	if err != nil {
		return chat.Reply{Err: err}
	}
	fork := done.Value.(operation.Forked).Made
	if err := c.Use(fork); err != nil {
		return chat.Reply{Err: err}
	}
	return chat.Reply{Text: fmt.Sprintf("The chat continues in the copy %s. To return: /resume %s", shortSession(fork.ID()), s.ID()), Reload: len(x.args) > 0}
}

func (c *chatRun) startNew(x *slashRun) chat.Reply {
	was := c.Session()
	meta := storage.Meta{Client: chatClient, Project: c.Dir, Policy: was.Meta().Policy}
	if err := c.Use(c.All.Create(meta)); err != nil {
		return chat.Reply{Err: err}
	}
	return chat.Reply{Text: "This is a new session. To return: /resume " + string(was.ID())}
}

// listed is how many sessions or messages the user can choose from.
const listed = 30

func (c *chatRun) resume(x *slashRun) chat.Reply {
	name := x.text
	if name == "" {
		id, err := c.chooseSession(x)
		if err != nil {
			return chat.Reply{Err: err}
		}
		name = id
	}
	s, err := c.All.Find(x, name)
	if err == nil {
		err = c.Use(s)
	}
	if err != nil {
		return chat.Reply{Err: err}
	}
	return chat.Reply{Text: "The chat continues session " + string(s.ID()) + ".", Reload: true}
}

func (c *chatRun) chooseSession(x *slashRun) (string, error) {
	q := chat.Question{Title: "Continue a session"}
	var ids []string
	for info, err := range c.All.List(x, storage.SessionQuery{}) {
		if err != nil {
			return "", err
		}
		if info.Project != c.Dir || info.Session == c.Session().ID() {
			continue
		}
		ids = append(ids, string(info.Session))
		label := cmdline.Truncate(info.Title, max(20, x.width-40))
		if label == "" {
			label = shortSession(info.Session)
		}
		q.Options = append(q.Options, chat.Option{Label: fmt.Sprintf("%s  %s, %s", label, numbers.Count(info.Messages, "message"), numbers.Ago(time.Now(), info.Newest()))})
		if len(ids) == listed {
			break
		}
	}
	if len(ids) == 0 {
		return "", errors.New("no other session in this folder: /resume SESSION continues one of another folder")
	}
	if x.ask == nil {
		return "", errors.New("missing argument: expected a session")
	}
	answer, err := x.ask(x, q)
	if err != nil {
		return "", errors.New("no session was chosen")
	}
	return ids[answer.Option], nil
}

func (c *chatRun) chooseModel(x *slashRun) chat.Reply {
	name := x.text
	now := c.Agent().Model()
	if name == "" {
		names := models.KeyedNames(c.Config)
		if len(names) == 0 || x.ask == nil {
			return chat.Reply{Text: "The model is " + cmdline.Printable(now.ID) + ". /model NAME changes it."}
		}
		var err error
		if name, err = choose(x, "Choose a model", names, now.ID); err != nil {
			return chat.Reply{Text: "The model is still " + cmdline.Printable(now.ID) + "."}
		}
	}
	m := now
	if c.Simulated {
		m.ID = name // the simulated provider plays all models
		if _, _, err := models.Keyed(&config.Config{}, name); err != nil && strings.HasPrefix(err.Error(), "unknown") {
			return chat.Reply{Err: err}
		}
	} else {
		found, _, err := models.Keyed(c.Config, name)
		if err != nil {
			return chat.Reply{Err: err}
		}
		m = models.AgentModel(found)
	}
	if err := c.Agent().SetModel(m); err != nil {
		return chat.Reply{Err: err}
	}
	c.Mu.Lock()
	c.Model = m
	c.Mu.Unlock()
	return chat.Reply{Text: fmt.Sprintf("The model is %s, with a context window of %s tokens.", cmdline.Printable(m.ID), numbers.Thousands(c.Session().Model(m.ID).Window))}
}

func (c *chatRun) listTools(x *slashRun) chat.Reply {
	if len(c.OpenedTools().List) == 0 {
		return chat.Reply{Text: "The model has no tools."}
	}
	b := cmdline.Screen{Cols: x.width, Color: c.color}
	t := cmdline.NewTable(&b, cmdline.Text(""), cmdline.Text(""), cmdline.Text(""))
	for _, tl := range c.OpenedTools().List {
		asks := ""
		if tl.Changes {
			asks = "asks first"
		}
		about, _, _ := strings.Cut(tl.Description, ". ")
		t.Add(tl.Name, asks, cmdline.Truncate(strings.TrimSuffix(about, "."), max(20, x.width-40)))
	}
	t.Print()
	return chat.Reply{Text: strings.TrimRight(b.String(), "\n")}
}

func (c *chatRun) export(x *slashRun) chat.Reply {
	name := x.text
	if name == "" {
		name = c.exportName()
	}
	return c.furl(x, "export", "-o", name, "--", string(c.Session().ID()))
}

func (c *chatRun) help(x *slashRun) chat.Reply {
	b := cmdline.Screen{Cols: x.width, Color: c.color}
	t := cmdline.NewTable(&b, cmdline.Text(""), cmdline.Text(""))
	for _, s := range Slashes() {
		t.Add(strings.TrimSpace("/"+s.Name+" "+s.Usage), s.Short)
	}
	t.Print()
	return chat.Reply{Text: strings.TrimRight(b.String(), "\n")}
}

// rewound are the messages of the user before which the chat can continue.
type rewound struct {
	seq  furl.Seq
	text string
}

func (c *chatRun) messages() (list []rewound) {
	c.Read(func(st *furl.State) {
		for i := st.Len() - 1; i >= 0 && len(list) < listed; i-- {
			seq, m := st.Message(i)
			if m.Role != furl.RoleUser {
				continue
			}
			for _, e := range conversation.MessageEntries(st, i, map[string]*furl.Block{}) {
				if e.Kind == chat.User && e.Text != "" {
					list = append(list, rewound{seq, e.Text})
					break
				}
			}
		}
	})
	return list
}

// before returns the record before a message on its branch.
func (c *chatRun) before(seq furl.Seq) furl.Seq {
	for _, r := range c.Session().Records(seq - 1) {
		return r.Parent
	}
	return 0
}

// rewind continues from an earlier record. Files that the tools have changed since can
// be put back.
func (c *chatRun) rewind(x *slashRun) chat.Reply {
	var to furl.Seq
	input := ""
	if len(x.args) > 0 {
		n, err := storecmd.RecordNumber(x.args[0])
		if err != nil {
			return chat.Reply{Err: errors.New(asSlash(err.Error(), ""))}
		}
		to = n
	} else {
		list := c.messages()
		if len(list) == 0 || x.ask == nil {
			return chat.Reply{Err: errors.New("missing argument: expected the number of the record to continue from")}
		}
		q := chat.Question{Title: "Go back to before a message"}
		for _, m := range list {
			line, _, _ := strings.Cut(strings.TrimSpace(m.text), "\n")
			q.Options = append(q.Options, chat.Option{Label: cmdline.Truncate(line, max(20, x.width-12))})
		}
		answer, err := x.ask(x, q)
		if err != nil {
			return chat.Reply{Text: "Nothing changes."}
		}
		chosen := list[answer.Option]
		to, input = c.before(chosen.seq), chosen.text
	}
	if c.IsRunning() {
		return chat.Reply{Err: conversation.ErrRunning}
	}
	files, err := c.OpenedTools().RestoreFiles(x, x.ask, to)
	if err != nil {
		return chat.Reply{Err: err}
	}
	reply := c.operate(x, operation.Named("rewind"), &operation.RewindInput{Record: &to})
	if reply.Err != nil {
		return reply
	}
	if files != "" {
		reply.Text = files + "\n" + reply.Text
	}
	reply.Reload, reply.Input = true, input
	return reply
}
