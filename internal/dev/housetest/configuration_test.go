package housetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

var (
	quoted  = regexp.MustCompile("`([a-z][a-z0-9_]*)`")
	number  = regexp.MustCompile(`\d+(\.\d+)?`)
	deflt   = regexp.MustCompile(`If (?:both are )?(?:zero|empty), ([^.]*(?:\.\d[^.]*)*)`)
	thousds = regexp.MustCompile(`(\d),(\d{3})`)
)

// docs/use/configuration.md has a section for each preset, and each option of presets
// and stages with the numbers of its default.
func TestConfiguration(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "use", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	rows := map[string]string{}   // by option: all its rows
	settings := map[string]bool{} // of a session
	section := ""
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(name)
			for one := range strings.SplitSeq(strings.TrimSpace(name), ", ") {
				sections[one] = true
			}
		}
		if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "|"), "|"); ok && strings.HasPrefix(line, "|") {
			for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
				if section == "Settings of a session" {
					settings[m[1]] = true
				} else {
					rows[m[1]] += line
				}
			}
		}
	}
	all, err := session.New(inmem.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all.Create(storage.Meta{}).Settings() {
		if !settings[s.Name] {
			t.Errorf("docs/use/configuration.md lacks the setting %s of a session", s.Name)
		}
		delete(settings, s.Name)
	}
	for name := range settings {
		t.Errorf("docs/use/configuration.md has a setting %s, which sessions do not have", name)
	}
	for _, name := range policy.NewSet().Names() {
		if !sections[name] {
			t.Errorf("docs/use/configuration.md has no section for the preset %s", name)
		}
	}
	known := map[string][]string{}
	files, err := filepath.Glob(filepath.Join(root, "policy", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	ofAgents, err := filepath.Glob(filepath.Join(root, "policy", "agents", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, ofAgents...)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue // examples have options of their own
		}
		defaults(t, file, known)
	}
	for name, all := range known {
		row, ok := rows[name]
		if !ok {
			t.Errorf("docs/use/configuration.md lacks the option %s", name)
			continue
		}
		for _, words := range all {
			for _, n := range number.FindAllString(thousds.ReplaceAllString(words, "$1$2"), -1) {
				if !slices.Contains(number.FindAllString(thousds.ReplaceAllString(row, "$1$2"), -1), n) {
					t.Errorf("docs/use/configuration.md does not give %s of the default of %s (%s)", n, name, words)
				}
			}
		}
	}
	for name := range rows {
		if _, ok := known[name]; !ok && name != "rolling_context" && name != "context_management_enabled" {
			t.Errorf("docs/use/configuration.md has an option %s, which no preset and no stage has", name)
		}
	}
}

// defaults collects the options of the structs in a file, by their names in JSON,
// with what their comments say of the default.
func defaults(t *testing.T, file string, found map[string][]string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Name.IsExported() || slices.Contains(outcomes, spec.Name.Name) {
			return true
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		words := "" // fields without a comment share the one before
		for _, f := range fields.Fields.List {
			if f.Doc != nil {
				words = ""
				if m := deflt.FindStringSubmatch(strings.ReplaceAll(f.Doc.Text(), "\n", " ")); m != nil {
					words, _, _ = strings.Cut(m[1], " (")
				}
			}
			if f.Tag == nil {
				continue
			}
			tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
			name, _, _ := strings.Cut(tag.Get("json"), ",")
			if name != "-" { // what no file can hold
				found[name] = append(found[name], words)
			}
		}
		return false
	})
}

// outcomes are the structs of package policy with JSON that are not options.
var outcomes = []string{"Reduced", "Eviction", "GraduatedOutcome", "Outcome", "Planned", "MarkerText", "Replaced"}
