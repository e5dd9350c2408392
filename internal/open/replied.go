package open

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/protocol"
)

// A client has a reply before it is recorded. If another process gets the client's
// next request and does not wait long enough, it records the reply as the client
// sends it back. The exchange of the reply is then recorded at the place where it
// belongs, after its request. Only the reply is not recorded again.

// hasReplyOfClient reports whether the record after is followed by this reply without
// an exchange: as a client has sent it back.
func (c *Change) hasReplyOfClient(after furl.Seq, reply *protocol.Reply) bool {
	if c.log.Head() == after {
		return false
	}
	want := fingerprint.Reply{Likeness: fingerprint.SameCalls}
	for _, m := range reply.Messages {
		if !want.Add(m) {
			return false
		}
	}
	// The messages of the model that follow the record, by the last of them.
	replies := map[furl.Seq][]*furl.Message{after: nil}
	for _, r := range c.log.Records(after) {
		before, ok := replies[r.Parent]
		if !ok {
			continue
		}
		switch b := r.Body.(type) {
		case *furl.Reduction, *furl.Restoration, *furl.Takeover:
			replies[r.Seq] = before
		case *furl.Message:
			if b.Role != furl.RoleAssistant {
				continue
			}
			have := fingerprint.Reply{Likeness: fingerprint.SameCalls}
			all := append(before[:len(before):len(before)], b)
			for _, m := range all {
				ok = have.Add(m) && ok
			}
			if ok && have.Same(&want) {
				return true
			}
			replies[r.Seq] = all
		}
	}
	return false
}

// returnTo continues the conversation from a record that was the head before, also
// inside a step. furl.Log.Rewind would go to the start of the step.
func (c *Change) returnTo(head furl.Seq) error {
	r := furl.Record{Seq: furl.Seq(c.log.Len() + 1), Parent: head, At: c.now(), By: furl.Upstream, Body: &furl.Head{From: c.log.Head()}}
	if err := c.log.Load([]furl.Record{r}); err != nil {
		return fmt.Errorf("return to record %d: %w", head, err)
	}
	return nil
}
