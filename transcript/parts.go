package transcript

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/furlhq/furl/internal/rawjson"
)

// A session of hundreds of megabytes is not read into memory as a whole. Walk reads it
// in parts: at a compaction, from which on the model sees nothing of what was before,
// or, without one, at a message of the user.

// cutAt says what a record is to the parts of a file.
type cutAt uint8

const (
	noCut    cutAt = iota
	atPrompt       // a message of the user
	atCompaction
)

// What was read counts once while it is read, and three times more when its messages
// are built. A part ends at the first compaction after compactedPart of the memory
// limit, or at the first message of the user after anyPart.
const (
	compactedPart = 0.2
	anyPart       = 0.235
)

// parts divides the records of a file. A nil one does not.
type parts struct {
	f        *format
	header   []headerRecord // repeated at the start of each part
	number   int
	next     []byte // the first record of the next part, nil at the end
	nextLine int
	cut      cutAt
}

// headerRecord is a record that describes what follows, of which a part needs one.
type headerRecord struct {
	name   string
	newest bool // the newest one counts, else the first
	raw    []byte
}

// maxHeader is the most header records of a part. The first one describes the file, of the
// others the newest stay.
const maxHeader = 16

// first reports whether the current part is the first, or the only one.
func (p *parts) first() bool { return p == nil || p.number == 1 }

// begin yields what the current part has before its first line.
func (p *parts) begin(yield func(int, []byte) bool) bool {
	if p == nil || p.next == nil {
		return true
	}
	first := p.next
	p.next = nil
	for _, h := range p.header {
		if !yield(p.nextLine, h.raw) {
			return false
		}
	}
	return yield(p.nextLine, first)
}

// note keeps a record if it describes what follows.
func (p *parts) note(record []byte) {
	if p.f.header == nil {
		return
	}
	h := p.f.header(record)
	if h.name == "" {
		return
	}
	h.raw = bytes.Clone(record)
	at := slices.IndexFunc(p.header, func(o headerRecord) bool { return o.name == h.name })
	switch {
	case at < 0:
		if len(p.header) == maxHeader {
			p.header = slices.Delete(p.header, 1, 2)
		}
		p.header = append(p.header, h)
	case h.newest:
		p.header[at] = h
	}
}

// ends reports whether the current part ends before a record, which is a line.
func (p *parts) ends(in *input, line int, record []byte) bool {
	if p == nil {
		return false
	}
	p.note(record)
	used := float64(in.memory) / float64(in.maxMemory)
	if used < compactedPart {
		return false
	}
	if p.cut = p.f.cut(record); p.cut == noCut || p.cut == atPrompt && used < anyPart {
		return false
	}
	p.next, p.nextLine = bytes.Clone(record), line
	return true
}

// readParts reads a recording, in parts if it is large. homes may be nil. It reports
// whether to continue.
func (rd *Reader) readParts(name, dir string, homes *rolloutHomes, r io.Reader, yield func(*Recording, error) bool) bool {
	in := rd.input(name, dir)
	in.reuse = rd.UsageOnly
	defer in.close()
	f, err := rd.open(in, homes, r)
	if err != nil {
		return yield(nil, err)
	}
	if in.stream != nil && f.cut != nil {
		in.parts = &parts{f: f, number: 1}
	}
	if in.parts == nil {
		return yield(in.recording(f))
	}
	for p := in.parts; ; p.number++ {
		from := p.cut
		rec, err := in.recording(f)
		more := err == nil && p.next != nil
		if err == nil && (more || !p.first()) {
			rec.Part, rec.More = p.number, more
			rec.nameParts(from)
		}
		if !yield(rec, err) {
			return false
		}
		if !more {
			return true
		}
		in.forget()
	}
}

// forget prepares reading the next part.
func (in *input) forget() {
	in.rec = nil
	in.lines, in.messages, in.memory, in.dropped = 0, 0, 0, 0
	in.made, in.moved, in.begun, in.parted, in.unused = 0, 0, 0, 0, 0
}

// nameParts gives the sessions of a part other ids and titles than those of the others,
// and says how the part begins.
func (rec *Recording) nameParts(from cutAt) {
	if rec.Part == 1 {
		rec.Notes = append(rec.Notes, "part 1: the file is large and is read in parts")
		return
	}
	for _, s := range rec.Sessions {
		s.ID = fmt.Sprintf("%s-part%d", s.ID, rec.Part)
		if s.Title != "" {
			s.Title = fmt.Sprintf("%s (part %d)", s.Title, rec.Part)
		}
	}
	begins := "a compaction"
	if from == atPrompt {
		begins = "a message of the user; what the model still saw from before counts as instructions"
	}
	rec.Notes = append(rec.Notes, fmt.Sprintf("part %d: it begins at %s", rec.Part, begins))
}

// cutClaude finds where a session of Claude Code can be cut.
func cutClaude(record []byte) cutAt {
	if bytes.Contains(record, []byte(`"compact_boundary"`)) && rawjson.Unquote(rawjson.Field(record, "subtype")) == "compact_boundary" {
		return atCompaction
	}
	var user, typed, apart bool
	r := rawjson.NewReader(record)
	for key := range r.Fields() {
		switch string(key) {
		case "type":
			typ, _ := r.String()
			user = typ == "user"
		case "isSidechain", "isMeta", "isCompactSummary":
			if set, _ := r.Bool(); set {
				apart = true
			}
		case "message":
			typed = isText(rawjson.Field(r.Raw(), "content"))
		}
	}
	if user && typed && !apart {
		return atPrompt
	}
	return noCut
}

// headerClaude finds the instructions and tools of the recorded requests.
func headerClaude(record []byte) headerRecord {
	if !bytes.Contains(record, []byte(`"api-request-shape"`)) || rawjson.Unquote(rawjson.Field(record, "type")) != "api-request-shape" {
		return headerRecord{}
	}
	return headerRecord{name: rawjson.Unquote(rawjson.Field(record, "shapeHash"))}
}

// isText reports whether the content of a message is a text, or begins with one.
func isText(content []byte) bool {
	r := rawjson.NewReader(content)
	switch r.Kind() {
	case '"':
		return true
	case '[':
		for range r.Elements() {
			return rawjson.Unquote(rawjson.Field(r.Raw(), "type")) == "text"
		}
	}
	return false
}

// cutCodex finds where a rollout of Codex can be cut.
func cutCodex(record []byte) cutAt {
	switch rawjson.Unquote(rawjson.Field(record, "type")) {
	case "compacted":
		return atCompaction
	case "response_item":
		p := rawjson.Field(record, "payload")
		if rawjson.Unquote(rawjson.Field(p, "type")) == "message" && rawjson.Unquote(rawjson.Field(p, "role")) == "user" {
			return atPrompt
		}
	}
	return noCut
}

// headerCodex finds the records that describe the rollout and the current turn.
func headerCodex(record []byte) headerRecord {
	if !bytes.Contains(record, []byte(`"session_meta"`)) && !bytes.Contains(record, []byte(`"turn_context"`)) {
		return headerRecord{}
	}
	switch name := rawjson.Unquote(rawjson.Field(record, "type")); name {
	case "session_meta", "turn_context":
		return headerRecord{name: name, newest: name == "turn_context"}
	}
	return headerRecord{}
}
