package furl

import (
	"bytes"
	"reflect"
)

// sameBody reports whether two bodies say the same. Messages compare by their
// bytes on the wire where they have them: two results of one call differ.
func sameBody(a, b Body) bool {
	if x, ok := a.(*Takeover); ok {
		y, ok := b.(*Takeover)
		return ok && x.Equal(y)
	}
	x, ok1 := a.(*Message)
	y, ok2 := b.(*Message)
	if ok1 != ok2 {
		return false
	}
	if !ok1 {
		return reflect.DeepEqual(a, b)
	}
	if x.Raw != nil || y.Raw != nil {
		return bytes.Equal(x.Raw, y.Raw)
	}
	return x.Role == y.Role && reflect.DeepEqual(x.Blocks, y.Blocks)
}
