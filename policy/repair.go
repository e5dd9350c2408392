package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/fidelity"
	"github.com/furlhq/furl/internal/toolscript"
)

// EditOptions say what happens when an edit fails. They are options of every policy.
type EditOptions struct {
	// RepairEdits shows the model a file again, as it last read it, if its edit of that
	// file has failed for its text and the read is hidden. If nil, only the presets of auto
	// do. See RepairOf.
	RepairEdits *bool `json:"repair_edits,omitempty"`
}

// maxRepair is how much one repair may add to a prompt, in the provider's tokens: Claude
// Code reads at most so much of a file at once.
const maxRepair = 25_000

// Repair shows the model the text of files again in which its newest edits failed.
type Repair struct {
	// Restoration is to be recorded before the policy plans the request.
	Restoration *furl.Restoration
	// Files are the files as the edits name them.
	Files []string
	// Before and After are the sizes of the request without and with the restoration, in the
	// provider's tokens. Rewritten is what follows the first block that is shown again: the
	// part of the prompt that the provider's cache does not have any more.
	Before, After, Rewritten int
}

// Step is the step of the request's plan for the repair.
func (r *Repair) Step() furl.PlanStep {
	return furl.PlanStep{Stage: event.StageRepair, Skipped: strings.Join(r.Files, ", "), Before: r.Before, After: r.After}
}

// RepairOf returns the repair that a policy makes before it plans a request, nil if it makes
// none. It makes one if an edit in the newest reply has failed for its text, and the newest
// read of all of the file, or of the part that has this text, is hidden. The read is expanded,
// with those edits of the file since then that are hidden too. What people or the client have
// hidden stays hidden, and nothing is expanded that takes more than 25,000 tokens or does not
// fit the window.
func RepairOf(p furl.Policy, s *furl.State, b furl.Budget) *Repair {
	if !RepairsEdits(p, &b) {
		return nil
	}
	edits := failedEdits(s)
	if len(edits) == 0 {
		return nil
	}
	before, after := s.View(b.Model), (*furl.View)(nil)
	r := &Repair{Restoration: &furl.Restoration{Open: true}, Before: b.Size, After: b.Size}
	for i := range edits {
		for _, name := range edits[i].files {
			spans := slices.Clone(r.Restoration.Spans)
			for _, p := range edits[i].hidden(s, name) {
				spans = append(spans, furl.Span{First: p, Last: p})
			}
			if len(spans) == len(r.Restoration.Spans) {
				continue
			}
			open := &furl.Restoration{Open: true, Spans: spans}
			t, err := s.With(open)
			if err != nil {
				continue // the client has changed what it sent
			}
			view := t.View(b.Model)
			then := b.After(before, view)
			if then.Size-b.Size > maxRepair || b.Window > 0 && then.Size >= demandedFrom(&b) || Over(view, then) != "" {
				continue
			}
			r.Restoration, r.After, after = open, then.Size, view
			r.Files = append(r.Files, name)
		}
	}
	if len(r.Files) == 0 {
		return nil
	}
	first := r.Restoration.Spans[0].First.Msg
	for _, sp := range r.Restoration.Spans {
		first = min(first, sp.First.Msg)
	}
	r.Rewritten = b.Of(tokensFrom(after, first), 0)
	return r
}

// repairer is a policy of this package.
type repairer interface {
	repairsEdits(b *furl.Budget) bool
}

// RepairsEdits reports whether a policy makes repairs, see RepairOf. Only the Model and the
// Recall of the budget count.
func RepairsEdits(p furl.Policy, b *furl.Budget) bool {
	r, ok := p.(repairer)
	return ok && r.repairsEdits(b)
}

// MayRepair reports whether RepairOf may make a repair, whatever the policy. It reads only
// the newest messages.
func MayRepair(s *furl.State) bool { return len(failedEdits(s)) > 0 }

func (p *Pipeline) repairsEdits(*furl.Budget) bool { return isOn(p.RepairEdits, p.repairs) }

func (p *perModel) repairsEdits(b *furl.Budget) bool { return RepairsEdits(p.of(b.Model.ID), b) }

func (p *recallOr) repairsEdits(b *furl.Budget) bool { return RepairsEdits(p.Policy, b) }

func (c chain) repairsEdits(b *furl.Budget) bool { return RepairsEdits(c.then, b) }

// failedEdit is an edit in the newest reply that has failed for its text.
type failedEdit struct {
	call  string          // its id
	files []string        // of which one has failed
	lines map[string]bool // that it replaces, folded
}

// failedEdits finds the failed edits among the calls of the newest reply.
func failedEdits(s *furl.State) []failedEdit {
	failed := make(map[string]*furl.Block) // results by the ids of their calls
	i := s.Len() - 1
	for ; i >= 0; i-- {
		_, m := s.Message(i)
		if m.Role == furl.RoleAssistant {
			break
		}
		for j := range m.Blocks {
			if b := &m.Blocks[j]; b.Kind == furl.KindResult && b.ID != "" && editFailed(b) {
				failed[b.ID] = b
			}
		}
	}
	var edits []failedEdit
	for ; len(failed) > 0 && i >= 0; i-- {
		_, m := s.Message(i)
		if m.Role != furl.RoleAssistant {
			break
		}
		for j := len(m.Blocks) - 1; j >= 0; j-- {
			b := &m.Blocks[j]
			result := failed[b.ID]
			if b.Kind != furl.KindCall || result == nil {
				continue
			}
			delete(failed, b.ID)
			if e := editOf(b); len(e.files) > 0 {
				e.narrow(result.Text)
				edits = append(edits, e)
			}
		}
	}
	slices.Reverse(edits)
	return edits
}

// editOf is what a call replaces, or the calls in its script do.
func editOf(b *furl.Block) failedEdit {
	e := failedEdit{call: b.ID, lines: make(map[string]bool)}
	for _, c := range toolscript.Calls(b) {
		texts := fidelity.Replaced(c)
		var patches []string
		for text := range c.Texts() {
			texts = append(texts, searched(text)...)
			patches = append(patches, patched(text)...)
		}
		if len(texts) == 0 {
			continue
		}
		for _, name := range append(writtenBy(c), patches...) {
			if !slices.Contains(e.files, name) {
				e.files = append(e.files, name)
			}
		}
		for _, text := range texts {
			for line := range fidelity.Variants(text) {
				if len(e.lines) < maxLines {
					e.lines[line] = true
				}
			}
		}
	}
	return e
}

// maxLines is how many lines of the replaced texts are looked for.
const maxLines = 500

// searched returns the texts that a diff of Cline or Roo Code searches for:
//
//	<<<<<<< SEARCH        ------- SEARCH
//	old                   old
//	=======               =======
//	new                   new
//	>>>>>>> REPLACE       +++++++ REPLACE
func searched(diff string) []string {
	var texts []string
	for _, mark := range [...]string{"<<<<<<< SEARCH", "------- SEARCH"} {
		rest := diff
		for {
			_, after, ok := strings.Cut(rest, mark)
			if !ok {
				break
			}
			old, after, ok := strings.Cut(after, "\n=======")
			if !ok {
				break
			}
			texts, rest = append(texts, old), after
		}
	}
	return texts
}

// narrow leaves only the files that the result of a call with several files names.
func (e *failedEdit) narrow(result string) {
	if len(e.files) < 2 {
		return
	}
	var named []string
	for _, name := range e.files {
		if strings.Contains(result, lastElement(name)) {
			named = append(named, name)
		}
	}
	if len(named) > 0 {
		e.files = named
	}
}

// Words by which the tools of agents say that the text to replace is not in the file, or is in it
// more than once. Those of patchFailed are searched in all of a result: a shell or a script
// prints other text before them.
var (
	patchFailed = []string{"apply_patch verification failed", "failed to find expected lines", "failed to find context", "patch does not apply", "error: patch failed",
		"does not match anything in the file", "sufficiently similar match"}
	textFailed = []string{
		"not found in", "not find", "no match", "not match", "did not appear", "not occur", "old text occurs", "no occurrence", "0 occurrences", "not unique", "must be unique",
		"multiple matches", "multiple occurrences", "multiple times", "matches of the string to replace", "failed to find", "invalid context",
	}
	// otherFailure are failures that the text of the file does not help with.
	otherFailure = []string{"file not found", "no such file", "does not exist", "enoent", "has not been read", "modified since", "tool use was rejected", "user rejected", "permission"}
)

const (
	// maxLead is how much of a result that is marked as failed is searched for textFailed,
	// and of other results the first line, in bytes; maxOutput for patchFailed.
	maxLead, maxFirst, maxOutput = 4000, 300, 100_000
)

// editFailed reports whether the result of an edit says that the text to replace was not found, or
// found too often.
func editFailed(b *furl.Block) bool {
	text := strings.ToLower(b.Text[:min(len(b.Text), maxOutput)])
	if containsAny(text, patchFailed) {
		return true
	}
	first := wholeLine(text[:min(len(text), maxLead)])
	first = first[:min(len(first), maxFirst)]
	switch {
	case strings.Contains(first, "success"), strings.Contains(first, "has been updated"):
		return false
	case containsAny(first, textFailed), strings.Contains(first, "found") && strings.Contains(first, "occurrence"):
		return true
	case containsAny(first, otherFailure):
		return false
	}
	return (b.Error || b.ErrorText) && containsAny(text[:min(len(text), maxLead)], textFailed)
}

func containsAny(text string, list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(text, s) })
}

// fileText is a place on the path that has the text of a file, or a part of it: the result
// of a read, or a call that wrote the file.
type fileText struct {
	at    furl.Pos
	whole bool
	edit  bool            // a call that changed a part of it
	holds map[string]bool // lines of the failed edit
}

// hidden returns the blocks to expand for a file of the edit: none if its text is visible, or
// was never on the path.
func (e *failedEdit) hidden(s *furl.State, name string) []furl.Pos {
	return e.hiddenText(s, e.texts(s, name))
}

// hiddenText picks what to expand of the texts of a file, given in the order of the path.
func (e *failedEdit) hiddenText(s *furl.State, texts []fileText) []furl.Pos {
	most, visible := 0, make(map[string]bool)
	for _, t := range texts {
		if !t.edit {
			most = max(most, len(t.holds))
		}
		if s.ShownBy(t.at) == 0 {
			maps.Copy(visible, t.holds)
		}
	}
	if len(visible) > 0 && len(visible) == len(e.lines) {
		return nil
	}
	picked := -1
	for i, t := range slices.Backward(texts) {
		// If no text has a line of the edit, the newest read must do.
		holds := t.whole || most > 0 && len(t.holds) == most
		if t.edit || !holds && (most > 0 || picked >= 0) {
			continue
		}
		if s.ShownBy(t.at) == 0 {
			return nil
		}
		if picked = i; holds {
			break
		}
	}
	if picked < 0 || !mayExpand(s, texts[picked].at) {
		return nil
	}
	found := []furl.Pos{texts[picked].at}
	for _, t := range texts[picked+1:] {
		if t.edit && mayExpand(s, t.at) {
			found = append(found, t.at)
		}
	}
	return found
}

// mayExpand reports whether a block is hidden by a policy. What the client has left out
// itself, and what a person has hidden, stays hidden.
func mayExpand(s *furl.State, p furl.Pos) bool {
	red, ok := s.Reduction(s.ShownBy(p))
	return ok && !red.External() && red.By == furl.Furl
}

// texts finds the texts of a file on the path before the edit.
func (e *failedEdit) texts(s *furl.State, name string) []fileText {
	known := furl.Memo(s, newFileUses)
	open := make(map[string]fileText) // reads and writes without a result so far
	var texts []fileText
	for i := range s.Len() {
		seq, m := s.Message(i)
		for j := range m.Blocks {
			b, at := &m.Blocks[j], furl.Pos{Msg: seq, Block: j}
			switch {
			case b.Kind == furl.KindCall && b.ID != e.call:
				use := known.of(s, at, b)
				delete(open, b.ID)
				switch {
				case hasFile(use.writes, name):
					open[b.ID] = fileText{at: at, whole: use.writesAll, edit: !use.writesAll, holds: e.held(b)}
				case hasFile(use.reads, name):
					open[b.ID] = fileText{whole: use.readsAll}
				}
			case b.Kind == furl.KindResult:
				t, ok := open[b.ID]
				if delete(open, b.ID); !ok || b.Error || t.at.Msg > 0 && editFailed(b) {
					continue
				}
				if t.at.Msg == 0 {
					t.at, t.holds = at, e.held(b)
				}
				texts = append(texts, t)
			}
		}
	}
	return texts
}

// held are the lines of the edit that a block has.
func (e *failedEdit) held(b *furl.Block) map[string]bool {
	found := make(map[string]bool)
	if len(e.lines) == 0 {
		return found
	}
	for text := range b.Texts() {
		for line := range fidelity.Variants(text) {
			if e.lines[line] {
				found[line] = true
			}
		}
	}
	return found
}

// hasFile reports whether one of the names is that of the file. Agents name a file by its whole
// path in one call, and from a folder in another.
func hasFile(names []string, file string) bool {
	file = strings.TrimPrefix(file, "./")
	return slices.ContainsFunc(names, func(name string) bool {
		name = strings.TrimPrefix(name, "./")
		return name == file || strings.HasSuffix(name, "/"+file) || strings.HasSuffix(file, "/"+name)
	})
}
