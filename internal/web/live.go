package web

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/furlhq/furl"
)

// live sends the new records of a session as server-sent events, with their numbers as ids.
// A browser that reconnects continues after Last-Event-ID. The event "reload" asks it to
// load the page's parts again, because it has missed records.
func (p *Page) live(v *visit) error {
	text := cmp.Or(v.r.Header.Get("Last-Event-ID"), v.r.FormValue("after"))
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return badRequest("invalid record number %.20q", text)
	}
	after := furl.Seq(n)
	header := v.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	out := &liveWriter{w: v.w, rc: http.NewResponseController(v.w)}
	out.write([]byte("retry: 1000\n\n"))
	// A browser that has missed more than a hub keeps loads the page's parts again, and so
	// does one that has records which the session does not have: it was deleted and made
	// again, or the newest records were lost in a crash.
	if head := v.s.Info().Records; after > head || head-after > maxFrames {
		out.write([]byte(reloadEvent))
		return nil
	}
	h, leave := p.join(v.s, after)
	defer leave()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	at := 0
	for out.err == nil {
		frames, end, changed, ok := h.next(at)
		if !ok {
			out.write([]byte(reloadEvent))
			return nil
		}
		var text []byte
		for i := range frames {
			if frames[i].seq == 0 || frames[i].seq > after {
				text = append(text, frames[i].text...)
			}
		}
		if len(text) > 0 {
			out.write(text)
		}
		if at = end; len(frames) > 0 {
			continue
		}
		select {
		case <-v.r.Context().Done():
			return nil
		case <-changed:
		case <-beat.C:
			out.write([]byte(": \n\n"))
		}
	}
	return nil
}

// reloadEvent asks a browser to load the page again.
const reloadEvent = "event: reload\ndata: {}\n\n"

// liveWriter writes events. A browser that does not read them for stalled is disconnected.
type liveWriter struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	err error
}

const stalled = 30 * time.Second

func (l *liveWriter) write(b []byte) {
	if l.err != nil {
		return
	}
	_ = l.rc.SetWriteDeadline(time.Now().Add(stalled)) // not supported by all writers
	if _, l.err = l.w.Write(b); l.err == nil {
		l.err = l.rc.Flush()
	}
}
