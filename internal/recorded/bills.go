package recorded

import (
	"cmp"
	"fmt"
	"iter"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/packed"
	"github.com/furlhq/furl/transcript"
)

// Bills yields what the sessions of all recordings were billed, those that started others as sub-agents first. Of
// files that the index knows, it is taken from there. options identifies the prices of models. Of a file
// that was read in parts, each part is yielded.
func (s *Source) Bills(options string, models func(*transcript.Session) billed.Models) iter.Seq[billed.Session] {
	return func(yield func(billed.Session) bool) {
		var counted once
		again := rereader{usageOnly: true}
		defer again.close()
		all := *s
		all.usageOnly = true
		defer func() { s.Unknown, s.Failed, s.filtered = all.Unknown, all.Failed, all.filtered }()
		all.items(func(it *item) (ok, more bool, err error) {
			list, ok, err := it.bills(&counted, options, models, &again)
			for i := range list {
				if !yield(list[i]) {
					return true, false, nil
				}
			}
			return ok, true, err
		})
	}
}

// BillsWithLogs is Bills with the sessions themselves. It reads all files.
func (s *Source) BillsWithLogs(models func(*transcript.Session) billed.Models) iter.Seq2[billed.Session, *transcript.Session] {
	return func(yield func(billed.Session, *transcript.Session) bool) {
		var counted once
		var again rereader
		defer again.close()
		all := *s
		all.Index = nil
		all.items(func(it *item) (ok, more bool, err error) {
			m, ok := it.mark(&counted)
			if !ok {
				return false, true, nil
			}
			rec, err := it.load(&counted, &m, &again)
			if rec == nil {
				return err != nil, true, err
			}
			for i, session := range pick(rec.Sessions, m.kept) {
				b := billOf(rec, session, models(session))
				complete(&b, m.repeated[i])
				if !yield(b, session) {
					return true, false, nil
				}
			}
			return true, true, nil
		})
		s.Unknown, s.Failed, s.filtered = all.Unknown, all.Failed, all.filtered
	}
}

// bills returns what the sessions that the filter chooses were billed.
func (it *item) bills(counted *once, options string, models func(*transcript.Session) billed.Models, again *rereader) (list []billed.Session, ok bool, err error) {
	m, ok := it.mark(counted)
	if !ok {
		return nil, false, nil
	}
	list, known := it.knownBills(options)
	if !known {
		rec, err := it.load(counted, &m, again)
		if rec == nil {
			return nil, err != nil, err
		}
		for _, s := range rec.Sessions {
			list = append(list, billOf(rec, s, models(s)))
		}
		it.keepBills(options, list)
	}
	list = pick(list, m.kept)
	for i := range list {
		complete(&list[i], m.repeated[i])
	}
	return list, true, nil
}

// complete sets what the index does not keep of entries: the session, and whether another one counts them.
func complete(b *billed.Session, repeated map[furl.Seq]bool) {
	elsewhere := billed.CountedElsewhere(repeated)
	for i := range b.Entries {
		e := &b.Entries[i]
		e.Session, e.Parent, e.Agent, e.Project = b.ID, b.Parent, b.Agent, b.Project
		e.Elsewhere = elsewhere(e.Kind, e.Seq)
	}
}

// billOf returns what a session was billed, without what complete adds.
func billOf(rec *transcript.Recording, s *transcript.Session, models billed.Models) billed.Session {
	b := billed.Session{ID: s.ID, Parent: s.Parent, Title: s.Title, Agent: agents.Name(rec.Agent)}
	b.Project = cmp.Or(ProjectOf(s, rec.Meta(s).Project), s.Project)
	if rec.Part > 1 { // its sessions are those of the first part
		suffix := fmt.Sprintf("-part%d", rec.Part)
		b.ID, b.Parent = strings.TrimSuffix(b.ID, suffix), strings.TrimSuffix(b.Parent, suffix)
	}
	if b.ID == "" {
		b.ID = string(SessionID(s))
	}
	for e := range billed.OfSession(rec, s, models) {
		e.Session, e.Parent, e.Agent, e.Project = "", "", "", ""
		b.Entries = append(b.Entries, e)
	}
	return b
}

// billsSection is where the index has what the sessions of the recording were billed.
func (it *item) billsSection() string { return fmt.Sprintf("billed %d", it.at) }

func (it *item) knownBills(options string) (list []billed.Session, ok bool) {
	if it.from == nil || it.rec != nil {
		return nil, false
	}
	data, ok := it.from.file.Get(it.billsSection(), options)
	if !ok || packed.Unmarshal(data, &list) != nil || len(list) != len(it.sum.Sessions) {
		return nil, false
	}
	return list, true
}

func (it *item) keepBills(options string, list []billed.Session) {
	if it.from == nil || it.from.failed {
		return
	}
	it.from.file.Put(it.billsSection(), options, packed.Marshal(list))
	if it.from.ended {
		it.from.file.Save()
	}
}
