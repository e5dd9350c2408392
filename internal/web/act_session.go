package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
)

// settingField is a setting of a session in a form.
type settingField struct {
	session.Setting
	Own  string // the session's own value, "" if it has none
	Else string // the value in effect if it has none
}

// Label is the name of a setting in words.
func (f settingField) Label() string { return strings.ReplaceAll(f.Name, "_", " ") }

// settingFields returns the settings that the form has. Pins have buttons of their own.
func (v *visit) settingFields() (list []settingField) {
	for _, set := range v.s.Settings() {
		if set.Name == "pinned" {
			continue
		}
		f := settingField{Setting: set}
		if set.From == "session" {
			f.Own = set.Value
		} else {
			f.Else = set.Value
		}
		list = append(list, f)
	}
	return list
}

func askSettings(v *visit) (*panel, error) {
	out := &panel{Title: "Settings of this session", Button: "Save", Fields: values(), Settings: v.settingFields()}
	out.Price = v.samePrice("Settings apply from the next request on. What is hidden stays hidden.")
	out.Says = []string{"An empty field means the value of the configuration."}
	return out, nil
}

func doSettings(v *visit) (*outcome, error) {
	if err := v.r.ParseForm(); err != nil {
		return nil, badRequest("invalid form: %v", err)
	}
	var pairs, undo, said []string
	for _, f := range v.settingFields() {
		posted, ok := v.r.PostForm[f.Name]
		if !ok || posted[0] == f.Own {
			continue
		}
		pairs, undo = append(pairs, f.Name, posted[0]), append(undo, f.Name, f.Own)
		value := posted[0]
		if value == "" {
			value = "as configured"
		}
		said = append(said, f.Label()+": "+visible.Line(value))
	}
	if len(pairs) == 0 {
		return &outcome{Text: "Nothing was changed."}, nil
	}
	if err := v.s.Set(v.r.Context(), pairs[0], pairs[1], pairs[2:]...); err != nil {
		return nil, err
	}
	return &outcome{Text: "Saved. " + strings.Join(said, "; ") + ".", Undo: v.button("settings", "Undo", undo...)}, nil
}

// ownClient is storage.Meta.Client of sessions of furl chat. Only they can be rewound here:
// the clients of other sessions send their whole history with each request.
const ownClient = "furl chat"

func (v *visit) isOwn() bool { return v.s.Meta().Client == ownClient }

// recordParam reads a record number from a parameter: that of a message, or of a branch.
func (v *visit) recordParam(name string) (furl.Seq, error) {
	h, err := recall.ParseHandle(v.r.FormValue(name))
	if err != nil {
		return 0, badRequest("%v", err)
	}
	if h.Msg > v.s.Info().Records {
		return 0, notFound("there is no record %d", h.Msg)
	}
	return h.Msg, nil
}

func askFork(v *visit) (*panel, error) {
	at, err := v.recordParam("at")
	if err != nil {
		return nil, err
	}
	to, _, err := v.s.PriceOfRewind(at)
	if err != nil {
		return nil, err
	}
	out := &panel{Title: fmt.Sprintf("Fork at record %d", at), Button: "Fork", Fields: values("at", seqKey(at))}
	out.Price = v.samePrice("This session does not change. The first request of the fork writes its own prompt cache.")
	out.Says = []string{fmt.Sprintf("A new session with a copy of the first %s. Its records have the same numbers.", pluralOf(to.Messages, "message"))}
	if to.To != at {
		out.Notes = append(out.Notes, fmt.Sprintf("Record %d is inside a step, so the copy ends before the step.", at))
	}
	if !v.isOwn() {
		out.Notes = append(out.Notes, "The agent continues in the original.")
	}
	out.Input = &input{"title", "Title", "the same as this session's"}
	return out, nil
}

func doFork(v *visit) (*outcome, error) {
	at, err := v.recordParam("at")
	if err != nil {
		return nil, err
	}
	f, err := v.Sessions.Fork(v.r.Context(), v.s, at)
	if err != nil {
		return nil, err
	}
	if title := strings.TrimSpace(v.r.PostFormValue("title")); title != "" {
		if err := f.Set(v.r.Context(), "title", title); err != nil {
			return nil, err
		}
	}
	return &outcome{
		Text: "The session was forked.", Notes: []string{"The fork is session " + string(f.ID()) + "."}, NoUndo: "To undo this, open the fork and delete it.",
		Open: prefix + "/sessions/" + string(f.ID()), OpenLabel: "Open the fork",
	}, nil
}

// clientDecides is why a session of another client cannot be rewound here.
func (v *visit) clientDecides() string {
	client := visible.Line(v.s.Meta().Client)
	if client == "" {
		client = "The client"
	}
	return client + " decides where its conversation continues, because it sends its whole history with each request. Go back in the agent, or fork the session here."
}

func askRewind(v *visit) (*panel, error) {
	at, err := v.recordParam("at")
	if err != nil {
		return nil, err
	}
	to, price, err := v.s.PriceOfRewind(at)
	if err != nil {
		return nil, err
	}
	out := &panel{Title: fmt.Sprintf("Continue from record %d", to.To), Button: "Continue from here", Fields: values("at", seqKey(at))}
	if !v.isOwn() {
		out.Refuse = v.clientDecides()
		out.Links = []button{*v.button("fork", "Fork here", "at", seqKey(at))}
		return out, nil
	}
	out.Price = v.price(price)
	out.Says = []string{fmt.Sprintf("The conversation continues after %s. Later messages stay in the session as a branch.", pluralOf(to.Messages, "message"))}
	if to.To != at {
		out.Notes = append(out.Notes, fmt.Sprintf("Record %d is inside a step, so the conversation continues before the step.", at))
	}
	out.Notes = append(out.Notes, "Reductions after that point no longer apply. This can be undone.")
	return out, nil
}

func doRewind(v *visit) (*outcome, error) {
	at, err := v.recordParam("at")
	if err != nil {
		return nil, err
	}
	if !v.isOwn() {
		return nil, refusal(v.clientDecides())
	}
	_, price, err := v.s.PriceOfRewind(at)
	if err != nil {
		return nil, err
	}
	done, err := v.s.Rewind(v.r.Context(), at)
	if err != nil {
		return nil, err
	}
	return &outcome{
		Text: fmt.Sprintf("The conversation continues after %s.", pluralOf(done.Messages, "message")), Price: v.price(price),
		Undo: v.button("rewind", "Undo", "at", seqKey(done.Branch)), Reload: true,
	}, nil
}

// branch is a branch in the tree of a session.
type branch struct {
	session.Branch
	Under []*branch // branches that leave this one
	View  string    // the address of its messages
	Goto  *button   // continues from it, nil if that is not possible
}

func askBranches(v *visit) (*panel, error) {
	out := &panel{Title: "Branches"}
	err := v.read(func(snap *snapshot) error {
		out.Branches = v.branches(snap.log)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if n := len(v.s.Branches()); n == 1 {
		out.Says = []string{"The conversation has one branch. Others appear when it continues from an earlier message."}
	} else if !v.isOwn() {
		out.Notes = []string{v.clientDecides()}
	}
	return out, nil
}

// branches returns the tree of branches, with the current one as its root.
func (v *visit) branches(log *furl.Log) []*branch {
	var list []*branch
	owner := make(map[furl.Seq]*branch) // of the records that are only on one branch
	for _, b := range v.s.Branches() {
		n := &branch{Branch: b, View: fmt.Sprintf("%s/sessions/%s", prefix, v.s.ID())}
		if !b.Current {
			n.View += "?branch=" + seqKey(b.Head)
			if v.isOwn() {
				n.Goto = v.button("rewind", "Continue from here", "at", seqKey(b.Head))
			}
		}
		list = append(list, n)
	}
	slices.SortStableFunc(list[1:], func(a, b *branch) int { return int(a.Head) - int(b.Head) })
	for _, n := range list[1:] {
		parent, seq := list[0], n.Head
		for ; seq > n.From && int(seq) <= log.Len(); seq = log.At(seq).Parent {
			if by := owner[seq]; by != nil {
				parent = by
				break
			}
			owner[seq] = n
		}
		parent.Under = append(parent.Under, n)
	}
	return list[:1]
}

func askDelete(v *visit) (*panel, error) {
	info := v.s.Info()
	out := &panel{Title: "Delete this session", Button: "Delete permanently", Danger: true, Fields: values()}
	what := pluralOf(info.Messages, "message")
	if n := len(v.s.Reductions()); n > 0 {
		what += ", " + pluralOf(n, "reduction")
	}
	out.Says = []string{fmt.Sprintf("%s and all originals are deleted from the store, %s in total. This cannot be undone.", what, size(info.Bytes))}
	if !v.isOwn() {
		out.Notes = []string{"The agent keeps its own conversation. If it continues, furl records a new session."}
	}
	return out, nil
}

func doDelete(v *visit) (*outcome, error) {
	if err := v.Sessions.Delete(v.r.Context(), v.s.ID()); err != nil {
		return nil, err
	}
	v.p.forget(v.s.Info().SessionKey)
	return &outcome{Text: "The session was deleted.", Gone: true}, nil
}

// size returns a number of bytes in words.
func size(n int64) string {
	switch {
	case n < 10_000:
		return thousands(int(n)) + " bytes"
	case n < 10_000_000:
		return thousands(int(n/1000)) + " kB"
	}
	return thousands(int(n/1_000_000)) + " MB"
}

// sessionActs are the actions on a whole session, and what the page says above the
// transcript.
type sessionActs struct {
	Buttons []button
	Waiting *session.Recorded // a summary that waits for approval
	Decide  []button
	Branch  *branch // that is shown instead of the current one
}

// acts returns the actions on the session. shown is the head of the branch that the page
// shows, 0 for the current one.
func (v *visit) acts(shown furl.Seq) *sessionActs {
	out := &sessionActs{Buttons: []button{
		*v.button("reduce", "Reduce…"), *v.button("compact", "Compact…"), *v.button("branches", "Branches"),
		*v.button("settings", "Settings"), *v.button("delete", "Delete…"),
	}}
	if w := v.s.WaitingSummary(); w != nil {
		out.Waiting = w
		out.Decide = []button{*v.button("approve", "Approve…"), *v.button("edit", "Edit…"), *v.button("refuse", "Refuse…")}
	}
	if shown != 0 {
		out.Branch = &branch{Branch: session.Branch{Head: shown}, View: fmt.Sprintf("%s/sessions/%s", prefix, v.s.ID())}
		if v.isOwn() {
			out.Branch.Goto = v.button("rewind", "Continue from here…", "at", seqKey(shown))
		} else {
			out.Branch.Goto = v.button("fork", "Fork it…", "at", seqKey(shown))
		}
	}
	return out
}
