package openai

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// callItems are the tool calls with a separate output item: the field with
// the arguments, and the name of the tool if the item has none.
var callItems = map[string]struct {
	args argField
	tool string
}{
	"function_call":    {argArguments, ""},
	"custom_tool_call": {argInput, ""},
	"local_shell_call": {argAction, "local_shell"},
	"shell_call":       {argAction, "shell"},
	"apply_patch_call": {argOperation, "apply_patch"},
}

// outputItems are the items that are results.
var outputItems = map[string]bool{
	"function_call_output":    true,
	"custom_tool_call_output": true,
	"local_shell_call_output": true,
	"shell_call_output":       true,
	"apply_patch_call_output": true,
}

// otherOutputs are the items that answer a client-side call and cannot be
// shown as text; they and their calls are opaque.
var otherOutputs = map[string]string{
	"computer_call_output":  "computer_call",
	"tool_search_output":    "tool_search_call",
	"mcp_approval_response": "mcp_approval_request",
}

// halves are the opaque items that are halves of pairs. The provider runs a
// program; the calls that it makes (caller) and their outputs are between the two.
var halves = map[string]furl.Half{
	"program":              furl.HalfCall,
	"program_output":       furl.HalfAnswer,
	"computer_call":        furl.HalfCall,
	"computer_call_output": furl.HalfAnswer,
	"tool_search_call":     furl.HalfCall,
	"tool_search_output":   furl.HalfAnswer,
	"mcp_approval_request": furl.HalfCall,

	"mcp_approval_response": furl.HalfAnswer,
}

// argField is a field that may contain a call's arguments.
type argField int

const (
	argArguments argField = iota // a string of JSON
	argInput                     // free-form, a string
	argAction                    // an object
	argOperation                 // an object
	argFields
)

// The fields that are read of an item, of a shell call's output, and of its
// outcome.
var (
	itemNames = rawjson.NewNames("type", "role", "name", "status", "id", "call_id", "approval_request_id", "arguments", "input",
		"action", "operation", "encrypted_content", "content", "summary", "output", "caller")
	shellNames   = rawjson.NewNames("stdout", "stderr", "outcome")
	outcomeNames = rawjson.NewNames("type", "exit_code")
)

// itemScan is a scanned item. It is reused for all items. Spans count from
// the start of the item.
type itemScan struct {
	base, end int  // of the item in the scanned bytes
	plain     bool // the input is a string

	typ, role, name, status    string
	id, callID, approval       string
	caller                     string // id of the program that made a call
	content, output, encrypted value
	args                       [argFields]value
	parts                      []part // if content is a list
	outputs                    []part // if output is a list
	summary                    []part
	shell                      []shellOutput
	// late records ambiguities in values that message reads again.
	late rawjson.Reader
}

// shellOutput is an element of a shell_call_output's list.
type shellOutput struct {
	text    string
	outcome rawjson.Span
	failed  bool
}

// read consumes the next item of r.
func (s *itemScan) read(b []byte, r *rawjson.Reader) {
	*s = itemScan{parts: s.parts[:0], outputs: s.outputs[:0], summary: s.summary[:0], shell: s.shell[:0], base: r.Offset()}
	if r.Kind() == '"' {
		s.plain, s.typ, s.role = true, "message", "user"
		s.content = readValue(r, s.base)
		s.end = r.Pos()
		return
	}
	for key := range r.FieldsOf(itemNames) {
		s.field(b, r, string(key))
	}
	s.end = r.Pos()
	if s.typ == "" {
		s.typ = "message"
	}
}

func (s *itemScan) field(b []byte, r *rawjson.Reader, key string) {
	switch key {
	case "type":
		s.typ, _ = r.String()
	case "role":
		s.role, _ = r.String()
	case "name":
		s.name, _ = r.String()
	case "status":
		s.status, _ = r.String()
	case "id":
		s.id, _ = r.String()
	case "call_id":
		s.callID, _ = r.String()
	case "approval_request_id":
		s.approval, _ = r.String()
	case "arguments":
		s.args[argArguments] = readValue(r, s.base)
	case "input":
		s.args[argInput] = readValue(r, s.base)
	case "action":
		s.args[argAction] = readValue(r, s.base)
	case "operation":
		s.args[argOperation] = readValue(r, s.base)
	case "encrypted_content":
		s.encrypted = readValue(r, s.base)
	case "content":
		s.content, s.parts = readList(b, r, s.base, s.parts)
	case "summary":
		_, s.summary = readList(b, r, s.base, s.summary)
	case "caller":
		s.caller = rawjson.Unquote(rawjson.Field(r.Raw(), "caller_id"))
	case "output":
		s.output, s.outputs = readList(b, r, s.base, s.outputs)
	}
}

// readList consumes a value that may be a list of parts.
func readList(b []byte, r *rawjson.Reader, base int, parts []part) (value, []part) {
	parts = parts[:0]
	if r.Kind() != '[' {
		return readValue(r, base), parts
	}
	start := r.Offset()
	parts = readParts(b, r, base, parts)
	return value{'[', rawjson.Span{Start: start - base, End: r.Pos() - base}}, parts
}

// message makes the furl message of what was read from b.
func (s *itemScan) message(b []byte) furl.Message {
	raw := b[s.base:s.end:s.end]
	m := furl.Message{Role: furl.RoleAssistant, Format: furl.FormatResponses, Raw: raw}
	switch call, isCall := callItems[s.typ]; {
	case s.typ == "message":
		m.Role = furl.Role(s.role)
		if m.Role == "" {
			m.Role = furl.RoleUser
		}
		m.Blocks = s.contentBlocks(raw)
	case s.typ == "reasoning":
		m.Blocks = []furl.Block{s.reasoning(raw)}
	case isCall:
		m.Blocks = []furl.Block{s.call(raw, call.args, call.tool)}
	case outputItems[s.typ]:
		m.Role = furl.RoleTool
		m.Blocks = []furl.Block{s.result(raw)}
	default:
		m.Role = s.opaqueRole()
		m.Blocks = []furl.Block{s.opaque(raw)}
	}
	if !m.Role.Known() {
		for i := range m.Blocks {
			m.Blocks[i].Fixed = m.Blocks[i].Fixed || s.typ == "message"
		}
	}
	m.Seal()
	return m
}

func (s *itemScan) contentBlocks(raw []byte) []furl.Block {
	if len(s.parts) == 0 {
		return []furl.Block{{Kind: furl.KindText, Text: rawjson.Unquote(s.content.Of(raw))}}
	}
	blocks := make([]furl.Block, len(s.parts))
	for i := range s.parts {
		blocks[i] = s.parts[i].block()
	}
	return blocks
}

func (s *itemScan) reasoning(raw []byte) furl.Block {
	summary, _, _ := joinParts(s.summary, "\n\n")
	content, _, _ := joinParts(s.parts, "\n\n")
	return furl.Block{
		Kind: furl.KindThinking, ID: s.id, Text: joined(summary, content),
		Signature: stringLen(s.encrypted.Of(raw)), End: len(raw),
	}
}

func (s *itemScan) call(raw []byte, args argField, tool string) furl.Block {
	bl := furl.Block{Kind: furl.KindCall, ID: s.pairID(), Name: s.name, Caller: s.caller, End: len(raw)}
	if bl.Name == "" {
		bl.Name = tool
	}
	bl.Args = s.args[args].Of(raw)
	if args == argArguments {
		bl.Args = callArgs(bl.Args)
	}
	if len(bl.Args) == 0 {
		bl.Args = []byte("{}")
	}
	return bl
}

// pairID is the id that a call shares with its output. The local shell's
// output names the call by the item's id.
func (s *itemScan) pairID() string {
	if s.callID != "" {
		return s.callID
	}
	return s.id
}

func (s *itemScan) result(raw []byte) furl.Block {
	bl := furl.Block{Kind: furl.KindResult, ID: s.pairID(), Error: s.status == "failed", End: len(raw)}
	switch {
	case s.output.kind == '[' && s.typ == "shell_call_output":
		s.readShell(raw)
		for _, o := range s.shell {
			bl.Text = line(bl.Text, o.text)
			bl.Error = bl.Error || o.failed
		}
		return bl
	case s.output.kind == '[':
		bl.Text, bl.Media, bl.CacheMark = joinParts(s.outputs, "\n")
		bl.Fixed = anyUnknown(s.outputs)
	case s.output.kind == '"':
		bl.Text = rawjson.Unquote(s.output.Of(raw))
	case s.output.kind == '{':
		bl.Text = string(s.output.Of(raw))
	}
	bl.Error = bl.Error || FailedOutput(bl.Text)
	bl.ErrorText = !bl.Error && FailedText(bl.Text)
	return bl
}

// line joins two texts with a line break, unless there is one.
func line(a, b string) string {
	if a == "" || b == "" || a[len(a)-1] == '\n' {
		return a + b
	}
	return a + "\n" + b
}

// readShell reads the output again as the output of a shell call.
func (s *itemScan) readShell(raw []byte) {
	s.shell = s.shell[:0]
	list := s.output.Of(raw)
	r := rawjson.NewReader(list)
	for range r.Elements() {
		var o shellOutput
		var stdout, stderr string
		if r.Kind() != '{' {
			continue
		}
		for key := range r.FieldsOf(shellNames) {
			switch string(key) {
			case "stdout":
				stdout, _ = r.String()
			case "stderr":
				stderr, _ = r.String()
			case "outcome":
				o.outcome = r.Skip()
				o.failed = s.failedOutcome(o.outcome.Of(list))
			}
		}
		o.text = line(stdout, stderr)
		s.shell = append(s.shell, o)
	}
	s.late.Join(r)
}

// failedOutcome reports whether a shell call failed.
func (s *itemScan) failedOutcome(raw []byte) bool {
	r := rawjson.NewReader(raw)
	if r.Kind() != '{' {
		return false
	}
	typ, code := "", 0
	for key := range r.FieldsOf(outcomeNames) {
		switch string(key) {
		case "type":
			typ, _ = r.String()
		case "exit_code":
			code, _ = r.Int()
		}
	}
	s.late.Join(r)
	return typ == "timeout" || code != 0
}

func (s *itemScan) opaqueRole() furl.Role {
	switch {
	case otherOutputs[s.typ] != "":
		return furl.RoleTool
	case s.typ == "compaction", s.typ == "compaction_summary":
		return furl.RoleSystem // it replaces everything before it
	case s.typ == "compaction_trigger":
		return furl.RoleUser
	case s.role != "":
		return furl.Role(s.role)
	}
	switch ItemTypes[s.typ] {
	case protocol.Passed, protocol.Paired:
		return furl.RoleAssistant
	case protocol.Definition:
		if s.typ == "mcp_list_tools" {
			return furl.RoleAssistant
		}
	}
	return "" // for a reply, see addItems
}

// programResult returns the text of the result of a program, and the size of binary
// strings in it. It is a string, or any other JSON value as a client may send it.
func programResult(result []byte) (text string, binary int) {
	switch r := rawjson.NewReader(result); r.Kind() {
	case '"':
		return rawjson.Unquote(result), 0
	case 0, 'n':
		return "", 0
	}
	var w words
	if w.walk(rawjson.NewReader(result), "", 0); w.secret > 0 {
		return w.text.String(), w.secret
	}
	return strings.ToValidUTF8(string(result), "\uFFFD"), 0
}

func (s *itemScan) opaque(raw []byte) furl.Block {
	bl := furl.Block{Kind: furl.KindOpaque, Name: s.typ, ID: s.pairID(), End: len(raw)}
	if s.approval != "" {
		bl.ID = s.approval
	}
	// A search that the provider runs has no call_id, and its items follow each other.
	if half := halves[s.typ]; s.callID != "" || s.approval != "" || s.typ == "mcp_approval_request" {
		bl.Half, bl.Caller = half, s.caller
	}
	var w words
	w.walk(rawjson.NewReader(raw), "", 0)
	bl.Text, bl.Signature = w.text.String(), w.secret
	h := ItemTypes[s.typ]
	if bl.Fixed = h.Fixed(); h == protocol.Definition && len(raw) <= maxWords {
		bl.Text, bl.Signature = string(raw), 0 // as large as a tool in the preamble
	}
	switch s.typ {
	case "program_output": // elsewhere a result is an image
		bl.Text, bl.Signature = programResult(rawjson.Field(raw, "result"))
	case "computer_call_output":
		if url := rawjson.Field(s.output.Of(raw), "image_url"); len(url) > 0 {
			bl.Media, bl.Signature = []furl.Media{mediaOf(furl.KindImage, url)}, 0
		}
	case "image_generation_call":
		if data := rawjson.Field(raw, "result"); stringLen(data) > 0 {
			bl.Media, bl.Signature = []furl.Media{base64Image(data)}, 0
		}
	}
	return bl
}
