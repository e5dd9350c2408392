package transcript

import (
	"bytes"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/rawjson"
)

// claudeKind says what role a record plays in the conversation.
type claudeKind uint8

const (
	claudeLink    claudeKind = iota // no content; it only links the tree
	claudeMessage                   // from the user, the model or a tool
	claudeExtra                     // added by the client and sent
	claudeQueue                     // typed while the agent worked
	claudeCut                       // a compaction
	claudeMask                      // old results cleared
	claudeTitle                     // the title of the session
)

// claudeRecord holds the fields of a record that the importer uses.
type claudeRecord struct {
	kind   claudeKind
	line   int
	thread *claudeThread
	at     time.Time

	uuid, parent, logical string
	root                  bool // parentUuid is present and null
	session, agent, cwd   string
	forkOf                string // the session that this record was copied from
	sidechain             bool
	meta                  bool // from the client, not typed
	summary               bool // of a compaction
	apiError              bool

	role, id, model, stop string
	usage                 []byte
	blocks                []part

	text, leaf, op string
	rendered       string // of an attachment: its text as it was sent, if recorded
	request        string // of a reply: the id of its request's record
	boundary       object // metadata of a compaction
}

// claudeLine is a line of the file: the fields of its record that are needed.
type claudeLine struct {
	claudeRecord
	raw                        []byte
	typ, subtype, id           string
	said                       claudeMessageFields
	attachment, rendered, data []byte
	meta                       []byte // of a compaction
	forked                     []byte
	other                      object
}

// scan reads the fields of a record. What it returns is valid until it is called again.
func (c *claudeReader) scan(line int, rd *rawjson.Reader, buf []byte) *claudeLine {
	l := &c.scanned
	*l = claudeLine{claudeRecord: claudeRecord{line: line}, raw: buf}
	r := &l.claudeRecord
	for key := range rd.Fields() {
		switch string(key) {
		case "type":
			l.typ = c.known.string(rd)
		case "subtype":
			l.subtype, _ = rd.String()
		case "uuid":
			r.uuid, _ = rd.String()
		case "parentUuid":
			r.root = rd.Kind() == 'n'
			r.parent, _ = rd.String()
		case "logicalParentUuid":
			r.logical, _ = rd.String()
		case "sessionId", "session_id":
			r.session = c.known.string(rd)
		case "forkedFrom":
			l.forked = rd.Raw()
		case "agentId", "parent_tool_use_id":
			if rd.Kind() == '"' {
				r.agent = c.known.string(rd)
			}
		case "id":
			l.id, _ = rd.String()
		case "requestRef":
			r.request, _ = rd.String()
		case "cwd":
			r.cwd = c.known.string(rd)
		case "isSidechain":
			r.sidechain, _ = rd.Bool()
		case "isMeta":
			r.meta, _ = rd.Bool()
		case "isCompactSummary":
			r.summary, _ = rd.Bool()
		case "isApiErrorMessage":
			r.apiError, _ = rd.Bool()
		case "timestamp":
			r.at = claudeTime(rd)
		case "message":
			l.said = c.messageFields(rd, buf)
		case "attachment":
			l.attachment = rd.Raw()
		case "rendered":
			l.rendered = rd.Raw()
		case "data":
			l.data = rd.Raw()
		case "compactMetadata", "microcompactMetadata", "compact_metadata":
			l.meta = rd.Raw()
		case "summary", "leafUuid", "customTitle", "aiTitle", "operation", "content":
			if l.other == nil {
				l.other = object{}
			}
			l.other[string(key)] = rd.Raw()
		}
	}
	return l
}

// record makes a record of a line. It returns nil for other data and for records that
// are not needed.
func (c *claudeReader) record(l *claudeLine) *claudeRecord {
	r, o := &l.claudeRecord, l.other
	if l.forked != nil {
		r.forkOf = objectOf(l.forked).str("sessionId")
	}
	if l.meta != nil {
		r.boundary = objectOf(l.meta)
	}
	switch l.typ {
	case "user", "assistant":
		if r.message(c, l.typ, l.said) {
			r.kind = claudeMessage
		}
	case "api-request", "api-request-shape", "api-request-blob":
		c.request(l)
		return nil
	case "attachment":
		r.text, r.rendered = attached(objectOf(l.attachment)), renderedText(l.rendered)
		if r.text != "" || r.rendered != "" {
			r.kind = claudeExtra
		}
	case "system":
		switch l.subtype {
		case "compact_boundary":
			r.kind = claudeCut
		case "microcompact_boundary":
			r.kind = claudeMask
		}
	case "progress":
		if bytes.Contains(l.data, []byte(`"agent_progress"`)) {
			c.progress(r, objectOf(l.data))
		}
	case "queue-operation":
		r.kind, r.op, r.text = claudeQueue, o.str("operation"), o.str("content")
	case "summary":
		r.kind, r.text, r.leaf = claudeTitle, o.str("summary"), o.str("leafUuid")
	case "custom-title":
		r.kind, r.text, r.meta = claudeTitle, o.str("customTitle"), false
	case "ai-title": // newer versions, instead of a summary
		r.kind, r.text, r.meta = claudeTitle, o.str("aiTitle"), true
	case "":
		c.in.skip(r.line, "a record without a type")
		return nil
	}
	if r.kind == claudeLink && r.uuid == "" {
		return nil
	}
	kept := *r
	return &kept
}

// size returns how many bytes of the file the record keeps in memory until
// its message is built.
func (r *claudeRecord) size() (n int64) {
	for i := range r.blocks {
		n += int64(len(r.blocks[i].raw))
	}
	return n + int64(len(r.text)+len(r.rendered))
}

// usable reports whether the record has content.
func (r *claudeRecord) usable() bool {
	return r.kind != claudeLink && (r.kind != claudeMessage || len(r.blocks) > 0)
}

// continuedWords begin the first message after a compaction.
const continuedWords = "This session is being continued from a previous conversation"

// continues reports whether the record is the summary of a compaction in the form of
// old versions of Claude Code: a message of the user without a flag, and without the
// record that it follows.
func (r *claudeRecord) continues(c *claudeReader) bool {
	if r.kind != claudeMessage || r.role != "user" || r.sidechain || len(r.blocks) == 0 || r.parent != "" && c.byUUID[r.parent] != nil {
		return false
	}
	b := &r.blocks[0]
	return b.typ == "text" && strings.HasPrefix(readObject(rawjson.NewReader(b.raw)).str("text"), continuedWords)
}

// claudeMessageFields are the fields of a message that are needed.
type claudeMessageFields struct {
	kind, content   byte // the types of the message and of its content, as rawjson.Reader.Kind
	id, model, stop string
	usage           []byte
	blocks          []part
	others          int // elements of the content that are not blocks
}

// messageFields reads a message.
func (c *claudeReader) messageFields(rd *rawjson.Reader, buf []byte) (m claudeMessageFields) {
	if m.kind = rd.Kind(); m.kind != '{' {
		rd.Skip()
		return m
	}
	if c.in.stream != nil { // cloned, because the line may contain the same result a second time
		buf = bytes.Clone(rd.Raw())
		rd = rawjson.NewReader(buf)
	}
	for key := range rd.Fields() {
		switch string(key) {
		case "id":
			m.id, _ = rd.String()
		case "model":
			m.model = c.known.string(rd)
		case "stop_reason":
			m.stop = c.known.string(rd)
		case "content":
			m.content = rd.Kind()
			m.blocks, m.others = partsIn(rd, buf)
		case "usage":
			m.usage = rd.Raw()
		}
	}
	return m
}

// message takes the message of a user or assistant record. It reports whether
// the record belongs to the conversation.
func (r *claudeRecord) message(c *claudeReader, role string, m claudeMessageFields) bool {
	if m.kind != '{' {
		c.in.skip(r.line, "%s record without a message", role)
		return false
	}
	r.role, r.id, r.model, r.stop, r.usage = role, m.id, m.model, m.stop, m.usage
	if m.content != '"' && m.content != '[' {
		c.in.skip(r.line, "%s record without content", role)
		return true // counted as skipped
	}
	if r.blocks = m.blocks; m.others > 0 {
		c.in.skip(r.line, "content blocks that are not JSON objects: %d", m.others)
	}
	return true
}

// progress reads the copy of a sub-agent's conversation in the main file.
func (c *claudeReader) progress(r *claudeRecord, data object) {
	agent, said := data.str("agentId"), data.object("message")
	if data.str("type") != "agent_progress" || agent == "" || c.hasFile(agent, r.session) {
		return
	}
	inner := &claudeRecord{
		line: r.line, session: r.session, agent: agent, sidechain: true, cwd: r.cwd,
		uuid: said.str("uuid"), at: r.at,
	}
	if at := claudeTime(rawjson.NewReader(said["timestamp"])); !at.IsZero() {
		inner.at = at
	}
	role := said.str("type")
	if role != "user" && role != "assistant" {
		return
	}
	raw := said["message"]
	if inner.message(c, role, c.messageFields(rawjson.NewReader(raw), raw)) {
		inner.kind = claudeMessage
		c.dispatch(inner)
	}
}

// claudeTime reads a time; zero if the value is not a time.
func claudeTime(rd *rawjson.Reader) time.Time {
	s, _ := rd.String()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return at
}

// attached returns the text of an attachment that the client sends to the
// model. It returns "" for attachments that are not sent, and for those whose
// text the client generates when it sends them.
func attached(a object) string {
	switch a.str("type") {
	case "queued_command":
		if a.kind("prompt") == '"' {
			return a.str("prompt")
		}
		return textOf(a["prompt"])
	case "hook_additional_context":
		return textOf(a["content"])
	case "edited_text_file":
		return textOf(a["snippet"])
	case "file", "nested_memory":
		inner := a.object("content")
		if f := inner.object("file"); f.has("content") {
			return textOf(f["content"])
		}
		return textOf(inner["content"])
	case "critical_system_reminder", "skill_listing", "output_style", "relevant_memories", "system_reminder":
		return textOf(a["content"])
	}
	return ""
}

// renderedText returns the text of an attachment as it was sent. The client may join it with others
// into a system message, without the tags around it.
func renderedText(rendered []byte) string {
	var texts []string
	for _, m := range rawjson.Elements(rendered) {
		if text := textOf(objectOf(m)["content"]); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// textOf returns the text of a string, of a list of strings, or of a list of
// text blocks.
func textOf(raw []byte) string {
	r := rawjson.NewReader(raw)
	switch r.Kind() {
	case '"':
		return rawjson.Unquote(raw)
	case '[':
		var parts []string
		for range r.Elements() {
			switch r.Kind() {
			case '"':
				s, _ := r.String()
				parts = append(parts, s)
			case '{':
				if s := readObject(r).str("text"); s != "" {
					parts = append(parts, s)
				}
			}
		}
		return strings.Join(parts, "\n")
	}
	return ""
}
