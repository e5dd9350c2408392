package anthropic_test

import (
	"fmt"
	"log"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/anthropic"
)

// A client sends its whole history. The old result is hidden in the request
// body, and nothing else changes.
func Example_hideAResult() {
	body := `{"model": "claude-sonnet-5", "max_tokens": 1024, "messages": [
  {"role": "user", "content": "What is in the file?"},
  {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "notes.txt"}}]},
  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a very long file"}]}
]}`
	req, err := anthropic.Codec.DecodeRequest([]byte(body))
	if err != nil {
		log.Fatal(err)
	}
	session := furl.NewLog()
	add := func(body furl.Body) furl.Seq {
		r, err := session.Append(session.Head(), time.Time{}, furl.Client, body)
		if err != nil {
			log.Fatal(err)
		}
		return r.Seq
	}
	var last furl.Seq
	for i := range req.Messages {
		last = add(&req.Messages[i])
	}
	result := furl.Pos{Msg: last, Block: 0}
	add(&furl.Reduction{Stage: "mask", Items: []furl.Item{{
		Spans: []furl.Span{{First: result, Last: result}},
		Show:  furl.In{Text: "[hidden]"},
	}}})

	model := furl.Model{ID: req.Model}
	out, err := anthropic.Codec.EncodeRequest(req, session.State().View(model))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(out))

	sent, err := anthropic.Codec.DecodeRequest(out)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("refused:", anthropic.Codec.Validate(sent, model))
	// Output:
	// {"model": "claude-sonnet-5", "max_tokens": 1024, "messages": [
	//   {"role": "user", "content": "What is in the file?"},
	//   {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "notes.txt"}}]},
	//   {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "[hidden]"}]}
	// ]}
	// refused: <nil>
}
