package openai

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
)

// request decodes a body or fails the test.
func request(t testing.TB, c protocol.Codec, body string) *protocol.Request {
	t.Helper()
	req, err := c.DecodeRequest([]byte(body))
	if err != nil {
		t.Fatalf("decode %s: %v", body, err)
	}
	return req
}

// message decodes an element or fails the test.
func message(t testing.TB, c protocol.Codec, raw string) *furl.Message {
	t.Helper()
	m, err := c.DecodeMessage([]byte(raw))
	if err != nil {
		t.Fatalf("decode %s: %v", raw, err)
	}
	return m
}

// shown shows the whole of a message as recorded.
func shown(m *furl.Message, index int) furl.Shown {
	s := furl.Shown{Seq: furl.Seq(index + 1), Index: index, Msg: m}
	for b := range m.Blocks {
		s.Blocks = append(s.Blocks, furl.ShownBlock{Pos: furl.Pos{Msg: s.Seq, Block: b}, Block: &m.Blocks[b]})
	}
	return s
}

// identity is the view that shows all of a request.
func identity(req *protocol.Request) *furl.View {
	v := new(furl.View)
	for i := range req.Messages {
		v.Messages = append(v.Messages, shown(&req.Messages[i], i))
	}
	return v
}

// viewOf shows messages of a path.
func viewOf(messages ...*furl.Message) *furl.View {
	v := new(furl.View)
	for i, m := range messages {
		v.Messages = append(v.Messages, shown(m, i))
	}
	return v
}

// edit replaces the text of a block, as a reduction does.
func edit(s *furl.Shown, block int, text string) {
	s.Blocks[block].By, s.Blocks[block].Text = 99, text
}

// hide hides blocks of a shown message.
func hide(s *furl.Shown, blocks ...int) {
	all := s.Blocks
	s.Blocks = nil
	for i := range all {
		if !slices.Contains(blocks, i) {
			s.Blocks = append(s.Blocks, all[i])
		}
	}
}

// mark is a marker with text.
func mark(text string) furl.Shown {
	s := shown(furl.TextMessage(furl.RoleUser, text), -1)
	s.Seq, s.By = 0, 99
	return s
}

// plain returns blocks without the fields that other tests check.
func plain(blocks []furl.Block) []furl.Block {
	out := slices.Clone(blocks)
	for i := range out {
		out[i].Start, out[i].End = 0, 0
		out[i].Media = slices.Clone(out[i].Media)
		for j := range out[i].Media {
			out[i].Media[j].Digest = furl.Digest{}
		}
	}
	return out
}

func sameBlocks(t *testing.T, got, want []furl.Block) {
	t.Helper()
	if !reflect.DeepEqual(plain(got), want) {
		t.Errorf("blocks\ngot  %s\nwant %s", show(plain(got)), show(want))
	}
}

func show(blocks []furl.Block) string {
	var b strings.Builder
	for _, bl := range blocks {
		args := string(bl.Args)
		bl.Args = nil
		text, _ := json.Marshal(bl)
		b.WriteString("\n  " + bl.Kind.String() + " " + string(text) + " args " + args)
	}
	return b.String()
}

func text(s string) furl.Block { return furl.Block{Kind: furl.KindText, Text: s} }

func call(id, name, args string) furl.Block {
	return furl.Block{Kind: furl.KindCall, ID: id, Name: name, Args: []byte(args)}
}

func result(id, text string) furl.Block {
	return furl.Block{Kind: furl.KindResult, ID: id, Text: text}
}

// sameElements compares the output of an encoder with the expected elements.
func sameElements(t *testing.T, got []json.RawMessage, want ...string) {
	t.Helper()
	var texts []string
	for _, g := range got {
		if !json.Valid(g) {
			t.Errorf("not JSON: %s", g)
		}
		texts = append(texts, string(g))
	}
	if !slices.Equal(texts, want) {
		t.Errorf("elements\ngot  %s\nwant %s", strings.Join(texts, "\n     "), strings.Join(want, "\n     "))
	}
}

// onePixel is a PNG of one by two pixels, in base64.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAACCAAAAACMmsGiAAAAC0lEQVR4nGNgAAMAAAcAAbYBwvsAAAAASUVORK5CYII="

// fixed is a block that furl always sends.
func fixed(b furl.Block) furl.Block {
	b.Fixed = true
	return b
}
