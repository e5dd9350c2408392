package cli

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/spf13/cobra"
)

// helpColumns is the width of help without a terminal, and the maximum width of its
// paragraphs.
const helpColumns = 80

// fitHelp wraps the help of a command.
func fitHelp(cmd *cobra.Command, cols int) {
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages |", fmt.Sprintf(".FlagUsagesWrapped %d |", cols)))
	cmd.Long = reflow(cmd.Long, min(cols, helpColumns))
}

// reflow wraps paragraphs. Indented lines stay unchanged.
func reflow(text string, cols int) string {
	var lines []string
	var words strings.Builder
	end := func() {
		if words.Len() > 0 {
			lines = append(lines, cmdline.Wrap(words.String(), cols)...)
			words.Reset()
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line != "" && line[0] != ' ' && line[0] != '\t' {
			words.WriteString(line + " ")
			continue
		}
		end()
		lines = append(lines, line)
	}
	end()
	return strings.Join(lines, "\n")
}

// noFiles turns off the completion of file names for commands without file arguments.
func noFiles(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && cmd.Runnable() && !strings.Contains(cmd.Use, "FILE") && !strings.Contains(cmd.Use, "COMMAND") {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range cmd.Commands() {
		noFiles(sub)
	}
}
