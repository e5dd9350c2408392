package main

import (
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	old := []string{"a\t1\tsent 1\td1\t10", "a\t1\tanswer\td2\t20", "a\t2\tanswer\td3\t30", "b\t1\tanswer\td4\t40", "c\t1\tanswer\td5\t50"}
	if d := compare(old, old); d.different != 0 || d.cases != 3 || d.requests != 4 || d.texts != 5 {
		t.Errorf("equal sides: %+v", d)
	}
	// One text changed, one request is missing, one is new, and a case is missing.
	changed := []string{"a\t1\tsent 1\tXX\t10", "a\t1\tanswer\td2\t20", "a\t1\tsent 2\tnew\t5", "b\t1\tanswer\td4\t40"}
	d := compare(old, changed)
	var first []string
	for _, f := range d.first {
		first = append(first, f.name+" "+f.at.request+" "+f.at.what)
	}
	if d.different != 4 || d.casesDifferent != 2 || d.kinds["sent N"] != 2 || d.kinds["answer"] != 2 || !slices.Equal(first, []string{"a 1 sent 1", "c 1 answer"}) {
		t.Errorf("%+v, first %q", d, first)
	}
	if f := d.first[1]; f.old != 0 || f.new != -1 {
		t.Errorf("the missing line is at %+v", f)
	}
}
