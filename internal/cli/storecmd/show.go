package storecmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/transcript"
)

// viewFlags are the flags of furl show and furl reduce.
type viewFlags struct {
	cmdline.Pricing
	cmdline.StoreFlags
	session string
	at      int
	request int // a record of the request, as --request has it
	policy  string
	window  string
	full    bool
	message int
	stored  bool // the session is in the store; its windows are known
}

func (f *viewFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.session, "session", "", "session of the file: `id`, its beginning, or number (default the first)")
	fl.IntVar(&f.at, "at-request", 0, "`number` of the request, from 1 (default the last)")
	fl.SetNormalizeFunc(cmdline.Renamed("at", "at-request"))
	fl.StringVar(&f.window, "window", "", "context window in `tokens`, such as 128k (default the model's)")
	f.StoreFlags.Add(cmd)
	fl.BoolVar(&f.full, "full", false, "print complete texts")
	f.Pricing.Add(fl)
}

// ShowCommand returns furl show.
func ShowCommand(p cmdline.Program) *cobra.Command {
	f := viewFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	var view, sent bool
	cmd := &cobra.Command{
		Use:   "show SESSION|FILE",
		Short: "Show a session, or what the model sees",
		Long: `Prints a session of the store or of a recording. --view prints what the model sees:
each message with its size, and for hidden messages the placeholder, the size of
the original and the reason. --at-request prints what the model saw at an earlier
request of the current branch: what the provider received, with the reductions that
furl or the agent had made until then. --policy instead replays the session and
prints what that policy would have sent. Tool calls that furl answered itself are
marked "added by furl".

--request prints the body of the request that a reply belongs to, byte for byte:
as the client sent it, or with --sent as furl sent it. With --view it selects the
request like --at-request, but on any branch.`,
		Example: `  furl show latest
  furl show 01jd5 --view
  furl show session.jsonl
  furl show session.jsonl --message 42                     one complete message
  furl show latest --request 42 --sent > sent.json         what furl sent
  furl show latest --view --at-request 57             what the model saw then
  furl show session.jsonl --view --policy rolling-mask-10
  furl show session.jsonl --view --at-request 57 --policy clear-100k --json`,
		Args:              cmdline.OneSession,
		ValidArgsFunction: cmdline.CompleteSessions(&f.StoreFlags),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.show(cmd, args, view, sent) },
	}
	cmd.Flags().BoolVar(&view, "view", false, "print what the model sees")
	cmd.Flags().StringVar(&f.policy, "policy", "", "policy `name` to replay instead of what was recorded: "+strings.Join(p.PolicyNames(), ", "))
	cmd.Flags().IntVar(&f.message, "message", 0, "print only the message with this record `number`, complete and as recorded")
	cmd.Flags().IntVar(&f.request, "request", 0, "print only the body of the request of the reply with this record `number`; with --view: what the model saw")
	cmd.Flags().BoolVar(&sent, "sent", false, "with --request: print the body that furl sent instead of the client's")
	f.add(cmd)
	f.AddTenant(cmd)
	cmdline.Complete(cmd, "policy", p.PolicyNames)
	cmdline.Complete(cmd, "model", cmdline.ModelNames)
	return cmd
}

// show is furl show.
func (f *viewFlags) show(cmd *cobra.Command, args []string, view, sent bool) (err error) {
	if err := f.checkNumbers(cmd); err != nil {
		return err
	}
	t, err := f.Target(cmd, args[0], f.session)
	if err != nil {
		return err
	}
	defer t.Close(&err)
	if cmd.Flags().Changed("request") {
		switch {
		case f.message != 0 || f.at != 0:
			return cmdline.BadUsage("--request selects a request: omit --message and --at-request")
		case view && !sent:
			return f.view(cmd, t)
		case view || f.policy != "":
			return cmdline.BadUsage("--request prints the body of a request: omit --policy, or use --view without --sent")
		}
		return f.requestBody(cmd, t, f.request, sent)
	}
	if sent {
		return cmdline.BadUsage("--sent requires --request")
	}
	f.stored = t.File == ""
	s := t.Wire()
	if f.message != 0 {
		if view || f.at != 0 || f.policy != "" {
			return cmdline.BadUsage("--message prints a recorded message: omit --view, --at-request and --policy")
		}
		return f.one(cmd.OutOrStdout(), s)
	}
	if !view && f.policy == "" && f.at == 0 {
		return f.transcript(cmd.OutOrStdout(), s, billOf(t))
	}
	if (t.File == "" || isReducedSince(s.Log)) && f.at == 0 && f.policy == "" {
		return f.now(cmd, t)
	}
	return f.view(cmd, t)
}

// checkNumbers returns a usage error for numbers below 1.
func (f *viewFlags) checkNumbers(cmd *cobra.Command) error {
	if cmd.Flags().Changed("at-request") && f.at < 1 {
		return cmdline.BadUsage("invalid --at-request %d: requests are numbered from 1", f.at)
	}
	if f := cmd.Flags().Lookup("message"); f != nil && f.Changed && (f.Value.String() == "0" || strings.HasPrefix(f.Value.String(), "-")) {
		return cmdline.BadUsage("invalid --message %s: records are numbered from 1", f.Value)
	}
	return nil
}

// isReducedSince reports whether the recording has a reduction after its last
// request, which applies to the next one.
func isReducedSince(log *furl.Log) bool {
	for seq := log.Head(); seq != 0; seq = log.At(seq).Parent {
		switch log.At(seq).Body.(type) {
		case *furl.Exchange:
			return false
		case *furl.Reduction:
			return true
		}
	}
	return false
}

// inspection is what the model sees at a request, or now.
type inspection struct {
	Number, Requests int // the request and how many there are; 0: it is on another branch
	Model            string
	requested        string // the model's name in the request
	Policy           string // that was replayed, or for the current state the session's
	AsRecorded       bool   // what was sent, without a replay
	current          bool   // the current state
	Window           int    // 0: unknown
	// Before and After are the sizes of the prompt without and with reductions, in
	// tokens. Reported says that the provider reported After.
	Before, After int
	Reported      bool
	Dry           bool
	Steps         []furl.PlanStep
	View          *furl.View
	sent          *furl.View   // see session.RequestView
	preamble      []furl.Block // of the request's body
	log           *furl.Log    // that the numbers in View are of
	recorded      []furl.Seq   // of the replay, see replay.Inspection
}

// record returns the number of a record in the recording; 0: none.
func (in *inspection) record(seq furl.Seq) furl.Seq {
	switch {
	case in.recorded == nil:
		return seq
	case int(seq) < len(in.recorded):
		return in.recorded[seq]
	}
	return 0
}

// now prints what the model sees in the current state of a session.
func (f *viewFlags) now(cmd *cobra.Command, t *cmdline.Target) error {
	m, err := f.modelFor(t, cmp.Or(f.Model, t.Meta().Model))
	if err != nil {
		return err
	}
	log := t.Wire().Log
	s := log.State()
	in := &inspection{current: true, Model: m.ID, Window: m.Window, Policy: t.Meta().Policy, View: s.View(m), log: log}
	u := t.Context(cmp.Or(f.Model, t.ChatModel))
	in.After, in.Before = u.Size, u.Without
	for _, r := range log.Records(0) {
		if _, ok := r.Body.(*furl.Exchange); ok {
			in.Requests++
		}
	}
	in.Number = in.Requests
	return f.print(cmd, t, in, fmt.Sprintf("%s, after %s, %s: about %s tokens%s", t.ID(), numbers.Count(in.Requests, "request"), modelName(m.ID), numbers.Thousands(in.After), ofWindow(m.Window)))
}

// modelFor describes a model, with the window of the flag.
func (f *viewFlags) modelFor(t *cmdline.Target, name string) (furl.Model, error) {
	m := t.Model(name)
	if f.window != "" {
		var err error
		if m.Window, err = numbers.ParseTokens(f.window); err != nil {
			return m, cmdline.BadUsage("--window %s: %w", f.window, err)
		}
	}
	return m, nil
}

// print prints what the model sees below a heading.
func (f *viewFlags) print(cmd *cobra.Command, t *cmdline.Target, in *inspection, heading string) error {
	if f.Json {
		return cmdline.PrintJSON(cmd.OutOrStdout(), viewJSON(in))
	}
	w := cmd.OutOrStdout()
	p := &printer{w: w, color: cmdline.Styled(w), full: f.full, cols: cmdline.Width(w)}
	fmt.Fprintf(w, "%s\n\n", heading)
	for i := range in.View.Messages {
		p.message(in, &in.View.Messages[i])
	}
	p.reductions(in)
	switch {
	case !hides(in.View):
	case t.File != "":
		p.note("\nTo print an original: furl show FILE --message N.")
	case in.current:
		p.note(fmt.Sprintf("\nTo print an original: furl get %s HANDLE. To undo reduction N: furl restore %s N.", t.ID(), t.ID()))
	default:
		p.note(fmt.Sprintf("\nTo print an original: furl show %s --message N.", t.ID()))
	}
	return nil
}

// atRequest returns what the model saw at a request of the session, or under --policy
// would have seen.
func (f *viewFlags) atRequest(cmd *cobra.Command, t *cmdline.Target) (*inspection, error) {
	seen, err := f.requestView(cmd, t)
	if err != nil {
		return nil, err
	}
	if f.policy != "" {
		in, err := f.inspect(cmd, t.Wire(), seen, f.policy)
		if err != nil {
			return nil, err
		}
		return replayedOf(in, seen, f.policy), nil
	}
	m, err := f.modelFor(t, cmp.Or(f.Model, seen.Model))
	if err != nil {
		return nil, err
	}
	return &inspection{
		Number: seen.Number, Requests: seen.Requests, Model: m.ID, requested: seen.Model, AsRecorded: true, Window: m.Window,
		Before: seen.SizeWithout, After: seen.Size, Reported: !seen.Estimated, Dry: seen.Dry, View: seen.View, sent: seen.Sent, preamble: seen.Preamble, log: t.Wire().Log,
	}, nil
}

// requestView finds the request of --at-request or --request.
func (f *viewFlags) requestView(cmd *cobra.Command, t *cmdline.Target) (*session.RequestView, error) {
	if !cmd.Flags().Changed("request") {
		return t.ViewAtRequest(cmd.Context(), f.at)
	}
	at, err := exchangeOf(t.Records(0), f.request)
	if err != nil {
		return nil, err
	}
	return t.ViewAtExchange(cmd.Context(), at)
}

// replayedOf returns what a policy would have sent.
func replayedOf(in *replay.Inspection, seen *session.RequestView, policy string) *inspection {
	return &inspection{
		Number: seen.Number, Requests: seen.Requests, Model: in.Budget.Model.ID, Policy: policy, Window: in.Budget.Window,
		Before: in.Plan.Before, After: in.Plan.After, Steps: in.Plan.Steps, View: in.View, log: in.Log, recorded: in.Recorded,
	}
}

// inspect replays the session up to a request under a policy.
func (f *viewFlags) inspect(cmd *cobra.Command, s *transcript.Session, seen *session.RequestView, name string) (*replay.Inspection, error) {
	if seen.Exchange == 0 {
		return nil, fmt.Errorf("request %d has no record of its own, only its reply: no policy can be replayed for it; omit --policy", seen.Number)
	}
	c, _, err := f.Program.LoadConfig(f.Config, &f.Pricing)
	if err != nil {
		return nil, err
	}
	opts, err := f.Options()
	if err != nil {
		return nil, err
	}
	win := 0
	if f.window != "" {
		if win, err = numbers.ParseTokens(f.window); err != nil {
			return nil, cmdline.BadUsage("--window %s: %w", f.window, err)
		}
	}
	if !f.stored || f.Model != "" {
		opts.ModelWindow = c.SetByModel().Window
	}
	by := replay.Candidate{Name: name, New: func(z policy.Summarizer) (furl.Policy, error) {
		return policyFor(c, name, cmp.Or(f.Model, s.Model), z)
	}}
	if _, err := by.New(nil); err != nil {
		return nil, cmdline.AsUsage(err)
	}
	number := 0 // in a replay, which has the requests of all branches
	for _, r := range s.Log.Records(0)[:seen.Exchange] {
		if _, ok := r.Body.(*furl.Exchange); ok {
			number++
		}
	}
	return replay.Inspect(cmd.Context(), s, by, win, number, opts)
}

// view prints what the model saw at a request, or would have seen.
func (f *viewFlags) view(cmd *cobra.Command, t *cmdline.Target) error {
	in, err := f.atRequest(cmd, t)
	if err != nil {
		return err
	}
	how, about := "policy "+f.policy, "about "
	if in.AsRecorded {
		how = "as recorded"
	}
	if in.Dry {
		how += " in a dry run"
	}
	if in.Reported {
		about = ""
	}
	number := fmt.Sprintf("%d of %d", in.Number, in.Requests)
	if in.Requests == 0 {
		number = fmt.Sprintf("%d of another branch", in.Number)
	}
	return f.print(cmd, t, in, fmt.Sprintf("Request %s, %s, %s: %s%s tokens%s", number, modelName(in.Model), how, about, numbers.Thousands(in.After), ofWindow(in.Window)))
}

// hides reports whether a view hides anything.
func hides(v *furl.View) bool {
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			if v.Messages[i].Blocks[j].By != 0 {
				return true
			}
		}
		if v.Messages[i].By != 0 {
			return true
		}
	}
	return false
}

// one prints a single message of the session.
func (f *viewFlags) one(w io.Writer, s *transcript.Session) error {
	var m *furl.Message
	if f.message >= 1 && f.message <= s.Log.Len() {
		m, _ = s.Log.At(furl.Seq(f.message)).Body.(*furl.Message)
	}
	if m == nil {
		return fmt.Errorf("no message %d: furl show without --message prints the numbers", f.message)
	}
	seq := furl.Seq(f.message)
	if f.Json {
		out := jsonMessage{Record: seq, Role: string(m.Role)}
		for i := range m.Blocks {
			out.Blocks = append(out.Blocks, blockJSON(&m.Blocks[i]))
		}
		return cmdline.PrintJSON(w, out)
	}
	p := &printer{w: w, color: cmdline.Styled(w), full: true, cols: cmdline.Width(w)}
	p.head(seq, string(m.Role), "")
	for i := range m.Blocks {
		p.block(&m.Blocks[i], m.Blocks[i].Text, "")
	}
	return nil
}

// countMessages returns the number of messages of a session, and how many of them are
// on the current branch if that differs.
func countMessages(all, current int) string {
	text := numbers.Count(all, "message")
	if current != all {
		text += fmt.Sprintf(" on all branches, %s on the current one", numbers.Thousands(current))
	}
	return text
}

// transcript prints the session as recorded.
func (f *viewFlags) transcript(w io.Writer, s *transcript.Session, bill *float64) error {
	p := &printer{w: w, color: cmdline.Styled(w), full: f.full, cols: cmdline.Width(w)}
	if f.Json {
		out := transcriptJSON(s)
		out["billed"] = bill
		return cmdline.PrintJSON(w, out)
	}
	p.note(f.heading(s, bill))
	for i := 1; i <= s.Log.Len(); i++ {
		r := s.Log.At(furl.Seq(i))
		switch b := r.Body.(type) {
		case *furl.Message:
			p.head(r.Seq, string(b.Role), "")
			for j := range b.Blocks {
				p.block(&b.Blocks[j], b.Blocks[j].Text, "")
			}
		case *furl.Reduction:
			p.note(fmt.Sprintf("── %s: %s ──", b.Stage, reductionWords(b)))
		case *furl.Takeover:
			p.note(fmt.Sprintf("── reductions of the branch that ends at record %d also apply here ──", b.Branch))
		case *furl.Head:
			if b.From != r.Parent { // else it was redacted
				p.note(fmt.Sprintf("── continues from record %d ──", r.Parent))
			}
		}
	}
	return nil
}

// billOf returns what a session was billed in US dollars, nil if that is unknown.
func billOf(t *cmdline.Target) *float64 {
	b := billed.Sum(billed.OfStored(t.ID(), new(t.Meta()), t.Records(0), t.Model))
	return b.Known()
}

// heading describes a session in a line: title, agent, model, project, the number of
// messages, and what it was billed.
func (f *viewFlags) heading(s *transcript.Session, bill *float64) string {
	parts := []string{cmp.Or(cmdline.Truncate(s.Title, 72), cmdline.Label(s.ID), "a session")}
	for _, part := range []string{agents.Name(s.Meta.Client), s.Model, cmp.Or(s.Meta.Project, s.Project)} {
		if part != "" {
			parts = append(parts, cmdline.Label(part))
		}
	}
	messages := recorded.MessagesIn(s.Log)
	parts = append(parts, countMessages(messages, s.Log.State().Len()))
	if bill != nil {
		parts = append(parts, "billed "+numbers.Money(*bill))
	}
	return strings.Join(parts, ", ") + "\n"
}

// ReduceCommand returns furl reduce.
func ReduceCommand(p cmdline.Program) *cobra.Command {
	f := viewFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	var dry bool
	cmd := &cobra.Command{
		Use:   "reduce SESSION|FILE",
		Short: "Apply a policy to a session now",
		Long: `Applies a policy to a stored session now, even if its trigger is not reached, and
prints what each stage hides or why it was skipped. furl restore undoes it.

Recordings are never changed: a file requires --dry-run, which prints what the
policy would hide before one of the recorded requests, and whether its trigger is
reached there.`,
		Example: `  furl reduce latest --policy rolling-mask-10 --dry-run
  furl reduce latest --policy rolling-mask-10
  furl reduce session.jsonl --dry-run --policy clear-100k
  furl reduce session.jsonl --dry-run --policy sliding-window --at-request 120`,
		Args:              cmdline.OneSession,
		ValidArgsFunction: cmdline.CompleteSessions(&f.StoreFlags),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.Place != "" || !cmdline.IsRecording(args[0]) {
				return reduceStored(&f.StoreFlags, cmd, args[0], f.policy, f.Model, dry)
			}
			if err := f.checkNumbers(cmd); err != nil {
				return err
			}
			if f.policy == "" {
				f.policy = "clear-100k"
			}
			if !dry {
				return cmdline.BadUsage("recordings are never changed; add --dry-run to see what %s would hide", f.policy)
			}
			t, err := f.Target(cmd, args[0], f.session)
			if err != nil {
				return err
			}
			defer t.Close(&err)
			return f.preview(cmd, t)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the effect, change nothing")
	cmd.Flags().Bool("force", true, "has no effect: the policy always acts")
	_ = cmd.Flags().MarkHidden("force") // of former versions
	cmd.Flags().StringVar(&f.policy, "policy", "", "policy `name`: "+strings.Join(p.PolicyNames(), ", ")+" (default the session's; for a file that of the configuration, else clear-100k)")
	f.add(cmd)
	cmdline.Complete(cmd, "policy", p.PolicyNames)
	cmdline.Complete(cmd, "model", cmdline.ModelNames)
	return cmd
}

// preview applies the policy once to the session as recorded, even if its trigger is
// not reached.
func (f *viewFlags) preview(cmd *cobra.Command, t *cmdline.Target) error {
	s := t.Wire()
	name, p, off, err := f.reducing(cmd, cmp.Or(f.Model, s.Model))
	if err != nil {
		return err
	}
	seen, err := t.ViewAtRequest(cmd.Context(), f.at)
	if err != nil {
		return err
	}
	in, err := f.inspect(cmd, s, seen, "none")
	if err != nil {
		return err
	}
	usual, err := p.Plan(cmd.Context(), in.Log.State(), in.Budget)
	if err != nil {
		return err
	}
	in.Budget.Force = true
	plan, err := p.Plan(cmd.Context(), in.Log.State(), in.Budget)
	if err != nil {
		return err
	}
	if f.Json {
		outcome, err := policy.OutcomeOf(p, in.Log.State(), &in.Budget, plan)
		if err != nil {
			return err
		}
		out := replayedOf(in, seen, name)
		out.Before, out.After, out.Steps, out.View = plan.Before, plan.After, plan.Steps, plan.View
		asJSON := viewJSON(out)
		asJSON.Outcome = &outcome
		return cmdline.PrintJSON(cmd.OutOrStdout(), asJSON)
	}
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "Request %d of %d: about %s tokens%s, with %s about %s.\n\n", seen.Number, seen.Requests, numbers.Thousands(plan.Before), ofWindow(in.Budget.Window), name, numbers.Thousands(plan.After))
	pr := &printer{w: w, color: cmdline.Styled(w), full: f.full, cols: cmdline.Width(w)}
	for _, st := range plan.Steps {
		if st.Skipped != "" {
			fmt.Fprintf(w, "%-10s skipped: %s\n", st.Stage, cmdline.Printable(st.Skipped))
			continue
		}
		fmt.Fprintf(w, "%-10s %s → %s tokens\n", st.Stage, numbers.Thousands(st.Before), numbers.Thousands(st.After))
	}
	switch {
	case off:
		fmt.Fprintln(w, "Nothing is hidden: context management is off (context_management_enabled is false).")
	case len(plan.Reductions) == 0:
		fmt.Fprintf(w, "%s finds nothing to hide.\n", name)
	case len(usual.Reductions) == 0:
		fmt.Fprintf(w, "The trigger of %s is not reached here: without this command, it would not have acted before this request.\n", name)
	}
	for _, red := range plan.Reductions {
		pr.covered(in.Log.State(), red)
	}
	if plan.Reason != "" {
		fmt.Fprintln(w, cmdline.Printable(plan.Reason))
	}
	printWarnings(w, plan.Warnings)
	return nil
}

func modelName(id string) string {
	if id == "" {
		return "unknown model"
	}
	return cmdline.Label(id)
}

func ofWindow(n int) string {
	if n == 0 {
		return ", window unknown"
	}
	return " of " + numbers.Thousands(n)
}
