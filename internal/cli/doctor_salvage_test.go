package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/internal/cli"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// furl doctor --mend --to copies the readable part of a truncated store and lists what
// is lost. The new store has no problems, and the damaged one does not change.
func TestDoctorSalvages(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FURL_CONFIG", filepath.Join(dir, "config.yaml"))
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	whole, damaged := filepath.Join(dir, "whole.db"), filepath.Join(dir, "damaged.db")
	s, err := sqlite.Open(whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []furl.SessionID{"early", "late"} {
		records := furltest.Session(furltest.SessionOptions{Seed: uint64(i), Messages: 80})
		if err := s.Append(t.Context(), furl.SessionKey{Session: id}, storage.Batch{Records: records}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	data = data[:len(data)*4/5]
	if err := os.WriteFile(damaged, data, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (code int, out, errs string) {
		var stdout, stderr bytes.Buffer
		code = cli.Main(args, nil, strings.NewReader(""), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	if code, _, errs := run("doctor", "--store", damaged); code != 1 || !strings.Contains(errs, "--mend --to FILE") {
		t.Errorf("doctor gives %d and says %s", code, errs)
	}
	saved := filepath.Join(dir, "saved.db")
	code, out, errs := run("doctor", "--store", damaged, "--mend", "--to", saved)
	if code != 1 || !strings.Contains(out, "session late: ") || !strings.Contains(out, " saved, lost: ") || !strings.Contains(errs, "lost; a backup") {
		t.Errorf("doctor --mend --to gives %d and says\n%s%s", code, out, errs)
	}
	if after, err := os.ReadFile(damaged); err != nil || !bytes.Equal(after, data) {
		t.Errorf("the damaged file was changed (%v)", err)
	}
	if code, out, errs := run("doctor", "--store", saved); code != 0 {
		t.Errorf("the new store has problems: %s%s", out, errs)
	}
	if code, _, errs := run("show", "--store", saved, "early"); code != 0 {
		t.Errorf("a saved session cannot be shown: %s", errs)
	}
	// Everything in an undamaged store is saved.
	if code, out, errs := run("doctor", "--store", whole, "--mend", "--to", filepath.Join(dir, "all.db")); code != 0 || !strings.Contains(out, "2 sessions saved, 2 complete") {
		t.Errorf("of an undamaged store: %d\n%s%s", code, out, errs)
	}
	for _, args := range [][]string{{"--to", "x.db"}, {"--mend", "--to", saved}, {"--mend", "--to", whole}} {
		if code, _, _ := run(append([]string{"doctor", "--store", damaged}, args...)...); code == 0 {
			t.Errorf("doctor %q succeeds", args)
		}
	}
}
