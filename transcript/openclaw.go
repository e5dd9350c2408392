package transcript

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// OpenClaw's entries are those of pi, with some of its own: resets, which begin a conversation anew in the
// same session; leaves, which move to another entry; and the results that it cleared or shortened.

// openclawBeside is the list of sessions that versions before the database kept next to them.
var openclawBeside = &format{
	name:  "openclaw-beside",
	agent: "OpenClaw",
	detect: func(p *probe) bool {
		if !p.is('{') {
			return false
		}
		for key, raw := range p.objects[0] {
			if strings.HasPrefix(key, "agent:") && objectOf(raw).has("sessionId", "updatedAt") {
				return true
			}
		}
		return false
	},
}

const (
	openclawReset   = "[earlier messages were removed by a reset]"
	openclawImage   = "[image removed during context pruning]"
	openclawEnds    = "%s\n...\n%s\n\n[Tool result trimmed: kept first 1500 chars and last 1500 chars of %d chars.]"
	openclawShorter = "openclaw.cache-ttl" // type of the markers
)

// reset begins the conversation anew. Without kept entries, what came before is another branch.
func (p *pi) reset(at time.Time, e *piEntry, i int) {
	first, ok := p.index[e.FirstKept]
	if !ok || first >= i {
		p.b.rewind(at, 0)
		return
	}
	show, err := p.r.user([]piece{words(openclawReset)})
	if err != nil {
		return // a text can always be written
	}
	p.hideBefore(at, e.line, p.before[first], compaction{stage: "truncate", reason: "OpenClaw reset the conversation", show: show})
}

// openclawTexts are texts that replace results in what is sent.
type openclawTexts struct {
	Pruned []struct {
		Key         string `json:"key"`
		Mode        string `json:"mode"`
		Placeholder string `json:"placeholder"`
	} `json:"prunedToolResults"`
	Frozen []struct {
		Key   string   `json:"key"`
		Texts []string `json:"texts"`
	} `json:"frozenToolResults"`
}

// shorten records the results that a marker replaces in what is sent, except those of an earlier marker.
func (p *pi) shorten(at time.Time, e *piEntry) {
	var list openclawTexts
	if err := json.Unmarshal(e.Data, &list); err != nil {
		p.b.in.skip(e.line, "cleared results: %v", err)
		return
	}
	var hide []hiding
	add := func(key, text string) {
		res, ok := p.results[openclawKey(key)]
		if was, again := p.shortened[res.id]; !ok || again && was == text || !again && res.text == text {
			return
		}
		p.shortened[res.id] = text
		hide = append(hide, hiding{call: res.id, text: text})
	}
	for _, f := range list.Frozen {
		if f.Texts != nil {
			add(f.Key, strings.Join(f.Texts, "\n"))
		}
	}
	for _, pr := range list.Pruned {
		switch pr.Mode {
		case "hard":
			add(pr.Key, pr.Placeholder)
		case "soft":
			add(pr.Key, openclawTrimmed(p.results[openclawKey(pr.Key)]))
		}
	}
	if len(hide) > 0 {
		p.settleStep()
		p.b.mask(at, e.line, masking{reason: "OpenClaw shortened old tool results", hide: hide})
	}
}

// openclawKey is what identifies a result in a marker: the call and the time. The call's id has only letters
// and digits if OpenClaw sends it so.
func openclawKey(key string) string {
	call, rest, _ := strings.Cut(strings.TrimPrefix(key, "tool:"), ":")
	return lettersAndDigits(call) + ":" + rest
}

func openclawResultKey(m *piMessage) string {
	return openclawKey("tool:" + m.ToolCallID + ":" + strconv.FormatInt(int64(m.Timestamp), 10))
}

func lettersAndDigits(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return -1
	}, s)
}

// openclawTrimmed is what OpenClaw sends of a long result once the provider's cache has expired. It counts
// UTF-16 units.
func openclawTrimmed(res piece) string {
	text := res.text
	if len(res.images) > 0 {
		text = strings.Trim(text+strings.Repeat("\n"+openclawImage, len(res.images)), "\n")
	}
	units := utf16.Encode([]rune(text))
	const long, end = 4000, 1500
	if len(units) <= long {
		return text
	}
	return fmt.Sprintf(openclawEnds, string(utf16.Decode(units[:end])), string(utf16.Decode(units[len(units)-end:])), len(units))
}
