package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// readContinue reads a session of Continue's command line or editor: one JSON
// object whose history[] has messages in the form of Chat Completions, each
// with the states of its calls. Replies have usage since 2026; the file has no
// times.
func readContinue(in *input) ([]*Session, error) {
	var sessions []*Session
	for line, rec := range in.objects() {
		c := &continueSession{in: in, line: line}
		sessions = append(sessions, c.read(rec))
	}
	return sessions, nil
}

func isContinue(p *probe) bool {
	return p.is('{', 'l') && p.any(func(o object) bool {
		return o.has("sessionId", "workspaceDirectory") && o.kind("history") == '['
	})
}

// continueBeside is the list of sessions next to them.
var continueBeside = &format{
	name:  "continue-beside",
	agent: "Continue",
	detect: func(p *probe) bool {
		return p.is('[') && first(p).has("sessionId", "dateCreated", "workspaceDirectory")
	},
}

type continueItem struct {
	Message struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"toolCalls"`
		Usage *continueUsage `json:"usage"`
	} `json:"message"`
	States []struct {
		CallID string `json:"toolCallId"`
		Status string `json:"status"`
		Output []struct {
			Content string `json:"content"`
		} `json:"output"`
	} `json:"toolCallStates"`
	Summary string `json:"conversationSummary"`
}

// continueUsage has the names of OpenAI. For Claude, prompt_tokens is the
// prompt without what was read from or written to the cache; for others it is
// the whole prompt.
type continueUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Read   int `json:"cache_read_tokens"`
		Write  int `json:"cache_write_tokens"`
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Model string `json:"model"`
}

func (u *continueUsage) usage() furl.Usage {
	out := furl.Usage{Input: u.Prompt, CacheRead: max(u.Details.Read, u.Details.Cached), CacheWrite: u.Details.Write, Output: u.Completion, Reasoning: u.OutputDetails.Reasoning}
	if wireOf(u.Model, furl.FormatChat) != furl.FormatAnthropic {
		out.CacheRead = min(out.CacheRead, u.Prompt)
		out.Input = u.Prompt - out.CacheRead
	}
	return out
}

type continueSession struct {
	in   *input
	line int
	s    *scribe
}

func (c *continueSession) read(rec []byte) *Session {
	o := objectOf(rec)
	var items []continueItem
	var models []string
	for i, raw := range c.in.elements(rec, "history") {
		var it continueItem
		if err := lenient(raw, &it); err != nil {
			c.in.skip(c.line, "message %d: %v", i+1, err)
			continue
		}
		if u := it.Message.Usage; u != nil {
			models = append(models, u.Model)
		}
		items = append(items, it)
	}
	model := commonModel(models)
	if model == "" {
		model = o.str("chatModelTitle")
	}
	c.s = newScribe(c.in, wireOf(model, furl.FormatChat), model)
	c.s.b.ID, c.s.b.Project = o.str("sessionId"), o.str("workspaceDirectory")
	if title := o.str("title"); title != "Untitled Session" && title != "New Session" {
		c.s.b.Title = headline(title)
	}
	for i := range items {
		c.item(i, &items[i])
	}
	out := c.s.finish()
	out.Messages = len(items)
	return out
}

func (c *continueSession) item(i int, it *continueItem) {
	m := &it.Message
	pieces := continuePieces(m.Content)
	switch m.Role {
	case "user":
		c.s.user(time.Time{}, c.line, pieces...)
	case "system":
		c.s.system(time.Time{}, c.line, joinWords(pieces))
	case "assistant":
		c.reply(it, pieces)
	case "thinking": // sent back only with a signature, which the file lacks
	case "tool": // the editor has results here and in the states of the calls
	default:
		c.in.skip(c.line, "message %d: unknown role %q", i+1, m.Role)
	}
	if it.Summary != "" && c.s.b.last != 0 && joinWords(pieces) != it.Summary {
		c.compact(it.Summary)
	}
}

func (c *continueSession) reply(it *continueItem, pieces []piece) {
	m := &it.Message
	for _, call := range m.Calls {
		pieces = append(pieces, piece{kind: furl.KindCall, id: call.ID, name: call.Function.Name, args: call.Function.Arguments})
	}
	ex := furl.Exchange{}
	if m.Usage != nil {
		ex.Model, ex.Usage = m.Usage.Model, m.Usage.usage()
	}
	c.s.reply(time.Time{}, ex)
	c.s.assistant(time.Time{}, c.line, pieces)
	calls := pieces[len(pieces)-len(m.Calls):]
	for _, st := range it.States {
		for i := range calls {
			if m.Calls[i].ID != st.CallID {
				continue
			}
			if st.Status == "done" || st.Status == "errored" || st.Status == "canceled" {
				var texts []string
				for _, out := range st.Output {
					texts = append(texts, out.Content)
				}
				c.s.result(time.Time{}, c.line, piece{id: calls[i].id, text: strings.Join(texts, "\n\n"), failed: st.Status != "done"})
			}
			break
		}
	}
}

// compact hides everything before a summary that the editor made.
func (c *continueSession) compact(summary string) {
	c.s.settle()
	show, err := c.s.r.user([]piece{words(summary)})
	if err != nil {
		c.in.skip(c.line, "%v", err)
		return
	}
	c.s.b.compact(time.Time{}, c.line, compaction{
		all: true, stage: "compact", reason: "Continue compacted the conversation", show: show,
		summary: &furl.Summary{Text: summary, Model: c.s.b.Model},
	})
}

// continuePieces reads a content: a string, or a list of texts and images.
func continuePieces(raw json.RawMessage) (pieces []piece) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" {
			return nil
		}
		return []piece{words(text)}
	}
	for _, raw := range listOf(raw) {
		o := objectOf(raw)
		switch o.str("type") {
		case "text":
			pieces = append(pieces, words(o.str("text")))
		case "imageUrl":
			if pic, ok := dataPicture("image/png", o.object("imageUrl").str("url")); ok {
				pieces = append(pieces, piece{kind: furl.KindImage, images: []picture{pic}})
			}
		}
	}
	return pieces
}
