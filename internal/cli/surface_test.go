package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/cli/chatcmd"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/dev/behaviours"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// slashCommands lists the commands that a person can type: those that the gateway
// understands in an agent, and those of furl chat.
func slashCommands() []string {
	list := []string{"/rolling-context"}
	for _, s := range chatcmd.Slashes() {
		list = append(list, "/"+s.Name)
	}
	return list
}

const promisesFile = "../../docs/internals/behaviours.md"

// TestPromisedSurfacesExist checks that everything that the promises name exists: each
// command, flag, setting, option of a policy, slash command and field of an event. The
// gateway's test checks endpoints.
func TestPromisedSurfacesExist(t *testing.T) {
	text, err := os.ReadFile(promisesFile)
	if err != nil {
		t.Fatal(err)
	}
	cmd := root(cmdline.Program{})
	settings := settingNames(t)
	head, rows, _ := strings.Cut(behaviours.Promises(text), "\n## ") // the head is about tests
	start := strings.Count(head, "\n") + 1
	spans := 0
	for _, s := range behaviours.Spans("## " + rows) {
		line := s.Line + start
		if strings.Contains(strings.Split(string(text), "\n")[line-1], "| event ") || s.IsEndpoint() {
			continue // see TestPromisedEventsExist, and the gateway's test
		}
		spans++
		var problem error
		switch word := strings.Fields(s.Text)[0]; {
		case s.IsCommand():
			problem = missingCommand(cmd, s.Words())
		case s.IsFlag():
			name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
			if !anyFlag(cmd, name) {
				problem = fmt.Errorf("no command has the flag --%s", name)
			}
		case s.IsSlash():
			if !slices.Contains(slashCommands(), word) {
				problem = fmt.Errorf("there is no command %s to type", word)
			}
		case !slices.Contains(settings, s.Text) && !isPolicy(s.Text) && !isOption(t, s.Text):
			problem = fmt.Errorf("%q is not a command, flag, endpoint, policy, setting or option", s.Text)
		}
		if problem != nil {
			t.Errorf("docs/internals/behaviours.md:%d: %v", line, problem)
		}
	}
	if spans == 0 {
		t.Error("no code spans found in the promises")
	}

	// Prose names two more.
	for word, command := range map[string]string{"chat": "chat", "page": "ui"} {
		found, _, err := cmd.Find([]string{command})
		exists := err == nil && found.Name() == command
		for i, line := range strings.Split(behaviours.Promises(text), "\n") {
			words := strings.FieldsFunc(line, func(r rune) bool { return r < 'A' || r > 'z' })
			if slices.Contains(words, word) && !exists {
				t.Errorf("docs/internals/behaviours.md:%d names the %s, and there is no furl %s", i+1, word, command)
			}
		}
	}
}

// TestPromisedEventsExist compares the fields of events with those that are promised.
func TestPromisedEventsExist(t *testing.T) {
	fields := map[string][]string{}
	for _, e := range []event.Event{
		event.Truncated{}, event.SummaryRequested{}, event.Compacted{}, event.ContextUsage{}, event.Rolled{}, event.Masked{},
		event.Skipped{}, event.Restored{}, event.Rewound{}, event.OverflowRecovered{}, event.ThinkingRecovered{}, event.EditRepaired{}, event.Warning{},
	} {
		names := []string{}
		for f := range reflect.TypeOf(e).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, name)
		}
		fields["event "+e.Name()] = names
	}
	text, err := os.ReadFile(promisesFile)
	if err != nil {
		t.Fatal(err)
	}
	table, err := behaviours.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range table.Rows {
		if !strings.HasPrefix(r.ID, "event ") {
			continue
		}
		n++
		var promised []string
		for _, s := range behaviours.Spans(r.Text) {
			promised = append(promised, s.Text)
		}
		if !slices.Equal(promised, fields[r.ID]) {
			t.Errorf("%s has the fields %q, promised are %q", r.ID, fields[r.ID], promised)
		}
	}
	if n != len(fields) {
		t.Errorf("%d events promised, there are %d", n, len(fields))
	}
}

// TestPresetsArePromised compares the presets with those that are promised.
func TestPresetsArePromised(t *testing.T) {
	text, err := os.ReadFile(promisesFile)
	if err != nil {
		t.Fatal(err)
	}
	table, err := behaviours.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var promised, names []string
	for _, r := range table.Rows {
		if name, ok := strings.CutPrefix(r.ID, "preset "); ok {
			promised = append(promised, name)
		}
	}
	for _, name := range policy.NewSet().Names() {
		if !strings.Contains(name, ":") { // a variant
			names = append(names, name)
		}
	}
	slices.Sort(promised)
	slices.Sort(names)
	if !slices.Equal(promised, names) {
		t.Errorf("promised are %q, there are %q", promised, names)
	}
}

// TestDocumentedCommandsExist checks the furl commands of all documents for users.
func TestDocumentedCommandsExist(t *testing.T) {
	docs, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	cmd := root(cmdline.Program{})
	tested := 0
	for _, doc := range append(docs, "../../README.md") {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range behaviours.Spans(string(text)) {
			if !s.IsCommand() || !commandLine.MatchString(s.Text) {
				continue
			}
			tested++
			if err := missingCommand(cmd, s.Words()); err != nil {
				t.Errorf("%s:%d: %q: %v", strings.TrimPrefix(doc, "../../"), s.Line, s.Text, err)
			}
		}
	}
	if tested < 200 {
		t.Errorf("%d commands found in the documents", tested)
	}
	for _, bad := range []string{"furl nope", "furl config chek", "furl show latest --nope", "furl run --nope -- claude", "furl show -z"} {
		if missingCommand(cmd, strings.Fields(bad)) == nil {
			t.Errorf("%s exists", bad)
		}
	}
	if err := missingCommand(cmd, strings.Fields("furl run --policy auto -- agent --nope")); err != nil {
		t.Error(err)
	}
}

// commandLine tells a command from a line of output or of the status line.
var commandLine = regexp.MustCompile(`^furl [a-z][a-z-]*( |$)`)

// missingCommand returns an error if furl has no such command or the command no such
// flag. Values are not checked.
func missingCommand(cmd *cobra.Command, words []string) error {
	found, rest, err := cmd.Find(words[1:])
	if err != nil || found == cmd {
		return fmt.Errorf("there is no command %q", strings.Join(words[:min(2, len(words))], " "))
	}
	found.InitDefaultHelpFlag()
	for _, word := range rest {
		switch name, _, _ := strings.Cut(strings.TrimRight(word, ",.]"), "="); {
		case word == "--":
			return nil
		case strings.HasPrefix(name, "--"):
			if found.Flags().Lookup(name[2:]) == nil {
				return fmt.Errorf("%s has no flag %s", found.CommandPath(), name)
			}
		case len(name) == 2 && name[0] == '-':
			if found.Flags().ShorthandLookup(name[1:]) == nil {
				return fmt.Errorf("%s has no flag %s", found.CommandPath(), name)
			}
		case found.HasAvailableSubCommands() && !found.HasParent():
			return fmt.Errorf("there is no command %s %s", found.CommandPath(), word)
		}
	}
	// Cobra takes an unknown subcommand for an argument.
	if args := found.Args; args != nil && found.HasAvailableSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return args(found, rest[:1])
	}
	return nil
}

// anyFlag reports whether any command has a flag.
func anyFlag(cmd *cobra.Command, name string) bool {
	found := false
	cmd.Flags().VisitAll(func(f *pflag.Flag) { found = found || f.Name == name })
	for _, sub := range cmd.Commands() {
		found = found || anyFlag(sub, name)
	}
	return found
}

// settingNames lists the settings of a session.
func settingNames(t *testing.T) []string {
	t.Helper()
	all, err := session.New(inmem.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range all.Create(storage.Meta{}).Settings() {
		names = append(names, one.Name)
	}
	return names
}

// isPolicy reports whether a policy has this name or this other name.
func isPolicy(name string) bool {
	_, err := policy.NewSet().Policy(name, policy.Settings{})
	return err == nil
}

// isOption reports whether any policy has an option of the configuration file.
func isOption(t *testing.T, name string) bool {
	t.Helper()
	for _, p := range policy.NewSet().Names() {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, "policies:\n  %s: {%s: 1}\n", p, name), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := config.Load(file, nil); err == nil || !strings.Contains(err.Error(), "unknown key") {
			return true
		}
	}
	return false
}
