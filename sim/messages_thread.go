package sim

import (
	"encoding/json"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/promptcache"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
)

// Message threads: the provider keeps a conversation under the id of its newest reply, and
// the client sends only the new messages. Sources: Anthropic's documentation of message
// threads (platform.claude.com, build-with-claude/message-threads, 2026-11): the fields,
// that system and tools are left out of a continue, the 404 and the five minutes; and
// @anthropic-ai/sdk 1.14 (ThreadState, error-classes) for the error codes and for what a
// thread does not support. The texts of the errors are the sim's.

const messageThreads = "message-threads-2026-08-12"

// threadLifetime is how long a thread can be continued after its last reply.
const threadLifetime = 5 * time.Minute

// thread is a stored conversation.
type thread struct {
	system, tools []byte
	messages      []byte // the list without brackets, with the reply
	at            time.Time
	continued     bool
}

// threadFields are the fields that a thread does not support.
var threadFields = []string{"context_management", "fallbacks"}

// threadStore contains the threads by the id of their newest reply.
type threadStore struct {
	threads promptcache.Generations[string, *thread]
	bytes   int
}

// openThread resolves a request's thread: it returns the body of the whole conversation.
func (c *call) openThread(body []byte) ([]byte, error) {
	f := &c.facts
	raw := notNull(rawjson.Field(body, "thread"))
	if raw == nil {
		return body, nil
	}
	if !c.sim.opts.AnyField && !f.hasBeta(messageThreads) {
		return nil, refused("thread: Extra inputs are not permitted")
	}
	for _, name := range threadFields {
		if notNull(rawjson.Field(body, name)) != nil {
			return nil, anthropic.ThreadUnsupported("thread: cannot be combined with `" + name + "`")
		}
	}
	body = rawjson.Splice(body, rawjson.DropField(body, "thread"))
	f.thread = &thread{}
	switch stringField(raw, "type") {
	case "create":
		return body, nil
	case "continue":
		return c.continueThread(body, stringField(raw, "previous_message_id"))
	}
	return nil, refused("thread.type: Input should be 'create' or 'continue'")
}

func (c *call) continueThread(body []byte, previous string) ([]byte, error) {
	for _, name := range []string{"system", "tools"} {
		if notNull(rawjson.Field(body, name)) != nil {
			return nil, refused(name + ": the thread has its own; leave the field out of a request that continues it")
		}
	}
	c.sim.mu.Lock()
	was, ok := c.sim.threads.threads.Get(c.storeKey(previous))
	ok = ok && c.at.Sub(was.at) <= threadLifetime
	done := ok && was.continued
	c.sim.mu.Unlock()
	switch {
	case !ok:
		return nil, anthropic.ThreadNotFound("thread.previous_message_id: no thread was found for '" + clipped(previous) + "'; send the full conversation")
	case done:
		return nil, &protocol.Refusal{Status: 400, Type: "invalid_request_error", Code: "thread_already_continued",
			Message: "thread.previous_message_id: '" + clipped(previous) + "' was continued before"}
	}
	all := joined(append([]byte(nil), was.messages...), listed(rawjson.Field(body, "messages")))
	if len(all) > maxBody {
		return nil, anthropic.BodyTooLarge()
	}
	c.facts.thread.continued, c.facts.previous = true, previous
	body = rawjson.Splice(body, rawjson.SetField(body, "messages", append(append([]byte{'['}, all...), ']')))
	if was.system != nil {
		body = rawjson.Splice(body, rawjson.SetField(body, "system", was.system))
	}
	if was.tools != nil {
		body = rawjson.Splice(body, rawjson.SetField(body, "tools", was.tools))
	}
	return body, nil
}

// keepThread stores the conversation with an answer.
func (c *call) keepThread(a *answer) {
	if c.facts.thread == nil || c.req.Format != furl.FormatAnthropic {
		return
	}
	content := make([]json.RawMessage, len(a.Blocks))
	for i := range a.Blocks {
		content[i] = wholeBlock(&a.Blocks[i])
	}
	reply := append(append([]byte(`{"role":"assistant","content":`), object(content)...), '}')
	t := &thread{system: c.facts.system, tools: c.facts.tools, at: c.at}
	t.messages = joined(listed(rawjson.Field(c.req.Body, "messages")), reply)
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	s := &c.sim.threads
	if s.bytes += len(t.messages); s.bytes > maxStored {
		*s = threadStore{bytes: len(t.messages)}
	}
	s.threads.Size = 1 << 12
	if c.facts.thread.continued {
		if was, ok := s.threads.Get(c.storeKey(c.facts.previous)); ok {
			was.continued = true
		}
	}
	s.threads.Put(c.storeKey(a.ID), t)
}
