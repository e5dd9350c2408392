package launch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The log of furl run stays small, keeps the newest lines, and is private.
func TestRunLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FURL_DATA", dir)
	l := OpenRunLog()
	defer l.Close()
	line := []byte("time=now level=WARN msg=" + strings.Repeat("x", 1000) + "\n")
	for range 3 * maxRunLog / len(line) {
		if _, err := l.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.Warnings(); n != 3*maxRunLog/len(line) {
		t.Errorf("%d warnings", n)
	}
	if _, err := l.Write([]byte("the newest line\n")); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(dir + "/*")
	if len(files) != 2 {
		t.Errorf("the folder has %q", files)
	}
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil || info.Size() > maxRunLog || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v bytes, mode %v, %v", name, info.Size(), info.Mode(), err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, runLogName)); err != nil || !bytes.HasSuffix(text, []byte("the newest line\n")) {
		t.Errorf("the newest line is missing: %v", err)
	}
}

// A log that cannot be written does not end the agent's work.
func TestRunLogWithoutFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FURL_DATA", file)
	l := OpenRunLog()
	if _, err := fmt.Fprintln(l, "a line"); err != nil {
		t.Error(err)
	}
	l.Close()
}

func TestReadTOML(t *testing.T) {
	got := readTOML([]byte(`profile = 'work' # mine
 model_provider="a#b"
number = 3
multi = """
[profiles."my corp"]
"model_provider" = "corp"
[ model_providers.corp ]
base_url = "http://x/v1"
unclosed = "x
`))
	for key, want := range map[string]string{
		"profile": "work", "model_provider": "a#b", "profiles.my corp.model_provider": "corp", "model_providers.corp.base_url": "http://x/v1",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

// A status line is for Claude Code's screen only.
func TestInteractiveClaude(t *testing.T) {
	for args, want := range map[string]bool{
		"": true, "--resume x": true, "fix it": true, "-p hello": false, "--model opus --print hello": false, "mcp list": false, "--version": false,
	} {
		if got := interactiveClaude(strings.Fields(args)); got != want {
			t.Errorf("claude %s: %v", args, got)
		}
	}
}

// Why requests of Gemini CLI do not reach furl.
func TestConnectGemini(t *testing.T) {
	tests := []struct {
		name, settings, project string
		env                     map[string]string
		args                    []string
		want                    string // in the warning; "": none
	}{
		{"a key", `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`, "", nil, []string{"-p", "hi"}, ""},
		{"a sign-in", `{"security":{"auth":{"selectedType":"oauth-personal"}}}`, "", nil, nil, `sends its requests to Gemini Code Assist`},
		{"a sign-in by the environment", "", "", map[string]string{"GOOGLE_GENAI_USE_GCA": "true"}, nil, "GOOGLE_GENAI_USE_GCA is true"},
		{"the project's choice", `{"security":{"auth":{"selectedType":"oauth-personal"}}}`, `{"security":{"auth":{"selectedType":"vertex-ai"}}}`, nil, nil, ""},
		{"no choice", "", "", nil, nil, ""},
		{"no choice, and a prompt", `{"ui":{}}`, "", nil, []string{"-p", "hi"}, `set security.auth.selectedType to "gemini-api-key" in`},
		{"Vertex AI by the environment", "", "", map[string]string{"GOOGLE_GENAI_USE_VERTEXAI": "true"}, []string{"-p", "hi"}, ""},
		{"settings that cannot be read", `{`, "", nil, []string{"-p", "hi"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			home, project := t.TempDir(), t.TempDir()
			for dir, text := range map[string]string{home: tt.settings, project: tt.project} {
				if text == "" {
					continue
				}
				if err := os.MkdirAll(filepath.Join(dir, ".gemini"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, ".gemini", "settings.json"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			place := Place{Getenv: func(name string) string { return tt.env[name] }, Home: home, folder: project}
			got := strings.Join(Connect(place, append([]string{"gemini"}, tt.args...), Forwarding{}).Problems, "\n")
			if tt.want == "" != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("warning %q, want %q", got, tt.want)
			}
		})
	}
}
