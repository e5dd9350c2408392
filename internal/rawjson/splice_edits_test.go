package rawjson_test

import (
	"fmt"
	"testing"

	"github.com/furlhq/furl/internal/rawjson"
)

// Edits of elements give what the edited elements give in place of the old ones.
func TestListEdits(t *testing.T) {
	body := []byte(`[{"a":"one"}, {"a":"two","b":1} ,{"a":"three"},{"a":"four"}]`)
	var elems []rawjson.Span
	r := rawjson.NewReader(body)
	for range r.Elements() {
		elems = append(elems, r.Skip())
	}
	for kept := range 1 << len(elems) { // which elements stay
		for changed := range 1 << len(elems) { // which of them change
			var whole, edits []rawjson.Item
			for i, e := range elems {
				if kept>>i&1 == 0 {
					continue
				}
				item := rawjson.Item{Index: i}
				whole, edits = append(whole, item), append(edits, item)
				if changed>>i&1 == 1 {
					set := rawjson.SetField(e.Of(body), "a", fmt.Appendf(nil, `"new %d"`, i))
					whole[len(whole)-1].New = rawjson.Splice(e.Of(body), set)
					edits[len(edits)-1].Edits = set
				}
				if i == 1 { // a new element after it
					mark := rawjson.Item{Index: -1, New: []byte(`"mark"`)}
					whole, edits = append(whole, mark), append(edits, mark)
				}
			}
			inside := rawjson.Span{Start: 1, End: len(body) - 1}
			want := rawjson.Splice(body, rawjson.List(inside, elems, whole))
			got := rawjson.Splice(body, rawjson.List(inside, elems, edits))
			if string(got) != string(want) || rawjson.Check(got) != nil {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
	}
}
