package replay

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/numbers"
)

// HeldOut measures a tuning on projects that it has not seen: for each project in turn, the
// policy is chosen on the recordings of the others and measured on its own.
type HeldOut struct {
	// Projects are sorted by name. Those with nothing to compare are left out.
	Projects []HeldProject `json:"projects"`
	// Pooled is the outcome of all projects together, each with the policy of its own choice.
	Pooled Outcome `json:"pooled"`
	// Least and Most are the lowest and the highest of each figure in a project. Projects
	// without identifiers, quoted lines or edits do not count for these.
	Least Outcome `json:"least"`
	Most  Outcome `json:"most"`

	unsent bool // requests as recorded do not fit the window
}

// HeldProject is the outcome for one project.
type HeldProject struct {
	// Project is the name of the folder that the agents worked in. Folders of one name are one
	// project, and worktrees belong to the project that has them. If a recording names none, it is
	// that of the folder of the file.
	Project    string `json:"project"`
	Recordings int    `json:"recordings"`
	// Chosen is the policy that fits the wish best on the other projects. If it is "", none
	// does, and the project is measured as recorded.
	Chosen string `json:"chosen"`
	Outcome
	// Refused and Overflows count requests of the chosen policy in this project that are invalid, and those
	// over the window that could have been reduced to fit.
	Refused   int `json:"invalid_requests,omitempty"`
	Overflows int `json:"overflows,omitempty"`
	// Fits says that the policy is within the limits of the wish on this project too.
	Fits bool `json:"fits"`
}

// leastProjects is the number of projects from which choices are tested: of two, each choice
// would be made on a single one.
const leastProjects = 3

// holdOut returns nil for fewer than leastProjects projects. table has the tallies of each
// recording.
func (w Wish) holdOut(recordings []RecordingReport, table [][]tally) *HeldOut {
	projects := slices.DeleteFunc(byProject(recordings), func(p group) bool {
		sums := sum(table, p.members)
		return len(sums) == 0 || sums[0].none == (bought{}) // nothing was sent
	})
	if len(projects) < leastProjects {
		return nil
	}
	h := new(HeldOut)
	each := make([]tally, len(projects))
	var all tally
	for i, p := range projects {
		var others []int
		for j, o := range projects {
			if j != i {
				others = append(others, o.members...)
			}
		}
		one := HeldProject{Project: p.name, Recordings: len(p.members), Chosen: w.choose(settings(table, others))}
		own := sum(table, p.members)
		t := own[0].asRecorded()
		for j := range own {
			switch own[j].policy {
			case none:
				h.unsent = h.unsent || own[j].overflows+own[j].impossible > 0
			case one.Chosen:
				t = own[j]
			}
		}
		one.Outcome, _ = t.outcome()
		one.Refused, one.Overflows = t.refusals, t.overflows
		one.Fits = one.Chosen != "" && t.refusals == 0 && t.overflows == 0 && w.holds(&one.Outcome)
		h.Projects = append(h.Projects, one)
		all.add(&t)
		each[i] = t
	}
	h.Pooled, _ = all.outcome()
	h.Least, h.Most = h.Pooled, h.Pooled
	for i := range each {
		t, o := &each[i], &h.Projects[i].Outcome
		widen(&h.Least.Cost, &h.Most.Cost, o.Cost, true)
		widen(&h.Least.Names, &h.Most.Names, o.Names, t.names > 0)
		widen(&h.Least.Lines, &h.Most.Lines, o.Lines, t.lines > 0)
		widen(&h.Least.Blind, &h.Most.Blind, o.Blind, t.edits > 0)
	}
	return h
}

// asRecorded is what policy none does on the same recordings.
func (t *tally) asRecorded() tally {
	return tally{
		policy: none, all: t.none, none: t.none,
		names: t.names, namesKept: t.names, lines: t.lines, linesKept: t.lines, edits: t.edits,
	}
}

func widen(least, most *float64, v float64, counts bool) {
	if counts {
		*least, *most = min(*least, v), max(*most, v)
	}
}

// String returns a few sentences: the pooled outcome with the range over the projects, and how
// often the choice is within the limits.
func (h *HeldOut) String() string {
	figure := func(of func(*Outcome) float64, what string) string {
		return fmt.Sprintf("%s %s (%s to %s)", percent(of(&h.Pooled)), what, percent(of(&h.Least)), percent(of(&h.Most)))
	}
	figures := []string{
		figure(func(o *Outcome) float64 { return o.Names }, "of the identifiers"),
		figure(func(o *Outcome) float64 { return o.Lines }, "of the quoted lines"),
		figure(func(o *Outcome) float64 { return o.Blind }, "of the edits blind"),
	}
	if !h.unsent { // a request that does not fit has no price to compare with
		figures = slices.Insert(figures, 0, figure(func(o *Outcome) float64 { return o.Cost }, "of the cost as recorded"))
	}
	text := fmt.Sprintf("Chosen on the other projects and measured on each in turn (%d projects): %s.", len(h.Projects), strings.Join(figures, ", "))
	fits, without := 0, 0
	for i := range h.Projects {
		switch p := &h.Projects[i]; {
		case p.Fits:
			fits++
		case p.Chosen == "":
			without++
		}
	}
	text += fmt.Sprintf(" The choice is within these limits in %s.", numbers.Count(fits, "project"))
	if without > 0 {
		text += fmt.Sprintf(" Where the others have none (%s), the recordings count as they are.", numbers.Count(without, "project"))
	}
	return text
}

// group is the recordings of one project, by their numbers.
type group struct {
	name    string
	members []int
}

// byProject groups recordings, by name.
func byProject(recordings []RecordingReport) []group {
	var list []group
	at := make(map[string]int)
	for i := range recordings {
		name := projectOf(&recordings[i])
		n, ok := at[name]
		if !ok {
			n = len(list)
			at[name] = n
			list = append(list, group{name: name})
		}
		list[n].members = append(list[n].members, i)
	}
	slices.SortFunc(list, func(a, b group) int { return cmp.Compare(a.name, b.name) })
	return list
}

// projectOf returns the name of the project of a recording. Worktrees are below .worktrees by
// convention, and below .claude/worktrees with Claude Code.
func projectOf(r *RecordingReport) string {
	folders := strings.FieldsFunc(cmp.Or(r.Project, filepath.Dir(r.File)), func(r rune) bool { return r == '/' || r == '\\' })
	for i := 1; i+1 < len(folders); i++ {
		if folders[i] == ".worktrees" || folders[i] == ".claude" && folders[i+1] == "worktrees" {
			folders = folders[:i]
		}
	}
	if len(folders) == 0 {
		return ""
	}
	return strings.ToLower(folders[len(folders)-1])
}
