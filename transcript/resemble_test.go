package transcript

import (
	"errors"
	"strings"
	"testing"
)

// An unknown file is told which formats it resembles and where it differs.
func TestResembling(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"events without a time", `[{"id":1,"source":"agent","action":"run","args":{}}]`,
			"it resembles openhands (an event has id, source, action, args, but not timestamp)"},
		{"events without all", `{"history":[{"id":1,"timestamp":"t","args":{}}]}`,
			"it resembles openhands (an element of history has id, timestamp, args, but not source, action)"},
		{"messages of strangers", `{"messages":[{"role":"bot","content":"Hi"}]}`,
			"it resembles openai-chat (an element of messages has role, content, whose values differ from what this format has)"},
		{"a run without messages", `{"task_id":1,"trial":0,"reward":1.0,"steps":[]}`,
			"it resembles openai-chat (a run of tau-bench has task_id, trial, reward, but not traj)"},
		{"Codex without payload", "{\"timestamp\":\"t\",\"type\":\"event_msg\"}\n{\"timestamp\":\"t\",\"type\":\"x\"}\n",
			"it resembles codex (a line has type, timestamp, but not payload)"},
		{"Markdown of a chat", "# Chat\n\n_**User**_\n\nhi\n", "it resembles specstory (a line starts with _**, but"},
		{"aider without a start", "#### hi\n\nhello\n", "it resembles aider ("},
		{"something else", `{"a":1}`, "unknown recording format (tried furl, claude-code, "},
		{"text", "hello", "unknown recording format (tried "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read("x", strings.NewReader(tt.data))
			if _, ok := errors.AsType[*UnknownFormatError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

// Every fixture fits one of the shapes of its format, so that shapes do not
// become outdated unnoticed.
func TestShapesFit(t *testing.T) {
	for name, data := range fixtures(t) {
		p := newProbe(data)
		f := recognise(p)
		if f == nil || p.kind == 't' || name == "codex-bare.jsonl" { // its lines are items of OpenAI's
			continue
		}
		fits := false
		known := false
		for _, sh := range shapes {
			if sh.format != f.name {
				continue
			}
			known = true
			for _, o := range p.objects {
				if sh.list != "" {
					o = firstIn(o[sh.list])
				}
				n := 0
				for _, field := range sh.fields {
					if o.has(field) {
						n++
					}
				}
				fits = fits || 2*n >= len(sh.fields)
			}
		}
		if known && !fits {
			t.Errorf("%s is %s, but resembles no shape of it", name, f.name)
		}
	}
}
