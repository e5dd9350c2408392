package open

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/wire"
)

// Clients resend their whole history with each request. These indexes of a log tell where
// a history continues. They are derived from the log as they are needed.

// Index is an index of a log by the chains of its messages. It covers all
// branches.
type Index struct {
	indexed     furl.Seq                   // last indexed record
	ByChain     map[furl.Digest][]furl.Seq // the messages at the end of a chain, ascending
	lastMessage []furl.Seq                 // by record: the last message up to it on its path
	LastRecord  map[furl.Seq]furl.Seq      // by message, 0 for the root: the last record that follows it without another message
	// Edits are the texts that the client sends in place of recorded ones.
	Edits map[furl.Pos]ClientEdit
	// LeavesOut is set if the client has left out or replaced messages.
	LeavesOut bool
}

// ClientEdit is a text that the client sends in place of a recorded one, and the
// reduction that records it.
type ClientEdit struct {
	By   furl.Seq
	Text string
}

// update adds the records of a log that are not indexed yet.
func (p *Index) update(log *furl.Log) {
	if p.ByChain == nil {
		*p = Index{
			ByChain: make(map[furl.Digest][]furl.Seq), lastMessage: []furl.Seq{0},
			LastRecord: make(map[furl.Seq]furl.Seq), Edits: make(map[furl.Pos]ClientEdit),
		}
	}
	for _, r := range log.Records(p.indexed) {
		p.add(r)
		p.indexed = r.Seq
	}
}

func (p *Index) add(r furl.Record) {
	base := p.lastMessage[r.Parent]
	switch b := r.Body.(type) {
	case *furl.Message:
		if !fingerprint.AddsNothing(b) {
			p.ByChain[r.Chain] = append(p.ByChain[r.Chain], r.Seq)
		} else if b.HasOwn() {
			break // the client does not have it, so histories continue before it
		}
		base = r.Seq
	case *furl.Reduction:
		p.addEdits(r.Seq, b)
	case *furl.Takeover:
		for seq, body := range b.Taken() {
			if red, ok := body.(*furl.Reduction); ok {
				p.addEdits(seq, red)
			}
		}
	case *furl.Head:
		p.lastMessage = append(p.lastMessage, base)
		return
	}
	p.lastMessage = append(p.lastMessage, base)
	p.LastRecord[base] = r.Seq
}

// addEdits indexes what the client has changed by a reduction.
func (p *Index) addEdits(seq furl.Seq, red *furl.Reduction) {
	if red.Stage != furl.StageClient {
		return
	}
	for _, it := range red.Items {
		switch show := it.Show.(type) {
		case furl.In:
			if len(it.Spans) == 1 {
				p.Edits[it.Spans[0].First] = ClientEdit{seq, show.Text}
			}
		case furl.Mark:
			p.LeavesOut = true
		}
	}
}

// itemIndex finds the recorded items of a log by the provider's ids.
type itemIndex struct {
	indexed furl.Seq // last indexed record
	byID    map[string]furl.Seq
}

// update adds the records of a log that are not indexed yet.
func (p *itemIndex) update(log *furl.Log) {
	if p.byID == nil {
		p.byID = make(map[string]furl.Seq)
	}
	for _, r := range log.Records(p.indexed) {
		p.indexed = r.Seq
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		if api := wire.For(m.Format); api != nil {
			if id := api.ItemID(m); id != "" {
				p.byID[id] = r.Seq
			}
		}
	}
}

// UpdateIndex adds the records of the log to its index.
func (c *Change) UpdateIndex() { c.s.index.update(c.log) }

// Index returns the index of the log, up to the latest UpdateIndex.
func (c *Change) Index() *Index { return &c.s.index }

// Items returns the recorded items of the log by the provider's ids.
func (c *Change) Items() map[string]furl.Seq {
	c.s.items.update(c.log)
	return c.s.items.byID
}
