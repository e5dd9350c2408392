package session

import (
	"time"

	"github.com/furlhq/furl"
)

// Told is what the models API of a provider has said about a model.
type Told struct {
	// Window and MaxOutput are in tokens; 0: not said.
	Window, MaxOutput int
	// From names the API for people, such as https://api.anthropic.com/v1/models, and
	// At is when it was asked.
	From string
	At   time.Time
}

// told returns what the models API has said about a model, the zero value if nothing.
func (a *shared) told(name string, format furl.Format) Told {
	if a.o.Told == nil {
		return Told{}
	}
	t, _ := a.o.Told(name, format)
	return t
}
