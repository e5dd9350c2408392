package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/sse"
	"github.com/furlhq/furl/record"
)

// events streams the records of a session as server-sent events. The id of an
// event is the record's number, so a client resumes with Last-Event-ID.
func (g *Gateway) events(w http.ResponseWriter, r *http.Request) {
	s, err := g.sessionsOf(r).Find(r.Context(), r.PathValue("id"))
	if err != nil {
		g.apiFailed(w, r, err)
		return
	}
	from := r.Header.Get("Last-Event-Id")
	if from == "" {
		from = r.FormValue("after")
	}
	after, err := strconv.ParseUint(from, 10, 64)
	if err != nil && from != "" {
		g.apiFailed(w, r, badRequest("invalid parameter after=%q: expected a record number", from))
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
