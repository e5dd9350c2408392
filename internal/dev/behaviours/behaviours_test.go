package behaviours

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "fill in the last column of docs/internals/behaviours.md")

//go:generate go test -run TestTable -update

const (
	root = "../../.."
	doc  = "../../../docs/internals/behaviours.md"
)

// ids is the number of promises for each letter. With presets and events, these are all
// promises that furl is built on; the document may have more.
var ids = map[byte]int{'T': 8, 'A': 9, 'C': 10, 'R': 7, 'M': 9, 'X': 6}

var presets = []string{"none", "tool-age", "sliding-window", "compaction", "rolling", "graduated", "rolling-mask-10", "rolling-mask-5", "clear-100k", "auto"}

var events = []string{
	"sliding_window_truncation", "summary_requested", "context_compacted", "context_usage", "context_rolled", "observations_masked",
	"reduction_skipped", "restored", "rewound", "overflow_recovered", "warning",
}

// required lists the ids that the document must have.
func required() []string {
	var all []string
	for letter, n := range ids {
		for i := 1; i <= n; i++ {
			all = append(all, fmt.Sprintf("%c%d", letter, i))
		}
	}
	for _, name := range presets {
		all = append(all, "preset "+name)
	}
	for _, name := range events {
		all = append(all, "event "+name)
	}
	slices.Sort(all)
	return all
}

// TestTable compares docs/internals/behaviours.md with the tests: a promise listed as
// tested has a test, one that is not has its gap written down, and tests contain no
// unknown id.
func TestTable(t *testing.T) {
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	found, err := table.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		text := table.Update(func(r Row) string { return where(found[r.ID]) })
		if err := os.WriteFile(doc, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	known := map[string]bool{}
	for _, r := range table.Rows {
		known[r.ID] = true
		if r.Tested() && len(found[r.ID]) == 0 {
			t.Errorf("%s is listed as tested in %s, but no test bears its id", r.ID, r.Where)
		}
		if !r.Tested() && len(found[r.ID]) > 0 {
			t.Errorf("%s is listed as not tested, but %s bears its id: run make generate", r.ID, found[r.ID][0])
		}
		if !r.Tested() && table.Gaps[r.ID] == "" {
			t.Errorf("%s has no test: write one, or write down what is missing and why in the section %q", r.ID, gapsHead)
		}
	}
	for id, files := range found {
		if !known[id] {
			t.Errorf("%s bears the id %s, which is not in docs/internals/behaviours.md", strings.Join(files, ", "), id)
		}
	}
	for _, id := range required() {
		if !known[id] {
			t.Errorf("docs/internals/behaviours.md lacks %s", id)
		}
	}
}

// where is the last column for the files that test a promise.
func where(files []string) string {
	const most = 4
	if len(files) == 0 {
		return Untested
	}
	files = slices.Sorted(slices.Values(files))
	more := ""
	if n := len(files) - most; n > 0 {
		more, files = fmt.Sprintf(", %d more", n), files[:most]
	}
	return "`" + strings.Join(files, "`, `") + "`" + more
}

const sample = `# Promises

| id | promise | tested in |
|---|---|---|
| T1 | half of the rest | ` + "`policy/truncate_test.go`" + ` |
| A5 | used names stay | not yet |
| preset rolling | the oldest go | not yet |
| preset rolling-mask-10 | ten results | not yet |
| event context_usage | the meter | not yet |
`

func TestParseAndUpdate(t *testing.T) {
	table, err := Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 5 || !table.Rows[0].Tested() || table.Rows[1].Tested() {
		t.Errorf("rows %+v", table.Rows)
	}
	same := table.Update(func(r Row) string { return r.Where })
	if string(same)+"\n" != sample {
		t.Errorf("an update without changes gave\n%s", same)
	}
	changed := table.Update(func(r Row) string { return "`x_test.go`" })
	if n := bytes.Count(changed, []byte("| `x_test.go` |")); n != 5 {
		t.Errorf("%d rows updated, want 5", n)
	}
	for _, bad := range []string{"| Q1 | x | y |", "| T1 | x |", "| T1 |  | y |", "| T1 | x | y |\n| T1 | x | y |"} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("Parse(%q) returned no error", bad)
		}
	}
}

func TestGaps(t *testing.T) {
	table, err := Parse([]byte(sample + "\n## Gaps\n\nA line.\n\n- A5, preset rolling: there is no way to do it\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Gaps) != 2 || table.Gaps["A5"] != "there is no way to do it" || table.Gaps["preset rolling"] == "" {
		t.Errorf("gaps %q", table.Gaps)
	}
	for _, bad := range []string{"- A6: not in the table", "- A5: ", "- A5", "- A5: one\n- A5: two"} {
		if _, err := Parse([]byte(sample + "\n## Gaps\n\n" + bad)); err == nil {
			t.Errorf("Parse with the gap %q returned no error", bad)
		}
	}
}

func TestSpans(t *testing.T) {
	doc := "| T1 | Run `furl show` or `/compact now`. | `a_test.go` |\n\n```\n$ furl stats --json | jq\n```\n\n    furl set latest title='a b' 'c --d' # why\n\n`GET /furl/v1/status`, `--view`\n\n## Gaps\n\n- T1: `furl nope`\n"
	var got []string
	for _, s := range Spans(Promises([]byte(doc))) {
		kind := "other"
		switch {
		case s.IsCommand():
			kind = "command"
		case s.IsEndpoint():
			kind = "endpoint"
		case s.IsSlash():
			kind = "slash"
		case s.IsFlag():
			kind = "flag"
		}
		got = append(got, fmt.Sprintf("%d %s %q", s.Line, kind, s.Words()))
	}
	want := []string{
		`1 command ["furl" "show"]`, `1 slash ["/compact" "now"]`, `4 command ["furl" "stats" "--json"]`,
		`7 command ["furl" "set" "latest" "title='a" "b'" "'c"]`, `9 endpoint ["GET" "/furl/v1/status"]`, `9 flag ["--view"]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBorne(t *testing.T) {
	table, err := Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		want []string
	}{
		{"TestT7Roo", []string{"T7"}},
		{"TestT7_orphans", []string{"T7"}},
		{"TestTruncate/T1_half_of_the_rest", []string{"T1"}},
		{"A5 A6 errors and used names", []string{"A5", "A6"}},
		{"keeps names, A5", []string{"A5"}},
		{"c10-background.txtar", []string{"C10"}},
		{"t1_t5_nested.txtar", []string{"T1", "T5"}},
		{"TestA5A6Keep", []string{"A5", "A6"}},
		{"T9 is not in the table", []string{"T9"}},
		{"TestPresets/preset_rolling-mask-10", []string{"preset rolling-mask-10"}},
		{"preset-rolling-evicts.txtar", []string{"preset rolling"}},
		{"event context_usage", []string{"event context_usage"}},
		{"TestX509", nil},
		{"TestMaskA", nil},
		{"sha256 of a1", nil},
		{"TestReset", nil},
		{"UTF8", nil},
	}
	for _, tt := range tests {
		if got := table.Borne(tt.name); !slices.Equal(got, tt.want) {
			t.Errorf("Borne(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"policy/mask_test.go": `package policy
import "testing"
func TestA1(t *testing.T) {
	for _, tt := range []struct{ name, id string }{{"A2 text", "A9"}, {name: "A3"}, {"A8", "x"}, {"event warning", ""}} {
		t.Run(tt.name, nil)
	}
	for name := range map[string]int{"A4 off": 1, "A7": 2} { t.Run("M1/"+name, nil) }
	_ = "A9 in a message"
}
func helperA6() {}
`,
		"policy/mask.go":                    "package policy\nfunc TestR1() {}\n",
		"policy/testdata/t2-marker.txtar":   "T3",
		"policy/testdata/deep/x1-valid.txt": "",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	table, err := Parse([]byte("| event warning | x | y |"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := table.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(found))
	for id := range found {
		got = append(got, id)
	}
	slices.Sort(got)
	if want := []string{"A1", "A2", "A3", "A4", "M1", "T2", "X1", "event warning"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got, want := found["T2"], []string{"policy/testdata/t2-marker.txtar"}; !slices.Equal(got, want) {
		t.Errorf("T2 in %q, want %q", got, want)
	}
}
