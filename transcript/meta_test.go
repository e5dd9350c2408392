package transcript

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
)

func TestMeta(t *testing.T) {
	rec, err := Read("dir/chat.json", strings.NewReader(`[{"role":"system","content":"Be brief."},{"role":"user","content":" Fix\n the   parser "},{"role":"assistant","content":"Done."}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := furl.Meta{Title: "Fix the parser", Client: "openai-chat", Hint: "chat.json", Format: furl.FormatChat, Source: "dir/chat.json"}
	if diff := cmp.Diff(want, rec.Meta(rec.Sessions[0])); diff != "" {
		t.Errorf("of a chat (-want +got):\n%s", diff)
	}
	rec, err = ReadFile("testdata/furl-v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if got := rec.Meta(rec.Sessions[0]); got.Client != "claude-code" || got.Source != "gateway" || got.ForkAt != 12 {
		t.Errorf("of furl's own: %+v", got)
	}
	rec, err = Read("long", strings.NewReader(`[{"role":"user","content":"`+strings.Repeat("é ", 5000)+`"},{"role":"system","content":""}]`))
	if err != nil {
		t.Fatal(err)
	}
	if got := []rune(rec.Meta(rec.Sessions[0]).Title); len(got) != titleLength || got[titleLength-1] != '…' {
		t.Errorf("of long words: %q", string(got))
	}
}
