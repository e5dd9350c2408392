package transcript

import (
	"bytes"
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/openai"
)

// readOpenAIChat reads messages of Chat Completions and keeps them byte for
// byte. The file is an array of messages, one message a line, an object with
// messages[] (a request body, or a line of training data, one session per
// line of JSON Lines), or an array of runs with the messages in traj[], as
// tau-bench writes them. Every assistant message is a reply. Times and usage
// are not recorded.
func readOpenAIChat(in *input) ([]*Session, error) {
	if bytes.HasPrefix(bytes.TrimLeft(in.data, " \t\r\n"), []byte("[")) {
		return openAIArray(in), nil
	}
	var sessions []*Session
	var loose [][]byte // messages one a line
	for n, rec := range in.objects() {
		if o := objectOf(rec); n > 0 && o.has("role") && !o.has("messages") {
			loose = append(loose, rec)
			continue
		}
		sessions = append(sessions, openAIBody(in, n, openai.Chat, rec, "messages"))
	}
	if len(loose) > 0 {
		b := newBuilder(in, openai.Chat)
		openAIMessages(b, 0, loose)
		sessions = append(sessions, b.finish())
	}
	if len(sessions) == 1 && len(sessions[0].ID) > 0 {
		sessions[0].ID = ""
	}
	return sessions, nil
}

// readOpenAIResponses reads a request body of the Responses API. A reply is a
// run of items by the model.
func readOpenAIResponses(in *input) ([]*Session, error) {
	var sessions []*Session
	for n, rec := range in.objects() {
		sessions = append(sessions, openAIBody(in, n, openai.Responses, rec, "input"))
	}
	return sessions, nil
}

// openAIArray reads an array of messages or of runs.
func openAIArray(in *input) []*Session {
	var sessions []*Session
	var loose [][]byte // messages outside runs
	for i, raw := range in.elements(in.data, "") {
		run := objectOf(raw)
		if run.kind("traj") != '[' {
			loose = append(loose, raw)
			continue
		}
		b := newBuilder(in, openai.Chat)
		b.ID = fmt.Sprintf("run %d", i+1)
		if run.has("task_id", "trial") {
			b.ID = fmt.Sprintf("task %s trial %s", rawText(run["task_id"]), rawText(run["trial"]))
		}
		b.Model = run.object("info").str("model")
		openAIMessages(b, 0, in.elements(run["traj"], ""))
		sessions = append(sessions, b.finish())
	}
	if len(loose) > 0 {
		b := newBuilder(in, openai.Chat)
		openAIMessages(b, 0, loose)
		sessions = append(sessions, b.finish())
	}
	return sessions
}

// openAIBody reads a request body or a similar object; list is the name of
// the field with the messages.
func openAIBody(in *input, line int, codec protocol.Codec, body []byte, list string) *Session {
	b := newBuilder(in, codec)
	if !in.decodable(body) {
		return b.finish()
	}
	if req, err := codec.DecodeRequest(body); err == nil {
		b.Model, b.Preamble = req.Model, req.Preamble
		var r openAIReplies
		for i := range req.Messages {
			r.before(b, &req.Messages[i])
			b.message(time.Time{}, line, &req.Messages[i])
		}
	} else {
		o := objectOf(body)
		b.Model = o.str("model")
		openAIMessages(b, line, in.elements(body, list))
	}
	return b.finish()
}

func openAIMessages(b *builder, line int, raws [][]byte) {
	var r openAIReplies
	for i, raw := range raws {
		m, err := b.codec.DecodeMessage(raw)
		if err != nil {
			b.in.skip(line, "message %d: %v", i+1, err)
			continue
		}
		r.before(b, m)
		b.message(time.Time{}, line, m)
	}
}

// openAIReplies finds where replies start.
type openAIReplies struct{ within bool }

func (r *openAIReplies) before(b *builder, m *furl.Message) {
	model := m.Role == furl.RoleAssistant
	if model && (!r.within || b.codec.Format() == furl.FormatChat) {
		b.reply(time.Time{}, furl.Exchange{Model: b.Model})
	}
	r.within = model
}
