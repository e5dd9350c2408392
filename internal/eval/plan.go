package eval

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Plan is what an evaluation runs. A results folder keeps it, and refuses another one.
type Plan struct {
	// Version is the version of furl that began the evaluation.
	Version string `json:"furl"`
	// Command is the agent's command. Policies are the arms of the evaluation.
	Command  []string `json:"command"`
	Policies []string `json:"policies"`
	// Seed determines the order of the runs and the draws of the report.
	Seed uint64 `json:"seed"`
	// Simulated says that a simulated provider replied.
	Simulated bool `json:"simulated,omitempty"`
	// Settings are other settings that change what a run does, by their flags. Of
	// secret ones and files, they have a digest.
	Settings map[string]string `json:"settings,omitempty"`
	// Tasks has the digest of each task by its name.
	Tasks map[string]string `json:"tasks"`
}

// commandLine shows a command with its empty words, and those with spaces, in quotes.
func commandLine(words []string) string {
	shown := make([]string, len(words))
	for i, word := range words {
		if shown[i] = word; word == "" || strings.ContainsAny(word, " \t\n\"'`$\\") {
			shown[i] = strconv.Quote(word)
		}
	}
	return strings.Join(shown, " ")
}

// differs says in words what differs from a plan of the same folder, "" if nothing.
// Versions may differ; Report says so.
func (p *Plan) differs(was *Plan) string {
	list := func(words []string) string { return strings.Join(words, " ") }
	switch {
	case !slices.Equal(p.Policies, was.Policies):
		return fmt.Sprintf("its policies are %s, not %s", list(was.Policies), list(p.Policies))
	case !slices.Equal(p.Command, was.Command):
		return fmt.Sprintf("its agent command is %s, not %s", commandLine(was.Command), commandLine(p.Command))
	case p.Seed != was.Seed:
		return fmt.Sprintf("its seed is %d, not %d", was.Seed, p.Seed)
	case p.Simulated != was.Simulated:
		return "only one of the two is with a simulated provider"
	}
	for _, name := range sortedKeys(p.Settings, was.Settings) {
		if p.Settings[name] != was.Settings[name] {
			return name + " differs"
		}
	}
	for _, name := range sortedKeys(p.Tasks, was.Tasks) {
		switch is, before := p.Tasks[name], was.Tasks[name]; {
		case before == "":
			return "it has no task " + name
		case is == "":
			return fmt.Sprintf("it has a task %s, which the task set lacks", name)
		case is != before:
			return fmt.Sprintf("task %s has changed since its first run", name)
		}
	}
	return ""
}

func sortedKeys(maps ...map[string]string) []string {
	var keys []string
	for _, m := range maps {
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Run identifies a run.
type Run struct {
	Task   string `json:"task"`
	Policy string `json:"policy"`
	Number int    `json:"run"` // from 1
}

// Runs lists the runs in their order: every task once with each policy, then every task
// a second time, and so on. The order of the tasks in a round, and of the policies of a
// task, is random. The policies of a task run directly after one another, so that a
// provider's good and bad hours affect all policies alike. With more rounds, the first
// ones stay the same.
func (p *Plan) Runs(rounds int) []Run {
	var list []Run
	tasks := sortedKeys(p.Tasks)
	for n := 1; n <= rounds; n++ {
		rng := rand.New(rand.NewPCG(p.Seed, uint64(n)))
		for _, t := range rng.Perm(len(tasks)) {
			for _, a := range rng.Perm(len(p.Policies)) {
				list = append(list, Run{tasks[t], p.Policies[a], n})
			}
		}
	}
	return list
}
