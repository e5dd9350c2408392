package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/lexer"
)

func TestWholeNames(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		// paths keep what they begin with
		{"see /usr/bin/env and ./run_it.sh", "/usr/bin/env ./run_it.sh"},
		{"../../lib/api.ts, ~/src/x.go", "../../lib/api.ts ~/src/x.go"},
		{`"/.config/app.toml" .github/workflows/ci.yml`, "/.config/app.toml .github/workflows/ci.yml"},
		{"@scope/pkg-name @/components/button", "@scope/pkg-name @/components/button"},
		{"FILE=/tmp/out.txt", "/tmp/out.txt"},
		{"git push --force-with-lease", "--force-with-lease"},
		{"//exported_name of.that", "exported_name of.that"},
		{"${HOME}/src/main.go app/[id]/page.tsx", "src/main.go page.tsx"},
		{"- item_one\n-item_two", "item_one item_two"},
		{"x.filter_map(y)...long_name", "x.filter_map long_name"},
		// lines of grep and compilers
		{"cli/hooks.go:212:func runHook(", "cli/hooks.go runHook"},
		{"cli/hooks.go-418-\tresult_set\ncli/hooks.go-419", "cli/hooks.go result_set cli/hooks.go"},
		{"cli/hooks.go:12:5: undefined: hookErr", "cli/hooks.go hookErr"},
		{"12:runHook()\n350-runTest", "runHook runTest"},
		{"cli/hooks.go:runHook()", "cli/hooks.go runHook"},
		{"at run (/src/a_b.ts:12:7)", "/src/a_b.ts"},
		{"a 12-hex-char id, app-1.2.tar.gz-3 and node:fs/promises", "12-hex-char app-1.2.tar.gz-3 node:fs/promises"},
		{"GET /api/runs/:run_id http://localhost:8080/v1", "/api/runs/:run_id http://localhost:8080/v1"},
		{"origin/main:pkg/trace.ts:22:exportTrace", "origin/main:pkg/trace.ts exportTrace"},
		// diffs
		{"diff --git a/cmd/root.go b/cmd/root.go\n--- a/cmd/root.go\n+++ b/cmd/root.go", "cmd/root.go cmd/root.go cmd/root.go cmd/root.go"},
		{"call a/cmd/root.go", "a/cmd/root.go"},
		// escapes
		{`{"log":"done\ncmd/root.go\tfirst_name\u003cthe_tag"}`, "cmd/root.go first_name the_tag"},
		{`C:\new_dir\target_x`, ""},
		{"\x1b[31mfail_here\x1b[0m \x1b[1;33mwarn_here", "fail_here warn_here"},
		{"a%2Fsome_name cut_of…", ""},
	} {
		var got []string
		for l := range wholeNames(tt.text) {
			got = append(got, l.lead+l.name)
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("wholeNames(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

// A name is one of lexer.Names, whatever was removed from it, and what it is
// listed as is in the text.
func FuzzWholeNames(f *testing.F) {
	for _, seed := range []string{"", "a.go:12:x_y_z_w", "\\nab_cd_ef", "\\u12", "[1m", "12:", "a/b.go-1-2-3", "b/" + strings.Repeat("x.", 99), "1-_a.bcd:9", "%ab_cd_ef"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for l := range wholeNames(text) {
			if got := slices.Collect(lexer.Names(l.name)); len(got) != 1 || got[0] != l.name {
				t.Errorf("in %q: %q is not a name: %q", text, l.name, got)
			}
			if !strings.Contains(text, l.lead+l.name) {
				t.Errorf("in %q: %q is not in the text", text, l.lead+l.name)
			}
		}
	})
}

func TestShapes(t *testing.T) {
	for name, junk := range map[string]bool{
		"1.651s": true, "0-8.268-2.943": true, "12:30:59.123": true, "v1.2.3": true, "2.7.1-next.6": true, "drwxr-xr-x": true, "rw-r--r": true,
		"16053519..55dd28b4": true, "0x1004e2fc0": true, "673.418l1.882": true, "1044.98ms": true,
		"parseConfig": false, "a182587": false, "2777415401": false, "sha256": false, "/usr/bin/env": false, "2026-06-11-adapter.md": false, "example.org/x/y": false,
		"9a4894a7": false, "4b825dc642cb6eb9a060e54bf8d69288fbee4904": false, "state2": false, "12-hex-char": false,
	} {
		if got := shapeOf(name) == 0; got != junk {
			t.Errorf("%q is never listed: %v, want %v", name, got, junk)
		}
	}
}
