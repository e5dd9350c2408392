package tally

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/billed"
)

// Known finds the requests that both the store and a recording have. A request of both has the same response
// id. Without ids, it has the same session, model and usage.
type Known struct {
	responses map[response]bool
	usages    map[usageOf]int
}

// response is a request with the id of its response. A fake provider may use an id again.
type response struct {
	id     string
	prompt int
}

type usageOf struct {
	session, model string
	usage          furl.Usage
}

// Stored notes the requests of a stored session, and names it as the agent does, so that it is the same one
// in both.
func (k *Known) Stored(s *StoredSession) {
	s.ID = agentsID(s.ID, s.Info.Hint)
	if k.responses == nil {
		k.responses, k.usages = make(map[response]bool), make(map[usageOf]int)
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		e.Session = s.ID
		switch {
		case e.Elsewhere || !e.Recorded():
		case e.Response != "":
			k.responses[responseOf(e)] = true
		default:
			k.usages[usageOf{s.ID, e.Model, e.Usage}]++
		}
	}
}

// Recorded marks the requests of a session of a recording that the store has as counted elsewhere.
func (k *Known) Recorded(s *billed.Session) {
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Elsewhere || !e.Recorded() {
			continue
		}
		if e.Response != "" {
			e.Elsewhere = k.responses[responseOf(e)]
			continue
		}
		if key := (usageOf{s.ID, e.Model, e.Usage}); k.usages[key] > 0 {
			k.usages[key]--
			e.Elsewhere = true
		}
	}
}

func responseOf(e *billed.Entry) response { return response{e.Response, e.Usage.Prompt()} }

// agentsID is the agent's id of a stored session. That of a sub-agent follows the id of the session that started
// it.
func agentsID(id, hint string) string {
	if hint == "" {
		return id
	}
	return hint[strings.LastIndexByte(hint, '/')+1:]
}
