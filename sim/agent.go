package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// AgentOptions configure the built-in agent. The zero value of each field is
// useful.
type AgentOptions struct {
	// Steps is the number of steps with calls after which the agent ends a
	// task with a text. If zero, 20.
	Steps int
	// Parallel is the maximum number of calls in one step. If zero, 1.
	Parallel int
	// Words is the approximate number of words of text next to calls. If
	// zero, 12.
	Words int
	// Thinking is the approximate number of words of thinking in each step,
	// if the request allows thinking. If zero, none.
	Thinking int
	// Lines is the number of lines by which the results of commands grow: a
	// shell command of step n prints about n times as many, at most 50 times.
	// If zero, 40.
	Lines int
	// Only limits the agent to tools with these names. If empty, it prefers
	// tools that, according to their names, run commands or read, and avoids
	// those that write.
	Only []string
	// Arguments returns the arguments of a call as a JSON object. If it is
	// nil or returns nil, the agent fills in the parameters that the tool's
	// schema requires.
	Arguments func(tool string, step int) []byte
	// Seed changes the texts and calls.
	Seed uint64
}

// Agent is a player with a few rules: it calls the tools that a request
// offers, step after step, then ends with a text. A user text without results
// starts a new task. If the client has replaced its history by a summary that the agent wrote, and
// says nothing else, the agent continues the task. A request without tools, or a later one that asks for a
// summary, is answered with a text.
//
// It stores nothing between requests: the ids of its calls contain the number
// of their step, so that it continues correctly even if older steps are
// hidden. For clients that write ids of their own, the text of a step contains
// the number too, and for those that drop this text as well it counts the steps
// in the request. It quotes results in its next text.
type Agent struct {
	opts     AgentOptions
	sessions atomic.Uint64
}

// NewAgent returns an agent. Nil options mean defaults.
func NewAgent(opts *AgentOptions) *Agent {
	a := new(Agent)
	if opts != nil {
		a.opts = *opts
	}
	for _, d := range []struct {
		n   *int
		def int
	}{{&a.opts.Steps, 20}, {&a.opts.Parallel, 1}, {&a.opts.Words, 12}, {&a.opts.Lines, 40}} {
		if *d.n <= 0 {
			*d.n = d.def
		}
	}
	return a
}

// position is the progress of a conversation.
type position struct {
	session uint32 // 0 if the ids of calls were rewritten
	step    int    // of the whole conversation
	task    int    // of the current task
}

// Play returns the agent's next step.
func (a *Agent) Play(_ context.Context, req *protocol.Request) (Reply, error) {
	at, known := newestPosition(req)
	switch {
	case !known:
		at.session = uint32(mix(a.opts.Seed, a.sessions.Add(1)))
	case at.session == 0: // the ids were rewritten
		at.session = uint32(mix(a.opts.Seed, 0))
	}
	rng := rand.New(rand.NewPCG(uint64(at.session), uint64(at.step)))
	words, results, compacted := newestInput(req)
	tools := a.tools(req)
	choice := choiceIn(req)
	if results == 0 && (words != "" || !compacted) {
		at.task = 0
	}
	if answer := a.structured(req, at.step, rng); answer != "" {
		return Text(answer), nil
	}
	switch {
	case known && len(tools) > 0 && (results == 0 && asksForSummary(words) || asksForSummary(wordsAtEnd(req)) || summaryInsteadOfTools(req)):
		return Text(summaryOf(req)), nil
	case len(tools) == 0 || choice == "none":
		return Text(a.closing(req, at, words)), nil
	case at.task >= a.opts.Steps && choice != "any" && choice != "required" && choice != "tool":
		return Text(a.closing(req, at, words)), nil
	}
	at.step++
	at.task++
	var reply Reply
	if a.opts.Thinking > 0 {
		reply.Blocks = append(reply.Blocks, furl.Block{Kind: furl.KindThinking, Text: prose(rng, a.opts.Thinking)})
	}
	say := fmt.Sprintf("%s %s", at.words(), prose(rng, a.opts.Words))
	if quote := quoted(req); quote != "" {
		say += " The last result has " + quote + "."
	}
	reply.Blocks = append(reply.Blocks, furl.Block{Kind: furl.KindText, Text: say})
	for i := range 1 + rng.IntN(a.opts.Parallel) {
		t := &tools[rng.IntN(len(tools))]
		reply.Blocks = append(reply.Blocks, furl.Block{
			Kind: furl.KindCall,
			ID:   at.id(req.Format, i),
			Name: t.name,
			Args: a.arguments(t, at.step, rng),
		})
	}
	return reply, nil
}

const agentMark = "sim_"

// id returns the id of the i-th call of a step.
func (p position) id(f furl.Format, i int) string {
	prefix := "call_"
	if f == furl.FormatAnthropic {
		prefix = "toolu_"
	}
	return fmt.Sprintf("%s%s%08x_%d_%d_%d", prefix, agentMark, p.session, p.step, p.task, i)
}

func parsePosition(id string) (p position, ok bool) {
	_, rest, ok := strings.Cut(id, agentMark)
	parts := strings.Split(rest, "_")
	if !ok || len(parts) != 4 {
		return p, false
	}
	session, err := strconv.ParseUint(parts[0], 16, 32)
	if err != nil {
		return p, false
	}
	p.session = uint32(session)
	if p.step, err = strconv.Atoi(parts[1]); err != nil || p.step < 0 || p.step > 1e9 {
		return p, false
	}
	p.task, err = strconv.Atoi(parts[2])
	return p, err == nil
}

// words begin the text of a step.
func (p position) words() string {
	if p.task != p.step {
		return fmt.Sprintf("Step %d. It is step %d of this task.", p.step, p.task)
	}
	return fmt.Sprintf("Step %d.", p.step)
}

var stepWords = lazyregexp.New(`^Step (\d{1,9})\.(?: It is step (\d{1,9}) of this task\.)?`)

// positionOfWords reads the position from the text of a step.
func positionOfWords(text string) (p position, ok bool) {
	m := stepWords.FindStringSubmatch(text)
	if m == nil {
		return p, false
	}
	p.step, _ = strconv.Atoi(m[1])
	if p.task = p.step; m[2] != "" {
		p.task, _ = strconv.Atoi(m[2])
	}
	return p, true
}

// newestPosition reads the position from the newest call, or else from the texts
// of steps, or else counts the steps.
func newestPosition(req *protocol.Request) (position, bool) {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		for j := range req.Messages[i].Blocks {
			if b := &req.Messages[i].Blocks[j]; b.Kind == furl.KindCall || b.Kind == furl.KindResult {
				if p, ok := parsePosition(b.ID); ok {
					return p, true
				}
			}
		}
	}
	if p, ok := positionInWords(req); ok {
		return p, true
	}
	return positionByCount(req)
}

// positionByCount counts the steps: messages with calls, in this task those after
// the newest words of the user.
func positionByCount(req *protocol.Request) (p position, ok bool) {
	for i := range req.Messages {
		m := &req.Messages[i]
		calls := slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindCall })
		results := slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Kind == furl.KindResult })
		switch {
		case m.Role == furl.RoleAssistant && calls:
			p.step++
			p.task++
		case m.Role == furl.RoleUser && !results:
			p.task = 0
		}
	}
	return p, p.step > 0
}

// positionInWords reads the position from the newest step's text, or from a
// summary written by the agent, if no call has its id.
func positionInWords(req *protocol.Request) (position, bool) {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if p, ok := positionOfWords(saidFrom(req.Messages, i)); ok && req.Format == furl.FormatGemini {
			return p, true
		}
		for j := range req.Messages[i].Blocks {
			b := &req.Messages[i].Blocks[j]
			text := b.Text
			if req.Messages[i].Role == furl.RoleAssistant && b.Kind == furl.KindText && req.Format != furl.FormatGemini {
				if p, ok := positionOfWords(text); ok {
					return p, true
				}
			}
			if isCompaction(b) && req.Format == furl.FormatResponses {
				text, _ = decrypted(stringField(req.Messages[i].Raw, "encrypted_content"))
			}
			if at := strings.Index(text, "_"+agentMark); at >= 0 {
				id, _, _ := strings.Cut(text[at:], ")")
				if p, ok := parsePosition(id); ok {
					return p, true
				}
			}
		}
	}
	return position{}, false
}

// saidFrom returns the text of an assistant message and of those that follow it directly:
// chats in Gemini's format send the pieces of a streamed reply as they came. It is "" inside
// such a row.
func saidFrom(list []furl.Message, i int) string {
	if i > 0 && list[i-1].Role == furl.RoleAssistant {
		return ""
	}
	var said strings.Builder
	for ; i < len(list) && list[i].Role == furl.RoleAssistant; i++ {
		for j := range list[i].Blocks {
			if b := &list[i].Blocks[j]; b.Kind == furl.KindText {
				said.WriteString(b.Text)
			}
		}
	}
	return said.String()
}

// newestInput returns the input since the model's last message: the text, and
// the number of results. compacted reports whether a summary of the agent's is among
// it, which is not part of the text: clients send it in place of the history.
func newestInput(req *protocol.Request) (words string, results int, compacted bool) {
	for i := len(req.Messages) - 1; i >= 0 && req.Messages[i].Role != furl.RoleAssistant; i-- {
		for j := range req.Messages[i].Blocks {
			switch b := &req.Messages[i].Blocks[j]; b.Kind {
			case furl.KindResult:
				results++
			case furl.KindText:
				switch {
				case req.Messages[i].Role != furl.RoleUser:
				case isSummary(b.Text):
					compacted = true
				default:
					words = b.Text + "\n" + words
				}
			}
		}
	}
	return words, results, compacted
}

// wordsAtEnd returns the text of the last message if it is a user message
// with text only.
func wordsAtEnd(req *protocol.Request) string {
	m := &req.Messages[len(req.Messages)-1]
	var words []string
	for i := range m.Blocks {
		if m.Role != furl.RoleUser || m.Blocks[i].Kind != furl.KindText {
			return ""
		}
		if text := m.Blocks[i].Text; !isSummary(text) {
			words = append(words, text)
		}
	}
	return strings.Join(words, "\n")
}

// summaryInsteadOfTools reports whether the last text, after results, asks
// for a summary and forbids calls: some clients put that into the message
// with the newest results, which may also contain other reminders.
func summaryInsteadOfTools(req *protocol.Request) bool {
	m := &req.Messages[len(req.Messages)-1]
	if m.Role != furl.RoleUser || len(m.Blocks) == 0 {
		return false
	}
	words := strings.ToLower(m.Blocks[len(m.Blocks)-1].Text)
	return m.Blocks[len(m.Blocks)-1].Kind == furl.KindText && asksForSummary(words) &&
		(strings.Contains(words, "not call any tool") || strings.Contains(words, "text only"))
}

func asksForSummary(words string) bool {
	words = strings.ToLower(words)
	return strings.Contains(words, "summar") || strings.Contains(words, "compaction")
}

// summaryMark is in each summary that the agent writes.
const summaryMark = "The newest step was step "

// isSummary reports whether a text of a client has a summary that the agent has written.
func isSummary(text string) bool { return strings.Contains(text, summaryMark) }

// summaryOf returns a text with what an agent needs to continue: the task,
// its progress, the newest result.
func summaryOf(req *protocol.Request) string {
	var b strings.Builder
	task := ""
	calls := 0
	for i := range req.Messages {
		m := &req.Messages[i]
		for j := range m.Blocks {
			switch blk := &m.Blocks[j]; {
			case blk.Kind == furl.KindCall:
				calls++
			case blk.Kind == furl.KindText && m.Role == furl.RoleUser && task == "":
				task = blk.Text
			}
		}
	}
	fmt.Fprintf(&b, "Task: %s\nDone so far: %d tool calls.\n", firstLine(task, 400), calls)
	if p, ok := newestPosition(req); ok {
		fmt.Fprintf(&b, "%s%d (%s).\n", summaryMark, p.step, p.id(req.Format, 0))
	}
	if q := quoted(req); q != "" {
		fmt.Fprintf(&b, "The newest result had %s.\n", q)
	}
	b.WriteString("Next: go on with the task.")
	return b.String()
}

// structured returns an answer in the JSON that a request in Gemini's format asks for, "" if it
// asks for none. Gemini CLI asks so which model is to answer a prompt.
func (a *Agent) structured(req *protocol.Request, step int, rng *rand.Rand) string {
	if req.Format != furl.FormatGemini {
		return ""
	}
	config := fieldOf(req.Body, "generationConfig")
	raw := fieldOf(config, "responseJsonSchema")
	if raw == nil {
		raw = fieldOf(config, "responseSchema")
	}
	var s schema
	if raw == nil || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	m := maker{lines: a.opts.Lines, step: step, rng: rng}
	return string(object(m.value("", &s, 0)))
}

// closing ends a task, or answers a text without one.
func (a *Agent) closing(req *protocol.Request, at position, words string) string {
	if at.step == 0 {
		return "You said: " + firstLine(words, 80)
	}
	end := fmt.Sprintf("Done after %d steps.", at.step)
	if q := quoted(req); q != "" {
		end += " The last result has " + q + "."
	}
	return end
}

// quoted returns the longest of the first names in the newest result.
func quoted(req *protocol.Request) string {
	for i := len(req.Messages) - 1; i >= 0 && req.Messages[i].Role != furl.RoleAssistant; i-- {
		for j := range req.Messages[i].Blocks {
			b := &req.Messages[i].Blocks[j]
			if b.Kind != furl.KindResult {
				continue
			}
			best, n := "", 0
			for name := range lexer.Names(b.Text[:min(len(b.Text), 1<<16)]) {
				if len(name) > len(best) {
					best = name
				}
				if n++; n == 50 {
					break
				}
			}
			if best != "" {
				return best
			}
		}
	}
	return ""
}

func firstLine(s string, most int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return cutText(s, min(len(s), most))
}

// choiceIn returns the tool choice of a request: its string, or the type of
// its object; "" if it has none.
func choiceIn(req *protocol.Request) string {
	if req.Format == furl.FormatGemini {
		return strings.ToLower(stringField(fieldOf(fieldOf(req.Body, "toolConfig"), "functionCallingConfig"), "mode"))
	}
	raw := rawjson.Field(req.Body, "tool_choice")
	if len(raw) > 0 && raw[0] == '"' {
		return strings.Trim(string(raw), `"`)
	}
	return stringField(raw, "type")
}

var vocabulary = strings.Fields(`the a this that file function test result value error line name path first next last
	check look read find compare change keep leave open close again before after behind under small large same other
	module package table index store queue request answer cache buffer header session record step state view plan`)

// prose returns meaningless text of about the given number of words.
func prose(rng *rand.Rand, words int) string {
	var b strings.Builder
	n := max(1, words*3/4+rng.IntN(words/2+1))
	for i := range n {
		w := vocabulary[rng.IntN(len(vocabulary))]
		switch {
		case i == 0 || i%9 == 0:
			w = strings.ToUpper(w[:1]) + w[1:]
		}
		b.WriteString(w)
		if i == n-1 || i%9 == 8 {
			b.WriteByte('.')
		}
		if i < n-1 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// mix combines two numbers into one, so that neighbours are far apart.
func mix(a, b uint64) uint64 {
	h := (a*0x9e3779b97f4a7c15 ^ b) * 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func hasAny(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}
