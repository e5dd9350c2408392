package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// Provider implements wire.API.
func (codec) Provider() string { return "anthropic" }

// Path implements wire.API.
func (codec) Path() string { return "/messages" }

// List implements wire.API.
func (codec) List() string { return "messages" }

// EncodeView implements wire.API.
func (codec) EncodeView(v *furl.View) ([]json.RawMessage, error) { return EncodeMessages(v) }

// Stateful implements wire.API: a request of Messages contains its whole
// history.
func (codec) Stateful(*protocol.Request) bool { return false }

// Tool implements wire.API.
func (codec) Tool(name, description, schema string) []byte {
	return fmt.Appendf(nil, `{"name":%s,"description":%s,"input_schema":%s}`, quoteAny(name), quoteAny(description), schema)
}

// TakesTools implements wire.API: a request of Messages has one reply, and
// the provider does not store it.
func (codec) TakesTools(*protocol.Request) bool { return true }

// ToolResults implements wire.API: one message contains all results of a
// step.
func (c codec) ToolResults(results []furl.Block) ([]*furl.Message, error) {
	m, err := c.NewMessage(furl.RoleTool, results)
	if err != nil {
		return nil, err
	}
	return []*furl.Message{m}, nil
}
