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
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// The furl format contains a whole session as JSON Lines: every record of its
// log with all branches. A header line describes the session; then there is a
// line for each content that records refer to, and one for each record in the
// form of record.JSON. A file may contain several sessions, each after its
// header. docs/use/formats.md describes the format.
//
// Unlike other recordings it is read as strictly as a store: nothing is
// repaired, and an unreadable record is an error, because the records after
// it depend on it. Only a truncated last line is skipped.

const (
	// furlName identifies a header; furlVersion is the newest version of the
	// format. A file is written in the lowest version that can represent it.
	furlName    = "furl-session"
	furlVersion = 3

	// A line with a content begins like this.
	contentText   = `{"content":`
	contentBase64 = `{"content_base64":`
)

var furlOwn = &format{name: "furl", agent: "furl", detect: isFurl, read: readFurl}

// furlForm writes records without the fields that can be derived from their
// bytes.
var furlForm = record.JSON{Codec: func(f furl.Format) protocol.Codec {
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
	// Records is the number of records that follow.
	Records  int               `json:"records"`
	Meta     storage.Meta      `json:"meta"`
	Preamble []json.RawMessage `json:"preamble,omitempty"`
}

// NewerVersionError reports that a session is in a version of the furl format
// that this version of furl does not know. It wraps record.ErrNewerFormat.
type NewerVersionError struct {
	Line    int // of the header, from 1
	Version int // of the format
}

func (e *NewerVersionError) Error() string {
	return fmt.Sprintf("line %d: version %d of the furl format is not supported (this furl reads up to version %d): use a newer furl", e.Line, e.Version, furlVersion)
}

// Unwrap returns record.ErrNewerFormat.
func (e *NewerVersionError) Unwrap() error { return record.ErrNewerFormat }

func isFurl(p *probe) bool {
	return p.is('l', '{') && p.objects[0].str("format") == furlName
}

// furlReader reads a file in the furl format.
type furlReader struct {
	in       *input
	sessions []*Session

	// Of the current session.
	header   *furlHeader
	records  []furl.Record
	lines    []int // line of each record
	contents [][]byte
	at       furl.Seq // last record of the current branch
	work     painting
}

func readFurl(in *input) ([]*Session, error) {
	r := &furlReader{in: in}
	// A broken line is a truncation if it is the last one.
	var broken error
	last := 0
	for n, line := range in.eachLine() {
		if broken != nil {
			return nil, fmt.Errorf("line %d: %w", last, broken)
		}
		if !in.countLine() || !in.decodable(line) || !in.useMemory(perMessage+perByte*int64(len(line))) {
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
		in.skip(last, "truncated line: %v", broken)
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return r.sessions, nil
}

// line reads a header or a record.
func (r *furlReader) line(n int, line []byte) error {
	if len(line) > r.in.maxLine {
		return fmt.Errorf("the line has %d bytes, the limit is %d", len(line), r.in.maxLine)
	}
	if r.header == nil || isFurlHeader(line) {
		if err := r.end(); err != nil {
			return err
		}
		return r.start(n, line)
	}
	if bytes.HasPrefix(line, []byte(contentText)) || bytes.HasPrefix(line, []byte(contentBase64)) {
		return r.content(line)
	}
	rec, err := furlForm.Parse(line)
	if err != nil {
		return err
	}
	if want := furl.Seq(len(r.records) + 1); rec.Seq != want {
		return fmt.Errorf("record number %d: expected %d", rec.Seq, want)
	}
	_, head := rec.Body.(*furl.Head)
	if head && rec.Parent >= rec.Seq || !head && rec.Parent != r.at {
		return fmt.Errorf("record %d has the parent %d: expected %d", rec.Seq, rec.Parent, r.at)
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

// isFurlHeader distinguishes a header from a record, which also has a field
// "format", that of its message.
func isFurlHeader(line []byte) bool {
	return bytes.Contains(line[:min(len(line), 4096)], []byte(`"`+furlName+`"`)) && objectOf(line).str("format") == furlName
}

// start starts a session.
func (r *furlReader) start(n int, line []byte) error {
	h := &furlHeader{}
	// Check the version first: the header of another version may have any
	// fields.
	o := objectOf(line)
	if h.Version = o.num("version"); h.Version > furlVersion {
		return &NewerVersionError{Line: n, Version: h.Version}
	}
	if err := json.Unmarshal(line, h); err != nil {
		return fmt.Errorf("read session header: %w", err)
	}
	if h.Format != furlName || h.Version < 1 {
		return errors.New("invalid session header")
	}
	r.header, r.at, r.work = h, 0, painting{}
	return nil
}

// content reads a content.
func (r *furlReader) content(line []byte) error {
	var c struct {
		Text   *string `json:"content"`
		Base64 []byte  `json:"content_base64"`
	}
	if err := json.Unmarshal(line, &c); err != nil {
		return fmt.Errorf("read a content: %w", err)
	}
	content := c.Base64
	if c.Text != nil {
		content = []byte(*c.Text)
	}
	if len(content) > storage.MaxContent {
		return fmt.Errorf("a content has %d bytes, the limit is %d", len(content), storage.MaxContent)
	}
	r.contents = append(r.contents, content)
	return nil
}

// end finishes the current session, if there is one.
func (r *furlReader) end() error {
	h := r.header
	if h == nil {
		return nil
	}
	s := &Session{
		ID: h.ID, Parent: h.Parent, Title: h.Meta.Title, Model: h.Meta.Model, Wire: h.Meta.Format, Meta: h.Meta,
		Windows: h.Meta.Windows, Log: furl.NewLog(), Contents: r.contents,
	}
	for i, raw := range h.Preamble {
		b, err := furlForm.ParseBlock(raw)
		if err != nil {
			return fmt.Errorf("preamble block %d: %w", i, err)
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
		r.in.note("session %s: the digest of %s does not match the recorded one (was the file edited?); client histories will not match there", h.ID, plural(altered, "message"))
	}
	if err := s.Log.Load(r.records); err != nil {
		n := r.misfit()
		return fmt.Errorf("line %d: %w", r.lines[n], causeOf(furl.NewLog().Load(r.records[:n+1])))
	}
	if missing := h.Records - len(r.records); missing > 0 {
		r.in.note("session %s: %d of %d records are missing from the file", h.ID, missing, h.Records)
	}
	if s.Wire == "" {
		s.Wire = commonFormat(r.records)
	}
	r.sessions = append(r.sessions, s)
	r.header, r.records, r.lines, r.contents = nil, nil, nil, nil
	return nil
}

// causeOf returns what is wrong with a log, without the sentinel error, whose
// text is about a store.
func causeOf(err error) error {
	if both, ok := err.(interface{ Unwrap() []error }); ok {
		list := both.Unwrap()
		return list[len(list)-1]
	}
	return err
}

// misfit returns the index of the first record that does not fit the records
// before it.
func (r *furlReader) misfit() int {
	return sort.Search(len(r.records)-1, func(i int) bool {
		return furl.NewLog().Load(r.records[:i+1]) != nil
	})
}

// measured reports whether any block of a session has a size. Then all sizes
// stay as recorded; otherwise the session would differ from the original.
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

// commonFormat returns the wire format of most messages; Chat Completions if
// there are no messages.
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

// painting estimates the cost of folding a session, in runs of blocks, so
// that a small file cannot cause hours of work: each reduction covers all
// earlier layers, and undoing one applies all others again.
type painting struct{ records, blocks, reductions, undone, taken, spent int }

const (
	maxPainting = 20_000_000_000
	// maxTaken bounds the reductions that all takeovers take over. A
	// reduction counts once for each takeover. They are kept in memory.
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
		return fmt.Errorf("takeovers take over %d reductions: the limit is %d", p.taken, maxTaken)
	}
	if p.spent > maxPainting {
		return fmt.Errorf("too many reductions: %d over %d blocks", p.reductions, p.blocks)
	}
	return nil
}
