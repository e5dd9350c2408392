package session

import (
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/account"
	"github.com/furlhq/furl/token"
)

// History computes the requests of a path from its records. It can be continued as
// the log grows, at the cost of what is new. It is not safe for concurrent use.
type History struct {
	o      HistoryOptions
	models map[string]RequestModel
	list   []Request

	at    furl.Seq // the last record that was processed
	state *furl.State
	sizes account.Sizer
	calls account.Calls

	exchange furl.Seq // the latest one, 0 if there is none
	between  account.SinceLast
	reduced  []furl.Seq // since the latest request
	replying bool       // the last record is a request's exchange or part of its reply
	// replied is the last record of the latest exchange's reply that readReply has
	// read, or the exchange; 0: all are read.
	replied furl.Seq

	recorded account.Counted // the messages of the path
	thinks   bool            // some have thinking
	edited   bool            // the fields below are outdated
	hides    bool            // event.Hides
	hidden   account.Counted

	// shown counts what the view shows, including thinking: it gets no reports. It is
	// for one model, by its name in requests.
	shown struct {
		meter         token.Meter
		model         string
		begun, edited bool
	}
}

// NewHistory returns the history of an empty path.
func NewHistory(o *HistoryOptions) *History {
	h := &History{o: *o}
	h.reset()
	return h
}

func (h *History) reset() {
	*h = History{o: h.o, models: h.models, state: new(furl.State), sizes: account.NewSizer()}
	if h.models == nil {
		h.models = make(map[string]RequestModel)
	}
}

// Requests returns the requests of the path, which are valid until the next Extend.
func (h *History) Requests() []Request { return h.list }

// Extend continues with the path to a record. records are all records of the log, as
// furl.Log.Records(0) and Session.Records(0) return them. If the path does not
// continue the previous one, such as after a rewind, it is read from its beginning.
// It returns the number of requests at the front of the list that have not changed.
func (h *History) Extend(records []furl.Record, head furl.Seq) (same int, err error) {
	if head > furl.Seq(len(records)) {
		return 0, fmt.Errorf("requests up to record %d: %w", head, furl.ErrNotOnPath)
	}
	var path []furl.Record // to head, the newest first
	seq := head
	for ; seq > h.at; seq = records[seq-1].Parent {
		path = append(path, records[seq-1])
	}
	if same = len(h.list); seq != h.at {
		h.reset()
		for same = 0; seq != 0; seq = records[seq-1].Parent {
			path = append(path, records[seq-1])
		}
	} else if same > 0 && (len(path) > 0 || h.replied != 0) {
		same-- // its reply may continue
	}
	h.readReply(records)
	for i := len(path) - 1; i >= 0; i-- {
		err := h.record(path[i])
		if err == nil && h.exchange == path[i].Seq {
			h.replied = h.exchange
			h.readReply(records)
		}
		if err != nil {
			h.reset()
			return 0, fmt.Errorf("requests up to record %d: %w", head, err)
		}
	}
	return same, nil
}

// readReply counts the repeated calls of the reply to the latest request. A reply is
// recorded right after its exchange, but another branch may have it.
func (h *History) readReply(records []furl.Record) {
	if h.replied == 0 {
		return
	}
	q := &h.list[len(h.list)-1]
	for int(h.replied) < len(records) {
		r := records[h.replied]
		m, ok := r.Body.(*furl.Message)
		if !ok || m.Role != furl.RoleAssistant || r.Parent != h.replied {
			h.replied = 0
			return
		}
		if h.hides && !q.Dry {
			q.Refetched += h.calls.Repeated(h.state, m)
		}
		h.replied = r.Seq
	}
}

// record processes the next record of the path.
func (h *History) record(r furl.Record) error {
	measured := false // h.sizes has the record
	switch b := r.Body.(type) {
	case *furl.Message:
		h.message(r, b)
	case *furl.Exchange:
		h.request(r, b)
		h.sizes.Record(r, h.state, h.model) // before it is applied, which would drop the view
		measured = true
	case *furl.Reduction:
		h.reduced = append(h.reduced, r.Seq)
		if measured = h.patch(b); !measured {
			h.edited, h.shown.edited = true, true
		}
	case *furl.Restoration, *furl.Takeover:
		h.edited, h.shown.edited = true, true
	}
	h.between.Record(r, h.exchange)
	if err := h.state.Apply(r); err != nil {
		return err
	}
	if _, ok := r.Body.(*furl.Exchange); ok {
		h.exchange, h.between = r.Seq, account.SinceLast{}
	}
	if !measured {
		h.sizes.Record(r, h.state, h.model)
	}
	h.at = r.Seq
	return nil
}

func (h *History) message(r furl.Record, m *furl.Message) {
	switch {
	case m.Role != furl.RoleAssistant:
		h.replying = false
	case h.exchange == 0 && !h.replying:
		h.infer(r)
		h.replying = true
	}
	if h.replying && len(h.list) > 0 {
		q := &h.list[len(h.list)-1]
		if q.Reply == 0 {
			q.Reply = r.Seq
		}
		if h.exchange == 0 && h.hides {
			q.Refetched += h.calls.Repeated(h.state, m)
		}
	}
	if h.shown.begun {
		h.shown.meter.Message(m)
	}
	h.recorded.Add(m)
	h.thinks = h.thinks || slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindThinking })
	h.calls.Message(r.Seq, m, false)
}

// model describes a model without the policy's sizes.
func (h *History) model(name string) furl.Model { return h.describe(name).Model }

func (h *History) describe(name string) RequestModel {
	m, ok := h.models[name]
	if !ok {
		m = h.o.Model(name)
		h.models[name] = m
	}
	return m
}
