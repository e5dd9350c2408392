package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

func redactCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var patterns []string
	var dry, yes bool
	cmd := &cobra.Command{
		Use:   "redact [SESSION [RECORD.BLOCK]...]",
		Short: "Remove secrets from what was recorded",
		Long: `Replaces secrets in what was recorded by "[redacted]", and overwrites the old bytes. It
finds common credentials, or what --pattern matches, or removes whole blocks. Without a
session, it searches all sessions. The bodies of requests of a redacted session can no
longer be shown. The session records when and how much was redacted. This cannot be
undone, so furl asks for confirmation. Gateways may go on running: clients that send
the secret again continue their sessions, and it is not recorded again. An interrupted
command can be repeated.`,
		Example: `  furl redact --dry-run
  furl redact 01jd5 12.0
  furl redact 01jd5 --pattern 'password=\S+' --yes`,
		ValidArgsFunction: completeSessions(&f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r := session.Redaction{By: furl.Person, DryRun: true}
			for _, p := range patterns {
				re, err := regexp.Compile(p)
				if err != nil {
					return badUsage("--pattern %q: %w", p, err)
				}
				if re.MatchString("") {
					return badUsage("--pattern %q matches the empty text: expected a pattern of the secret", p)
				}
				r.Patterns = append(r.Patterns, re)
			}
			for _, word := range args[min(1, len(args)):] {
				pos, err := parseBlock(word)
				if err != nil {
					return err
				}
				r.Blocks = append(r.Blocks, pos)
			}
			if len(r.Patterns) == 0 && len(r.Blocks) == 0 {
				r.Patterns = session.Credentials
			}
			store, err := f.existing(cmd.Context())
			if err != nil {
				return err
			}
			defer closing(store, &err)
			keys, err := f.redactable(cmd, store, args)
			if err != nil {
				return err
			}
			list, err := redactAll(cmd, store, keys, r)
			if err != nil {
				return err
			}
			if !dry {
				if len(list) > 0 && !yes {
					f.printRedacted(cmd, list, true)
					if err := confirm(cmd, fmt.Sprintf("Redact %s permanently?", numbers.Count(textsOf(list), "text"))); err != nil {
						return err
					}
				}
				r.DryRun = false
				if list, err = redactAll(cmd, store, keys, r); err != nil {
					return err
				}
				// An earlier redaction may have been interrupted before this.
				if w, ok := store.(storage.Rewriter); ok {
					if err := w.Scrub(cmd.Context()); err != nil {
						return fmt.Errorf("the sessions were redacted; overwrite the old bytes: %w", err)
					}
				}
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"sessions": list, "dry_run": dry})
			}
			f.printRedacted(cmd, list, dry)
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringArrayVar(&patterns, "pattern", nil, "redact what matches this regular `expression`, not common credentials")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be redacted, masked; change nothing")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

// parseBlock parses RECORD or RECORD.BLOCK.
func parseBlock(word string) (furl.Pos, error) {
	number, block, has := strings.Cut(word, ".")
	seq, err := strconv.ParseUint(number, 10, 63)
	pos := furl.Pos{Msg: furl.Seq(seq), Block: -1}
	if err == nil && has {
		pos.Block, err = strconv.Atoi(block)
	}
	if err != nil || seq == 0 || has && pos.Block < 0 {
		return pos, badUsage("invalid block %q: expected RECORD.BLOCK, as furl show prints them", word)
	}
	return pos, nil
}

// redactable returns the sessions that a command names, all of the store if it names
// none.
func (f *storeFlags) redactable(cmd *cobra.Command, store storage.Store, args []string) (keys []furl.SessionKey, err error) {
	if len(args) > 0 {
		t, err := f.stored(cmd.Context(), store, args[0])
		if err != nil {
			return nil, err
		}
		info := t.Info()
		return []furl.SessionKey{info.SessionKey}, nil
	}
	tenants, err := tenantsOf(cmd.Context(), store)
	if err != nil {
		return nil, err
	}
	for _, tenant := range tenants {
		for info, err := range store.Sessions(cmd.Context(), tenant, storage.SessionQuery{}) {
			if err != nil {
				return nil, err
			}
			keys = append(keys, info.SessionKey)
		}
	}
	return keys, nil
}

// jsonRedacted is what was redacted in a session.
type jsonRedacted struct {
	Tenant   string         `json:"tenant"`
	Session  furl.SessionID `json:"session"`
	Records  []furl.Seq     `json:"records"`
	Texts    int            `json:"texts"`
	Bytes    int            `json:"bytes"`
	Requests int            `json:"requests_removed"`
	Samples  []jsonSample   `json:"samples"`
}

type jsonSample struct {
	Record furl.Seq `json:"record,omitempty"`
	Masked string   `json:"masked"`
}

func redactAll(cmd *cobra.Command, store storage.Store, keys []furl.SessionKey, r session.Redaction) ([]jsonRedacted, error) {
	list := []jsonRedacted{}
	for _, key := range keys {
		rep, err := session.Redact(cmd.Context(), store, key, r)
		if err != nil {
			return nil, err
		}
		if rep.Found == 0 {
			continue
		}
		j := jsonRedacted{Tenant: tenantWord(key.Tenant), Session: key.Session, Records: rep.Records, Texts: rep.Found, Bytes: rep.Bytes, Requests: rep.Requests}
		for _, s := range rep.Samples {
			j.Samples = append(j.Samples, jsonSample{s.Record, s.Masked})
		}
		list = append(list, j)
	}
	return list, nil
}

func textsOf(list []jsonRedacted) (n int) {
	for _, j := range list {
		n += j.Texts
	}
	return n
}

func (f *storeFlags) printRedacted(cmd *cobra.Command, list []jsonRedacted, dry bool) {
	out, verb := cmd.OutOrStdout(), "redacted"
	if dry {
		verb = "would redact"
	}
	for _, j := range list {
		fmt.Fprintf(out, "%s %s: %s, %s bytes\n", verb, j.Session, numbers.Count(j.Texts, "text"), numbers.Thousands(j.Bytes))
		for _, s := range j.Samples[:min(len(j.Samples), 20)] {
			where := "metadata or request"
			if s.Record != 0 {
				where = fmt.Sprintf("record %d", s.Record)
			}
			fmt.Fprintf(out, "  %s: %s\n", where, printable(s.Masked))
		}
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "No secrets found.")
	}
}
