package gemini

import (
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

func decode(t testing.TB, body string) *protocol.Request {
	t.Helper()
	req, err := Codec.DecodeRequest([]byte(body))
	if err != nil {
		t.Fatalf("decode %s: %v", body, err)
	}
	return req
}

func message(t testing.TB, raw string) *furl.Message {
	t.Helper()
	m, err := Codec.DecodeMessage([]byte(raw))
	if err != nil {
		t.Fatalf("decode %s: %v", raw, err)
	}
	return m
}

// viewOf shows the messages as recorded.
func viewOf(messages []furl.Message) *furl.View {
	v := new(furl.View)
	for i := range messages {
		v.Messages = append(v.Messages, shownOf(&messages[i], i))
	}
	return v
}

func shownOf(m *furl.Message, index int) furl.Shown {
	s := furl.Shown{Seq: furl.Seq(index + 1), Index: index, Msg: m}
	for j := range m.Blocks {
		s.Blocks = append(s.Blocks, furl.ShownBlock{Pos: furl.Pos{Msg: s.Seq, Block: j}, Block: &m.Blocks[j]})
	}
	return s
}

// edit replaces the text of block j of message i.
func edit(v *furl.View, i, j int, text string) {
	v.Messages[i].Blocks[j].By, v.Messages[i].Blocks[j].Text = 99, text
}

// hide hides block j of message i.
func hide(v *furl.View, i, j int) {
	b := v.Messages[i].Blocks
	v.Messages[i].Blocks = append(b[:j:j], b[j+1:]...)
}

// mark shows a marker instead of the messages from lo to hi.
func mark(v *furl.View, lo, hi int, text string) {
	m := furl.TextMessage(furl.RoleUser, text)
	s := shownOf(m, 0)
	s.Seq, s.Index, s.By = 0, -1, 99
	rest := append([]furl.Shown{s}, v.Messages[hi:]...)
	v.Messages = append(v.Messages[:lo:lo], rest...)
}

func encodeOne(t testing.TB, s furl.Shown) string {
	t.Helper()
	raws, err := Codec.EncodeMessage(s)
	if err != nil {
		t.Fatal(err)
	}
	switch len(raws) {
	case 0:
		return ""
	case 1:
		if err := rawjson.Check(raws[0]); err != nil {
			t.Fatalf("encoded message is broken: %v\n%s", err, raws[0])
		}
		return string(raws[0])
	}
	t.Fatalf("%d messages for one", len(raws))
	return ""
}
