package transcript_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// Read detects the format from the content. The log contains what the agent
// sent, with a request before each reply.
func ExampleRead() {
	const recording = `{"type":"user","sessionId":"s1","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"What is in a.txt?"}}
{"type":"assistant","sessionId":"s1","uuid":"u2","parentUuid":"u1","message":{"id":"msg_1","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"I will look."}],"usage":{"input_tokens":900,"output_tokens":1}}}
{"type":"assistant","sessionId":"s1","uuid":"u3","parentUuid":"u2","message":{"id":"msg_1","role":"assistant","model":"claude-opus-4-6","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"file":"a.txt"}}],"usage":{"input_tokens":900,"output_tokens":31}}}
{"type":"user","sessionId":"s1","uuid":"u4","parentUuid":"u3","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"apples"}]}}
`
	rec, err := transcript.Read("session.jsonl", strings.NewReader(recording))
	if err != nil {
		fmt.Println(err)
		return
	}
	s := rec.Sessions[0]
	fmt.Printf("%s, session %s: %d call, %d result\n", rec.Agent, s.ID, s.Calls, s.Results)
	for _, r := range s.Log.Path(s.Log.Head()) {
		switch body := r.Body.(type) {
		case *furl.Message:
			fmt.Println(r.Seq, body.Role, len(body.Blocks), "blocks")
		case *furl.Exchange:
			fmt.Println(r.Seq, "request,", body.Usage.Prompt(), "tokens in,", body.Usage.Output, "out")
		}
	}
	// Output:
	// Claude Code, session s1: 1 call, 1 result
	// 1 user 1 blocks
	// 2 request, 900 tokens in, 31 out
	// 3 assistant 2 blocks
	// 4 user 1 blocks
}

// Walk reads folders file by file; each error is about one file.
func ExampleWalk() {
	for rec, err := range transcript.Walk("testdata/roo", "testdata/aider.md.want") {
		if unknown, ok := errors.AsType[*transcript.UnknownFormatError](err); ok {
			fmt.Println("not a recording:", unknown.Name)
			continue
		}
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(rec.Agent, "with", rec.Sessions[0].Compactions, "reductions")
	}
	// Output:
	// Roo Code with 2 reductions
	// not a recording: testdata/aider.md.want
}

// A session exported in the furl format is imported again unchanged.
func ExampleExport() {
	log := furl.NewLog()
	for _, m := range []*furl.Message{furl.TextMessage(furl.RoleUser, "Is it <done>?"), furl.TextMessage(furl.RoleAssistant, "It is.")} {
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, m); err != nil {
			fmt.Println(err)
			return
		}
	}
	s := &transcript.Session{ID: "s1", Title: "A question", Wire: furl.FormatChat, Log: log}
	var file bytes.Buffer
	if _, err := transcript.Export(context.Background(), &file, "furl", s, nil); err != nil {
		fmt.Println(err)
		return
	}
	rec, err := transcript.Read("s1.jsonl", &file)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rec.Format, rec.Sessions[0].Log.Len(), "records")

	done, err := transcript.Export(context.Background(), os.Stdout, "openai-chat", rec.Sessions[0], nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(done.Messages, "messages")
	// Output:
	// furl 2 records
	// {"messages":[
	// {"role":"user","content":"Is it <done>?"},
	// {"role":"assistant","content":"It is."}
	// ]}
	// 2 messages
}
