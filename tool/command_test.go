package tool

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl/internal/dev/needs"
)

func TestCommand(t *testing.T) {
	needs.Shell(t)
	t.Setenv("TEST_API_KEY", "secret")
	t.Setenv("TEST_TOKEN", "kept")
	f := openFolder(t, Options{Environment: []string{"TEST_TOKEN"}, MaxOutput: 100}, map[string]string{"f": "text"})
	for _, c := range []struct {
		command, want string
		failed        bool
	}{
		{command: "cat f", want: "text\n[Exit code: 0]"},
		{command: "echo out; echo err >&2", want: "out\nerr\n[Exit code: 0]"},
		{command: "exit 3", want: "[Exit code: 3]", failed: true},
		{command: "cat", want: "[Exit code: 0]"}, // no input
		{command: `echo "$TEST_API_KEY,$TEST_TOKEN"`, want: ",kept\n[Exit code: 0]"},
		{command: "kill -9 $$", want: "[Stopped by signal: killed]", failed: true},
		{command: "printf 'a\\0b\\377'", want: "a\uFFFDb\uFFFD\n[Exit code: 0]"},
		{command: "echo here > made; cat made", want: "here\n[Exit code: 0]"},
	} {
		r, err := f.run(t.Context(), commandInput{Command: c.command})
		if err != nil || r.Text() != c.want || r.Error != c.failed {
			t.Errorf("%s: got %q, error %v, %v; want %q", c.command, r.Text(), r.Error, err, c.want)
		}
	}
	if got := get(t, f, "made"); got != "here\n" {
		t.Errorf("the command ran in another folder: %q", got)
	}
	for command, want := range map[string]string{"": "command is empty", " \n": "command is empty", "a\x00b": "zero byte"} {
		refuse(t, f, "run_command", args{"command": command}, want)
	}
	refuse(t, f, "run_command", args{"command": "true", "timeout": 4000}, "invalid timeout 4000")
	r, err := f.run(t.Context(), commandInput{Command: "seq 1 2000000"})
	if text := r.Text(); err != nil || len(text) > 250 || !strings.HasPrefix(text, "1\n2\n3\n") || !strings.HasSuffix(text, "\n2000000\n[Exit code: 0]") || !strings.Contains(text, "bytes omitted") {
		t.Errorf("got %q, %v", text, err)
	}
}

// Of a long output the start and the end are kept, in bounded memory.
func TestHeadTail(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := &headTail{half: rapid.IntRange(1, 20).Draw(r, "half")}
		var all []byte
		for range rapid.IntRange(0, 20).Draw(r, "writes") {
			p := []byte(rapid.StringOfN(rapid.SampledFrom([]rune("ab\nä")), 0, 50, -1).Draw(r, "text"))
			if n, err := b.Write(p); n != len(p) || err != nil {
				r.Fatalf("wrote %d of %d bytes, %v", n, len(p), err)
			}
			all = append(all, p...)
			if len(b.head) > b.half || len(b.tail) > 2*b.half || cap(b.head)+cap(b.tail) > 16*b.half+64 {
				r.Fatalf("%d and %d bytes are kept of %d", cap(b.head), cap(b.tail), b.half)
			}
		}
		got := b.String()
		if len(all) <= 2*b.half {
			if got != string(all) {
				r.Fatalf("got %q, want %q", got, all)
			}
			return
		}
		head, rest, ok := strings.Cut(got, fmt.Sprintf("\n[%d bytes omitted. ", len(all)-2*b.half))
		_, tail, _ := strings.Cut(rest, "]\n")
		if !ok || !strings.HasPrefix(string(all), head) || !strings.HasSuffix(string(all), tail) || len(head) < b.half-4 || len(tail) < b.half-3 {
			r.Fatalf("%q became %q", all, got)
		}
	})
}

func TestEnvironment(t *testing.T) {
	all := []string{
		"ANTHROPIC_API_KEY=x", "OPENAI_KEY=x", "GITHUB_TOKEN=x", "GH_TOKEN_2=x", "CLIENT_SECRET=x", "AWS_REGION=x", "DB_PASSWORD=x", "PGPASSWORD=x", "npm_config_authToken=x", "MY_PAT=x",
		"GOOGLE_APPLICATION_CREDENTIALS=x", "DATABASE_URL=postgres://u:p@host/db", "BROKEN=x://u:p@ho st%%", "apikey=x", "SECRET_KEY_BASE=x", "BASIC_AUTH=x",
	}
	harmless := []string{
		"PATH=/bin", "HOME=/h", "PWD=/p", "LANG=C", "SSH_AUTH_SOCK=/s", "KEYBOARD=us", "XDG_SESSION_PATH=/p", "COMPASS=n", "PROXY=http://host:1", "MAIL=a@b", "AUTHOR=me", "TERM=x", "URL=https://u@host/",
	}
	if got := environment(slices.Concat(all, harmless), nil); !slices.Equal(got, harmless) {
		t.Errorf("got  %v\nwant %v", got, harmless)
	}
	if got := environment(all, []string{"GITHUB_TOKEN", "AWS_REGION"}); !slices.Equal(got, []string{"GITHUB_TOKEN=x", "AWS_REGION=x"}) {
		t.Errorf("got %v", got)
	}
}
