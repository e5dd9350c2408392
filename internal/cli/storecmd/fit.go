package storecmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/fit"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
)

// fitFlags are the flags of furl fit.
type fitFlags struct {
	cmdline.StoreFlags
	format, usage, at, session string
	body                       bool
	request                    fit.Request
}

// maxFitBody is the largest request body in bytes, as that of the gateway. maxFitMemory is the
// largest estimate of its decoded form.
const (
	maxFitBody   = 64 << 20
	maxFitMemory = 2 << 30
)

// FitCommand returns furl fit.
func FitCommand(p cmdline.Program) *cobra.Command {
	f := fitFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "fit [FILE|- [SESSION]]",
		Short: "Make a request body fit the context window",
		Long: `Reads the body of a request to a model from a file or standard input, hides what a
policy hides, and prints the body to send in its place, with what was done. The program
sends it itself; furl sends nothing. So an agent in any language can use furl's policies.

The output is {"body": …, "outcome": …, "events": […]}; with --body, the body alone.
Where nothing is hidden, the body has the bytes of the input.

Without --session nothing is remembered: each call plans anew. With --session, the
conversation is recorded in the store, and what was hidden stays hidden, so that the
beginning of the prompt stays the same and the provider's cache holds. Send the whole
history each time, also what was hidden; --usage gives the usage of the last reply,
which policies need for sizes and prices.

A gateway does the same in a process that keeps running: POST /furl/v1/fit.`,
		Example: `  furl fit --policy auto < request.json
  furl fit --policy rolling --budget 100000 --body request.json > smaller.json
  furl fit --policy auto --session agent-7 --usage "$USAGE" < request.json
  furl fit --policy graduated --budget 400000chars --body < request.json`,
		Args: cmdline.AtMost(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				f.session, args = args[1], args[:1]
			}
			return f.fit(cmd, args)
		},
	}
	f.Add(cmd)
	f.AddTenant(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.request.Policy, "policy", "", "policy `name`: "+strings.Join(p.PolicyNames(), ", ")+" (default that of the session, else of the configuration)")
	fl.StringVar(&f.request.Model, "model", "", "the `model`, if the body has none")
	fl.StringVar(&f.request.Budget, "budget", "", "largest prompt in `tokens`, such as 100000, or with graduated in characters, such as 400000chars (default what the model's window leaves)")
	fl.StringVar(&f.format, "format", "", "`format` of the body: "+strings.Join(fitFormats, ", ")+" (default by what the body has; texts alone look the same in the first two)")
	fl.StringVar(&f.usage, "usage", "", "usage object of the last reply, as the provider sent it: `JSON`; with --session")
	fl.StringVar(&f.at, "time", "", "`time` of the request, such as 2026-11-28T09:00:00Z (default now)")
	fl.StringVar(&f.session, "session", "", "`id` of the session that keeps what is hidden; created if it does not exist")
	fl.BoolVar(&f.body, "body", false, "print the body alone")
	cmdline.Complete(cmd, "policy", p.PolicyNames)
	cmdline.Complete(cmd, "format", func() []string { return fitFormats })
	return cmd
}

// fitFormats are the formats of request bodies.
var fitFormats = []string{string(furl.FormatAnthropic), string(furl.FormatChat), string(furl.FormatResponses)}

func (f *fitFlags) fit(cmd *cobra.Command, args []string) (err error) {
	r := &f.request
	r.Format, r.Session = furl.Format(f.format), furl.SessionID(f.session)
	if f.at != "" {
		if r.Time, err = time.Parse(time.RFC3339, f.at); err != nil {
			return cmdline.BadUsage("invalid --time %q: expected a time such as 2026-11-28T09:00:00Z", f.at)
		}
	}
	if f.usage != "" {
		if r.Usage = json.RawMessage(f.usage); !json.Valid(r.Usage) {
			return cmdline.BadUsage("invalid --usage: expected the usage object of a reply, such as {\"input_tokens\":1200,\"output_tokens\":80}")
		}
	}
	membudget.SoftLimit(membudget.CommandMemory)
	if r.Body, err = readFit(cmd.InOrStdin(), args); err != nil {
		return err
	}
	all, closeStore, err := f.fitSessions(cmd)
	if err != nil {
		return err
	}
	defer closeStore(&err)
	out, err := fit.Fit(cmd.Context(), all, r)
	if wrong := (*fit.Error)(nil); errors.As(err, &wrong) {
		return cmdline.AsUsage(err)
	}
	if err != nil {
		return err
	}
	if f.body {
		_, err = cmd.OutOrStdout().Write(out.Body)
		return err
	}
	text, err := out.MarshalJSON()
	if err == nil {
		_, err = cmd.OutOrStdout().Write(append(text, '\n'))
	}
	return err
}

// readFit reads the body from the file that args name, or from standard input.
func readFit(stdin io.Reader, args []string) ([]byte, error) {
	in, name := stdin, "standard input"
	if len(args) > 0 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in, name = file, args[0]
	} else if cmdline.IsTerminal(stdin) {
		return nil, cmdline.BadUsage("no request: name a file, or pass it on standard input, such as: furl fit < request.json")
	}
	body, err := io.ReadAll(io.LimitReader(in, maxFitBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(body) > maxFitBody:
		return nil, fmt.Errorf("read %s: it is larger than %s", name, numbers.Bytes(maxFitBody))
	case membudget.Request(len(body), 0, rawjson.CountValues(body)) > maxFitMemory:
		return nil, fmt.Errorf("read %s: it has too many parts", name)
	case len(body) == 0:
		return nil, cmdline.BadUsage("%s is empty: expected the body of a request", name)
	}
	return body, nil
}

// fitSessions returns the sessions of the store, or with nothing to remember sessions in
// memory, with the options of the configuration.
func (f *fitFlags) fitSessions(cmd *cobra.Command) (*session.Sessions, func(*error), error) {
	c, file, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return nil, nil, err
	}
	o, err := f.SessionOptions(c, file)
	if err != nil {
		return nil, nil, err
	}
	if f.session == "" {
		all, err := session.New(inmem.New(), o)
		return all, func(*error) {}, err
	}
	store, err := f.Open(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	all, err := session.New(store, o)
	if err == nil {
		var whose furl.Tenant
		if whose, err = f.Whose(cmd.Context(), store); err == nil {
			return all.For(whose), func(err *error) { workspace.CloseStore(store, err) }, nil
		}
	}
	return nil, nil, errors.Join(err, store.Close())
}
