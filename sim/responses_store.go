package sim

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"net/http"
	"strconv"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/promptcache"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/openai"
)

// responseStore contains what Responses stores of earlier answers.
type responseStore struct {
	// conversations contains, by the id of a response, the items up to and
	// including it, as a JSON list without brackets.
	conversations promptcache.Generations[string, []byte]
	items         promptcache.Generations[string, []byte]
	whole         promptcache.Generations[string, []byte] // responses
	// reasoning maps ids of items to their reasoning.
	reasoning promptcache.Generations[string, string]
	bytes     int
}

// maxStored bounds the stored bytes; beyond it, everything is removed.
const maxStored = 256 << 20

// storeKey separates accounts without storing their credentials.
func (c *call) storeKey(id string) string {
	account := c.r.Header.Get("Authorization") + " " + c.r.Header.Get("X-Api-Key")
	return strconv.FormatUint(maphash.String(accountSeed, account), 36) + " " + id
}

// continued inserts the history that the request refers to before its input.
func (c *call) continued(body []byte) ([]byte, error) {
	refers := bytes.Contains(body, []byte("item_reference"))
	if !refers && c.facts.previous == "" {
		return body, nil
	}
	items := listed(rawjson.Field(body, "input"))
	if refers {
		var err error
		if items, err = c.dereferenced(items); err != nil {
			return nil, err
		}
	}
	if id := c.facts.previous; id != "" {
		c.sim.mu.Lock()
		before, ok := c.sim.store.conversations.Get(c.storeKey(id))
		c.sim.mu.Unlock()
		if !ok || before == nil {
			return nil, &protocol.Refusal{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "previous_response_not_found",
				Param: "previous_response_id", Message: "Previous response with id '" + clipped(id) + "' not found."}
		}
		items = joined(bytes.Clone(before), items)
	}
	if len(items) > maxBody {
		return nil, &protocol.Refusal{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Message: "The conversation is too large"}
	}
	body = rawjson.Splice(body, rawjson.DropField(body, "previous_response_id"))
	return rawjson.Splice(body, rawjson.SetField(body, "input", append(append([]byte{'['}, items...), ']'))), nil
}

// listed returns an input as the inside of a list of items.
func listed(input []byte) []byte {
	r := rawjson.NewReader(input)
	switch r.Kind() {
	case '"':
		text, _ := r.String()
		return append(append([]byte(`{"type":"message","role":"user","content":`), str(text)...), '}')
	case '[':
		var out []byte
		for range r.Elements() {
			out = joined(out, r.Raw())
		}
		return out
	}
	return nil
}

// joined appends items to a list.
func joined(list, items []byte) []byte {
	if len(list) > 0 && len(items) > 0 {
		list = append(list, ',')
	}
	return append(list, items...)
}

// dereferenced replaces references by the items.
func (c *call) dereferenced(items []byte) ([]byte, error) {
	var out []byte
	r := rawjson.NewReader(append(append([]byte{'['}, items...), ']'))
	for range r.Elements() {
		raw := r.Raw()
		if stringField(raw, "type") == "item_reference" {
			id := stringField(raw, "id")
			c.sim.mu.Lock()
			item, ok := c.sim.store.items.Get(c.storeKey(id))
			c.sim.mu.Unlock()
			if !ok {
				return nil, &protocol.Refusal{Status: http.StatusNotFound, Type: "invalid_request_error", Param: "input",
					Message: "Item with id '" + clipped(id) + "' not found."}
			}
			raw = item
		}
		if out = joined(out, raw); len(out) > maxBody {
			return nil, &protocol.Refusal{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Message: "The conversation is too large"}
		}
	}
	return out, nil
}

// checkItems compares items that have the sim's ids with what it has stored
// of them.
func (c *call) checkItems() error {
	of := make(map[string]string)
	c.sim.mu.Lock()
	for i := range c.req.Messages {
		id := stringField(c.req.Messages[i].Raw, "id")
		if id == "" {
			continue
		}
		if reasoning, ok := c.sim.store.reasoning.Get(c.storeKey(id)); ok {
			of[id] = reasoning
		}
	}
	c.sim.mu.Unlock()
	if err := openai.CheckReasoning(c.req.Messages, of); err != nil {
		return err
	}
	for i := range c.req.Messages {
		raw := c.req.Messages[i].Raw
		if typ := stringField(raw, "type"); typ != "reasoning" && typ != "compaction" {
			continue
		}
		secret := notNull(rawjson.Field(raw, "encrypted_content"))
		if secret == nil {
			continue
		}
		content := stringField(raw, "encrypted_content")
		_, ok := open("encrypted", "", content)
		if stringField(raw, "type") == "compaction" {
			_, ok = decrypted(content)
		}
		if !ok {
			return &protocol.Refusal{Status: 400, Type: "invalid_request_error", Code: "invalid_encrypted_content",
				Message: "The encrypted content for item " + clipped(stringField(raw, "id")) + " could not be verified. Reason: Encrypted content could not be decrypted or parsed."}
		}
	}
	return nil
}

// keep stores an answer, if requested, and the reasoning of each item.
func (c *call) keep(a *answer, items [][]byte, whole []byte) {
	var decoded []furl.Message
	for _, raw := range items {
		if m, err := openai.Responses.DecodeMessage(raw); err == nil {
			decoded = append(decoded, *m)
		}
	}
	s := c.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store.bytes > maxStored {
		s.store = responseStore{}
	}
	s.store.conversations.Size, s.store.whole.Size, s.store.items.Size = 1<<12, 1<<12, 1<<14
	for id, reasoning := range openai.ReasoningOf(decoded) {
		s.store.reasoning.Put(c.storeKey(id), reasoning)
	}
	if !c.facts.stored {
		return
	}
	for _, raw := range items {
		if id := stringField(raw, "id"); id != "" {
			s.store.items.Put(c.storeKey(id), raw)
			s.store.bytes += len(raw)
		}
	}
	all := c.continuable()
	for _, raw := range items {
		all = joined(all, raw)
	}
	s.store.bytes += len(all) + len(whole)
	s.store.conversations.Put(c.storeKey(a.ID), all)
	s.store.whole.Put(c.storeKey(a.ID), whole)
}

// continuable returns the items that a request continuing from this answer follows: the
// input, without a compaction_trigger, which may only be the last item of a request.
func (c *call) continuable() []byte {
	if n := len(c.req.Messages); n > 0 && isTrigger(&c.req.Messages[n-1]) {
		var kept []byte
		for i := range c.req.Messages[:n-1] {
			kept = joined(kept, c.req.Messages[i].Raw)
		}
		return kept
	}
	return listed(rawjson.Field(c.req.Body, "input"))
}

// oneResponse returns a stored answer, or deletes it.
func (c *call) oneResponse(id string) error {
	key := c.storeKey(id)
	c.sim.mu.Lock()
	store := &c.sim.store
	whole, ok := store.whole.Get(key)
	ok = ok && whole != nil
	if ok && c.r.Method == http.MethodDelete {
		store.whole.Put(key, nil)
		store.conversations.Put(key, nil)
		whole = fmt.Appendf(nil, `{"id":%s,"object":"response.deleted","deleted":true}`, str(id))
	}
	c.sim.mu.Unlock()
	if !ok {
		return &protocol.Refusal{Status: http.StatusNotFound, Type: "invalid_request_error", Message: "Response with id '" + clipped(id) + "' not found."}
	}
	return c.send(whole)
}
