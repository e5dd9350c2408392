package replaycmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/replay"
)

const (
	maxServers = 12 // rows of the table of tools
	maxUnused  = 8  // names of unused tools of a server
)

// printToolDiet prints which tools were never called, what they cost, and the settings that leave
// them out.
func printToolDiet(w io.Writer, d *replay.ToolDiet) {
	if d == nil {
		return
	}
	cols := cmdline.Width(w)
	fmt.Fprintln(w)
	cmdline.PrintWrapped(w, d.String(), cols)
	if len(d.Agents) == 0 || d.NeverCalled == 0 {
		return
	}
	fmt.Fprintln(w)
	t := cmdline.NewTable(w, cmdline.Text("agent"), cmdline.Text("tools of"), cmdline.Number("tools"), cmdline.Number("tokens"), cmdline.Number("cost"),
		cmdline.Number("never\ncalled"), cmdline.Number("their\ntokens"), cmdline.Number("their\ncost"))
	rows, more := 0, 0
	for i := range d.Agents {
		a := &d.Agents[i]
		for j := range a.Servers {
			if rows++; rows > maxServers {
				more++
				continue
			}
			s := &a.Servers[j]
			name, server := "", s.Server
			if j == 0 {
				name = a.Agent
				if name == "" {
					name = "unknown"
				}
			}
			if server == "" {
				server = "the agent"
			}
			t.Add(cmdline.Label(name), cmdline.Label(server), fmt.Sprint(s.Tools), numbers.Thousands(s.Tokens), dollars(s.Cost),
				fmt.Sprint(len(s.NeverCalled)), numbers.Thousands(s.NeverCalledTokens), dollars(s.NeverCalledCost))
		}
	}
	t.Print()
	if more > 0 {
		fmt.Fprintf(w, "and %s more: --json has all.\n", numbers.Count(more, "row"))
	}
	for i := range d.Agents {
		printAgentTools(w, &d.Agents[i], cols)
	}
}

// printAgentTools prints the names of an agent's unused tools, and its settings.
func printAgentTools(w io.Writer, a *replay.AgentTools, cols int) {
	for i := range a.Servers {
		s := &a.Servers[i]
		switch {
		case len(s.NeverCalled) == 0, i >= maxServers:
			continue
		case s.Server != "" && len(s.NeverCalled) == s.Tools:
			continue // the setting names the server
		}
		of := s.Server
		if of == "" {
			of = "the agent"
		}
		names := strings.Join(s.NeverCalled[:min(len(s.NeverCalled), maxUnused)], ", ")
		if more := len(s.NeverCalled) - maxUnused; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		cmdline.PrintWrapped(w, fmt.Sprintf("Never called, of %s: %s", cmdline.Label(of), cmdline.Label(names)), cols)
	}
	if a.Setting != "" {
		fmt.Fprintf(w, "To leave out those of MCP servers, add to %s:\n  %s\n", a.Where, cmdline.Label(a.Setting))
	}
	if a.Defers != "" {
		cmdline.PrintWrapped(w, a.Defers, cols)
	}
}
