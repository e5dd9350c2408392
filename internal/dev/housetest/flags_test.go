package housetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/operation"
	"github.com/spf13/pflag"
)

var flagCall = regexp.MustCompile("\\.(?:Bool|Int|Float64|String|Duration)\\w*\\([^\"\n]*\"([a-z][a-z-]*)\"")

// docs/use/configuration.md lists each flag of the command.
func TestFlags(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "use", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob(filepath.Join(root, "internal", "cli", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range flagCall.FindAllStringSubmatch(string(source), -1) {
			flags[m[1]] = true
		}
	}
	for _, o := range operation.All() {
		set := pflag.NewFlagSet(o.Name, pflag.ContinueOnError)
		operation.Flags(set, o.Input())
		set.VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
	}
	if !flags["policy"] || !flags["json"] {
		t.Fatalf("the flags of internal/cli were not found, only %v", flags)
	}
	for name := range flags {
		if !strings.Contains(string(text), "`--"+name+"`") {
			t.Errorf("docs/use/configuration.md lacks the flag --%s", name)
		}
	}
	for _, m := range regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(string(text), -1) {
		if !flags[m[1]] {
			t.Errorf("docs/use/configuration.md has a flag --%s, which the command lacks", m[1])
		}
	}
}
