package web

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/recall"
)

// picked are the messages or blocks that an action is about.
type picked struct {
	operation.Blocks
	Name string // what they are, in words
}

// maxPicked is the number of handles that an action takes.
const maxPicked = 200

// pick reads the request parameters "at".
func (v *visit) pick() (*picked, error) {
	if err := v.r.ParseForm(); err != nil {
		return nil, badRequest("invalid form: %v", err)
	}
	p := &picked{Blocks: operation.Blocks{Handles: v.r.Form["at"]}}
	if len(p.Handles) == 0 {
		return nil, badRequest("nothing is selected")
	}
	if len(p.Handles) > maxPicked {
		return nil, badRequest("more than %d messages or blocks are selected", maxPicked)
	}
	for _, at := range p.Handles {
		if _, err := recall.ParseHandle(at); err != nil {
			return nil, badRequest("%v", err)
		}
	}
	spans, err := v.s.Spans(p.Handles...)
	if err != nil {
		return nil, err
	}
	return p, v.read(func(snap *snapshot) error {
		m, err := v.moment(snap)
		if err != nil {
			return err
		}
		p.describe(m, spans)
		return nil
	})
}

// describe sets what the blocks are called.
func (p *picked) describe(m *moment, spans []furl.Span) {
	names := make(map[string]bool)
	for _, sp := range spans {
		m.blocksOf(sp, func(pos furl.Pos, msg *furl.Message, b *furl.Block) {
			part := m.part(pos, msg, b)
			name := "this message"
			switch {
			case b.IsResult():
				name = "this result"
			case b.Kind == furl.KindCall:
				name = "this call"
			}
			if part.Title != "" && b.IsResult() {
				name = "the result of " + part.Title
			} else if part.Title != "" {
				name = "the call " + part.Title
			}
			names[name], p.Name = true, name
		})
	}
	if len(names) != 1 {
		p.Name = pluralOf(len(p.Handles), "message")
		if len(p.Handles) == 1 {
			p.Name = "this message"
		}
	}
}

// query returns the parameters that name blocks.
func query(b *operation.Blocks, more ...string) []string {
	for _, at := range b.Handles {
		more = append(more, "at", at)
	}
	return more
}

func askExpand(v *visit) (*panel, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	return v.ask("restore", &operation.RestoreInput{Handles: p.Handles}, p.Name, "Expand", query(&p.Blocks)...)
}

func doExpand(v *visit) (*outcome, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	return v.do("restore", &operation.RestoreInput{Handles: p.Handles}, p.Name)
}

func (v *visit) wholeSteps() bool { return v.r.FormValue("steps") != "" }

func askHide(v *visit) (*panel, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	params := query(&p.Blocks)
	if v.wholeSteps() {
		params = query(&p.Blocks, "steps", "1")
	}
	return v.ask("hide", &operation.HideInput{Blocks: p.Blocks, Steps: v.wholeSteps()}, p.Name, "Hide", params...)
}

func doHide(v *visit) (*outcome, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	return v.do("hide", &operation.HideInput{Blocks: p.Blocks, Steps: v.wholeSteps()}, p.Name)
}

// lastName returns the last element of the path.
func (v *visit) lastName() string {
	path := v.r.URL.Path
	return path[strings.LastIndexByte(path, '/')+1:]
}

// holdButtons are the labels of the actions that set holds.
var holdButtons = map[string]string{"pin": "Pin", "prefer": "Prefer", "unpin": "Unpin"}

func askHold(v *visit) (*panel, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	out, err := v.ask(v.lastName(), &operation.HoldInput{Blocks: p.Blocks}, p.Name, holdButtons[v.lastName()], query(&p.Blocks)...)
	if err == nil {
		out.Price = v.samePrice("A pin changes only what policies may hide later.")
	}
	return out, err
}

func doHold(v *visit) (*outcome, error) {
	p, err := v.pick()
	if err != nil {
		return nil, err
	}
	return v.do(v.lastName(), &operation.HoldInput{Blocks: p.Blocks}, p.Name)
}
