package transcript

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/wire/anthropic"
)

// From version 2.1.332 on, Claude Code records its requests. Each has a record
// api-request before the records of its reply, which name it in requestRef: the
// hash of its instructions and tools, the hashes of its messages, the other
// parameters, and where its cache breakpoints were. An api-request-shape has the
// instructions and tools, an api-request-blob a message, both once and without cache
// breakpoints. A message that the user and assistant records form has no blob.

// claudeHash is the SHA-256 of a message as JSON with sorted keys, without white
// space and without cache breakpoints, its content a list.
type claudeHash [sha256.Size]byte

// claudeRequests are the requests that a file records.
type claudeRequests struct {
	byID   map[string]*claudeRequest
	times  map[string]time.Time // of requests, by their ids
	shapes map[claudeHash]*claudeShape
	blobs  map[claudeHash][]byte // messages
	// runs are messages that records of the user form, one after the other. Each
	// beginning of a run is one.
	runs  map[claudeHash][]*claudeRecord
	noted []*claudeRecord // of the user and the model, in the order of the file
	run   []*claudeRecord
	sum   hash.Hash // of the run
	// A message of one text gets a list for its cache breakpoint. listed are those whose blob
	// has this list: they are a string where they have no breakpoint. fresh are the blobs since
	// the last request.
	listed, fresh map[claudeHash]bool
	canon         []byte // memory
	steps         int    // of the search for hashes
}

// claudeRequest is one request.
type claudeRequest struct {
	line  int
	at    time.Time
	shape claudeHash
	// The hashes of its messages are the first keep of those of base, and tail.
	base   *claudeRequest
	keep   int
	tail   []claudeHash
	params object // as in the file
	order  []string
	marks  []claudeMark
}

// claudeMark is a cache breakpoint: its value, and the path to its block.
type claudeMark struct {
	field string // "system", "tools" or "messages"
	path  [][]byte
	value []byte
}

// claudeShape is what requests have besides messages.
type claudeShape struct {
	system, tools []byte // nil: none
	preamble      []furl.Block
	digest        furl.Digest // of the preamble
}

func newClaudeRequests() *claudeRequests {
	return &claudeRequests{
		byID: make(map[string]*claudeRequest), times: make(map[string]time.Time), shapes: make(map[claudeHash]*claudeShape),
		blobs: make(map[claudeHash][]byte), runs: make(map[claudeHash][]*claudeRecord),
		listed: make(map[claudeHash]bool), fresh: make(map[claudeHash]bool),
	}
}

// read reads one of the records about requests. It returns how many bytes of the
// record it keeps, and false if the record cannot be used.
func (q *claudeRequests) read(line int, typ string, o object) (kept int64, ok bool) {
	switch typ {
	case "api-request-shape":
		key, valid := hashOf(o.str("shapeHash"))
		shape := o.object("shape")
		if !valid || o.kind("shape") != '{' || q.messageHash(o["shape"]) != key {
			return 0, false
		}
		s := &claudeShape{system: bytes.Clone(shape["system"]), tools: bytes.Clone(shape["tools"])}
		req, err := anthropic.Codec.DecodeRequest(s.body(new(claudeRequest), nil))
		if err != nil {
			return 0, false
		}
		s.preamble, s.digest = req.Preamble, req.PreambleDigest
		q.shapes[key] = s
		return 3 * int64(len(s.system)+len(s.tools)), true
	case "api-request-blob":
		key, valid := hashOf(o.str("hash"))
		raw := o["message"]
		if !valid || o.kind("message") != '{' || q.messageHash(raw) != key {
			return 0, false
		}
		q.blobs[key], q.fresh[key] = bytes.Clone(raw), true
		return int64(len(raw)), true
	}
	shape, valid := hashOf(o.str("shapeHash"))
	id := o.str("id")
	if !valid || id == "" || o.kind("params") != '{' {
		return 0, false
	}
	r := &claudeRequest{line: line, shape: shape, at: claudeTime(rawjson.NewReader(o["timestamp"]))}
	for _, s := range stringsOf(o["tail"]) {
		h, ok := hashOf(s)
		if !ok {
			return 0, false
		}
		r.tail = append(r.tail, h)
	}
	if r.keep = max(o.num("keep"), 0); r.keep > 0 {
		if r.base = q.byID[o.str("base")]; r.base == nil || r.keep > r.base.count() {
			return 0, false
		}
	}
	params := rawjson.NewReader(bytes.Clone(o["params"]))
	r.params = object{}
	for key := range params.Fields() {
		r.order = append(r.order, string(key))
		r.params[string(key)] = params.Raw()
	}
	list := rawjson.NewReader(bytes.Clone(o["cacheControl"]))
	if list.Kind() == '[' {
		for range list.Elements() {
			mark := readObject(list)
			path := rawjson.Elements(mark["path"])
			if len(path) > 1 && mark.has("value") {
				r.marks = append(r.marks, claudeMark{rawjson.Unquote(path[0]), path[1:], mark["value"]})
			}
		}
	}
	for _, m := range r.marks {
		if i := m.message() - r.keep; i >= 0 && i < len(r.tail) && q.fresh[r.tail[i]] {
			q.listed[r.tail[i]] = true
		}
	}
	clear(q.fresh)
	q.byID[id] = r
	return int64(len(o["params"]) + len(o["cacheControl"]) + len(r.tail)*sha256.Size), true
}

// count returns the number of the request's messages.
func (r *claudeRequest) count() int { return r.keep + len(r.tail) }

// message returns the index of the message that has the breakpoint, -1 if it is elsewhere.
func (m *claudeMark) message() int {
	if m.field != "messages" {
		return -1
	}
	return indexOf(m.path[0])
}

// indexOf reads an index, -1 if it is none.
func indexOf(raw []byte) int {
	if i, ok := rawjson.NewReader(raw).Int(); ok && i >= 0 {
		return i
	}
	return -1
}

// body returns the body of a request with these instructions, tools and messages.
// What is not recorded is missing: metadata, stream, and a first system block that changes with
// each request (x-anthropic-billing-header). The betas are a header.
func (s *claudeShape) body(r *claudeRequest, messages [][]byte) []byte {
	system, tools := s.system, s.tools
	for i := range r.marks {
		switch m := &r.marks[i]; m.field {
		case "system":
			system = withMark(system, m.path, m.value)
		case "tools":
			tools = withMark(tools, m.path, m.value)
		default:
			if i := m.message(); i >= 0 && i < len(messages) {
				messages[i] = withMark(listedContent(messages[i]), m.path[1:], m.value)
			}
		}
	}
	out := []byte("{")
	field := func(name string, value []byte) {
		if len(value) == 0 {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendString(out, name), ':'), value...)
	}
	field("model", r.params["model"])
	field("messages", slices.Concat([]byte("["), bytes.Join(messages, []byte(",")), []byte("]")))
	field("system", system)
	field("tools", tools)
	for _, name := range r.order {
		switch name {
		case "model", "messages", "system", "tools", "betas":
		default:
			field(name, r.params[name])
		}
	}
	return append(out, '}')
}

// withMark sets the cache breakpoint of the object at a path in a value. A path that does
// not exist changes nothing.
func withMark(value []byte, path [][]byte, mark []byte) []byte {
	if len(path) == 0 {
		if rawjson.NewReader(value).Kind() != '{' {
			return value
		}
		return rawjson.WithField(value, cacheControl, mark)
	}
	r := rawjson.NewReader(value)
	at, found := rawjson.Span{}, false
	switch r.Kind() {
	case '[':
		want := indexOf(path[0])
		for i := range r.Elements() {
			if i == want {
				at, found = r.Skip(), true
				break
			}
		}
	case '{':
		name := rawjson.Unquote(path[0])
		for key := range r.Fields() {
			if string(key) == name {
				at, found = r.Skip(), true
			}
		}
	}
	if !found {
		return value
	}
	return rawjson.Splice(value, []rawjson.Edit{{Span: at, New: withMark(at.Of(value), path[1:], mark)}})
}

// listedContent makes the content of a message a list.
func listedContent(raw []byte) []byte {
	content := rawjson.Field(raw, "content")
	if rawjson.NewReader(content).Kind() != '"' {
		return raw
	}
	return rawjson.WithField(raw, "content", slices.Concat([]byte(`[{"type":"text","text":`), content, []byte("}]")))
}

// plainContent makes the content of a message with one text that text.
func plainContent(raw []byte) []byte {
	list := rawjson.Elements(rawjson.Field(raw, "content"))
	if len(list) != 1 {
		return raw
	}
	if o := objectOf(list[0]); len(o) == 2 && o.str("type") == "text" && o.kind("text") == '"' {
		return rawjson.WithField(raw, "content", o["text"])
	}
	return raw
}

func hashOf(s string) (h claudeHash, ok bool) {
	n, err := hex.Decode(h[:], []byte(s)[:min(len(s), 2*len(h))])
	return h, err == nil && n == len(h) && len(s) == 2*len(h)
}

// follow hashes the messages that the noted records form, if the file has requests.
func (q *claudeRequests) follow() {
	if len(q.byID) > 0 {
		for _, r := range q.noted {
			q.hashRun(r)
		}
	}
	q.noted, q.run = nil, nil
}

// hashRun adds a record to the run.
func (q *claudeRequests) hashRun(r *claudeRecord) {
	if r.role != "user" {
		q.run = nil
		return
	}
	if q.run == nil {
		q.sum = sha256.New()
		q.sum.Write([]byte(`{"content":[`))
	}
	for i := range r.blocks {
		q.canon = q.canon[:0]
		if i > 0 || len(q.run) > 0 {
			q.canon = append(q.canon, ',')
		}
		q.canon = appendCanonical(q.canon, rawjson.NewReader(r.blocks[i].raw))
		q.sum.Write(q.canon)
	}
	q.run = append(q.run, r)
	whole, err := q.sum.(hash.Cloner).Clone()
	if err != nil {
		return // no hash of the standard library fails
	}
	whole.Write([]byte(`],"role":"user"}`))
	q.runs[claudeHash(whole.Sum(nil))] = slices.Clip(q.run)
}

// maxClaudeSteps bounds the search for the hashes of all requests of a file. Usually a request
// builds on the one before it.
const maxClaudeSteps = 50_000_000

// hashes returns the hashes of a request's messages, nil if they cannot be found. last
// are those of the request before.
func (q *claudeRequests) hashes(r *claudeRequest, before *claudeRequest, last []claudeHash) []claudeHash {
	n := r.count()
	if q.steps += n; q.steps > maxClaudeSteps {
		return nil
	}
	out := make([]claudeHash, n)
	for n > 0 {
		if r == before {
			copy(out, last[:n])
			return out
		}
		if n > r.keep {
			copy(out[r.keep:n], r.tail)
			n = r.keep
		}
		if r = r.base; n > 0 && r == nil {
			return nil
		}
		if q.steps++; q.steps > maxClaudeSteps {
			return nil
		}
	}
	return out
}

// message returns a message by its hash, nil if the file does not have it.
func (q *claudeRequests) message(h claudeHash) []byte {
	if raw := q.blobs[h]; raw != nil {
		return raw
	}
	run := q.runs[h]
	if len(run) == 1 && len(run[0].blocks) == 1 && run[0].blocks[0].str != nil {
		return slices.Concat([]byte(`{"role":"user","content":`), run[0].blocks[0].str, []byte("}"))
	}
	raw := []byte(`{"role":"user","content":[`)
	for i, r := range run {
		for j := range r.blocks {
			if r.blocks[j].raw == nil {
				return nil // released
			}
			if i+j > 0 {
				raw = append(raw, ',')
			}
			raw = append(raw, r.blocks[j].raw...)
		}
	}
	if len(run) == 0 {
		return nil
	}
	return append(raw, "]}"...)
}

// messageHash returns the hash of a message, or of instructions and tools.
func (q *claudeRequests) messageHash(raw []byte) claudeHash {
	q.canon = appendCanonicalMessage(q.canon[:0], raw)
	return sha256.Sum256(q.canon)
}

// appendCanonicalMessage appends a message in the form of which a claudeHash is made.
func appendCanonicalMessage(out, raw []byte) []byte {
	return appendCanonical(out, rawjson.NewReader(listedContent(raw)))
}

// appendCanonical appends the next value of r with sorted keys, without white space
// and without cache breakpoints.
func appendCanonical(out []byte, r *rawjson.Reader) []byte {
	switch r.Kind() {
	case '[':
		out = append(out, '[')
		for i := range r.Elements() {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendCanonical(out, r)
		}
		return append(out, ']')
	case '{':
		type field struct {
			key   string
			value []byte
		}
		var fields []field
		start, sorted := len(out), true
		for key := range r.Fields() {
			if string(key) == cacheControl {
				continue
			}
			name := string(key)
			from := len(out)
			out = append(rawjson.AppendString(out, name), ':')
			out = appendCanonical(out, r)
			sorted = sorted && (len(fields) == 0 || fields[len(fields)-1].key < name)
			fields = append(fields, field{name, out[from:len(out):len(out)]})
		}
		size := len(out)
		if !sorted {
			slices.SortStableFunc(fields, func(a, b field) int { return cmp.Compare(a.key, b.key) })
		}
		// out may have been moved since a field was added, so the fields are copied.
		out = append(out, '{')
		for i := range fields {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, fields[i].value...)
		}
		out = append(out, '}')
		return append(out[:start], out[size:]...)
	}
	return append(out, r.Raw()...)
}

const cacheControl = "cache_control"

// request reads one of the records about requests. Usage needs only their times.
func (c *claudeReader) request(l *claudeLine) {
	if l.typ == "api-request" && l.id != "" {
		c.requests.times[l.id] = l.at
	}
	if c.in.usageOnly {
		return
	}
	kept, ok := c.requests.read(l.line, l.typ, objectOf(l.raw))
	if !ok {
		c.in.skip(l.line, "%s record that lacks a field, does not have the hash that it gives, or builds on a request that is not before it", l.typ)
	}
	c.in.useMemory(kept)
}
