package sim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/promptcache"
	"github.com/furlhq/furl/protocol"
)

// Responses compacts in three ways: at a separate path (compactNow), at a threshold
// (context_management), and for a request whose last item is a compaction_trigger.
// Each returns a compaction item that only the provider can read. Everything before
// it in a list is no longer read, so a client may drop it.
//
// Sources: OpenAI's guide "Compaction" (developers.openai.com/api/docs/guides/compaction)
// and its reference of POST /responses/compact: the output is all messages of the user,
// then one compaction item. The OpenAPI description 2.3.0 says of CompactionTriggerItemParam
// "Compacts the current context. Must be the final input item." That its reply is one
// compaction item and nothing else is what Codex 0.171 requires ("expected exactly one
// compaction output item").

// leastThreshold is the smallest threshold in context_management.
const leastThreshold = 1000

// readThreshold reads context_management: a list of one compaction.
func (f *facts) readThreshold(raw []byte) *protocol.Refusal {
	var list []struct {
		Type      string `json:"type"`
		Threshold *int   `json:"compact_threshold"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return refused("Invalid type for 'context_management': expected an array of objects.")
	}
	for i := range list {
		switch e := &list[i]; {
		case e.Type != "compaction":
			return refused(fmt.Sprintf("Invalid value: '%s'. Supported values are: 'compaction'.", clipped(e.Type)))
		case e.Threshold == nil:
			f.threshold = compactTrigger
		case *e.Threshold < leastThreshold:
			return refused(fmt.Sprintf("Invalid 'context_management[%d].compact_threshold': integer below minimum value. Expected a value >= %d, but got %d instead.",
				i, leastThreshold, *e.Threshold))
		default:
			f.threshold = *e.Threshold
		}
	}
	return nil
}

// checkThreshold compacts a prompt that has grown too long.
func (c *call) checkThreshold() {
	c.findSummary()
	c.prompt.prune()
	if n := len(c.req.Messages); n > 0 && isTrigger(&c.req.Messages[n-1]) && c.route.count == nil && !c.route.compact {
		c.summarizeItems(true)
		return
	}
	if c.facts.threshold == 0 || c.route.count != nil || c.route.compact || promptcache.Sum(c.prompt.pieces) <= c.facts.threshold {
		return
	}
	c.summarizeItems(false)
}

// isTrigger reports whether an item asks for a compaction.
func isTrigger(m *furl.Message) bool {
	return len(m.Blocks) == 1 && m.Blocks[0].Kind == furl.KindOpaque && m.Blocks[0].Name == "compaction_trigger"
}

// summarizeItems makes the summary of the prompt. alone means that the reply is only
// its item.
func (c *call) summarizeItems(alone bool) {
	c.summary = &summary{text: summaryOf(c.req), alone: alone}
	c.summary.block = furl.Block{Kind: furl.KindOpaque, Name: "compaction", Text: string(c.compactionItem())}
	if alone {
		c.summary.usage = c.compactionUsage()
	}
}

// compactionUsage returns the usage of a request that is answered with a compaction
// item: it reads the prompt and writes the summary.
func (c *call) compactionUsage() furl.Usage {
	u := c.cacheLookup().Usage()
	u.Output = c.outputTokens(&furl.Block{Kind: furl.KindText, Text: c.summary.text})
	if !c.writesCost() {
		u.Input, u.CacheWrite = u.Input+u.CacheWrite, 0
	}
	return u
}

// compactionItem returns the summary as an item.
func (c *call) compactionItem() []byte {
	return fmt.Appendf(nil, `{"id":%q,"type":"compaction","encrypted_content":%s}`, c.hexID("cmp_"), str(encrypt(c, c.summary.text)))
}

// encrypt encodes a text so that it is not readable at a glance.
func encrypt(c *call, text string) string {
	s := seal{model: modelMark(c.model.ID)}
	return s.sign("compaction", text) + "." + base64.StdEncoding.EncodeToString([]byte(text))
}

// decrypted returns the text of a compaction item's content.
func decrypted(content string) (string, bool) {
	sig, secret, _ := strings.Cut(content, ".")
	text, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return "", false
	}
	_, ok := open("compaction", string(text), sig)
	return string(text), ok
}

// compactNow answers a request to compact: with the user's messages and a
// compaction item that replaces all others.
func (responses) compactNow(c *call, _ int) error {
	c.summary = &summary{text: summaryOf(c.req)}
	item := c.compactionItem()
	var output [][]byte
	for i := range c.req.Messages {
		if m := &c.req.Messages[i]; m.Role == furl.RoleUser && len(m.Raw) > 0 && m.Raw[0] == '{' {
			output = append(output, m.Raw)
		}
	}
	output = append(output, item)
	c.usage = c.compactionUsage()
	if err := c.slow(); err != nil {
		return err
	}
	c.cacheStore()
	return c.send(fmt.Appendf(nil, `{"id":%q,"object":"response.compaction","created_at":%d,"output":%s,"usage":%s}`,
		c.hexID("resp_"), c.at.Unix(), listOf(output), object(c.responsesUsage(c.usage))))
}

// listOf returns a JSON list.
func listOf(items [][]byte) []byte {
	out := []byte{'['}
	for i, raw := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, ']')
}
