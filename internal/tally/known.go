package tally

import (
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/billed"
)

// Known finds the requests that both the store and a recording have. A request of both has the same response
// id. If the recording has no such ids, it has the same model and usage, and the same session or about the same
// time: some agents send no id of a session.
type Known struct {
	responses map[response]bool
	usages    map[usageOf][]made
}

// response is a request with the id of its response. A fake provider may use an id again.
type response struct {
	id     string
	prompt int
}

type usageOf struct {
	model string
	usage furl.Usage
}

// made is a stored request.
type made struct {
	session, agent string
	at             time.Time
}

// is reports whether it may be a request of a recording. An agent notes a reply when it has ended.
func (m *made) is(e *billed.Entry, session string) bool {
	if m.session == session {
		return true
	}
	after := e.Time.Sub(m.at)
	return m.agent == e.Agent && !m.at.IsZero() && !e.Time.IsZero() && after >= -time.Minute && after <= 15*time.Minute
}

// Stored notes the requests of a stored session, and names it as the agent does, so that it is the same one
// in both.
func (k *Known) Stored(s *StoredSession) {
	s.ID = agentsID(s.ID, s.Info.Hint)
	if k.responses == nil {
		k.responses, k.usages = make(map[response]bool), make(map[usageOf][]made)
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		e.Session = s.ID
		if e.Elsewhere || !e.Recorded() {
			continue
		}
		if e.Response != "" {
			k.responses[responseOf(e)] = true
		}
		key := usageOf{e.Model, e.Usage}
		k.usages[key] = append(k.usages[key], made{s.ID, e.Agent, e.Time})
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
		key := usageOf{e.Model, e.Usage}
		if at := slices.IndexFunc(k.usages[key], func(m made) bool { return m.is(e, s.ID) }); at >= 0 {
			k.usages[key] = slices.Delete(k.usages[key], at, at+1)
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
