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

// Responses compacts on demand, at a separate path, and at a threshold. Both
// return a compaction item that only the provider can read. Everything before
// it in a list is no longer read.

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
	if c.facts.threshold == 0 || c.route.count != nil || c.route.compact || promptcache.Sum(c.prompt.pieces) <= c.facts.threshold {
		return
	}
	c.summary = &summary{text: summaryOf(c.req)}
	c.summary.block = furl.Block{Kind: furl.KindOpaque, Name: "compaction", Text: string(c.compactionItem())}
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
	c.usage = c.cacheLookup().Usage()
	c.usage.Output = c.outputTokens(&furl.Block{Kind: furl.KindText, Text: c.summary.text})
	if !c.writesCost() {
		c.usage.Input, c.usage.CacheWrite = c.usage.Input+c.usage.CacheWrite, 0
	}
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
