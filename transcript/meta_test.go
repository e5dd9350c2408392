package transcript

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

func TestMeta(t *testing.T) {
	for file, want := range map[string]storage.Meta{
		"testdata/claude-branches.jsonl": {
			Client: "Claude Code", Hint: "0b8d6c1e-0000-4000-8000-000000000001", Project: "/home/ada/shop", Model: "claude-opus-4-6", Format: furl.FormatAnthropic, Source: "testdata/claude-branches.jsonl",
			Answered: map[string]int{"claude-opus-4-6": 103},
		},
		"testdata/furl-v1.jsonl": {
			Title: "A slow test", Client: "claude-code", Hint: "5f0c", Model: "claude-opus-5-5", Format: furl.FormatAnthropic,
			Policy: "auto", Source: "gateway", ForkOf: "01JC-example", ForkAt: 12, Settings: map[string]string{"rolling_context": "on"},
		},
	} {
		rec, err := ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, rec.Meta(rec.Sessions[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// A session in the furl format keeps its recorded sizes even if the Reader
// has a Counter; a session without sizes is measured.
func TestFurlMeasured(t *testing.T) {
	rd := &Reader{Counter: byteCounter{}}
	rec, err := rd.ReadFile("testdata/furl-v1.jsonl") // its summary has no sizes
	if err != nil {
		t.Fatal(err)
	}
	plain, err := ReadFile("testdata/furl-v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(encoded(t, plain.Sessions[0].Log), encoded(t, rec.Sessions[0].Log)); diff != "" {
		t.Errorf("the records changed:\n%s", diff)
	}
	rec, err = rd.Read("own", strings.NewReader(ownHeader+"\n"+ownMessage(1, 0)+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, m := rec.Sessions[0].Log.State().Message(0); m.Tokens() == 0 {
		t.Error("a session without sizes was not measured")
	}
}
