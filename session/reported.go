package session

import (
	"time"

	"github.com/furlhq/furl"
)

// Reported is what a provider's models API reports of a model.
type Reported struct {
	// Window and MaxOutput are in tokens, 0 if the provider does not report them.
	Window, MaxOutput int
	// From is the API's URL for people, such as https://api.anthropic.com/v1/models, and
	// At is the time of its response.
	From string
	At   time.Time
}

// reported returns what the models API reports of a model, the zero value if nothing.
func (a *Sessions) reported(name string, format furl.Format) Reported {
	if a.Options().Reported == nil {
		return Reported{}
	}
	r, _ := a.Options().Reported(name, format)
	return r
}
