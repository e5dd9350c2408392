package follow

import (
	"testing"

	"github.com/furlhq/furl"
)

// Of a recording that grows, nothing is imported before its first reply is complete, and
// then what is before the newest one.
func TestHeldBack(t *testing.T) {
	user, reply, exchange := &furl.Message{Role: furl.RoleUser}, &furl.Message{Role: furl.RoleAssistant}, &furl.Exchange{}
	for name, c := range map[string]struct {
		bodies []furl.Body
		want   int
	}{
		"nothing":           {nil, 0},
		"a question":        {[]furl.Body{user}, 0},
		"with attachments":  {[]furl.Body{user, user, user}, 0},
		"a reply":           {[]furl.Body{user, user, reply}, 0},
		"a second question": {[]furl.Body{user, reply, user}, 2},
		"an exchange":       {[]furl.Body{user, user, exchange, reply}, 0},
		"two":               {[]furl.Body{user, exchange, reply, user, exchange, reply}, 4},
	} {
		var records []furl.Record
		for i, b := range c.bodies {
			records = append(records, furl.Record{Seq: furl.Seq(i + 1), Parent: furl.Seq(i), Body: b})
		}
		if got := heldBack(records); got != c.want {
			t.Errorf("%s: %d records, want %d", name, got, c.want)
		}
	}
}
