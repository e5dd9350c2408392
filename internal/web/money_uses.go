package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// uses count what the model did because something was hidden.
type uses struct {
	// Recalls are the calls of recall tools.
	Recalls int
	// Blind are the edits that quote text which is no longer visible.
	Blind int
	// left is how many more bytes may be searched for quoted text. Partly reports that they
	// were not enough, so that Blind may be too low.
	left   int
	Partly bool
	// Reductions are the reductions on the current branch.
	Reductions int
}

// recallTools are the names of the tools by which a model searches and reads what is
// hidden from it. Those of an MCP server have a prefix.
var recallTools = []string{"memory_search", "memory_get"}

func isRecallTool(name string) bool {
	return slices.ContainsFunc(recallTools, func(tool string) bool { return name == tool || strings.HasSuffix(name, "__"+tool) })
}

// usesOf counts along the current branch.
func usesOf(log *furl.Log) (uses, error) {
	u := uses{left: maxSearched}
	var path []furl.Record
	for seq := log.Head(); seq != 0; seq = path[len(path)-1].Parent {
		path = append(path, log.At(seq))
	}
	st := new(furl.State)
	for i := len(path) - 1; i >= 0; i-- {
		switch b := path[i].Body.(type) {
		case *furl.Reduction:
			u.Reductions++
		case *furl.Message:
			if b.Role == furl.RoleAssistant {
				u.reply(st, b, u.Reductions > 0)
			}
		}
		if err := st.Apply(path[i]); err != nil {
			return u, err
		}
	}
	return u, nil
}

// reply counts the calls of a reply to the view of a state.
func (u *uses) reply(st *furl.State, m *furl.Message, hides bool) {
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Kind != furl.KindCall {
			continue
		}
		if isRecallTool(b.Name) {
			u.Recalls++
		}
		if hides {
			if line := quotedLine(b); line != "" && u.isHiddenText(st, line) {
				u.Blind++
			}
		}
	}
}

// minQuoted is the length of the shortest line by which an edit's text is found, in bytes.
const minQuoted = 12

// quotedLine returns the longest line of the text that an edit replaces, "" if a call is no
// edit or all lines are short.
func quotedLine(b *furl.Block) string {
	var args struct {
		A string `json:"old_string"`
		B string `json:"oldString"`
		C string `json:"old_str"`
	}
	if json.Unmarshal(b.Args, &args) != nil {
		return ""
	}
	longest := ""
	for line := range strings.Lines(args.A + args.B + args.C) {
		if line = strings.TrimSpace(line); len(line) >= minQuoted && len(line) > len(longest) {
			longest = line
		}
	}
	return longest
}

// maxSearched is how many bytes are searched for the quoted texts of a session's edits,
// which takes about a second.
const maxSearched = 2 << 30

// isHiddenText reports whether a text is on the path, but in no block that is shown as
// recorded. The newest blocks are the most likely to be shown.
func (u *uses) isHiddenText(st *furl.State, text string) bool {
	escaped, _ := json.Marshal(text) // has no errors
	inCalls := escaped[1 : len(escaped)-1]
	found := false
	for i := st.Len() - 1; i >= 0; i-- {
		seq, m := st.Message(i)
		for j := range m.Blocks {
			b := &m.Blocks[j]
			if u.left -= len(b.Text) + len(b.Args); u.left < 0 {
				u.Partly = true
				return false
			}
			if b.Kind == furl.KindThinking || !strings.Contains(b.Text, text) && !(b.Kind == furl.KindCall && bytes.Contains(b.Args, inCalls)) {
				continue
			}
			if st.ShownBy(furl.Pos{Msg: seq, Block: j}) == 0 {
				return false
			}
			found = true
		}
	}
	return found
}
