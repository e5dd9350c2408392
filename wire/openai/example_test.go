package openai_test

import (
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/openai"
)

// A view that hides the text of a result changes that string and no other
// byte of the body.
func Example() {
	body := []byte(`{"model":"gpt-5", "temperature":1.0, "messages":[
  {"role":"user","content":"What is in a.txt?"},
  {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.txt\"}"}}]},
  {"role":"tool","tool_call_id":"c1","content":"a very long text"}
]}`)
	req, err := openai.Chat.DecodeRequest(body)
	if err != nil {
		panic(err)
	}
	view := new(furl.View)
	for i := range req.Messages {
		m := &req.Messages[i]
		s := furl.Shown{Index: i, Msg: m}
		for b := range m.Blocks {
			sb := furl.ShownBlock{Block: &m.Blocks[b]}
			if sb.Block.Kind == furl.KindResult {
				sb.By, sb.Text = 1, "[hidden]"
			}
			s.Blocks = append(s.Blocks, sb)
		}
		view.Messages = append(view.Messages, s)
	}
	out, err := openai.Chat.EncodeRequest(req, view)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", out)
	// Output:
	// {"model":"gpt-5", "temperature":1.0, "messages":[
	//   {"role":"user","content":"What is in a.txt?"},
	//   {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.txt\"}"}}]},
	//   {"role":"tool","tool_call_id":"c1","content":"[hidden]"}
	// ]}
}

// A violated rule gives the provider's text.
func ExampleChat() {
	req, err := openai.Chat.DecodeRequest([]byte(`{"messages":[{"role":"user","content":"hi"},{"role":"tool","tool_call_id":"c1","content":"?"}]}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(openai.Chat.Validate(req, furl.Model{}))
	// Output:
	// Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.
}
