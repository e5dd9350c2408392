package transcript

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// kimiStep is a step that is being read: a reply and the results of its calls.
type kimiStep struct {
	line    int
	at      time.Time // of the newest part
	uuid    string
	model   string
	usages  []kimiUsage // of its requests; several if one was repeated
	end     kimiLoopEvent
	pieces  []piece
	calls   map[string]int   // recorded ids, the index of the call in pieces
	results map[int]kimiHeld // by the index of the call in pieces
	after   []*kimiEvent     // messages that wait until the step ends
}

type kimiHeld struct {
	line int
	at   time.Time
	piece
}

type kimiResult struct {
	Output     json.RawMessage `json:"output"`
	IsError    bool            `json:"isError"`
	Note       string          `json:"note"` // sent after the output
	DurationMs *float64        `json:"durationMs"`
}

// loop reads a part of a step. Parts of a step that is not open are not sent.
func (k *kimi) loop(at time.Time, e *kimiEvent) {
	l := &e.Event
	s := k.step
	switch l.Type {
	case "step.begin":
		k.settle(true)
		k.step = &kimiStep{line: e.line, at: at, uuid: l.UUID, model: k.model, calls: make(map[string]int), results: make(map[int]kimiHeld)}
	case "content.part", "tool.call":
		if s == nil || s.uuid != l.StepUUID {
			k.in.skip(e.line, "a part of a step that is not open")
			return
		}
		s.at = at
		if l.Type == "content.part" {
			s.content(&l.Part)
			return
		}
		if _, again := s.calls[l.CallID]; again {
			k.in.skip(e.line, "call %q is already in the step", l.CallID)
			return
		}
		s.calls[l.CallID] = len(s.pieces)
		s.pieces = append(s.pieces, piece{kind: furl.KindCall, id: l.CallID, name: l.Name, args: l.Args})
	case "tool.result":
		k.answer(at, e)
	case "step.end":
		if s == nil || s.uuid != l.UUID {
			return
		}
		s.end = *l
		if l.FinishReason != "interrupted" && l.FinishReason != "error" {
			k.settle(true)
		}
	}
}

func (s *kimiStep) content(p *kimiPart) {
	switch p.Type {
	case "text":
		s.pieces = append(s.pieces, words(p.Text))
	case "think":
		s.pieces = append(s.pieces, piece{kind: furl.KindThinking, text: p.Think, signature: p.Encrypted})
	}
}

// answer keeps a result until the step ends.
func (k *kimi) answer(at time.Time, e *kimiEvent) {
	id := e.Event.CallID
	if k.step != nil {
		i, called := k.step.calls[id]
		if _, answered := k.step.results[i]; called && !answered {
			k.step.results[i] = kimiHeld{e.line, at, k.result(k.step.pieces[i].name, id, e.Event.Result)}
			return
		}
	}
	k.in.skip(e.line, "a result of call %q, which is not open", id)
}

// settle ends the open step. Results are sent in the order of the calls. If more
// follows, calls without a result were interrupted.
func (k *kimi) settle(more bool) {
	s := k.step
	if s == nil {
		return
	}
	k.step = nil
	if len(s.usages) == 0 {
		s.usages = []kimiUsage{s.end.Usage}
	}
	stop := s.end.RawFinish
	if stop == "" {
		stop = s.end.FinishReason
	}
	for i, u := range s.usages {
		ex := furl.Exchange{Model: s.model, Usage: u.usage()}
		if i == len(s.usages)-1 {
			ex.ResponseID, ex.Stop = s.end.MessageID, stop
		}
		k.s.reply(s.at, ex)
	}
	k.s.assistant(s.at, s.line, s.pieces)
	for i, p := range s.pieces {
		if p.kind != furl.KindCall {
			continue
		}
		res := kimiHeld{line: s.line, at: s.at, piece: piece{text: kimiError + "\n" + kimiInterrupted, failed: true, made: true}}
		if h, ok := s.results[i]; ok {
			res = h
		} else if !more && len(s.after) == 0 {
			continue
		}
		res.id = p.id
		k.s.result(res.at, res.line, res.piece)
	}
	for _, e := range s.after {
		k.message(e)
	}
}

// What Kimi Code writes around an output.
const (
	kimiError      = "<system>ERROR: Tool execution failed.</system>"
	kimiEmpty      = "<system>Tool output is empty.</system>"
	kimiEmptyError = "<system>ERROR: Tool execution failed. Tool output is empty.</system>"
)

// result renders a result as Kimi Code sends it.
func (k *kimi) result(tool, call string, r kimiResult) piece {
	res := piece{kind: furl.KindResult, failed: r.IsError}
	var texts []string
	for _, p := range k.pieces(r.Output, call) {
		if p.kind == furl.KindImage {
			res.images = append(res.images, p.images...)
		} else if p.text != "" {
			texts = append(texts, p.text)
		}
	}
	said := strings.TrimSpace(strings.Join(texts, ""))
	empty := len(res.images) == 0 && (said == "" || said == "Tool output is empty." && !r.IsError)
	switch {
	case empty && r.IsError:
		texts = []string{kimiEmptyError}
	case empty:
		texts = []string{kimiEmpty}
	case r.IsError:
		texts = slices.Insert(texts, 0, kimiError)
	}
	if r.DurationMs != nil && kimiTimed(tool) {
		texts = slices.Insert(texts, 0, fmt.Sprintf("Wall time: %.3f seconds", *r.DurationMs/1000))
	}
	if r.Note != "" {
		texts = append(texts, r.Note)
	}
	res.text = strings.Join(texts, "\n")
	return res
}

// kimiTimed reports whether the model is told how long a tool took.
func kimiTimed(tool string) bool {
	switch tool {
	case "Agent", "AgentSwarm", "Bash", "FetchURL", "Glob", "Grep", "WebSearch":
		return true
	}
	return strings.HasPrefix(tool, "mcp__")
}

// kimiFolders returns the names of the session's and the agent's folder.
func kimiFolders(dir string) (session, agent string, ok bool) {
	agents := filepath.Dir(dir)
	if dir == "" || filepath.Base(agents) != "agents" {
		return "", "", false
	}
	return filepath.Base(filepath.Dir(agents)), filepath.Base(dir), true
}

// isBesideKimi reports whether a file or folder is in a Kimi Code session and
// is not one of its logs: the state, images, or long results of tools, which may
// be copies of recordings.
func isBesideKimi(path string) bool {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	switch {
	case filepath.Base(filepath.Dir(dir)) == "agents":
		return name != "wire.jsonl" && isFile(filepath.Join(dir, "wire.jsonl"))
	case strings.HasPrefix(filepath.Base(dir), "session_"):
		return name != "agents" && isFile(filepath.Join(dir, "agents", "main", "wire.jsonl"))
	}
	return false
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}
