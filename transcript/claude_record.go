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

// parse reads a record. It returns nil for other data and for records that
// are not needed.
func (c *claudeReader) parse(line int, raw []byte) *claudeRecord {
	r := &claudeRecord{line: line}
	var typ, subtype string
	var message, attachment, rendered, data []byte
	var o object
	rd := rawjson.NewReader(raw)
	for key := range rd.Fields() {
		switch string(key) {
		case "type":
			typ, _ = rd.String()
		case "subtype":
			subtype, _ = rd.String()
		case "uuid":
			r.uuid, _ = rd.String()
		case "parentUuid":
			r.root = rd.Kind() == 'n'
			r.parent, _ = rd.String()
		case "logicalParentUuid":
			r.logical, _ = rd.String()
		case "sessionId", "session_id":
			r.session, _ = rd.String()
		case "forkedFrom":
			r.forkOf = objectOf(rd.Raw()).str("sessionId")
		case "agentId", "parent_tool_use_id":
			if id, ok := rd.String(); ok {
				r.agent = id
			}
		case "requestRef":
			r.request, _ = rd.String()
		case "cwd":
			r.cwd, _ = rd.String()
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
			// Cloned, because the line may contain the same result a second
			// time.
			message = bytes.Clone(rd.Raw())
		case "attachment":
			attachment = rd.Raw()
		case "rendered":
			rendered = rd.Raw()
		case "data":
			data = rd.Raw()
		case "compactMetadata", "microcompactMetadata", "compact_metadata":
			r.boundary = objectOf(rd.Raw())
		case "summary", "leafUuid", "customTitle", "aiTitle", "operation", "content":
			if o == nil {
				o = object{}
			}
			o[string(key)] = rd.Raw()
		}
	}
	switch typ {
	case "user", "assistant":
		if r.message(c, typ, message) {
			r.kind = claudeMessage
			c.requests.noted = append(c.requests.noted, r)
		}
	case "api-request", "api-request-shape", "api-request-blob":
		kept, ok := c.requests.read(line, typ, objectOf(raw))
		if !ok {
			c.in.skip(line, "%s record that lacks a field, does not have the hash that it gives, or builds on a request that is not before it", typ)
		}
		c.in.useMemory(kept)
		return nil
	case "attachment":
		r.text, r.rendered = attached(objectOf(attachment)), renderedText(rendered)
		if r.text != "" || r.rendered != "" {
			r.kind = claudeExtra
		}
	case "system":
		switch subtype {
		case "compact_boundary":
			r.kind = claudeCut
		case "microcompact_boundary":
			r.kind = claudeMask
		}
	case "progress":
		c.progress(r, objectOf(data))
	case "queue-operation":
		r.kind, r.op, r.text = claudeQueue, o.str("operation"), o.str("content")
	case "summary":
		r.kind, r.text, r.leaf = claudeTitle, o.str("summary"), o.str("leafUuid")
	case "custom-title":
		r.kind, r.text, r.meta = claudeTitle, o.str("customTitle"), false
	case "ai-title": // newer versions, instead of a summary
		r.kind, r.text, r.meta = claudeTitle, o.str("aiTitle"), true
	case "":
		c.in.skip(line, "a record without a type")
		return nil
	}
	if r.kind == claudeLink && r.uuid == "" {
		return nil
	}
	return r
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

// message reads the message of a user or assistant record. It reports whether
// the record belongs to the conversation.
func (r *claudeRecord) message(c *claudeReader, role string, raw []byte) bool {
	rd := rawjson.NewReader(raw)
	if rd.Kind() != '{' {
		c.in.skip(r.line, "%s record without a message", role)
		return false
	}
	r.role = role
	var content []byte
	for key := range rd.Fields() {
		switch string(key) {
		case "id":
			r.id, _ = rd.String()
		case "model":
			r.model, _ = rd.String()
		case "stop_reason":
			r.stop, _ = rd.String()
		case "content":
			content = rd.Raw()
		case "usage":
			r.usage = rd.Raw()
		}
	}
	if k := rawjson.NewReader(content).Kind(); k != '"' && k != '[' {
		c.in.skip(r.line, "%s record without content", role)
		return true // counted as skipped
	}
	var others int
	if r.blocks, others = partsOf(content); others > 0 {
		c.in.skip(r.line, "content blocks that are not JSON objects: %d", others)
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
	if (role == "user" || role == "assistant") && inner.message(c, role, said["message"]) {
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
