package conversation

import (
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/tool"
)

// Read calls f with the state of the session's current branch.
func (c *Conversation) Read(f func(st *furl.State)) {
	c.Session().Internal().Read(func(c *open.Change) { f(c.Log().State()) })
}

// Entries implements chat.Conversation.
func (c *Conversation) Entries(n int) (list []chat.Entry, before int, err error) {
	c.Read(func(st *furl.State) { list, before = entriesOf(st, n) })
	return list, before, nil
}

// entriesOf returns the last n entries of a path, and the number of messages before
// them.
func entriesOf(st *furl.State, n int) (list []chat.Entry, before int) {
	var marks []policy.Reduced
	for _, r := range policy.Reductions(st) {
		if !r.Lifted {
			marks = append(marks, r)
		}
	}
	results := make(map[string]*furl.Block)
	i := st.Len() - 1
	for ; i >= 0 && len(list) < n; i-- {
		for len(marks) > 0 && marks[len(marks)-1].Position > i {
			list = append(list, markerEntry(&marks[len(marks)-1]))
			marks = marks[:len(marks)-1]
		}
		list = append(list, MessageEntries(st, i, results)...)
	}
	slices.Reverse(list)
	return list, i + 1
}

// MessageEntries returns the entries of a message, last one first. results has the
// results of the messages after it, by the IDs of their calls.
func MessageEntries(st *furl.State, i int, results map[string]*furl.Block) (list []chat.Entry) {
	seq, m := st.Message(i)
	for j := len(m.Blocks) - 1; j >= 0; j-- {
		b := &m.Blocks[j]
		e := chat.Entry{Record: seq, Text: b.Text, Media: len(b.Media), Time: st.Time(i), Hidden: st.ShownBy(furl.Pos{Msg: seq, Block: j}) != 0}
		switch {
		case b.Own:
			continue
		case b.Kind == furl.KindResult:
			results[b.ID] = b
			continue
		case b.Kind == furl.KindCall:
			e.Kind, e.Call = chat.Call, agent.Call{ID: b.ID, Name: b.Name, Input: b.Args}
			if r := results[b.ID]; r != nil {
				e.Result = &tool.Result{Parts: []tool.Part{{Text: r.Text}}, Error: r.Error}
			}
		case m.Role == furl.RoleUser && (b.Kind == furl.KindText || len(b.Media) > 0):
			e.Kind = chat.User
			if len(list) > 0 && list[len(list)-1].Kind == chat.User { // one entry for text and images
				last := &list[len(list)-1]
				last.Text, last.Media = strings.TrimSpace(e.Text+"\n"+last.Text), last.Media+e.Media
				continue
			}
		case m.Role == furl.RoleAssistant && b.Kind == furl.KindText && b.Text != "":
			e.Kind = chat.Text
		case b.Kind == furl.KindThinking && b.Text != "":
			e.Kind = chat.Thinking
		default:
			continue
		}
		list = append(list, e)
	}
	return list
}

// markerEntry describes a reduction (C8).
func markerEntry(r *policy.Reduced) chat.Entry {
	line, detail, _ := chat.Describe(r.Event(), r.After)
	return chat.Entry{Kind: chat.Marker, Record: r.Seq, Text: strings.TrimRight(line+"\n"+detail, "\n"), Time: r.Time}
}
