package furl_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/record"
)

// Whatever happens to a session, its log comes back from JSON.
func TestJSONOfAnySession(t *testing.T) {
	for _, f := range families {
		t.Run(string(f.codec.Format()), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				m := newMachine(rt, f)
				rt.Repeat(map[string]func(*rapid.T){
					"user": m.user, "step": m.step, "open step": m.openStep, "policy": m.plan, "mask": m.mask,
					"mark": m.mark, "forget": m.forget, "lift": m.lift, "open": m.open, "hold": m.hold,
					"rewind": m.rewind, "diverge": m.diverge, "client edit": m.clientEdit,
				})
				for _, r := range m.log.Records(0) {
					checkJSON(rt, f.codec, r)
				}
			})
		})
	}
}

// checkJSON checks that a record comes back from its JSON as a store would
// keep it, to the byte, with and without the blocks that its bytes decode to.
func checkJSON(t *rapid.T, codec protocol.Codec, r furl.Record) {
	head, body, err := record.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]record.JSON{"whole": {}, "short": {Codec: func(furl.Format) protocol.Codec { return codec }}} {
		line, err := form.Append(nil, r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := form.Parse(line)
		if err != nil {
			t.Fatalf("%s: %v in %s", name, err, line)
		}
		head2, body2, err := record.Encode(back)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(head, head2) || !bytes.Equal(body, body2) {
			t.Fatalf("%s: the record came back changed from %s", name, line)
		}
	}
}
