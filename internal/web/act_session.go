package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
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
	in := &operation.SetInput{}
	for _, f := range v.settingFields() {
		if posted, ok := v.r.PostForm[f.Name]; ok && posted[0] != f.Own {
			in.Pairs = append(in.Pairs, f.Name+"="+posted[0])
		}
	}
	if len(in.Pairs) == 0 {
		return &outcome{Text: "Nothing was changed."}, nil
	}
	return v.do("set", in, "")
}

// isOwn reports whether the session can be rewound here: the clients of others send their
// whole history with each request.
func (v *visit) isOwn() bool { return operation.ClientDecides(v.s) == "" }

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
	out, err := v.ask("fork", &operation.ForkInput{Record: &at}, "", "Fork", "at", seqKey(at))
	if err != nil {
		return nil, err
	}
	out.Price = v.samePrice("This session does not change. The first request of the fork writes its own prompt cache.")
	out.Inputs = []input{{"title", "Title", "the same as this session's", ""}}
	return out, nil
}

func doFork(v *visit) (*outcome, error) {
	at, err := v.recordParam("at")
	if err != nil {
		return nil, err
	}
	in := &operation.ForkInput{Record: &at, Title: v.r.PostFormValue("title")}
	r, err := operation.Named("fork").Do(v.call(""), in)
	if err != nil {
		return nil, err
	}
	return &outcome{
		Text: r.Text(false), Notes: r.Notes, NoUndo: "To undo this, open the fork and delete it.",
		Open: prefix + "/sessions/" + string(r.Value.(operation.Forked).Session), OpenLabel: "Open the fork",
	}, nil
}

// clientDecides is why a session of another client cannot be rewound here.
func (v *visit) clientDecides() string {
	return operation.ClientDecides(v.s) + " Go back in the agent, or fork the session here."
}

func askRewind(v *visit) (*panel, error) {
	at, err := v.recordParam("at")
	if err != nil {
		return nil, err
	}
	out, err := v.ask("rewind", &operation.RewindInput{Record: &at}, "", "Continue from here", "at", seqKey(at))
	if err == nil && !v.isOwn() {
		out.Refuse, out.Says, out.Notes, out.Price = v.clientDecides(), nil, nil, nil
		out.Links = []button{*v.button("fork", "Fork here", "at", seqKey(at))}
	}
	return out, err
}

func doRewind(v *visit) (*outcome, error) {
	at, err := v.recordParam("at")
	if err != nil {
		return nil, err
	}
	if !v.isOwn() {
		return nil, refusal(v.clientDecides())
	}
	out, err := v.do("rewind", &operation.RewindInput{Record: &at}, "")
	if err == nil {
		out.Reload = true
	}
	return out, err
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

// redactInput reads the form of redact.
func (v *visit) redactInput() (*operation.RedactInput, error) {
	if err := v.r.ParseForm(); err != nil {
		return nil, badRequest("invalid form: %v", err)
	}
	in := &operation.RedactInput{Handles: v.r.Form["at"]}
	if pattern := v.r.Form.Get("pattern"); pattern != "" {
		in.Patterns = []string{pattern}
	}
	return in, nil
}

func askRedact(v *visit) (*panel, error) {
	in, err := v.redactInput()
	if err != nil {
		return nil, err
	}
	params := query(&operation.Blocks{Handles: in.Handles})
	if len(in.Patterns) > 0 {
		params = append(params, "pattern", in.Patterns[0])
	}
	out, err := v.ask("redact", in, "", "Redact permanently", params...)
	if err == nil {
		out.Danger = true
		if len(in.Handles) == 0 {
			out.Choose = &input{"pattern", "Search for", "a regular expression, such as password=\\S+ (default common credentials)", strings.Join(in.Patterns, "")}
		}
	}
	return out, err
}

func doRedact(v *visit) (*outcome, error) {
	in, err := v.redactInput()
	if err != nil {
		return nil, err
	}
	out, err := v.do("redact", in, "")
	if err != nil {
		return nil, err
	}
	v.p.forget(v.s.Info().SessionKey)
	out.NoUndo, out.Reload = "This cannot be undone.", true
	return out, nil
}

func askDelete(v *visit) (*panel, error) {
	out, err := v.ask("delete", &operation.DeleteInput{}, "", "Delete permanently")
	if err == nil {
		out.Danger = true
	}
	return out, err
}

func doDelete(v *visit) (*outcome, error) {
	out, err := v.do("delete", &operation.DeleteInput{}, "")
	if err != nil {
		return nil, err
	}
	v.p.forget(v.s.Info().SessionKey)
	out.Gone = true
	return out, nil
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
		*v.button("settings", "Settings"), *v.button("redact", "Redact…"), *v.button("delete", "Delete…"),
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
