package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
)

// holdHandler returns the handler of pin or release.
func holdHandler(hold furl.Hold) func(*http.Request, *session.Session) (any, error) {
	return func(r *http.Request, s *session.Session) (any, error) {
		var in struct {
			Handles []string `json:"handles"`
		}
		if err := decodeBody(r, &in); err != nil {
			return nil, err
		}
		if len(in.Handles) == 0 {
			return nil, badRequest("missing field handles: list the handles of the blocks")
		}
		spans, err := spansOf(in.Handles)
		if err != nil {
			return nil, err
		}
		return map[string]any{"session": s.ID(), "handles": in.Handles}, s.Hold(r.Context(), hold, spans...)
	}
}

func fork(r *http.Request, all *session.Sessions) (any, error) {
	var in struct {
		At    *furl.Seq `json:"at"`
		Title string    `json:"title"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	s, err := findSession(r, all)
	if err != nil {
		return nil, err
	}
	at := s.Head()
	if in.At != nil {
		at = *in.At
	}
	f, err := all.Fork(r.Context(), s, at)
	if err != nil {
		return nil, err
	}
	if in.Title != "" {
		err = f.Set(r.Context(), "title", in.Title)
	}
	return map[string]any{"session": f.ID(), "fork_of": s.ID(), "fork_at": f.Meta().ForkAt, "head": f.Head()}, err
}

// events streams the records of a session as server-sent events. The id of an
// event is the record's number, so a client resumes with Last-Event-ID.
func (g *Gateway) events(w http.ResponseWriter, r *http.Request) {
	fail := func(err error) { g.jsonHandler(func(*http.Request) (any, error) { return nil, err })(w, r) }
	s, err := g.sessionsOf(r).Find(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(err)
		return
	}
	from := r.Header.Get("Last-Event-Id")
	if from == "" {
		from = r.FormValue("after")
	}
	after, err := strconv.ParseUint(from, 10, 64)
	if err != nil && from != "" {
		fail(badRequest("invalid parameter after=%q: expected a record number", from))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	out := sse.NewWriter(w)
	if err := out.Comment("from record " + strconv.FormatUint(after, 10)); err != nil {
		return // the client has disconnected
	}
	ctx, end := g.untilDrained(r.Context())
	defer end()
	for m, err := range s.Watch(ctx, furl.Seq(after)) {
		if err != nil {
			g.log.Warn("event stream of session ended", "session", s.ID(), "error", err)
			return
		}
		if err := writeMoment(out, m); err != nil {
			return // the client has disconnected
		}
	}
}

// writeMoment writes the events that follow from a record, each under its own
// name, and then the record itself, if there is one.
func writeMoment(out *sse.Writer, m event.Moment) error {
	for _, ev := range m.Events {
		data, err := json.Marshal(ev)
		if err != nil {
			return err
		}
		if err := out.Event(sse.Event{Type: ev.Name(), Data: data}); err != nil {
			return err
		}
	}
	if m.Record.Seq == 0 {
		return nil
	}
	data, err := (record.JSON{}).Append(nil, m.Record)
	if err != nil {
		return err
	}
	return out.Event(sse.Event{Type: "record", ID: strconv.FormatUint(uint64(m.Record.Seq), 10), Data: data})
}
