package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/session"
)

// hub follows a session for all browsers that show it. It renders each new record once, and
// keeps the newest ones. Each browser reads them at its own speed; one that falls behind
// loads the page's parts again.
type hub struct {
	first furl.Seq // frames are of the records after it

	mu      sync.Mutex
	frames  []liveFrame
	dropped int // frames before the first one of frames
	bytes   int
	changed chan struct{} // closed when there are new frames
	waking  bool          // changed will be closed soon
	readers int           // guarded by hubs.mu
	stop    context.CancelFunc
	failed  atomic.Bool
}

// liveFrame is one record as browsers get it.
type liveFrame struct {
	seq  furl.Seq // 0 for what is not in the log
	text []byte   // a server-sent event
}

// Bounds of what a hub keeps.
const (
	maxFrames     = 512
	maxFrameBytes = 4 << 20
)

// hubs are the hubs of the sessions that browsers show.
type hubs struct {
	mu sync.Mutex
	by map[furl.SessionKey]*hub
}

// join returns the hub of a session, and a function that leaves it. A hub without readers
// ends.
func (p *Page) join(s *session.Session, after furl.Seq) (*hub, func()) {
	key := s.Info().SessionKey
	p.hubs.mu.Lock()
	defer p.hubs.mu.Unlock()
	h := p.hubs.by[key]
	if h == nil || h.failed.Load() || after < h.first {
		ctx, stop := context.WithCancel(context.Background())
		h = &hub{changed: make(chan struct{}), first: after, stop: stop}
		p.hubs.by[key] = h
		go h.follow(ctx, p, s)
	}
	h.readers++
	return h, func() {
		p.hubs.mu.Lock()
		defer p.hubs.mu.Unlock()
		if h.readers--; h.readers == 0 {
			h.stop()
			if p.hubs.by[key] == h {
				delete(p.hubs.by, key)
			}
		}
	}
}

// follow renders the records of a session until ctx ends.
func (h *hub) follow(ctx context.Context, p *Page, s *session.Session) {
	defer h.end()
	defer func() {
		if x := recover(); x != nil { // nothing else would catch it, and the gateway would end
			p.log.Error("a record could not be shown", "session", s.ID(), "error", x, "stack", string(debug.Stack()))
		}
	}()
	for m, err := range s.Watch(ctx, h.first) {
		if err != nil {
			p.log.Info("a session can no longer be followed", "session", s.ID(), "error", err)
			break
		}
		h.add(m.Record.Seq, p.frameOf(s, m))
	}
}

// end tells readers that there will be no more frames.
func (h *hub) end() {
	h.failed.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wake()
}

// wake tells readers that there are new frames, or that there will be none.
func (h *hub) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// add appends a frame.
func (h *hub) add(seq furl.Seq, text []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frames = append(h.frames, liveFrame{seq, text})
	h.bytes += len(text)
	drop := 0
	for len(h.frames)-drop > maxFrames || h.bytes > maxFrameBytes && len(h.frames)-drop > 1 {
		h.bytes -= len(h.frames[drop].text)
		drop++
	}
	if drop > 0 {
		h.frames = append(h.frames[:0:0], h.frames[drop:]...)
		h.dropped += drop
	}
	if !h.waking {
		h.waking = true
		time.AfterFunc(together, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.waking = false
			h.wake()
		})
	}
}

// together is how long records are collected before browsers get them, so that hundreds of
// them do not slow down the requests that are recorded.
const together = 100 * time.Millisecond

// next returns the frames from number at on, the number after them, and a channel that is
// closed when there are more. ok is false if some are no longer kept, or if the session
// cannot be followed.
func (h *hub) next(at int) (list []liveFrame, end int, changed <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end = h.dropped + len(h.frames)
	if at < h.dropped || h.failed.Load() {
		return nil, end, nil, false
	}
	return h.frames[at-h.dropped:], end, h.changed, true
}

// liveRecord is what a browser gets of a record.
type liveRecord struct {
	Seq furl.Seq `json:"seq"`
	// Row is the HTML of its row in the transcript, "" if it has none.
	Row string `json:"row,omitempty"`
	// Changed reports that earlier messages are shown in another way now, or that another
	// branch is current.
	Changed bool `json:"changed,omitempty"`
	// Request reports that it is a request to a model.
	Request bool `json:"request,omitempty"`
	// Says describes the events of the record in a line each.
	Says []string `json:"says,omitempty"`
}

// frameOf renders a record.
func (p *Page) frameOf(s *session.Session, m event.Moment) []byte {
	out := liveRecord{Seq: m.Record.Seq}
	after := 0
	switch b := m.Record.Body.(type) {
	case *furl.Message:
		out.Row = p.liveRow(s, m.Record.Seq)
	case *furl.Reduction:
		out.Row, out.Changed, after = p.liveRow(s, m.Record.Seq), true, b.After
	case *furl.Exchange:
		out.Request = true
	default:
		out.Changed = true
	}
	for _, e := range m.Events {
		if _, ok := e.(event.Masked); ok && archives(m.Events) {
			continue // one reduction, one line: the one of its marker
		}
		if line := say(e, after); line != "" {
			out.Says = append(out.Says, printable(line))
		}
	}
	text, err := json.Marshal(&out)
	if err != nil {
		text = []byte("{}") // cannot happen: it has strings and numbers
	}
	var b bytes.Buffer
	if m.Record.Seq != 0 {
		b.WriteString("id: " + seqKey(m.Record.Seq) + "\n")
	}
	b.WriteString("event: record\ndata: ")
	b.Write(text)
	b.WriteString("\n\n")
	return b.Bytes()
}

// archives reports whether a reduction has hidden whole messages. Its event Masked then has
// the same figures.
func archives(events []event.Event) bool {
	return slices.ContainsFunc(events, func(e event.Event) bool {
		switch e.(type) {
		case event.Compacted, event.Truncated, event.Rolled:
			return true
		}
		return false
	})
}

// say describes an event in a line, "" for sizes, which the meter shows, and for skipped
// stages, which the page of the request lists.
func say(e event.Event, after int) string {
	switch e := e.(type) {
	case event.SummaryRequested:
		return fmt.Sprintf("A model writes a summary of %s tokens", thousands(e.CurrentSize))
	}
	line, _, _ := chat.Describe(e, after)
	return line
}

// liveRow renders the row of a record of the current branch, "" if it is on another one.
func (p *Page) liveRow(s *session.Session, seq furl.Seq) string {
	v := &visit{p: p, s: s}
	var b bytes.Buffer
	err := v.read(func(snap *snapshot) error {
		m := &moment{s: s, snap: snap, state: snap.log.State(), model: s.Model(s.Meta().Model)}
		if i, ok := m.state.Find(seq); ok {
			return pages().ExecuteTemplate(&b, "message", m.message(i))
		}
		if r := m.reduction(seq); r != nil {
			return pages().ExecuteTemplate(&b, "marker", m.marker(r))
		}
		return nil
	})
	if err != nil {
		p.log.Info("a new record could not be shown", "session", s.ID(), "record", seq, "error", err)
		return ""
	}
	return b.String()
}

// heartbeat is the interval of comments in a stream, which tell a lost connection.
const heartbeat = 20 * time.Second
