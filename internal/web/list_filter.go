package web

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/storage"
)

// listFilter is what the address of the list asks for.
type listFilter struct {
	Agent, Project, Model string
	Since                 string // 1d, 7d, 30d, 90d; "": all
	Text                  string
	Live, Hidden          bool
	Sort                  string // a column, "" for the newest first
	Up                    bool   // in ascending order
	Flat                  bool   // without groups
	Open                  furl.SessionID
	before, after         *listKey
}

// ages are the values of listFilter.Since.
var ages = []choice{{Value: "1d", Name: "last 24 hours"}, {Value: "7d", Name: "last 7 days"}, {Value: "30d", Name: "last 30 days"}, {Value: "90d", Name: "last 90 days"}}

var ageOf = map[string]time.Duration{"1d": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour, "90d": 90 * 24 * time.Hour}

// maxText is the length of the longest text that the list searches for, in bytes.
const maxText = 500

// parseListFilter reads the query of the list's address.
func parseListFilter(q url.Values) (*listFilter, error) {
	f := &listFilter{
		Agent: q.Get("agent"), Project: q.Get("project"), Model: q.Get("model"), Since: q.Get("since"), Text: strings.TrimSpace(q.Get("q")),
		Live: q.Get("live") != "", Hidden: q.Get("hidden") != "", Flat: q.Get("group") == "off", Open: furl.SessionID(q.Get("open")),
	}
	if _, ok := ageOf[f.Since]; !ok && f.Since != "" {
		return nil, badRequest("invalid since %.20q: choose one of 1d, 7d, 30d, 90d", f.Since)
	}
	if len(f.Text) > maxText {
		return nil, badRequest("the text to find is longer than %d bytes", maxText)
	}
	if sort := q.Get("sort"); sort != "" {
		name, up := strings.CutPrefix(sort, "-")
		c, ok := columnNamed(name)
		if !ok {
			return nil, badRequest("invalid sort %.20q: choose a column of the list", sort)
		}
		f.Sort, f.Up = name, c.text != up
	}
	var err error
	if f.before, err = parseListKey(q.Get("before")); err != nil {
		return nil, err
	}
	f.after, err = parseListKey(q.Get("after"))
	return f, err
}

// values returns the filter as a query, without the page's cursor.
func (f *listFilter) values() url.Values {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	flag := func(name string, on bool, value string) {
		if on {
			q.Set(name, value)
		}
	}
	set("agent", f.Agent)
	set("project", f.Project)
	set("model", f.Model)
	set("since", f.Since)
	set("q", f.Text)
	flag("live", f.Live, "1")
	flag("hidden", f.Hidden, "1")
	flag("group", f.Flat, "off")
	set("sort", f.sortValue(f.Sort, f.Up))
	return q
}

// sortValue returns the value of "sort" for a column and a direction: "-" reverses the
// column's usual one.
func (f *listFilter) sortValue(name string, up bool) string {
	if c, ok := columnNamed(name); ok && c.text != up {
		return "-" + name
	}
	return name
}

// Here is the address of the page that the filter describes.
func (f *listFilter) Here() string {
	q := f.values()
	if f.Open != "" {
		q.Set("open", string(f.Open))
	}
	if f.before != nil {
		q.Set("before", f.before.String())
	}
	if f.after != nil {
		q.Set("after", f.after.String())
	}
	return listAddress(q)
}

// With returns the address of the list with another value of a parameter; "" removes it.
func (f *listFilter) With(name, value string) string {
	q := f.values()
	q.Set(name, value)
	if value == "" {
		q.Del(name)
	}
	return listAddress(q)
}

// Page returns the address of another page of the list.
func (f *listFilter) Page(name, cursor string) string { return f.With(name, cursor) }

// Toggle returns the address of this page with the sub-agents of a session shown, or
// hidden if they are shown.
func (f *listFilter) Toggle(id furl.SessionID) string {
	g := *f
	if g.Open = id; f.Open == id {
		g.Open = ""
	}
	return g.Here()
}

// Ages are the time ranges to choose from.
func (f *listFilter) Ages() []choice { return ages }

// Active are the filters that are set, each with the address without it.
func (f *listFilter) Active() (list []choice) {
	add := func(name, words, value string) {
		if value != "" {
			list = append(list, choice{Value: f.With(name, ""), Name: words + visible.Line(value)})
		}
	}
	flag := func(name, words string, on bool) {
		if on {
			list = append(list, choice{Value: f.With(name, ""), Name: words})
		}
	}
	add("q", "text: ", f.Text)
	flag("live", "live", f.Live)
	flag("hidden", "with hidden content", f.Hidden)
	add("agent", "agent: ", f.Agent)
	add("model", "model: ", f.Model)
	add("project", "project: ", f.Project)
	if i := slices.IndexFunc(ages, func(c choice) bool { return c.Value == f.Since }); i >= 0 {
		add("since", "", ages[i].Name)
	}
	return list
}

// isPlain reports whether the list is the first page without filters.
func (f *listFilter) isPlain() bool {
	return f.before == nil && f.after == nil && len(f.Active()) == 0
}

// grouped reports whether the list has groups of projects.
func (f *listFilter) grouped() bool { return !f.Flat && f.Sort == "" && f.Project == "" }

// selects reports whether the filter selects a session. l is its description, nil to make
// one if it is needed.
func (f *listFilter) selects(v *visit, info *storage.SessionInfo, l *listed) bool {
	if f.Since != "" && v.p.o.Now().Sub(info.Newest()) > ageOf[f.Since] {
		return false
	}
	if f.Project != "" && !inProject(visible.Line(info.Project), f.Project) || f.Text != "" && !namesSession(info, f.Text) {
		return false
	}
	if f.Agent == "" && f.Model == "" && !f.Live && !f.Hidden {
		return true
	}
	if l == nil {
		l = new(v.listed(*info))
	}
	return (f.Agent == "" || l.Agent == f.Agent) && (f.Model == "" || l.ModelName() == f.Model) && (!f.Live || l.Live) && (!f.Hidden || l.Hidden > 0)
}

// inProject reports whether a project is the wanted folder or below it. A name without a
// slash is that of any folder on the path.
func inProject(project, want string) bool {
	if !strings.ContainsAny(want, `/\`) {
		return slices.Contains(strings.FieldsFunc(project, func(r rune) bool { return r == '/' || r == '\\' }), want)
	}
	rest, ok := strings.CutPrefix(project, strings.TrimRight(want, `/\`))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}

// namesSession reports whether a text names a session: its title has all words of it, or
// its id or the agent's own id begins with it.
func namesSession(info *storage.SessionInfo, text string) bool {
	if strings.HasPrefix(string(info.Session), text) || strings.HasPrefix(agents.OwnID(info.Hint, text), text) {
		return true
	}
	title := strings.ToLower(info.Title)
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if !strings.Contains(title, word) {
			return false
		}
	}
	return true
}

// choice is a value to choose, with its name and the number of sessions that have it.
type choice struct {
	Value, Name string
	Count       int
}

// count counts a session for the choices, before it is filtered.
func (d *listPage) count(l *listed) {
	if l.Live {
		d.LiveNow++
	}
	d.Agents = countChoice(d.Agents, l.Agent)
	d.Models = countChoice(d.Models, l.ModelName())
	d.Projects = countChoice(d.Projects, visible.Line(l.SessionInfo.Project))
}

// maxChoices is the number of values of a filter that the page offers.
const maxChoices = 200

// countChoice counts a value in the list of choices.
func countChoice(list []choice, value string) []choice {
	if value == "" {
		return list
	}
	for i := range list {
		if list[i].Value == value {
			list[i].Count++
			return list
		}
	}
	if len(list) == maxChoices {
		return list
	}
	return append(list, choice{Value: value, Name: value, Count: 1})
}

// choices names and orders what can be chosen, the most frequent first.
func (d *listPage) choices(tree *sessionTree) {
	names := make(map[string]string, len(tree.projects))
	for path, name := range tree.projects {
		names[visible.Line(path)] = visible.Line(name)
	}
	for i := range d.Projects {
		d.Projects[i].Name = names[d.Projects[i].Value]
	}
	for _, list := range [][]choice{d.Agents, d.Models, d.Projects} {
		slices.SortStableFunc(list, func(a, b choice) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Name, b.Name)) })
	}
}

// pick is a select element of the filters.
type pick struct {
	Name, Label, Value string
	Choices            []choice
	// Missing reports that the value is none of the choices.
	Missing bool
}

func newPick(name, label, value string, choices []choice) *pick {
	missing := value != "" && !slices.ContainsFunc(choices, func(c choice) bool { return c.Value == value })
	return &pick{name, label, value, choices, missing}
}

// SortValue is the parameter "sort" of the current order.
func (f *listFilter) SortValue() string { return f.sortValue(f.Sort, f.Up) }

// SearchAddress is the address of the search in the contents of all sessions.
func (f *listFilter) SearchAddress() string {
	q := url.Values{"q": {f.Text}}
	if f.Since != "" {
		q.Set("since", f.Since)
	}
	return prefix + "/search?" + q.Encode()
}

// listRow is a row of the list.
type listRow struct {
	List *listPage
	Row  *listed
	// ShowProject reports whether the row names its project.
	ShowProject bool
}

func rowIn(d *listPage, l listed) listRow {
	return listRow{d, &l, l.Project != "" && (l.Live || !d.grouped()) && d.Project == ""}
}
