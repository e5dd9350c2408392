package web

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/storage"
)

// listed is a session in the list.
type listed struct {
	storage.SessionInfo
	Title   string
	Agent   string
	Project string // its short name
	Live    bool
	// Used is the share of the context window that is used, in percent; -1 if it is
	// unknown. Size is the size of the context, Window that of the window, in tokens.
	Used, Size, Window int
	WindowAssumed      bool // Window is that of similar models
	// Hidden is the original size of what is hidden, in tokens; -1 if it is unknown.
	Hidden int
	// Saved is what furl has saved, zero for sessions that it has not sent requests of.
	// Sums are the sums of the requests, those of an imported session too.
	Saved, Sums storage.Savings
	// Read are the figures that require the records, nil if they are not known.
	Read *figures
	// Sub reports a sub-agent below its session. Subs are the sub-agents of a session,
	// if Open is set; SubAgents is their number.
	Sub, Open bool
	SubAgents int
	Subs      []listed
}

// maxTitle is the length of the longest title that is shown, in characters. Forks and
// imports can have longer ones.
const maxTitle = 300

// liveFor is how long a session counts as live after its newest record. The clock that
// wrote the record may be ahead by as much.
const liveFor = 2 * time.Minute

// isLive reports whether requests of a session have been recorded just now. An imported
// session that somebody changes has none: it has no ledger.
func (v *visit) isLive(info *storage.SessionInfo) bool {
	return v.p.o.Now().Sub(info.Newest()).Abs() < liveFor && info.Records > info.Imported && (info.Imported == 0 || info.Ledger != nil)
}

// listed describes a session from its metadata and ledger.
func (v *visit) listed(info storage.SessionInfo) listed {
	window, assumed := v.Sessions.WindowOf(info.Meta)
	l := listed{
		SessionInfo: info, Title: shorten(visible.Line(cmp.Or(info.Title, "session "+string(info.Session))), maxTitle), Agent: visible.Line(agents.Name(info.Client)),
		Project: visible.Line(projectName(info.Project)), Live: v.isLive(&info),
		Used: -1, Hidden: -1, Window: window, WindowAssumed: assumed, Read: v.p.figures.of(info.SessionKey, info.Records),
	}
	switch {
	case info.Ledger != nil:
		l.Saved, l.Size, l.Hidden = info.Ledger.Total(), info.Ledger.Size, info.Ledger.Hidden
		l.Sums = l.Saved
	case l.Read != nil:
		l.Sums, l.Size, l.Hidden = l.Read.sums, l.Read.size, l.Read.hidden
	}
	if l.Window > 0 && l.Hidden >= 0 {
		l.Used = int(math.Round(100 * float64(l.Size) / float64(l.Window)))
	}
	return l
}

// ModelName is the name of the model without the date at its end.
func (l *listed) ModelName() string {
	model := visible.Line(l.Model)
	if n := len(model) - len("-20060102"); n > 0 && model[n] == '-' && strings.Trim(model[n+1:], "0123456789") == "" {
		return model[:n]
	}
	return model
}

// GaugeWidth is the width of the used part of the gauge, of 60.
func (l *listed) GaugeWidth() int { return min(60, max(0, l.Used)*60/100) }

// IsPriced reports whether the list price of a request of the session is known.
func (l *listed) IsPriced() bool { return l.Sums.Requests > l.Sums.Unpriced }

// Spent is the list price of the session's requests with their summaries, in US dollars.
func (l *listed) Spent() float64 { return l.Sums.Spent() }

// Sent is the number of tokens of the session's prompts with those of summaries.
func (l *listed) Sent() int { return l.Sums.TokensSent() }

// projectName is the last element of the path of a project's folder, with two more if it is
// in a hidden one, as worktrees often are: "cli/.worktrees/1".
func projectName(path string) string {
	path = strings.TrimRight(path, `/\`)
	at := strings.LastIndexAny(path, `/\`) + 1
	if above := strings.TrimRight(path[:at], `/\`); above != "" {
		if dot := strings.LastIndexAny(above, `/\`) + 1; dot > 1 && above[dot] == '.' {
			at = strings.LastIndexAny(strings.TrimRight(above[:dot], `/\`), `/\`) + 1
		}
	}
	return path[at:]
}

// listPage is the data of the list of sessions.
type listPage struct {
	*listFilter
	// All is the number of sessions of the tenant without sub-agents, Found how many the
	// filter selects, and Unread how many of the others have unknown figures that the
	// filter asks for.
	All, Found, Unread int
	Groups             []listGroup
	Before, After      string // cursors of the previous and the next page, "" if there is none
	// Continue is the newest live session, and Latest the newest session with hidden
	// content; nil if there is none or the page is not the first of an unfiltered list.
	Continue, Latest *listed
	// Unsure reports that a newer session than Latest may have hidden content. The browser
	// asks for it.
	Unsure         bool
	Agents, Models []choice
	Projects       []choice
	LiveNow        int
	// Columns are the columns that sort the list.
	Columns []column
	// State is what the gateway says about all sessions.
	State []gateway.StateLine
}

// list shows the list of sessions. It reads their metadata and ledgers, never records.
func (p *Page) list(v *visit) error {
	f, err := parseListFilter(v.r.URL.Query())
	if err != nil {
		return err
	}
	var all []storage.SessionInfo
	for info, err := range v.Sessions.List(v.r.Context(), storage.SessionQuery{}) {
		if err != nil {
			return err
		}
		all = append(all, info)
	}
	data := v.listPage(f, all)
	if v.State != nil {
		data.State = v.State(v.r.Context(), nil)
	}
	if !v.isFragment() {
		v.render(http.StatusOK, "list.tmpl", data)
		return nil
	}
	header := "HX-Push-Url"
	if v.r.Header.Get("HX-Trigger-Name") == "q" { // one entry of the history for each letter would be too many
		header = "HX-Replace-Url"
	}
	v.w.Header().Set(header, data.Here())
	v.render(http.StatusOK, "listing", data)
	return nil
}

// listPage selects, orders and groups sessions.
func (v *visit) listPage(f *listFilter, all []storage.SessionInfo) *listPage {
	data := &listPage{listFilter: f}
	tree := newSessionTree(all)
	var found []listed
	for i := range all {
		id := all[i].Session
		if tree.parents[id] == "" {
			data.All++
		}
		if parent := tree.parents[id]; parent != "" && f.selects(v, tree.infos[parent], nil) {
			continue // below its parent
		}
		l := v.listed(all[i])
		data.count(&l)
		if !f.selects(v, &all[i], &l) {
			if f.Hidden && l.Hidden < 0 {
				data.Unread++
			}
			continue
		}
		l.Sub = tree.parents[id] != ""
		found = append(found, l)
	}
	data.Found = len(found)
	data.choices(tree)
	data.Columns = f.columns()
	if f.isPlain() {
		data.Continue, data.Latest, data.Unsure = newest(found)
	}
	names := tree.projects
	for i := range found {
		found[i].Project = visible.Line(names[found[i].SessionInfo.Project])
	}
	if f.grouped() {
		data.group(found)
	} else {
		data.flat(found)
	}
	for i := range data.Groups {
		for j := range data.Groups[i].Sessions {
			v.addSubs(&data.Groups[i].Sessions[j], tree, f.Open)
		}
	}
	return data
}

// newest returns the newest live session and the newest one with hidden content. It is
// unsure if a newer session may have hidden content, because its figures are not known.
func newest(found []listed) (live, hidden *listed, unsure bool) {
	var unknown time.Time
	for i := range found {
		l := &found[i]
		if l.Live && (live == nil || l.Newest().After(live.Newest())) {
			live = l
		}
		if l.Hidden > 0 && (hidden == nil || l.Newest().After(hidden.Newest())) {
			hidden = l
		}
		if l.Hidden < 0 && l.Newest().After(unknown) {
			unknown = l.Newest()
		}
	}
	unsure = !unknown.IsZero() && (hidden == nil || unknown.After(hidden.Newest()))
	return clone(live), clone(hidden), unsure
}

// clone returns a copy of a listed session, nil of nil.
func clone(l *listed) *listed {
	if l == nil {
		return nil
	}
	return new(*l)
}

// addSubs adds the sub-agents of a session, if it is the one that is open.
func (v *visit) addSubs(l *listed, tree *sessionTree, open furl.SessionID) {
	subs := tree.below[l.Session]
	if l.SubAgents = len(subs); l.Session != open {
		return
	}
	l.Open = true
	for _, id := range subs {
		sub := v.listed(*tree.infos[id])
		sub.Sub = true
		l.Subs = append(l.Subs, sub)
	}
}

// sessionTree says which sessions are sub-agents of others.
type sessionTree struct {
	infos    map[furl.SessionID]*storage.SessionInfo
	parents  map[furl.SessionID]furl.SessionID
	below    map[furl.SessionID][]furl.SessionID
	projects map[string]string // short names
}

func newSessionTree(all []storage.SessionInfo) *sessionTree {
	t := &sessionTree{infos: make(map[furl.SessionID]*storage.SessionInfo, len(all)), parents: make(map[furl.SessionID]furl.SessionID), below: make(map[furl.SessionID][]furl.SessionID)}
	family, paths := make([]agents.Family, len(all)), make([]string, len(all))
	for i := range all {
		t.infos[all[i].Session] = &all[i]
		family[i] = agents.Family{ID: string(all[i].Session), Hint: all[i].Hint, Parent: all[i].Parent}
		paths[i] = all[i].Project
	}
	for id, parent := range agents.Parents(family) {
		t.parents[furl.SessionID(id)] = furl.SessionID(parent)
	}
	for i := range all {
		if parent := t.parents[all[i].Session]; parent != "" {
			t.below[parent] = append(t.below[parent], all[i].Session)
		}
	}
	t.projects = agents.ShortProjects(paths)
	return t
}

// listAddress returns the address of the list with a query.
func listAddress(q url.Values) string {
	if len(q) == 0 {
		return "/"
	}
	return "/?" + q.Encode()
}
