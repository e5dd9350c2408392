package session

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
)

// Facts are what furl knows and assumes about a model, and from where.
type Facts struct {
	// Model is the model as Sessions.Model describes it.
	furl.Model
	// Known reports whether the catalog has the model. Entry is then its entry, else that
	// of the model whose rules are assumed (Model.Like), or empty.
	Known bool
	Entry catalog.Entry
	// Reported is what the provider's models API reports.
	Reported Reported
	// WindowFrom says for people where Window comes from, "" if there is none.
	WindowFrom string
}

// Facts returns what is known of a model by its name in requests. format is that of the
// requests to it, "" if unknown.
func (a *Sessions) Facts(name string, format furl.Format) Facts {
	c := a.Options().Catalog
	f := Facts{Reported: a.reported(name, format)}
	f.Entry, f.Known = c.Entry(name)
	f.Model = a.Model(name, format)
	if !f.Known {
		f.Entry, _ = c.Entry(f.Like)
	}
	learned, accepted := a.open.LearnedWindow(name)
	switch window := f.Window; {
	case window == 0:
	case window == a.open.ConfiguredWindow(&f.Model):
		f.WindowFrom = "the configuration"
	case window == learned:
		f.WindowFrom = "a refusal of the provider"
	case window == f.Reported.Window && !c.SetByUser(name, "window"):
		f.WindowFrom = "the provider's models API"
	case window == accepted:
		f.WindowFrom = "the largest prompt that the provider has answered"
	case f.WindowAssumed:
		f.WindowFrom = "assumed: the smallest of the newest models of its family"
	default:
		f.WindowFrom = f.Entry.OriginOf("window").String()
	}
	return f
}
