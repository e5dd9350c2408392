package exchange

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/fingerprint"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

// A person may type a command to furl in an agent that knows nothing of furl. Then the
// last message of a request is the command. furl answers it without a model, in
// sessions with the setting commands. In a client that has tool results as text of the
// user, and in a sub-agent, the text may be anybody's: those get no answer. The agent sends command and answer again with
// each later request. They are recognised by their texts alone, because the process
// that answered may have ended, and are cut out before anything else reads the
// request. So matching, plans and the provider never see them. The log has them on a
// side branch.

// command is a command to furl.
type command struct {
	name string // commandRolling or commandContext
	arg  string // "on", "off" or ""
}

const (
	settingCommands = "commands"
	settingRolling  = "rolling_context"
	settingOff      = "context_management_enabled"

	commandRolling = "rolling-context"
	commandContext = "context"
)

// maxCommand is the length of the longest command, with some white space, in bytes.
const maxCommand = 64

// commandOf returns the command that is all of a text.
func commandOf(text string) (c command, ok bool) {
	if text = strings.TrimSpace(text); len(text) > maxCommand || len(text) == 0 || text[0] != '/' && text[0] != 'f' {
		return c, false
	}
	words := strings.Fields(text)
	switch {
	case words[0] == "/"+commandRolling:
		c.name, words = commandRolling, words[1:]
	case words[0] == "furl:" && len(words) > 1 && (words[1] == commandRolling || words[1] == commandContext):
		c.name, words = words[1], words[2:]
	default:
		return c, false
	}
	switch {
	case len(words) == 0:
		return c, true
	case len(words) == 1 && c.name == commandRolling && (words[0] == "on" || words[0] == "off"):
		c.arg = words[0]
		return c, true
	}
	return c, false
}

// wrappers are the elements that agents add to the user's messages: Claude Code,
// its extension for VS Code, Cline and Roo, Codex, goose.
var wrappers = []string{"system-reminder", "ide_opened_file", "ide_selection", "ide_diagnostics", "environment_details", "environment_context", "info-msg"}

// isWrapper reports whether a text is what an agent adds to the user's message.
func isWrapper(text string) bool {
	text = strings.TrimSpace(text)
	return slices.ContainsFunc(wrappers, func(name string) bool { return startsElement(text, name) && endsElement(text, name) })
}

func startsElement(text, name string) bool {
	return len(text) > len(name)+1 && text[0] == '<' && text[1:1+len(name)] == name && text[1+len(name)] == '>'
}

func endsElement(text, name string) bool { return strings.HasSuffix(text, "</"+name+">") }

// splitCommand returns the command of a text and the wrappers around it. The command
// must be at the very start or end: content inside a wrapper, such as a file, cannot
// be there.
func splitCommand(text string) (c command, rest string, ok bool) {
	if c, ok = commandOf(text); ok {
		return c, "", true
	}
	text = strings.TrimSpace(text)
	for _, name := range wrappers {
		switch {
		case startsElement(text, name):
			end := strings.LastIndexByte(text, '>') + 1
			if !slices.ContainsFunc(wrappers, func(last string) bool { return endsElement(text[:end], last) }) {
				return c, "", false
			}
			c, ok = commandOf(text[end:])
			return c, text[:end], ok
		case endsElement(text, name):
			begin := strings.IndexByte(text, '<')
			if !slices.ContainsFunc(wrappers, func(first string) bool { return startsElement(text[begin:], first) }) {
				return c, "", false
			}
			c, ok = commandOf(text[:begin])
			return c, text[begin:], ok
		}
	}
	return c, "", false
}

// commandIn returns the command that a message of the user consists of, apart from
// wrappers. wrapped is set if there are any.
func commandIn(m *furl.Message) (c command, wrapped, ok bool) {
	if m.Role != furl.RoleUser {
		return c, false, false
	}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Kind != furl.KindText {
			return c, false, false
		}
		if isWrapper(b.Text) {
			wrapped = true
			continue
		}
		got, rest, is := splitCommand(b.Text)
		if !is || ok {
			return c, false, false
		}
		c, ok, wrapped = got, true, wrapped || rest != ""
	}
	return c, wrapped, ok
}

// Answers start with one of these, and a colon. They are recognised by that, so
// they must never change.
const (
	answerBegin = "furl (session "
	answerAlone = "furl (no session)"
)

// answerIn reports whether a message is an answer of furl to a command, and returns
// the session that it names, "" if none.
func answerIn(m *furl.Message) (id furl.SessionID, ok bool) {
	if m.Role != furl.RoleAssistant {
		return "", false
	}
	text := ""
	for i := range m.Blocks {
		b := &m.Blocks[i]
		switch {
		case b.Kind != furl.KindText:
			return "", false
		case text == "":
			text = strings.TrimSpace(b.Text)
		}
	}
	if strings.HasPrefix(text, answerAlone+": ") {
		return "", true
	}
	name, found := strings.CutPrefix(text, answerBegin)
	if !found {
		return "", false
	}
	name, _, found = strings.Cut(name, "): ")
	id = furl.SessionID(name)
	return id, found && storage.ValidID(id)
}

// Commands is what CutCommands found in a request.
type Commands struct {
	answered furl.SessionID // named by the last answer
	last     command        // of the last message
	found    bool           // the last message is a command
}

// Found reports whether the request ends with a command.
func (c *Commands) Found() bool { return c.found }

// CutCommands returns a request without the commands that furl has answered, and
// without the answers. The command at the end stays. A request without any is returned
// itself. A refusal means that the request continues from an answer whose history the
// provider does not have.
func (a *Sessions) CutCommands(req *protocol.Request) (*protocol.Request, Commands, error) {
	var c Commands
	api := wire.For(req.Format)
	if req.Ambiguous != "" || api == nil || len(req.Messages) == 0 {
		return req, c, nil
	}
	body, refused := api.ContinuedFrom(req)
	if refused != nil {
		return req, c, refused
	}
	if body != nil {
		continued, err := a.Decode(api, body)
		if err != nil {
			return req, c, fmt.Errorf("decode request without furl's answer: %w", err)
		}
		req = continued
	}
	msgs := req.Messages
	var pairs []int
	for i := 1; i < len(msgs); i++ {
		id, ok := answerIn(&msgs[i])
		if !ok {
			continue
		}
		if _, _, ok = commandIn(&msgs[i-1]); ok {
			pairs = append(pairs, i-1)
			if id != "" {
				c.answered = id
			}
		}
	}
	c.last, _, c.found = commandIn(&msgs[len(msgs)-1])
	if len(pairs) == 0 {
		return req, c, nil
	}
	if cut := withoutPairs(api, req, pairs); cut != nil {
		req = cut
	}
	return req, c, nil
}

// withoutPairs returns a request without the messages at these indexes and those
// that follow them. Wrappers of a command stay: some agents tell the model there what
// has changed, and only once. It returns nil if the body has an unexpected form.
func withoutPairs(api wire.API, req *protocol.Request, pairs []int) *protocol.Request {
	msgs := req.Messages
	end := func(i int) int { return req.Offsets[i] + len(msgs[i].Raw) }
	var edits []rawjson.Edit
	out := *req
	out.Messages, out.Offsets, out.Chains = nil, nil, nil
	shift, next := 0, 0
	keep := func(to int) {
		for ; next < to; next++ {
			out.Messages, out.Offsets = append(out.Messages, msgs[next]), append(out.Offsets, req.Offsets[next]+shift)
		}
	}
	for n, at := range pairs {
		keep(at)
		var e rawjson.Edit
		switch after := at + 2; {
		case wrapped(&msgs[at]):
			m := withoutCommand(api, &msgs[at])
			if m == nil {
				return nil
			}
			e = rawjson.Edit{Span: rawjson.Span{Start: req.Offsets[at], End: end(at + 1)}, New: m.Raw}
			out.Messages, out.Offsets = append(out.Messages, *m), append(out.Offsets, req.Offsets[at]+shift)
		case after < len(msgs):
			e.Span = rawjson.Span{Start: req.Offsets[at], End: req.Offsets[after]}
		case len(out.Messages) > 0:
			// The last one: with the comma before it. Earlier pairs next to it have
			// removed up to its start.
			from := at
			for k := n - 1; k >= 0 && pairs[k] == from-2 && !wrapped(&msgs[pairs[k]]); k-- {
				from = pairs[k]
				edits = edits[:len(edits)-1]
			}
			e.Span = rawjson.Span{Start: end(from - 1), End: end(at + 1)}
		default:
			e.Span = rawjson.Span{Start: req.Offsets[at], End: end(at + 1)}
		}
		edits = append(edits, e)
		shift += len(e.New) - e.Len()
		next = at + 2
	}
	keep(len(msgs))
	out.Body = rawjson.Splice(req.Body, edits)
	for i := range out.Messages {
		m, at := &out.Messages[i], out.Offsets[i]
		if to := at + len(m.Raw); to > len(out.Body) || !bytes.Equal(out.Body[at:to], m.Raw) {
			return nil
		} else {
			m.Raw = out.Body[at:to:to]
		}
	}
	if req.Outline == nil {
		out.Outline = nil
	}
	out.Chains, out.Sums = chainsOf(out.Messages), nil
	return &out
}

func wrapped(m *furl.Message) bool {
	_, is, _ := commandIn(m)
	return is
}

// withoutCommand returns a message without its command, nil if its bytes have an
// unexpected form.
func withoutCommand(api wire.API, m *furl.Message) *furl.Message {
	content := rawjson.Field(m.Raw, "content")
	var changed []byte
	switch rawjson.NewReader(content).Kind() {
	case '"':
		_, rest, ok := splitCommand(rawjson.Unquote(content))
		if !ok {
			return nil
		}
		changed = rawjson.AppendString(nil, rest)
	case '[':
		var parts [][]byte
		for _, part := range rawjson.Elements(content) {
			_, rest, ok := splitCommand(rawjson.Unquote(rawjson.Field(part, "text")))
			switch {
			case !ok:
				parts = append(parts, part)
			case rest != "":
				parts = append(parts, rawjson.WithField(part, "text", rawjson.AppendString(nil, rest)))
			}
		}
		changed = append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
	default:
		return nil
	}
	got, err := api.DecodeMessage(rawjson.WithField(m.Raw, "content", changed))
	if err != nil {
		return nil
	}
	return got
}

// isTyped reports whether the command at the end of a request is what a person has typed:
// the only new message of the user, in a client that marks tool results as such, and not in
// a sub-agent, whose user is a model.
func isTyped(req *protocol.Request, h protocol.Hints) bool {
	if h.SubAgent || h.Parent != "" {
		return false
	}
	marks := definesTools(req)
	n := len(req.Messages) - 1
	for i := range req.Messages[:n] {
		marks = marks || slices.ContainsFunc(req.Messages[i].Blocks, func(b furl.Block) bool {
			return b.Fixed || b.Kind == furl.KindCall || b.Kind == furl.KindResult
		})
	}
	if !marks {
		return false
	}
	for i := n - 1; i >= 0 && !fingerprint.FromModel(&req.Messages[i]); i-- {
		m := &req.Messages[i]
		if m.Role == furl.RoleSystem || m.Role == furl.RoleDeveloper || m.Role == furl.RoleAssistant {
			continue
		}
		if len(m.Blocks) == 0 || slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Kind != furl.KindText || !isWrapper(b.Text) }) {
			return false
		}
	}
	return true
}

// AnswerCommand carries out the command at the end of a request, and returns furl's
// answer and its session, nil if there is none. ok is false if nobody has typed the
// command, or the session does not ask for commands: then the request is for the model.
func (a *Sessions) AnswerCommand(ctx context.Context, req *protocol.Request, c Commands, o BeginOptions) (text string, of *session.Session, ok bool, err error) {
	if !isTyped(req, o.Hints) {
		return "", nil, false, nil
	}
	if wire.For(req.Format).Stateful(req) {
		// The session is unknown, and the provider would miss other new messages.
		if on := a.Options().Commands; on == nil || !*on || len(req.Messages) > 1 {
			return "", nil, false, nil
		}
		return answerAlone + ": the provider stores the history of this conversation, so furl can neither measure nor shorten it. Use an agent or a setting that sends the whole history with each request.", nil, true, nil
	}
	s, in, err := a.sessionOfCommand(ctx, req, c, o)
	if err != nil {
		return "", nil, false, err
	}
	release := s.Acquire()
	defer a.Forget(s) // if it is new and was not stored
	defer release()
	of = session.FromInternal(s)
	before := settingsOf(of)
	if before[settingCommands].Value != "on" {
		return "", nil, false, nil
	}
	if len(in.chains) > 0 {
		a.await(ctx, s, in)
	}
	if c.last.name == commandContext {
		text = contextText(of, req)
	} else {
		text = rollingText(s.ID(), c.last.arg, before, o.DryRun)
	}
	text = answerBegin + string(s.ID()) + "): " + text
	err = s.Update(ctx, open.Committed, func(st *open.Change) error { return a.tx(s, st).recordCommand(req, c.last, text) })
	if err != nil {
		return "", nil, false, fmt.Errorf("record command: %w", err)
	}
	return text, of, true, nil
}

// sessionOfCommand returns the session of a request that ends with a command, and
// the history before it.
func (a *Sessions) sessionOfCommand(ctx context.Context, req *protocol.Request, c Commands, o BeginOptions) (*open.Session, *incoming, error) {
	history, chains := *req, chainsIn(req)
	n := len(req.Messages) - 1
	history.Messages, history.Offsets, history.Chains, history.Sums = req.Messages[:n], req.Offsets[:n], chains[:n], nil
	in := &incoming{req: &history, chains: chains[:n], hints: o.Hints, answered: c.answered}
	s, err := a.match(ctx, in)
	return s, in, err
}

// byAnswer returns the session that answered a command before the conversation's
// first message, nil if there is none. Such a session has no messages yet.
func (a *Sessions) byAnswer(ctx context.Context, in *incoming) (*open.Session, error) {
	if in.answered == "" {
		return nil, nil
	}
	s, err := a.OpenCached(ctx, in.answered)
	if errors.Is(err, storage.ErrNoSession) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	unused := false
	a.read(s, func(t *tx) {
		unused = t.onlyCommands() && (in.hints.Hint == "" || t.Meta().Hint == "" || t.Meta().Hint == in.hints.Hint)
	})
	if !unused {
		return nil, nil
	}
	return s, nil
}

// onlyCommands reports whether the session has no messages except commands and
// answers.
func (t *tx) onlyCommands() bool {
	if t.Log().Len() == 0 {
		return false
	}
	for _, r := range t.Log().Records(0) {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		_, _, typed := commandIn(m)
		if _, answer := answerIn(m); !typed && !answer {
			return false
		}
	}
	return true
}

// recordCommand makes the change of a command, and records it with its answer on a
// side branch.
func (t *tx) recordCommand(req *protocol.Request, c command, text string) error {
	reply, err := wire.For(req.Format).NewMessage(furl.RoleAssistant, []furl.Block{{Kind: furl.KindText, Text: text}})
	if err != nil {
		return err
	}
	if c.arg != "" {
		m := t.Meta().Clone()
		if m.Settings == nil {
			m.Settings = make(map[string]string)
		}
		m.Settings[settingRolling] = c.arg
		t.SetMeta(m)
	}
	head := t.Log().Head()
	if to := t.Log().State().Boundary(head); to != head {
		// A command cannot follow a call without result. The client's next request
		// continues from the call.
		if _, err := t.Rewind(to, furl.Furl); err != nil {
			return err
		}
	}
	counter := t.Counter(req.Model)
	typed := req.Messages[len(req.Messages)-1]
	for _, m := range []*furl.Message{cloneMessage(&typed), reply} {
		if _, err := t.AppendMessage(m, counter); err != nil {
			return err
		}
	}
	_, err = t.Rewind(head, furl.Furl)
	return err
}

// settingsOf returns the settings of a session by name.
func settingsOf(s *session.Session) map[string]session.Setting {
	out := make(map[string]session.Setting)
	for _, set := range s.Settings() {
		out[set.Name] = set
	}
	return out
}

// rollingText returns the answer to a command about rolling context.
func rollingText(id furl.SessionID, arg string, was map[string]session.Setting, dry bool) string {
	now := was[settingRolling].Value
	if arg != "" {
		now = arg
	}
	text := "rolling context is " + now + "; "
	policy := was["policy"].Value
	switch {
	case now == "on" && policy == "tool-age":
		text += "old tool results are shortened as they age, by the policy tool-age."
	case now == "on":
		text += "old tool results are shortened as they age, before the policy " + policy + "."
	case policy == "tool-age":
		text += "the policy tool-age hides nothing then."
	case policy == "none":
		text += "the policy none hides nothing."
	default:
		text += "the policy " + policy + " is unchanged."
	}
	switch off := was[settingOff]; {
	case off.Value != "off":
	case off.From == "session":
		text += " But nothing is hidden, because context_management_enabled is off for this session. To change that, run: furl set " + string(id) + " context_management_enabled=on"
	default:
		text += " But nothing is hidden, because context_management_enabled is false in furl's configuration. To change that, remove it there and restart furl."
	}
	if dry {
		text += " This is a dry run: requests are sent unchanged."
	}
	if arg == "" {
		text += " Send /rolling-context on or off, or furl: rolling-context on or off, to change it."
	}
	return text
}

// contextText returns the answer to the command context.
func contextText(s *session.Session, req *protocol.Request) string {
	u := s.Context(req.Model, req.Preamble...)
	text := numbers.Thousands(u.Size) + " tokens used"
	if u.Limit > 0 {
		text += fmt.Sprintf(" of %s (%s%%)", numbers.Thousands(u.Limit), strconv.FormatFloat(u.Percentage, 'f', -1, 64))
	} else {
		text += "; the context window of the model is unknown"
	}
	switch n := len(s.Reductions()); n {
	case 0:
		return text + "; nothing is hidden."
	case 1:
		return text + "; 1 reduction hides " + numbers.Thousands(u.Hidden) + " tokens."
	default:
		return text + fmt.Sprintf("; %s reductions hide %s tokens.", numbers.Thousands(n), numbers.Thousands(u.Hidden))
	}
}

// ReplyID returns a random id for an answer.
func ReplyID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
