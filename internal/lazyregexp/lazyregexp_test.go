package lazyregexp

import "testing"

// In a program an expression is compiled at its first use; a test of any package finds one that does
// not compile.
func TestNew(t *testing.T) {
	defer func(was bool) { inTest = was }(inTest)
	if !inTest {
		t.Error("this test is not known as one")
	}
	compiles := func(text string) (ok bool) {
		defer func() { ok = recover() == nil }()
		New(text)
		return
	}
	if !compiles("^a+$") || compiles("(") {
		t.Error("a test accepts an expression that does not compile, or refuses one that does")
	}
	inTest = false
	if !compiles("(") {
		t.Error("an expression is compiled before it is used")
	}
	if r := New("^(a+)$"); !r.MatchString("aa") || r.FindStringSubmatch("aaa")[1] != "aaa" {
		t.Error("the methods are not those of the expression")
	}
}
