package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furltest"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// powerless makes the test binary drop root's capabilities to ignore file modes before it
// does anything else. A read-only mount would need more rights than a test has, and
// other users cannot access the test's files.
const powerless = "FURL_TEST_POWERLESS"

func init() {
	if os.Getenv(powerless) == "" {
		return
	}
	os.Unsetenv(powerless)
	if os.Geteuid() != 0 {
		return // other users obey the modes
	}
	const dropFromBounds, override, readSearch = 24, 1, 2 // PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
	runtime.LockOSThread()
	for _, power := range []uintptr{override, readSearch} {
		if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, dropFromBounds, power, 0); e != 0 {
			fmt.Fprintln(os.Stderr, "give up the right to write everywhere:", e)
			os.Exit(99)
		}
	}
	// A program that a thread starts is limited to the thread's capability bounds.
	err := syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	fmt.Fprintln(os.Stderr, "begin again:", err)
	os.Exit(99)
}

// readOnly creates a read-only folder with these files.
func readOnly(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mount")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, from := range files {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	return dir
}

// furlWithoutPowers runs a command and returns its output and error.
func furlWithoutPowers(home string, args ...string) (string, error) {
	cmd := furlCommand(home, args...)
	cmd.Env = append(cmd.Env, powerless+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// filesIn lists a folder with the times of its files.
func filesIn(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(e.Name(), info.Size(), info.ModTime(), info.Mode()))
	}
	return list
}

// A store on a read-only file system can be read by every command that reads,
// and commands that write report why they cannot.
func TestReadOnlyStore(t *testing.T) {
	home := t.TempDir()
	recording := filepath.Join(home, "session.jsonl")
	lines := `{"type":"user","sessionId":"kept","uuid":"u1","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"where is the needle"}}
{"type":"assistant","sessionId":"kept","uuid":"u2","parentUuid":"u1","timestamp":"2026-01-02T03:04:06Z","message":{"id":"m","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"in the haystack"}],"usage":{"input_tokens":9,"output_tokens":3}}}
`
	if err := os.WriteFile(recording, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := furlCommand(home, "import", "--store", home+"/furl.db", recording).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := readOnly(t, map[string]string{"furl.db": home + "/furl.db"})
	store := filepath.Join(dir, "furl.db")
	if out, err := furlWithoutPowers(home, "export", "--store", store, "kept", "-o", dir+"/x.jsonl"); err == nil {
		t.Fatalf("the folder can be written to: %s", out)
	}
	before := filesIn(t, dir)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"sessions"}, "kept"},
		{[]string{"show", "kept"}, "haystack"},
		{[]string{"show", "latest", "--view"}, "haystack"},
		{[]string{"search", "needle", "--session", "kept"}, "furl:kept/1"},
		{[]string{"search", "needle"}, "needle"},
		{[]string{"get", "kept", "1"}, "where is the needle"},
		{[]string{"context", "kept"}, "tokens"},
		{[]string{"branches", "kept"}, "haystack"},
		{[]string{"export", "kept"}, "haystack"},
		{[]string{"stats"}, "sessions"},
		{[]string{"doctor"}, ""},
		{[]string{"reduce", "kept", "--dry-run"}, ""},
	} {
		out, err := furlWithoutPowers(home, slices.Insert(c.args, 1, "--store", store)...)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("furl %s: %v\n%s", strings.Join(c.args, " "), err, out)
		}
	}
	page := furlCommand(home, "ui", "kept", "--store", store, "--listen", "127.0.0.1:0", "--no-open")
	page.Env = append(page.Env, powerless+"=1")
	ui := start(t, page)
	if body := browse(t, ui.url); !strings.Contains(body, "haystack") {
		t.Errorf("furl ui shows\n%s", body)
	}
	ui.kill()
	for _, args := range [][]string{
		{"pin", "kept", "1"}, {"fork", "kept"}, {"rewind", "kept", "1"}, {"delete", "--yes", "kept"}, {"doctor", "--mend"},
		{"import", recording, "--again"},
	} {
		out, err := furlWithoutPowers(home, slices.Insert(args, 1, "--store", store)...)
		if err == nil || !strings.Contains(out, "writable") {
			t.Errorf("furl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if after := filesIn(t, dir); !slices.Equal(before, after) {
		t.Errorf("the folder has changed from\n%v to\n%v", before, after)
	}
}

// Changes that a killed process left in the write-ahead log are not ignored: they are
// read, or the error says what to do.
func TestReadOnlyStoreWithLog(t *testing.T) {
	home := t.TempDir()
	p := startWithSession(t, home)
	files := map[string]string{"furl.db": p + "/furl.db", "furl.db-wal": p + "/furl.db-wal"}
	dir := readOnly(t, files)
	out, err := furlWithoutPowers(home, "sessions", "--store", filepath.Join(dir, "furl.db"))
	if err == nil && !strings.Contains(out, "in-the-l") || err != nil && !strings.Contains(out, "furl.db-wal") {
		t.Errorf("without the index of the log: %v\n%s", err, out)
	}
	files["furl.db-shm"] = p + "/furl.db-shm"
	dir = readOnly(t, files)
	out, err = furlWithoutPowers(home, "sessions", "--store", filepath.Join(dir, "furl.db"))
	if err == nil && !strings.Contains(out, "in-the-l") || err != nil && !strings.Contains(out, "furl.db-wal") {
		t.Errorf("with it: %v\n%s", err, out)
	}
}

// startWithSession creates a folder with the store of a killed process: the session
// in-the-log is only in the write-ahead log.
func startWithSession(t *testing.T, home string) string {
	t.Helper()
	dir := t.TempDir()
	s, err := sqlite.Open(dir+"/furl.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	records := furltest.Session(furltest.SessionOptions{Messages: 6})
	if err := s.Append(t.Context(), furl.SessionKey{Session: "in-the-log"}, storage.Batch{Records: records}); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(home, "killed")
	if out, err := exec.Command("cp", "-r", dir, killed).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return killed
}
