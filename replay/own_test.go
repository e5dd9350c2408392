package replay

import (
	"reflect"
	"testing"

	"github.com/furlhq/furl"
)

// What furl or a person hid in a recorded session is visible in its replay, and policies
// reduce it anew. Compactions of the agent itself apply.
func TestReductionsOfFurlAreNotRepeated(t *testing.T) {
	build := func(by furl.Actor, reduced bool) *Report {
		b := newTape(t, "toy", furl.FormatAnthropic)
		b.user("Read pkg/parse.go and tell me what parseHeader returns.")
		b.asks("0s")
		b.calls("c1", "read", `{"file_path":"pkg/parse.go"}`)
		read := b.result("c1", header+words(3000))
		b.asks("10s")
		said := b.says("It returns a Header.")
		if reduced {
			at := func(seq furl.Seq) []furl.Span {
				p := furl.Pos{Msg: seq}
				return []furl.Span{{First: p, Last: p}}
			}
			add := func(body furl.Body) furl.Seq {
				r, err := b.s.Log.Append(b.s.Log.Head(), b.at, by, body)
				if err != nil {
					t.Fatal(err)
				}
				return r.Seq
			}
			hidden := add(&furl.Reduction{Stage: "mask", Items: []furl.Item{{Spans: at(read), Show: furl.In{Text: "[hidden]", Tokens: 5}}}})
			add(&furl.Restoration{Hold: furl.Pin, Spans: at(said)})
			b.user("And the tests?")
			b.asks("20s")
			b.says("They call parseHeader.")
			last := add(&furl.Restoration{Of: hidden})
			b.user("Thanks.")
			b.rewind(last) // to a record that the replay does not have
			b.user("Thank you.")
		} else {
			b.user("And the tests?")
			b.asks("20s")
			said = b.says("They call parseHeader.")
			b.user("Thanks.")
			b.rewind(said)
			b.user("Thank you.")
		}
		b.asks("30s")
		b.says("You are welcome.")
		return play(t, Options{Candidates: presets(t, none, "rolling-mask-5")}, b.recording())
	}
	want := build(furl.Furl, false)
	for _, by := range []furl.Actor{furl.Furl, furl.Person} {
		got := build(by, true)
		for i := range want.Totals {
			got.Totals[i].Series, want.Totals[i].Series = nil, nil
			if got.Totals[i].Policy == none && got.Totals[i].Label() != "without furl" {
				t.Errorf("by %s: %s", by, got.Totals[i].Label())
			}
			got.Totals[i].withoutFurl = false
			if !reflect.DeepEqual(got.Totals[i], want.Totals[i]) {
				t.Errorf("by %s, %s: %+v, want %+v", by, want.Totals[i].Policy, got.Totals[i], want.Totals[i])
			}
		}
	}
	if got := build(furl.Import, true).Totals[0]; got.TokensSent >= want.Totals[0].TokensSent {
		t.Errorf("with a compaction of the agent, %d tokens were sent, without it %d", got.TokensSent, want.Totals[0].TokensSent)
	}
}
