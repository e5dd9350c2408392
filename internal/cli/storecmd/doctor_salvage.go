package storecmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/doctor"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/sqlite"
)

// jsonSalvaged is one session in furl doctor --mend --to --json.
type jsonSalvaged struct {
	Session furl.SessionID `json:"session"`
	Saved   int            `json:"saved"`
	// Lost are the records that could not be saved, such as "12-19".
	Lost       []string `json:"lost,omitempty"`
	NameLost   bool     `json:"name_lost,omitempty"`
	TenantLost bool     `json:"tenant_lost,omitempty"`
	// Sealed is why encrypted records could not be decrypted.
	Sealed string `json:"sealed,omitempty"`
}

// salvage copies the readable part of a damaged store to a new file and checks the
// copy. keysFile has exported keys of tenants, "" for none.
func salvage(f *cmdline.StoreFlags, cmd *cobra.Command, to, keysFile string) (err error) {
	place, err := f.Where()
	if err != nil {
		return err
	}
	if workspace.IsDatabase(place) {
		return cmdline.BadUsage("--to works with SQLite files only; use the tools of PostgreSQL for its databases")
	}
	var exported []byte
	if keysFile != "" {
		if exported, err = readExportedKeys(keysFile); err != nil {
			return err
		}
	}
	ctx := cmd.Context()
	progress := cmdline.NewBar(cmd.ErrOrStderr(), f.Json)
	done, err := sqlite.Salvage(ctx, place, to, &sqlite.SalvageOptions{
		Progress: func(page, total int64) {
			progress.Say(fmt.Sprintf("page %s of %s", numbers.Thousands(int(page)), numbers.Thousands(int(total))))
		},
		Encryption: func(store *sqlite.Store, keys map[furl.Tenant][]byte) (sqlite.Opener, error) {
			master, err := f.Master()
			if err != nil {
				return nil, err
			}
			l := encrypted.New(store, master)
			if err := encrypted.RestoreKeys(ctx, l, keys); err != nil || exported == nil {
				return l, err
			}
			_, err = encrypted.Import(ctx, l, exported)
			return l, err
		},
	})
	progress.Clear()
	if err != nil {
		return err
	}
	plain, err := sqlite.Open(to, nil)
	if err != nil {
		return err
	}
	store, err := f.Encrypted(plain)
	if err != nil {
		return err
	}
	defer workspace.CloseStore(store, &err)
	found := []doctor.Problem{}
	for p, err := range doctor.Store(ctx, &f.Workspace, store, false, make(map[string]int), progress.Say) {
		if err != nil {
			return err
		}
		found = append(found, p)
	}
	progress.Clear()
	lost := 0
	sealed := false
	list := make([]jsonSalvaged, 0, len(done.Sessions))
	for _, s := range done.Sessions {
		j := jsonSalvaged{Session: s.Session, Saved: s.Saved, NameLost: s.NameLost, TenantLost: s.TenantLost}
		destroyed := false // on purpose, so it is not lost
		if s.Sealed != nil {
			j.Sealed = s.Sealed.Error()
			missing, ok := errors.AsType[*encrypted.KeyError](s.Sealed)
			destroyed = ok && !missing.Destroyed.IsZero()
			sealed = sealed || ok && !destroyed
		}
		for _, r := range s.Lost {
			j.Lost = append(j.Lost, r.String())
			if !destroyed {
				lost += int(r.Last-r.First) + 1
			}
		}
		list = append(list, j)
	}
	w := cmd.OutOrStdout()
	if f.Json {
		err = cmdline.PrintJSON(w, map[string]any{"file": to, "pages": done.Pages, "unread": done.Unread, "sessions": list, "lost": lost, "problems": found})
	} else {
		printSalvaged(w, to, list, found)
	}
	switch {
	case err != nil:
		return err
	case len(found) > 0:
		return fmt.Errorf("%s has %s", to, numbers.Count(len(found), "problem"))
	case sealed:
		return fmt.Errorf("%s lost, because keys of tenants are lost: delete %s, and run the command again with --tenant-keys FILE, the output of furl encryption export", numbers.Count(lost, "record"), to)
	case lost > 0 || done.Unread > 0:
		return errors.New(numbers.Count(lost, "record") + " lost; a backup may have them")
	}
	return nil
}

func printSalvaged(w io.Writer, to string, list []jsonSalvaged, found []doctor.Problem) {
	whole := 0
	for _, s := range list {
		if len(s.Lost) == 0 && !s.NameLost && !s.TenantLost && s.Sealed == "" {
			whole++
			continue
		}
		line := fmt.Sprintf("session %s: %s saved", s.Session, numbers.Count(s.Saved, "record"))
		if len(s.Lost) > 0 {
			line += ", lost: " + s.lostWords()
		}
		if s.NameLost {
			line += "; its id is lost"
		}
		if s.TenantLost {
			line += "; its tenant is lost, so no client of a gateway can access it"
		}
		if s.Sealed != "" {
			line += "; " + cmdline.Printable(s.Sealed)
		}
		fmt.Fprintln(w, line)
	}
	for _, p := range found {
		fmt.Fprintln(w, p.Words())
	}
	fmt.Fprintf(w, "%s: %s saved, %d complete\n", cmdline.Printable(to), numbers.Count(len(list), "session"), whole)
}

// lostWords lists the lost records, at most eight ranges.
func (s *jsonSalvaged) lostWords() string {
	const most = 8
	words := ""
	for i, r := range s.Lost {
		if i == most {
			return words + fmt.Sprintf(" and %d more", len(s.Lost)-most)
		}
		if i > 0 {
			words += ", "
		}
		words += r
	}
	return words
}
