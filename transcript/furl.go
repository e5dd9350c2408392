package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// Furl's own format: a session whole, every record of its log with all its
// branches, as JSON Lines. A header line says what is known of the session
// beside its records; each line behind it is one record in the form of
// furl.RecordJSON. A file may hold several sessions, each behind its header.
// docs/formats.md describes it.
//
// It is read like a store and unlike other recordings: nothing is mended, and
// a record that cannot be read is an error, because all behind it would hang
// in the air. Only a last line that breaks off is skipped.

const (
	// furlName begins a header; furlVersion is the newest version of the
	// format. A file is written in the lowest version that it needs.
	furlName    = "furl-session"
	furlVersion = 2
)

var furlOwn = &format{name: "furl", agent: "furl", detect: isFurl, read: readFurl}

// furlForm is how records are written: without what their bytes say.
var furlForm = furl.RecordJSON{Codec: func(f furl.Format) furl.Codec {
	if codec := codecOf(f); codec.Format() == f {
		return codec
	}
	return nil
}}

// furlHeader is the line before the records of a session.
type furlHeader struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	ID      string `json:"id,omitempty"`
	Parent  string `json:"parent,omitempty"`
	// Records is how many follow.
	Records  int               `json:"records"`
	Meta     furl.Meta         `json:"meta"`
	Preamble []json.RawMessage `json:"preamble,omitempty"`
}

// NewerVersionError says that a session is in a version of furl's own format
// that this furl does not know. It is furl.ErrNewerFormat.
type NewerVersionError struct {
	Line    int // of the header, from 1
	Version int // of the format
}

func (e *NewerVersionError) Error() string {
	return fmt.Sprintf("line %d: the session is in version %d of furl's format, and this furl reads versions up to %d; read it with a newer one", e.Line, e.Version, furlVersion)
}

// Unwrap gives furl.ErrNewerFormat.
func (e *NewerVersionError) Unwrap() error { return furl.ErrNewerFormat }

func isFurl(p *probe) bool {
	return p.is('l', '{') && p.objects[0].str("format") == furlName
}

// furlReader reads a file of furl's own.
type furlReader struct {
	in       *input
	sessions []*Session

	// Of the session at hand.
	header  *furlHeader
	records []furl.Record
	lines   []int    // that the records stand on
	at      furl.Seq // where the conversation stands
	work    painting
}

func readFurl(in *input) ([]*Session, error) {
	r := &furlReader{in: in}
	// A broken line is where the file breaks off, if it is the last.
	var broken error
	last := 0
	for n, line := range in.eachLine() {
		if broken != nil {
			return nil, fmt.Errorf("line %d: %w", last, broken)
		}
		if !in.line() || !in.decodable(line) || !in.keep(perMessage+perByte*int64(len(line))) {
			return nil, in.refused
		}
		last = n
		if err := r.line(n, line); err != nil {
			if rawjson.Check(line) == nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			broken = err
		}
	}
	if broken != nil {
		in.skip(last, "the file breaks off: %v", broken)
	}
	if err := r.close(); err != nil {
		return nil, err
	}
	return r.sessions, nil
}

// line reads a header or a record.
func (r *furlReader) line(n int, line []byte) error {
	if len(line) > r.in.maxLine {
		return fmt.Errorf("it has %d bytes, more than %d", len(line), r.in.maxLine)
	}
	if r.header == nil || isFurlHeader(line) {
		if err := r.close(); err != nil {
			return err
		}
		return r.open(n, line)
	}
	rec, err := furlForm.Parse(line)
	if err != nil {
		return err
	}
	if want := furl.Seq(len(r.records) + 1); rec.Seq != want {
		return fmt.Errorf("record %d stands where record %d should", rec.Seq, want)
	}
	_, head := rec.Body.(*furl.Head)
	if head && rec.Parent >= rec.Seq || !head && rec.Parent != r.at {
		return fmt.Errorf("record %d follows record %d, where the conversation stands at %d", rec.Seq, rec.Parent, r.at)
	}
	if err := r.work.add(rec.Body); err != nil {
		return err
	}
	if r.at = rec.Seq; head {
		r.at = rec.Parent
	}
	r.records, r.lines = append(r.records, rec), append(r.lines, n)
	return nil
}

// isFurlHeader tells a header from a record, which names the format of its
// message in a field of the same name.
func isFurlHeader(line []byte) bool {
	return bytes.Contains(line[:min(len(line), 4096)], []byte(`"`+furlName+`"`)) && objectOf(line).str("format") == furlName
}

// open begins a session.
func (r *furlReader) open(n int, line []byte) error {
	h := &furlHeader{}
	// The version first: the header of another may have any shape.
	o := objectOf(line)
	if h.Version = o.num("version"); h.Version > furlVersion {
		return &NewerVersionError{Line: n, Version: h.Version}
	}
	if err := json.Unmarshal(line, h); err != nil {
		return fmt.Errorf("read the header of a session: %w", err)
	}
	if h.Format != furlName || h.Version < 1 {
		return errors.New("no header of a session")
	}
	r.header, r.at, r.work = h, 0, painting{}
	return nil
}

// close gives the session at hand, if there is one.
func (r *furlReader) close() error {
	h := r.header
	if h == nil {
		return nil
	}
	s := &Session{
		ID: h.ID, Parent: h.Parent, Title: h.Meta.Title, Model: h.Meta.Model, Wire: h.Meta.Format, Meta: h.Meta,
		Log: furl.NewLog(),
	}
	for i, raw := range h.Preamble {
		b, err := furlForm.ParseBlock(raw)
		if err != nil {
			return fmt.Errorf("block %d of the preamble: %w", i, err)
		}
		s.Preamble = append(s.Preamble, b)
	}
	altered, measured := 0, measured(r.records)
	for i := range r.records {
		s.count(r.records[i].Body)
		if !measured {
			r.in.measureBody(r.records[i].Body)
		}
		if m, ok := r.records[i].Body.(*furl.Message); ok {
			again := *m
			if again.Seal(); again.Digest != m.Digest {
				altered++
			}
		}
	}
	if altered > 0 {
		r.in.note("messages of session %s whose digest is not the recorded one, as after an edit of the file, so that no client's history is matched to them: %d", h.ID, altered)
	}
	if err := s.Log.Load(r.records); err != nil {
		n := r.misfit()
		return fmt.Errorf("line %d: %w", r.lines[n], causeOf(furl.NewLog().Load(r.records[:n+1])))
	}
	if missing := h.Records - len(r.records); missing > 0 {
		r.in.note("session %s: %d of its %d records are not in the file", h.ID, missing, h.Records)
	}
	if s.Wire == "" {
		s.Wire = commonFormat(r.records)
	}
	r.sessions = append(r.sessions, s)
	r.header, r.records, r.lines = nil, nil, nil
	return nil
}

// causeOf gives what is wrong with a log, without the sentinel that speaks of
// a store.
func causeOf(err error) error {
	if both, ok := err.(interface{ Unwrap() []error }); ok {
		list := both.Unwrap()
		return list[len(list)-1]
	}
	return err
}

// misfit gives the index of the first record that does not fit those before.
func (r *furlReader) misfit() int {
	return sort.Search(len(r.records)-1, func(i int) bool {
		return furl.NewLog().Load(r.records[:i+1]) != nil
	})
}

// measured reports whether any block of a session has a size. Then all of it
// stays as it is, or it would be another session than the one it was.
func measured(records []furl.Record) bool {
	return slices.ContainsFunc(records, func(r furl.Record) bool {
		m, ok := r.Body.(*furl.Message)
		return ok && m.Tokens() != 0
	})
}

// measureBody counts the tokens of what a record shows.
func (in *input) measureBody(body furl.Body) {
	switch b := body.(type) {
	case *furl.Message:
		in.measure(b)
	case *furl.Reduction:
		for _, item := range b.Items {
			if mark, ok := item.Show.(furl.Mark); ok {
				in.measure(mark.Messages...)
			}
		}
	}
}

// count adds a record to the session's counts.
func (s *Session) count(body furl.Body) {
	switch b := body.(type) {
	case *furl.Message:
		s.Messages++
		for i := range b.Blocks {
			switch b.Blocks[i].Kind {
			case furl.KindCall:
				s.Calls++
			case furl.KindResult:
				s.Results++
			}
		}
	case *furl.Reduction:
		if b.Summary != nil {
			s.Compactions++
		}
	case *furl.Exchange:
		if s.Meta.Model == "" && b.Model != "" {
			s.Model = b.Model
		}
	}
}

// commonFormat is the wire format of most messages; Chat Completions if there
// are none.
func commonFormat(records []furl.Record) furl.Format {
	n := map[furl.Format]int{}
	for i := range records {
		if m, ok := records[i].Body.(*furl.Message); ok {
			n[m.Format]++
		}
	}
	best := furl.FormatChat
	for _, f := range []furl.Format{furl.FormatAnthropic, furl.FormatResponses} {
		if n[f] > n[best] {
			best = f
		}
	}
	return best
}

// painting estimates what it costs to fold a session, in runs of blocks, so
// that a small file cannot ask for hours: each reduction paints over all
// before, and lifting one paints all others anew.
type painting struct{ records, blocks, reductions, undone, taken, spent int }

const (
	maxPainting = 20_000_000_000
	// maxTaken is how many reductions takeovers may take over, each counted
	// once for each takeover: they are kept in memory.
	maxTaken = 1_000_000
)

func (p *painting) add(body furl.Body) error {
	p.records++
	switch b := body.(type) {
	case *furl.Message:
		p.blocks += len(b.Blocks)
	case *furl.Reduction:
		p.reductions++
		p.spent += p.blocks
	case *furl.Takeover:
		p.taken += p.reductions + p.undone
		p.spent += p.records + p.reductions*p.blocks*(1+p.undone)
	case *furl.Restoration:
		if b.Of != 0 {
			p.undone++
			p.spent += p.reductions * p.blocks
		} else {
			p.reductions++
			p.spent += p.blocks
		}
	}
	if p.taken > maxTaken {
		return fmt.Errorf("the session takes over reductions %d times, at most %d are read", p.taken, maxTaken)
	}
	if p.spent > maxPainting {
		return fmt.Errorf("the session has too many reductions: %d over %d blocks", p.reductions, p.blocks)
	}
	return nil
}
