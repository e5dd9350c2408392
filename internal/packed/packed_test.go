package packed_test

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/packed"
)

type inner struct {
	name  string
	Price *float64
}

type outer struct {
	B     bool
	I     int
	small int8
	U     uint32
	F     float64
	S     string
	at    time.Time
	List  []inner
	empty []int
	null  []int
	Hash  [32]byte
	pair  [2]int
	To    *inner
	by    map[string]inner
}

func sample() outer {
	zero, price := 0.0, 1.25
	return outer{
		B: true, I: -5, small: -128, U: math.MaxUint32, F: math.Inf(-1), S: "a\x00ü", at: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)),
		List: []inner{{"x", &zero}, {"", nil}}, empty: []int{}, Hash: [32]byte{1, 31: 255}, pair: [2]int{3, -4}, To: &inner{name: "y"},
		by: map[string]inner{"b": {name: "z"}, "a": {Price: &price}, "c": {}},
	}
}

func TestRoundTrip(t *testing.T) {
	want := sample()
	var got outer
	if err := packed.Unmarshal(packed.Marshal(want), &got); err != nil {
		t.Fatal(err)
	}
	if !got.at.Equal(want.at) || got.at.Format(time.RFC3339Nano) != want.at.Format(time.RFC3339Nano) {
		t.Errorf("time is %v, want %v", got.at, want.at)
	}
	got.at = want.at
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !bytes.Equal(packed.Marshal(got), packed.Marshal(want)) {
		t.Error("the bytes of equal values differ")
	}
	if got.empty == nil || got.null != nil {
		t.Error("an empty slice and a nil one are the same")
	}
}

func TestDamaged(t *testing.T) {
	data := packed.Marshal(sample())
	for i := range data {
		if packed.Unmarshal(data[:i], new(outer)) == nil {
			t.Errorf("no error for the first %d of %d bytes", i, len(data))
		}
		for _, flip := range []byte{0xff, 0x80, 0x01} { // none may panic or take much memory
			bad := append([]byte(nil), data...)
			bad[i] ^= flip
			_ = packed.Unmarshal(bad, new(outer))
		}
	}
	if packed.Unmarshal(append(data, 0), new(outer)) == nil {
		t.Error("no error for a byte too many")
	}
}

func TestNoForm(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a function was written")
		}
	}()
	packed.Marshal(struct{ F func() }{})
}
