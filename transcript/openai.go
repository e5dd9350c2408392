package transcript

import (
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/openai"
)

// readOpenAIChat reads messages of Chat Completions and keeps them byte for
// byte. The file is an array of messages, one message a line, an object with
// messages[] (a request body, or a line of training data, one session per
// line of JSON Lines), or runs with the messages in traj[], as tau-bench writes
// them in an array, or in trajectory[]. Every assistant message is a reply. Times and usage
// are not recorded.
func readOpenAIChat(in *input) ([]*Session, error) {
	if in.startsWith('[') {
		return openAIArray(in), nil
	}
	var sessions []*Session
	var loose [][]byte // messages one a line
	for n, rec := range in.objects() {
		o := objectOf(rec)
		if isTauRun(o) {
			sessions = append(sessions, tauRun(in, len(sessions), o))
			continue
		}
		if n > 0 && o.has("role") && !o.has("messages") {
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
		if run.kind("traj") != '[' && run.kind("trajectory") != '[' {
			loose = append(loose, raw)
			continue
		}
		sessions = append(sessions, tauRun(in, i, run))
	}
	if len(loose) > 0 {
		b := newBuilder(in, openai.Chat)
		openAIMessages(b, 0, loose)
		sessions = append(sessions, b.finish())
	}
	return sessions
}

// tauOutput starts the output of a tool in runs of tau-bench without function
// calling, which is a message of the user.
const tauOutput = "API output: "

// tauRun reads run number i.
func tauRun(in *input, i int, run object) *Session {
	b := newBuilder(in, openai.Chat)
	b.ID = fmt.Sprintf("run %d", i+1)
	switch {
	case run.has("task_id", "trial"):
		b.ID = fmt.Sprintf("task %s trial %s", rawText(run["task_id"]), rawText(run["trial"]))
	case run.str("instance_id") != "":
		b.ID = run.str("instance_id")
	}
	list := "traj"
	if run.kind(list) != '[' {
		list = "trajectory"
	}
	b.Model = run.object("info").str("model")
	openAIMessages(b, 0, in.elements(run[list], ""))
	return b.finish()
}

// observe marks the output of a tool in a message of the user.
func (r *openAIReplies) observe(m *furl.Message) {
	if r.within && m.Role == furl.RoleUser && len(m.Blocks) == 1 && strings.HasPrefix(m.Blocks[0].Text, tauOutput) {
		b := &m.Blocks[0]
		b.Observation, b.ErrorText = true, openai.FailedText(strings.TrimPrefix(b.Text, tauOutput))
	}
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
		r.observe(m)
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
