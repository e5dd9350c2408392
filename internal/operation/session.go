package operation

import (
	"errors"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// OwnClient is storage.Meta.Client of sessions of furl chat. Only they continue where a person
// rewinds them: the clients of other sessions send their whole history with each request.
const OwnClient = "furl chat"

// RewindInput is the input of rewind.
type RewindInput struct {
	Record *furl.Seq `json:"record" arg:"RECORD" help:"record to continue from; 0 starts with an empty conversation"`
	preview
}

var rewind = define(Operation{
	Name: "rewind", Short: "Continue a session from an earlier record", Audit: Change,
	Long: `Continues a session from a record. If the record is inside a step, the session
continues from the last record before the step. Reductions after that record no
longer apply. Later messages stay in the session as a branch; rewind to its last
record to return to it. Record 0 starts with an empty conversation.`,
	Example: []string{"latest 42", "latest 42 --dry-run"},
	Missing: map[Surface]string{Model: "a model does not choose what conversation it is in"},
}, func(c *Call, in *RewindInput) (*Result, error) {
	if in.Record == nil {
		return nil, invalid("missing record: expected the number of the record to continue from")
	}
	to, price, err := c.Session.PriceOfRewind(*in.Record)
	if err != nil {
		return nil, noRecord(c, *in.Record, err)
	}
	r := &Result{Title: fmt.Sprintf("Rewind to record %d", to.To), Did: fmt.Sprintf("Rewound to record %d", to.To), Price: &price}
	r.Effects = []string{fmt.Sprintf("The conversation continues after %s.", numbers.Count(to.Messages, "message"))}
	if to.To != *in.Record {
		r.Notes = append(r.Notes, fmt.Sprintf("Record %d is inside a step, so the conversation continues before the step.", *in.Record))
	}
	r.Notes = append(r.Notes, "Later messages stay in the session as a branch. Reductions after that point no longer apply.")
	if decides := ClientDecides(c.Session); decides != "" {
		r.Notes = append(r.Notes, decides)
	}
	if !c.Preview {
		if to, err = c.Session.Rewind(c, *in.Record); err != nil {
			return nil, err
		}
	}
	r.Value, r.Undo = to, &Undo{"rewind", &RewindInput{Record: &to.Branch}}
	return r, nil
})

// noRecord says that the session has no such record, if that is the error.
func noRecord(c *Call, seq furl.Seq, err error) error {
	if errors.Is(err, furl.ErrNotOnPath) {
		return &UnknownBlock{fmt.Sprintf("%s has no record %d", c.Session.ID(), seq)}
	}
	return err
}

// ClientDecides says why a session does not continue where a person rewinds it, "" if it does.
func ClientDecides(s *session.Session) string {
	client := visible.Line(s.Meta().Client)
	switch client {
	case OwnClient:
		return ""
	case "":
		client = "The client"
	}
	return client + " decides where its conversation continues, because it sends its whole history with each request."
}

// ForkInput is the input of fork.
type ForkInput struct {
	Record *furl.Seq `json:"at" arg:"[RECORD]" flag:"at-record" help:"'number' of the last record to copy (default the newest)"`
	Title  string    `json:"title" flag:"title" help:"'title' of the new session"`
	preview
}

// Forked is a new session, in JSON.
type Forked struct {
	Session furl.SessionID `json:"fork,omitempty"`
	At      furl.Seq       `json:"fork_at"`
	Head    furl.Seq       `json:"head,omitempty"`
	// Made is the new session, nil in a preview.
	Made *session.Session `json:"-"`
}

var fork = define(Operation{
	Name: "fork", Short: "Fork a session at a record", Audit: Change,
	Long: `Copies a session up to a record into a new session. If the record is inside a
step, the copy ends at the last record before the step. Handles are the same in
both sessions. The original does not change.`,
	Example: []string{"latest", `01jd5 --at-record 42 --title "another way"`},
	Missing: map[Surface]string{Model: "a model does not choose what conversation it is in"},
}, func(c *Call, in *ForkInput) (*Result, error) {
	at := c.Session.Head()
	if in.Record != nil {
		at = *in.Record
	}
	to, _, err := c.Session.PriceOfRewind(at)
	if err != nil {
		return nil, noRecord(c, at, err)
	}
	r := &Result{Title: fmt.Sprintf("Fork %s at record %d", c.Session.ID(), to.To), Did: fmt.Sprintf("Forked %s at record %d", c.Session.ID(), to.To), Value: Forked{At: to.To}}
	r.Notes = []string{fmt.Sprintf("It has a copy of the first %s, with the same record numbers.", numbers.Count(to.Messages, "message"))}
	if to.To != at {
		r.Notes = append(r.Notes, fmt.Sprintf("Record %d is inside a step, so the copy ends before the step.", at))
	}
	if ClientDecides(c.Session) != "" {
		r.Notes = append(r.Notes, "The agent continues in the original.")
	}
	if c.Preview {
		r.Effects = []string{"A new session would have a copy."}
		return r, nil
	}
	f, err := c.Sessions.Fork(c, c.Session, at)
	if err != nil {
		return nil, err
	}
	r.Effects = []string{fmt.Sprintf("The new session is %s.", f.ID())}
	r.Value = Forked{f.ID(), f.Meta().ForkAt, f.Head(), f}
	if title := strings.TrimSpace(in.Title); title != "" {
		err = f.Set(c, "title", title)
	}
	return r, err
})

// DeleteInput is the input of delete.
type DeleteInput struct {
	preview
}

type deleted struct {
	Records  int   `json:"records"`
	Messages int   `json:"messages"`
	Bytes    int64 `json:"bytes"` // of the messages on the wire
}

var deletes = define(Operation{
	Name: "delete", Short: "Delete sessions permanently", Audit: Delete,
	Long: `Deletes a session with its records, search index entries and embeddings, and overwrites
them in the file. A session under legal hold is not deleted. This cannot be undone.`,
	Missing: map[Surface]string{
		Chat:  "a chat is deleted when it has ended, by furl delete or on the page",
		Model: "a model never deletes what is recorded of it",
	},
}, func(c *Call, in *DeleteInput) (*Result, error) {
	info := c.Session.Info()
	if h, err := heldBy(c); err != nil {
		return nil, err
	} else if h != nil {
		return nil, &storage.HeldError{Session: info.SessionKey, Hold: *h}
	}
	what := numbers.Count(info.Messages, "message")
	if n := len(c.Session.Reductions()); n > 0 {
		what += ", " + numbers.Count(n, "reduction")
	}
	r := &Result{Title: "Delete session " + string(info.Session), Did: "Deleted session " + string(info.Session), Value: deleted{int(info.Records), info.Messages, info.Bytes}}
	if c.Preview {
		r.Effects = []string{fmt.Sprintf("%s and all originals are deleted from the store, %s in total. This cannot be undone.", what, Size(info.Bytes))}
		if ClientDecides(c.Session) != "" {
			r.Notes = []string{"The agent keeps its own conversation. If it continues, furl records a new session."}
		}
		return r, nil
	}
	r.Effects = []string{fmt.Sprintf("%s and all originals are gone.", what)}
	return r, c.Sessions.Delete(c, info.Session)
})

// heldBy returns the legal hold on the session, nil if there is none.
func heldBy(c *Call) (*storage.Hold, error) {
	holds, err := storage.Holds(c, c.Sessions.Store())
	if err != nil {
		return nil, err
	}
	return storage.HoldOf(holds, c.Session.Info().SessionKey), nil
}

// Size returns a number of bytes in words.
func Size(n int64) string {
	switch {
	case n < 10_000:
		return numbers.Thousands(n) + " bytes"
	case n < 10_000_000:
		return numbers.Thousands(n/1000) + " kB"
	}
	return numbers.Thousands(n/1_000_000) + " MB"
}
