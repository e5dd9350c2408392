package web

import (
	"net/http"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lost"
)

// lostPart is what a compaction has lost.
type lostPart struct {
	*lost.Compaction
	Kinds []lostKind
}

// lostKind is a list of what was lost.
type lostKind struct {
	Title string
	lost.List
	Items []lostItem
	More  int
}

// lostItem is a text that was lost.
type lostItem struct {
	lost.Item
	At string // the block in addresses
}

// showLost shows what a compaction on a path has lost.
func (v *visit) showLost(path []furl.Record, seq furl.Seq) error {
	list, err := lost.Of(path)
	if err != nil {
		return err
	}
	out := lostPart{Compaction: new(lost.Compaction)} // an edited summary hides nothing new
	for _, c := range list {
		if c.Reduction == seq {
			out.Compaction = c
		}
	}
	add := func(title string, l lost.List) {
		k := lostKind{Title: title, List: l, More: l.Total - len(l.Items)}
		for _, it := range l.Items {
			k.Items = append(k.Items, lostItem{it, strings.TrimPrefix(it.Handle, "furl:")})
		}
		out.Kinds = append(out.Kinds, k)
	}
	add("Answers to the agent's questions", out.Answers)
	add("Sentences of the user", out.Sentences)
	add("Identifiers", out.Identifiers)
	v.render(http.StatusOK, "lost", &out)
	return nil
}
