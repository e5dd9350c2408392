package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
)

// viewFlags say which request of which session to look at.
type viewFlags struct {
	pricing
	storeFlags
	session string
	at      int
	policy  string
	window  string
	full    bool
	message int
	tokens  int // the configuration's window, where --window says none
}

func (f *viewFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.session, "session", "", "session of the file, by `id`, the beginning of one, or number (default the first)")
	fl.IntVar(&f.at, "at", 0, "`number` of the request to look at, from 1 (default the last)")
	fl.StringVar(&f.window, "window", "", "context window in `tokens`, such as 128k (default the model's)")
	f.storeFlags.add(cmd)
	fl.BoolVar(&f.full, "full", false, "print texts whole")
	f.pricing.add(fl)
}

func showCommand(p program) *cobra.Command {
	f := viewFlags{storeFlags: storeFlags{program: p}}
	var view, sent bool
	var request int
	cmd := &cobra.Command{
		Use:   "show SESSION|FILE",
		Short: "Show a session, or what the model sees of it",
		Long: `Prints a session of the store, or a recording's. With --view it prints what the
model sees: each message with its size, and in place of what is hidden what
stands there, how large the original is, and why. --at asks about one of its
requests, --policy about how that policy would have acted until then. A call that
furl answered itself, which the agent never had, is marked as furl's own.

--request prints the body of the request that an answer belongs to, byte for
byte: as the client sent it, or with --sent as furl sent it.`,
		Example: `  furl show latest
  furl show 01jd5 --view
  furl show session.jsonl
  furl show session.jsonl --message 42                     one message, whole
  furl show latest --request 42 --sent > sent.json         what furl sent
  furl show session.jsonl --view --policy rolling-mask-10
  furl show session.jsonl --view --at 57 --policy clear-100k --json`,
		Args:              oneSession,
		ValidArgsFunction: completeSessions(&f.storeFlags),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := f.asked(cmd); err != nil {
				return err
			}
			t, err := f.target(cmd, args[0], f.session)
			if err != nil {
				return err
			}
			defer t.close(&err)
			if cmd.Flags().Changed("request") {
				if view || f.message != 0 || f.at != 0 || f.policy != "" {
					return badUsage("--request prints the body of a request; leave out --view, --message, --at and --policy")
				}
				return f.requestBody(cmd, t, request, sent)
			}
			if sent {
				return badUsage("--sent says which body --request prints; add --request N")
			}
			s := t.wire()
			if f.message != 0 {
				if view || f.at != 0 || f.policy != "" {
					return badUsage("--message prints what was recorded; leave out --view, --at and --policy")
				}
				return f.one(cmd.OutOrStdout(), s)
			}
			if !view && f.policy == "" && f.at == 0 {
				return f.transcript(cmd.OutOrStdout(), s)
			}
			if t.file == "" && f.at == 0 && f.policy == "" {
				return f.now(cmd, t)
			}
			return f.view(cmd, s)
		},
	}
	cmd.Flags().BoolVar(&view, "view", false, "show what the model sees")
	cmd.Flags().StringVar(&f.policy, "policy", "", "`name` of the policy that acted before each request: "+strings.Join(p.policyNames(), ", ")+" (default none)")
	cmd.Flags().IntVar(&f.message, "message", 0, "print only the message of this `number`, whole, as it was recorded")
	cmd.Flags().IntVar(&request, "request", 0, "print only the body of the request that the answer of this `number` belongs to")
	cmd.Flags().BoolVar(&sent, "sent", false, "with --request: the body that furl sent, not the client's")
	f.add(cmd)
	complete(cmd, "policy", p.policyNames)
	complete(cmd, "model", catalog.Default().Names)
	return cmd
}

// asked refuses a request or a message that cannot be.
func (f *viewFlags) asked(cmd *cobra.Command) error {
	if cmd.Flags().Changed("at") && f.at < 1 {
		return badUsage("--at %d: requests count from 1", f.at)
	}
	if f := cmd.Flags().Lookup("message"); f != nil && f.Changed && (f.Value.String() == "0" || strings.HasPrefix(f.Value.String(), "-")) {
		return badUsage("--message %s: messages count from 1", f.Value)
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

// now prints what the model sees of a session of the store.
func (f *viewFlags) now(cmd *cobra.Command, t *target) error {
	m := t.all.Model(cmp.Or(f.model, t.Meta().Model), t.Meta().Format)
	if f.window != "" {
		var err error
		if m.Window, err = parseTokens(f.window); err != nil {
			return badUsage("--window %s: %w", f.window, err)
		}
	}
	log := t.wire().Log
	s := log.State()
	in := &replay.Inspection{Log: log, View: s.View(m), Plan: &furl.Plan{}, Budget: furl.Budget{Model: m, Window: m.Window}}
	in.Plan.Before, in.Plan.After = s.Size(), s.Size()
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
	fmt.Fprintf(w, "%s, after %s, %s: about %s tokens%s\n\n", t.ID(), plural(in.Requests, "request"), modelName(m.ID), thousands(in.Plan.After), ofWindow(m.Window))
	for i := range in.View.Messages {
		p.message(in, &in.View.Messages[i])
	}
	p.reductions(in)
	if hides(in.View) {
		p.note(fmt.Sprintf("\nNothing is lost: furl get %s HANDLE prints an original, furl restore %s N takes a reduction back.", t.ID(), t.ID()))
	}
	return nil
}

// inspect plays the session up to the request under a policy.
func (f *viewFlags) inspect(cmd *cobra.Command, s *transcript.Session, name string) (*replay.Inspection, error) {
	opts, err := f.options()
	if err != nil {
		return nil, err
	}
	win := f.tokens
	if f.window != "" {
		if win, err = parseTokens(f.window); err != nil {
			return nil, badUsage("--window %s: %w", f.window, err)
		}
	}
	set := f.program.set()
	if !slices.Contains(set.Variants(), name) { // one of the configuration, or an unknown one
		c, _, err := f.program.loadConfig(f.config, &f.pricing)
		if err != nil {
			return nil, err
		}
		set = c.Set()
	}
	c, err := replay.Candidates(set, name)
	if err != nil {
		return nil, usageError{err}
	}
	return replay.Inspect(cmd.Context(), s, c[0], win, f.at, opts)
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
	fmt.Fprintf(w, "Request %d of %d, %s, policy %s: about %s tokens%s\n\n", in.Number, in.Requests, modelName(in.Budget.Model.ID), name, thousands(in.Plan.After), ofWindow(in.Budget.Window))
	for i := range in.View.Messages {
		p.message(in, &in.View.Messages[i])
	}
	p.reductions(in)
	if hides(in.View) {
		p.note("\nNothing is lost: furl show FILE --message N prints a message whole, as it was recorded.")
	}
	return nil
}

// hides reports whether a view shows less than was recorded.
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

// one prints a single message of the recording, whole.
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

// transcript prints the session as it was recorded.
func (f *viewFlags) transcript(w io.Writer, s *transcript.Session) error {
	p := &printer{w: w, color: styled(w), full: f.full, cols: width(w)}
	if f.json {
		return printJSON(w, transcriptJSON(s))
	}
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
			p.note(fmt.Sprintf("── reductions taken over from the branch that ends at %d ──", b.Branch))
		case *furl.Head:
			p.note(fmt.Sprintf("── continues from record %d ──", r.Parent))
		}
	}
	return nil
}

func reduceCommand(p program) *cobra.Command {
	f := viewFlags{storeFlags: storeFlags{program: p}}
	var dry, force bool
	cmd := &cobra.Command{
		Use:   "reduce SESSION|FILE",
		Short: "Apply a policy to a session now",
		Long: `Lets a policy act now, whether or not its trigger is reached: each stage, what it
hides and frees, and why another did nothing. Nothing is lost; furl restore takes
it back.

A recording is never changed: with a file, --dry-run is required, and shows what
the policy would hide before one of the recorded requests.`,
		Example: `  furl reduce latest --policy rolling-mask-10 --dry-run
  furl reduce latest --policy rolling-mask-10
  furl reduce session.jsonl --dry-run --policy clear-100k
  furl reduce session.jsonl --dry-run --policy sliding-window --force --at 120`,
		Args:              oneSession,
		ValidArgsFunction: completeSessions(&f.storeFlags),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.place != "" || !isRecording(args[0]) {
				return f.reduceStored(cmd, args[0], f.policy, f.model, dry)
			}
			if err := f.asked(cmd); err != nil {
				return err
			}
			if f.policy == "" {
				f.policy = "clear-100k"
			}
			if !dry {
				return badUsage("a recording is never changed; add --dry-run to see what %s would hide", f.policy)
			}
			s, err := f.open(cmd, args[0])
			if err != nil {
				return err
			}
			return f.preview(cmd, s, force)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the effect, change nothing")
	cmd.Flags().BoolVar(&force, "force", false, "act even though the policy's trigger is not reached")
	cmd.Flags().StringVar(&f.policy, "policy", "", "`name` of the policy that acts: "+strings.Join(p.policyNames(), ", ")+" (default the session's own; for a file what the configuration says, else clear-100k)")
	f.add(cmd)
	complete(cmd, "policy", p.policyNames)
	complete(cmd, "model", catalog.Default().Names)
	return cmd
}

// preview plans once on the session as it was recorded.
func (f *viewFlags) preview(cmd *cobra.Command, s *transcript.Session, force bool) error {
	name, p, err := f.reducing(cmd, cmp.Or(f.model, s.Model))
	if err != nil {
		return err
	}
	in, err := f.inspect(cmd, s, "none")
	if err != nil {
		return err
	}
	in.Budget.Force = force
	plan, err := p.Plan(cmd.Context(), in.Log.State(), in.Budget)
	if err != nil {
		return err
	}
	in.Plan = plan
	after, err := plan.State(in.Log.State())
	if err != nil {
		return err
	}
	if f.json {
		in.View = after.View(in.Budget.Model)
		return printJSON(cmd.OutOrStdout(), viewJSON(in, name))
	}
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "Before request %d of %d, about %s tokens%s; %s would leave %s.\n\n", in.Number, in.Requests, thousands(plan.Before), ofWindow(in.Budget.Window), name, thousands(plan.After))
	pr := &printer{w: w, color: styled(w), full: f.full, cols: width(w)}
	for _, st := range plan.Steps {
		if st.Skipped != "" {
			fmt.Fprintf(w, "%-10s did nothing: %s\n", st.Stage, printable(st.Skipped))
			continue
		}
		fmt.Fprintf(w, "%-10s %s → %s tokens\n", st.Stage, thousands(st.Before), thousands(st.After))
	}
	if len(plan.Steps) == 0 {
		fmt.Fprintf(w, "Nothing to do: the trigger of %s is not reached. --force acts all the same.\n", name)
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
	return " of " + thousands(n)
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
