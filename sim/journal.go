package sim

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// Entry is one request and its outcome. It contains no credentials.
type Entry struct {
	N      int         `json:"n"` // counted from 1
	At     time.Time   `json:"at"`
	Method string      `json:"method"`
	Path   string      `json:"path"`
	API    furl.Format `json:"api,omitempty"`
	Model  string      `json:"model,omitempty"` // as in the request
	Stream bool        `json:"stream,omitempty"`
	Bytes  int         `json:"bytes"` // of the body
	// Messages counts the messages or items of the request.
	Messages int `json:"messages,omitempty"`
	Status   int `json:"status"`
	// Verdict is "ok", "refused" for a request that violates a rule, "fault"
	// if an injected fault replaced the answer, or "cut" if the answer was
	// incomplete.
	Verdict string  `json:"verdict"`
	Error   string  `json:"error,omitempty"` // the text of a refusal
	Fault   string  `json:"fault,omitempty"` // the injected fault
	Stop    string  `json:"stop,omitempty"`  // the stop reason, in Anthropic's words
	Usage   Usage   `json:"usage"`
	Cost    float64 `json:"cost"` // US dollars
	// ThinkingDropped counts thinking blocks dropped because the messages
	// they were bound to had changed.
	ThinkingDropped int `json:"thinking_dropped,omitempty"`
	// Header is the request's header without credentials, Body its body and
	// Answer its answer; both are nil without Options.KeepBodies.
	Header http.Header `json:"-"`
	Body   []byte      `json:"-"`
	Answer []byte      `json:"-"`
}

// The verdicts of an Entry.
const (
	VerdictOK      = "ok"
	VerdictRefused = "refused"
	VerdictFault   = "fault"
	VerdictCut     = "cut"
)

// Usage is a furl.Usage with names for JSON.
type Usage struct {
	Input        int `json:"input"`
	CacheRead    int `json:"cache_read"`
	CacheWrite   int `json:"cache_write"`
	CacheWrite1h int `json:"cache_write_1h,omitempty"`
	Output       int `json:"output"`
	Reasoning    int `json:"reasoning,omitempty"`
}

// Bill sums up the cost of requests. As with the providers, refused requests,
// and faults before the start of the answer, cost nothing.
type Bill struct {
	// Requests, Refused and Faults count requests, except those that only read, such as
	// GET /v1/models: gateways and clients send them at times of their own.
	Requests int
	Refused  int
	Faults   int // replaced by a fault, or cut
	Counts   int // token counts, free of charge
	Usage    furl.Usage
	Cost     float64 // US dollars
	// ThinkingDropped counts dropped thinking blocks over all requests.
	ThinkingDropped int
}

// Requests returns the newest requests, oldest first, at most Options.Keep.
// It includes all requests whose last event was sent.
func (s *Sim) Requests() []Entry {
	s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.newest())
}

func (s *Sim) newest() []Entry { return s.entries[max(0, len(s.entries)-s.opts.Keep):] }

// Bill returns the sum over all requests, including all whose last event was
// sent.
func (s *Sim) Bill() Bill {
	s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bill
}

// Forget clears the journal, the bill, the prompt cache and the stored
// responses.
func (s *Sim) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries, s.recorded, s.bill, s.bodies, s.bare = nil, 0, Bill{}, 0, 0
	s.cache.Reset()
	s.store = responseStore{}
}

// record adds a finished request.
func (s *Sim) record(e *Entry, u furl.Usage) {
	e.Usage = Usage(u)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &s.bill
	s.recorded++
	e.N = s.recorded
	if !onlyReads(e.Method) {
		b.Requests++
		switch e.Verdict {
		case VerdictRefused:
			b.Refused++
		case VerdictFault, VerdictCut:
			b.Faults++
		}
	}
	b.Usage.Input += u.Input
	b.Usage.CacheRead += u.CacheRead
	b.Usage.CacheWrite += u.CacheWrite
	b.Usage.CacheWrite1h += u.CacheWrite1h
	b.Usage.Output += u.Output
	b.Usage.Reasoning += u.Reasoning
	b.Cost += e.Cost
	b.ThinkingDropped += e.ThinkingDropped
	if len(s.entries) >= 2*s.opts.Keep { // rarely, so that it costs little
		kept := s.newest()
		old := s.entries[:len(s.entries)-len(kept)]
		for i := range old {
			s.bodies -= len(old[i].Body) + len(old[i].Answer)
		}
		s.bare = max(0, s.bare-len(old))
		s.entries = append([]Entry(nil), kept...)
	}
	s.entries = append(s.entries, *e)
	s.forgetBodies(len(e.Body) + len(e.Answer))
	if s.opts.Journal != nil {
		line, err := json.Marshal(e)
		if err == nil {
			_, err = s.opts.Journal.Write(append(line, '\n'))
		}
		s.journalErr = keepFirst(s.journalErr, err)
	}
}

// maxBodies is how many bytes of requests and answers are kept.
const maxBodies = 512 << 20

// forgetBodies removes the oldest bodies if there are too many.
func (s *Sim) forgetBodies(added int) {
	for s.bodies += added; s.bodies > maxBodies && s.bare < len(s.entries)-1; s.bare++ {
		e := &s.entries[s.bare]
		s.bodies -= len(e.Body) + len(e.Answer)
		e.Body, e.Answer = nil, nil
	}
}

func keepFirst(old, err error) error {
	if old != nil {
		return old
	}
	return err
}

// Err returns the first error of writing the journal.
func (s *Sim) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journalErr
}

func (s *Sim) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bill.Counts++
}
