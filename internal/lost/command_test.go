package lost

import (
	"testing"

	"github.com/furlhq/furl"
)

// The prompt of a command that the agent expands is no sentence of the user.
func TestCommandPrompt(t *testing.T) {
	o := originals{seen: newSeen(), asked: make(map[string]*furl.Block), later: laterReplies(nil)}
	for i, text := range []string{
		"<command-message>review is running</command-message>\n<command-name>/review</command-name>",
		"Review each changed file with great care.",
		"Please never touch the vendored files.",
	} {
		m := &furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindText, Text: text}}}
		o.read(furl.Pos{Msg: furl.Seq(i + 1)}, m)
	}
	if list := o.sentences.list(o.seen); list.Total != 1 || list.Items[0].Text != "Please never touch the vendored files." {
		t.Errorf("the sentences are %+v", list)
	}
}
