package web

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/visible"
)

// column is a column of the list that can sort it.
type column struct {
	Name, Title string
	Class       string
	text        bool // sorted in ascending order at first
	num         func(l *listed) float64
	str         func(l *listed) string
	// Address sorts by the column, or in the other direction if that is the current
	// order; Order is the value of aria-sort, "" for another column.
	Address, Order string
}

var listColumns = []column{
	{Name: "title", Title: "Session", text: true, str: func(l *listed) string { return strings.ToLower(l.Title) }},
	{Name: "agent", Title: "Agent", Class: "agent", text: true, str: func(l *listed) string { return strings.ToLower(l.Agent) }},
	{Name: "model", Title: "Model", Class: "model", text: true, str: func(l *listed) string { return strings.ToLower(l.Model) }},
	{Name: "size", Title: "Context", Class: "spark", num: func(l *listed) float64 { return float64(l.Size) }},
	{Name: "window", Title: "Window", Class: "window", num: func(l *listed) float64 { return float64(l.Used) }},
	{Name: "requests", Title: "Requests", Class: "n requests", num: func(l *listed) float64 { return float64(l.Sums.Requests) }},
	{Name: "messages", Title: "Messages", Class: "n messages", num: func(l *listed) float64 { return float64(l.Messages) }},
	{Name: "spent", Title: "Spent", Class: "n money", num: func(l *listed) float64 { return byPrice(l, l.Spent(), l.Sent()) }},
	{Name: "saved", Title: "Saved", Class: "n money", num: func(l *listed) float64 { return byPrice(l, l.Saved.Saved(), l.Saved.SavedTokens()) }},
	{Name: "updated", Title: "Last activity", Class: "when", num: func(l *listed) float64 { return float64(l.Newest().UnixMilli()) }},
}

// byPrice orders by dollars; sessions without a price come after the others, by tokens.
func byPrice(l *listed, dollars float64, tokens int) float64 {
	if l.IsPriced() {
		return dollars
	}
	return float64(tokens)/1e15 - 1e9
}

func columnNamed(name string) (*column, bool) {
	i := slices.IndexFunc(listColumns, func(c column) bool { return c.Name == name })
	if i < 0 {
		return nil, false
	}
	return &listColumns[i], true
}

// columns returns the columns with the addresses that sort by them.
func (f *listFilter) columns() []column {
	list := slices.Clone(listColumns)
	for i := range list {
		c := &list[i]
		up := c.text
		if c.Name == f.Sort || f.Sort == "" && c.Name == "updated" && !f.grouped() {
			if up = !f.Up; f.Up {
				c.Order = "ascending"
			} else {
				c.Order = "descending"
			}
		}
		c.Address = f.With("sort", f.sortValue(c.Name, up))
	}
	return list
}

// listKey is the place of an entry in the order of the list. It is a page's cursor, so
// that entries which move meanwhile are neither repeated nor skipped by paging.
type listKey struct {
	Live bool    `json:"l,omitzero"`
	Num  float64 `json:"n,omitzero"`
	Text string  `json:"t,omitzero"`
	ID   string  `json:"i"`
}

// maxKeyText is the length of a key's text, in bytes.
const maxKeyText = 60

// keyOf returns the place of a session.
func (f *listFilter) keyOf(l *listed) listKey {
	k := listKey{Live: l.Live, ID: string(l.Session)}
	c, ok := columnNamed(cmp.Or(f.Sort, "updated"))
	switch {
	case !ok:
	case c.text:
		text := c.str(l)
		k.Text = strings.ToValidUTF8(text[:min(len(text), maxKeyText)], "")
	default:
		k.Num = c.num(l)
	}
	return k
}

// compare orders live entries first, then by the column.
func (f *listFilter) compare(a, b listKey) int {
	if a.Live != b.Live {
		if a.Live {
			return -1
		}
		return 1
	}
	c := cmp.Or(cmp.Compare(b.Num, a.Num), strings.Compare(b.Text, a.Text))
	if f.Up {
		c = -c
	}
	return cmp.Or(c, strings.Compare(a.ID, b.ID))
}

// String returns the key as a cursor.
func (k listKey) String() string {
	b, _ := json.Marshal(k) // has no errors
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseListKey(text string) (*listKey, error) {
	if text == "" {
		return nil, nil
	}
	k := new(listKey)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, k) != nil {
		return nil, badRequest("invalid page %.40q of the list", text)
	}
	return k, nil
}

// pageOf cuts a page out of entries in their order. keys are their places.
func pageOf(f *listFilter, keys []listKey, size int) (from, to int, before, after string) {
	to = len(keys)
	switch {
	case f.after != nil:
		from, _ = slices.BinarySearchFunc(keys, *f.after, f.compare)
		if from < len(keys) && f.compare(keys[from], *f.after) == 0 {
			from++
		}
	case f.before != nil:
		to, _ = slices.BinarySearchFunc(keys, *f.before, f.compare)
		from = max(0, to-size)
	}
	if f.before != nil && from == 0 {
		to = len(keys) // the first page is full
	}
	to = min(to, from+size)
	if from > 0 && from < len(keys) {
		before = keys[from].String()
	} else if from > 0 {
		before = f.after.String() // there are no more entries after it
	}
	if to < len(keys) && to > 0 {
		after = keys[to-1].String()
	}
	return from, to, before, after
}

// listGroup is a group of sessions in the list.
type listGroup struct {
	// ID identifies the group in the browser; Name is "" in a list without groups.
	ID, Name string
	Live     bool
	// Project is its full path.
	Project  string
	Sessions []listed
	// Total is the number of sessions, More how many of them the page does not show.
	Total, More int
	// Unread is the number of sessions whose figures are not known yet. The group shows no
	// sums then, because they would be too small.
	Unread int
	// Hidden is the number of tokens that are hidden in the sessions.
	Hidden int
	// Priced reports whether Spent and Saved are known, in US dollars.
	Priced       bool
	Spent, Saved float64
}

const (
	pageSessions  = 100 // sessions on a page without groups
	pageGroups    = 20  // groups on a page
	groupSessions = 8   // sessions of a group
)

// flat shows one page of sessions in their order.
func (d *listPage) flat(found []listed) {
	keys := sortByKey(d.listFilter, found)
	from, to, before, after := pageOf(d.listFilter, keys, pageSessions)
	d.Before, d.After = before, after
	d.Groups = []listGroup{{Sessions: found[from:to]}}
}

// sortByKey sorts sessions and returns their keys.
func sortByKey(f *listFilter, found []listed) []listKey {
	type keyed struct {
		key listKey
		at  int
	}
	list := make([]keyed, len(found))
	for i := range found {
		list[i] = keyed{f.keyOf(&found[i]), i}
	}
	slices.SortFunc(list, func(a, b keyed) int { return f.compare(a.key, b.key) })
	sorted, keys := make([]listed, len(found)), make([]listKey, len(found))
	for i := range list {
		sorted[i], keys[i] = found[list[i].at], list[i].key
	}
	copy(found, sorted)
	return keys
}

// group shows one page of groups: the live sessions, then the projects, each by its newest
// session.
func (d *listPage) group(found []listed) {
	keys := sortByKey(d.listFilter, found)
	at := make(map[string]int)
	var groups []listGroup
	var places []listKey
	for i := range found {
		l := &found[i]
		id := "project:" + visible.Line(l.SessionInfo.Project)
		if l.Live {
			id = "live"
		}
		n, ok := at[id]
		if !ok {
			n = len(groups)
			at[id] = n
			g := listGroup{ID: id, Name: l.Project, Project: l.SessionInfo.Project, Live: l.Live}
			if l.Live {
				g.Name, g.Project = "Live", ""
			} else if g.Project == "" {
				g.Name = "No project"
			}
			groups = append(groups, g)
			places = append(places, listKey{Live: keys[i].Live, Num: keys[i].Num, ID: id})
		}
		groups[n].add(l)
	}
	from, to, before, after := pageOf(d.listFilter, places, pageGroups)
	d.Groups, d.Before, d.After = groups[from:to], before, after
}

// add adds a session. Live sessions are all shown.
func (g *listGroup) add(l *listed) {
	g.Total++
	if l.Hidden < 0 {
		g.Unread++
	}
	g.Hidden += max(0, l.Hidden)
	if l.IsPriced() {
		g.Priced = true
		g.Spent += l.Spent()
		g.Saved += l.Saved.Saved()
	}
	if g.Live || len(g.Sessions) < groupSessions {
		g.Sessions = append(g.Sessions, *l)
	} else {
		g.More++
	}
}

// Lost is by how much more the requests have cost than without furl.
func (g *listGroup) Lost() float64 { return -g.Saved }

// Path is the path of the group's project, as text.
func (g *listGroup) Path() string { return visible.Line(g.Project) }
