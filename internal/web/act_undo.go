package web

import (
	"strings"

	"github.com/furlhq/furl/internal/operation"
)

// undoneBy sets the button that undoes an operation.
func (v *visit) undoneBy(out *outcome, u *operation.Undo) {
	switch in := u.Input.(type) {
	case *operation.HoldInput:
		out.Undo = v.button(u.Operation, "Undo", query(&in.Blocks)...)
	case *operation.RestoreInput:
		var params []string
		for _, seq := range in.Handles {
			params = append(params, "reduction", seq)
		}
		out.Undo = v.button("undo", "Undo", params...)
	case *operation.RewindInput:
		out.Undo = v.button("rewind", "Undo", "at", seqKey(*in.Record))
	case *operation.SetInput:
		var params []string
		for _, pair := range in.Pairs {
			name, value, _ := strings.Cut(pair, "=")
			params = append(params, name, value)
		}
		out.Undo = v.button("settings", "Undo", params...)
	case *operation.CompactInput:
		if out.Undo = v.button("cancel", "Undo"); !in.Cancel {
			out.Undo = v.button("compact", "Compact anyway", query(&operation.Blocks{Handles: in.Handles}, "focus", in.Focus)...)
		}
	case *operation.HideInput:
		out.NoUndo = "This has no undo. You can hide it again."
		params := query(&in.Blocks)
		if in.Steps {
			params = append(params, "steps", "1")
		}
		link := v.button("hide", "Hide it again", params...)
		if in.Again != 0 {
			link = v.button("again", "Hide it again", "reduction", seqKey(in.Again))
		}
		out.Links = append(out.Links, *link)
	}
}
