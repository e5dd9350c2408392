package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

// viewFlags are the flags of furl show and furl reduce.
type viewFlags struct {
	pricing
	storeFlags
	session string
	at      int
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
	fl.SetNormalizeFunc(renamed("at", "at-request"))
	fl.StringVar(&f.window, "window", "", "context window in `tokens`, such as 128k (default the model's)")
	f.storeFlags.add(cmd)
	fl.BoolVar(&f.full, "full", false, "print complete texts")
	f.pricing.add(fl)
}

func showCommand(p program) *cobra.Command {
	f := viewFlags{storeFlags: storeFlags{program: p}}
	var view, sent bool
	var request int
	cmd := &cobra.Command{
		Use:   "show SESSION|FILE",
		Short: "Show a session, or what the model sees",
		Long: `Prints a session of the store or of a recording. --view prints what the model sees:
each message with its size, and for hidden messages the placeholder, the size of
the original and the reason. --at-request selects one of the requests. --policy shows what
a policy would have hidden until then. Tool calls that furl answered itself are
marked "added by furl".

--request prints the body of the request that a reply belongs to, byte for byte:
as the client sent it, or with --sent as furl sent it.`,
		Example: `  furl show latest
  furl show 01jd5 --view
  furl show session.jsonl
  furl show session.jsonl --message 42                     one complete message
  furl show latest --request 42 --sent > sent.json         what furl sent
  furl show session.jsonl --view --policy rolling-mask-10
  furl show session.jsonl --view --at-request 57 --policy clear-100k --json`,
		Args:              oneSession,
		ValidArgsFunction: completeSessions(&f.storeFlags),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := f.checkNumbers(cmd); err != nil {
				return err
			}
			t, err := f.target(cmd, args[0], f.session)
			if err != nil {
				return err
			}
			defer t.close(&err)
			if cmd.Flags().Changed("request") {
				if view || f.message != 0 || f.at != 0 || f.policy != "" {
					return badUsage("--request prints the body of a request: omit --view, --message, --at-request and --policy")
				}
				return f.requestBody(cmd, t, request, sent)
			}
			if sent {
				return badUsage("--sent requires --request")
			}
			f.stored = t.file == ""
			s := t.wire()
			if f.message != 0 {
				if view || f.at != 0 || f.policy != "" {
					return badUsage("--message prints a recorded message: omit --view, --at-request and --policy")
				}
				return f.one(cmd.OutOrStdout(), s)
			}
			if !view && f.policy == "" && f.at == 0 {
				return f.transcript(cmd.OutOrStdout(), s)
			}
			if (t.file == "" || isReducedSince(s.Log)) && f.at == 0 && f.policy == "" {
				return f.now(cmd, t)
			}
			return f.view(cmd, s)
		},
	}
	cmd.Flags().BoolVar(&view, "view", false, "print what the model sees")
	cmd.Flags().StringVar(&f.policy, "policy", "", "policy `name` to apply before each request: "+strings.Join(p.policyNames(), ", ")+" (default none)")
	cmd.Flags().IntVar(&f.message, "message", 0, "print only the message with this record `number`, complete and as recorded")
	cmd.Flags().IntVar(&request, "request", 0, "print only the body of the request that the reply with this record `number` belongs to")
	cmd.Flags().BoolVar(&sent, "sent", false, "with --request: print the body that furl sent instead of the client's")
	f.add(cmd)
	f.addTenant(cmd)
	complete(cmd, "policy", p.policyNames)
	complete(cmd, "model", catalog.Default().Names)
	return cmd
}

// checkNumbers returns a usage error for numbers below 1.
func (f *viewFlags) checkNumbers(cmd *cobra.Command) error {
	if cmd.Flags().Changed("at-request") && f.at < 1 {
		return badUsage("invalid --at-request %d: requests are numbered from 1", f.at)
	}
	if f := cmd.Flags().Lookup("message"); f != nil && f.Changed && (f.Value.String() == "0" || strings.HasPrefix(f.Value.String(), "-")) {
		return badUsage("invalid --message %s: records are numbered from 1", f.Value)
	}
	return nil
}

// open reads a recording and finds the session.
func (f *viewFlags) open(cmd *cobra.Command, name string) (*transcript.Session, error) {
	rec, err := readRecording(cmd, name)
	if err != nil {
		return nil, err
	}
	return pick(rec, name, f.session)
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

// now prints what the model sees in the current state of a session.
func (f *viewFlags) now(cmd *cobra.Command, t *target) error {
	m := t.Model(cmp.Or(f.model, t.Meta().Model))
	if f.window != "" {
		var err error
		if m.Window, err = parseTokens(f.window); err != nil {
			return badUsage("--window %s: %w", f.window, err)
		}
	}
	log := t.wire().Log
	s := log.State()
	in := &replay.Inspection{Log: log, View: s.View(m), Plan: &furl.Plan{}, Budget: furl.Budget{Model: m, Window: m.Window}}
	in.Plan.After = cmp.Or(s.Size(), in.View.Tokens)
	in.Plan.Before = in.Plan.After
	for i := range log.Len() + 1 {
		in.Recorded = append(in.Recorded, furl.Seq(i))
	}
	for _, r := range log.Records(0) {
		if _, ok := r.Body.(*furl.Exchange); ok {
			in.Requests++
		}
	}
	in.Number = in.Requests
	name := cmp.Or(t.Meta().Policy, "")
	if f.json {
		return printJSON(cmd.OutOrStdout(), viewJSON(in, name))
	}
	w := cmd.OutOrStdout()
	p := &printer{w: w, color: styled(w), full: f.full, cols: width(w)}
	fmt.Fprintf(w, "%s, after %s, %s: about %s tokens%s\n\n", t.ID(), numbers.Count(in.Requests, "request"), modelName(m.ID), numbers.Thousands(in.Plan.After), ofWindow(m.Window))
	for i := range in.View.Messages {
		p.message(in, &in.View.Messages[i])
	}
	p.reductions(in)
	switch {
	case hides(in.View) && t.file != "":
		p.note("\nTo print an original: furl show FILE --message N.")
	case hides(in.View):
		p.note(fmt.Sprintf("\nTo print an original: furl get %s HANDLE. To undo reduction N: furl restore %s N.", t.ID(), t.ID()))
	}
	return nil
}

// inspect replays the session up to the request under a policy.
func (f *viewFlags) inspect(cmd *cobra.Command, s *transcript.Session, name string) (*replay.Inspection, error) {
	c, _, err := f.program.loadConfig(f.config, &f.pricing)
	if err != nil {
		return nil, err
	}
	opts, err := f.options()
	if err != nil {
		return nil, err
	}
	win := 0
	if f.window != "" {
		if win, err = parseTokens(f.window); err != nil {
			return nil, badUsage("--window %s: %w", f.window, err)
		}
	}
	if !f.stored || f.model != "" {
		opts.ModelWindow = c.SetByModel().Window
	}
	by := replay.Candidate{Name: name, New: func(z policy.Summarizer) (furl.Policy, error) {
		return policyFor(c, name, cmp.Or(f.model, s.Model), z)
	}}
	if _, err := by.New(nil); err != nil {
		return nil, usageError{err}
	}
	return replay.Inspect(cmd.Context(), s, by, win, f.at, opts)
}

func (f *viewFlags) view(cmd *cobra.Command, s *transcript.Session) error {
	name := f.policy
	if name == "" {
		name = "none"
	}
	in, err := f.inspect(cmd, s, name)
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(cmd.OutOrStdout(), viewJSON(in, name))
	}
	w := cmd.OutOrStdout()
	p := &printer{w: w, color: styled(w), full: f.full, cols: width(w)}
	fmt.Fprintf(w, "Request %d of %d, %s, policy %s: about %s tokens%s\n\n", in.Number, in.Requests, modelName(in.Budget.Model.ID), name, numbers.Thousands(in.Plan.After), ofWindow(in.Budget.Window))
	for i := range in.View.Messages {
		p.message(in, &in.View.Messages[i])
	}
	p.reductions(in)
	if hides(in.View) {
		p.note("\nTo print an original: furl show FILE --message N.")
	}
	return nil
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
	if f.json {
		out := jsonMessage{Record: seq, Role: string(m.Role)}
		for i := range m.Blocks {
			out.Blocks = append(out.Blocks, blockJSON(&m.Blocks[i]))
		}
		return printJSON(w, out)
	}
	p := &printer{w: w, color: styled(w), full: true, cols: width(w)}
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
func (f *viewFlags) transcript(w io.Writer, s *transcript.Session) error {
	p := &printer{w: w, color: styled(w), full: f.full, cols: width(w)}
	if f.json {
		return printJSON(w, transcriptJSON(s))
	}
	p.note(f.heading(s))
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

// heading describes a session in a line: title, agent, model, project and the number
// of messages.
func (f *viewFlags) heading(s *transcript.Session) string {
	parts := []string{cmp.Or(truncate(s.Title, 72), label(s.ID), "a session")}
	for _, part := range []string{agents.Name(s.Meta.Client), s.Model, cmp.Or(s.Meta.Project, s.Project)} {
		if part != "" {
			parts = append(parts, label(part))
		}
	}
	messages := messagesIn(s.Log)
	return strings.Join(append(parts, countMessages(messages, s.Log.State().Len())), ", ") + "\n"
}

func reduceCommand(p program) *cobra.Command {
	f := viewFlags{storeFlags: storeFlags{program: p}}
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
		Args:              oneSession,
		ValidArgsFunction: completeSessions(&f.storeFlags),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.place != "" || !isRecording(args[0]) {
				return f.reduceStored(cmd, args[0], f.policy, f.model, dry)
			}
			if err := f.checkNumbers(cmd); err != nil {
				return err
			}
			if f.policy == "" {
				f.policy = "clear-100k"
			}
			if !dry {
				return badUsage("recordings are never changed; add --dry-run to see what %s would hide", f.policy)
			}
			s, err := f.open(cmd, args[0])
			if err != nil {
				return err
			}
			return f.preview(cmd, s)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the effect, change nothing")
	cmd.Flags().Bool("force", true, "has no effect: the policy always acts")
	_ = cmd.Flags().MarkHidden("force") // of former versions
	cmd.Flags().StringVar(&f.policy, "policy", "", "policy `name`: "+strings.Join(p.policyNames(), ", ")+" (default the session's; for a file that of the configuration, else clear-100k)")
	f.add(cmd)
	complete(cmd, "policy", p.policyNames)
	complete(cmd, "model", catalog.Default().Names)
	return cmd
}

// preview applies the policy once to the session as recorded, even if its trigger is
// not reached.
func (f *viewFlags) preview(cmd *cobra.Command, s *transcript.Session) error {
	name, p, off, err := f.reducing(cmd, cmp.Or(f.model, s.Model))
	if err != nil {
		return err
	}
	in, err := f.inspect(cmd, s, "none")
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
	in.Plan = plan
	if f.json {
		in.View = plan.View
		return printJSON(cmd.OutOrStdout(), viewJSON(in, name))
	}
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "Request %d of %d: about %s tokens%s, with %s about %s.\n\n", in.Number, in.Requests, numbers.Thousands(plan.Before), ofWindow(in.Budget.Window), name, numbers.Thousands(plan.After))
	pr := &printer{w: w, color: styled(w), full: f.full, cols: width(w)}
	for _, st := range plan.Steps {
		if st.Skipped != "" {
			fmt.Fprintf(w, "%-10s skipped: %s\n", st.Stage, printable(st.Skipped))
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
		fmt.Fprintln(w, printable(plan.Reason))
	}
	return nil
}

func modelName(id string) string {
	if id == "" {
		return "unknown model"
	}
	return label(id)
}

func ofWindow(n int) string {
	if n == 0 {
		return ", window unknown"
	}
	return " of " + numbers.Thousands(n)
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
