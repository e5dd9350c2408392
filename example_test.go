package furl_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// A session is a log. What is hidden stays in it, and comes back in four ways:
// a reduction is lifted, blocks are opened through whatever covers them, what
// matters is pinned before, or the conversation goes on from an earlier place.
func Example() {
	log := furl.NewLog()
	add := func(body furl.Body) furl.Seq {
		r, err := log.Append(log.Head(), time.Time{}, furl.Client, body)
		if err != nil {
			panic(err)
		}
		return r.Seq
	}
	whole := func(first, last furl.Seq) []furl.Span {
		return []furl.Span{{First: furl.Pos{Msg: first}, Last: furl.Pos{Msg: last}}}
	}
	show := func(what string) {
		var words []string
		for _, m := range log.State().View(furl.Model{}).Messages {
			for _, b := range m.Blocks {
				words = append(words, b.Words())
			}
		}
		fmt.Printf("%-22s %s\n", what, strings.Join(words, " | "))
	}

	task := add(furl.TextMessage(furl.RoleUser, "fix the bug"))
	add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: "c", Name: "read", Args: []byte(`{"file":"a.go"}`)}}})
	result := add(&furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{{Kind: furl.KindResult, ID: "c", Text: "package a"}}})
	last := add(furl.TextMessage(furl.RoleAssistant, "fixed"))
	show("as recorded")

	// A mask shows another text in the same place; its call stays.
	add(&furl.Reduction{Stage: "mask", Items: []furl.Item{{Spans: whole(result, result), Show: furl.In{Text: "(masked)"}}}})
	show("masked")

	// A mark represents whole steps, whatever they showed.
	mark := furl.Mark{Messages: []*furl.Message{furl.TextMessage(furl.RoleUser, "(3 messages hidden)")}}
	hidden := add(&furl.Reduction{Stage: "truncate", Items: []furl.Item{{Spans: whole(task, result), Show: mark}}})
	show("truncated")

	// Lifting the newer one shows what lies beneath: the mask.
	add(&furl.Restoration{Of: hidden})
	show("truncation lifted")

	// Opening goes through every layer.
	opened := add(&furl.Restoration{Open: true, Spans: whole(result, result)})
	show("result opened")

	// A pin tells stages to leave the task alone from now on.
	add(&furl.Restoration{Spans: whole(task, task), Hold: furl.Pin})
	fmt.Println("pinned:", log.State().View(furl.Model{}).Units[0].Protected)

	// Going on from an earlier record leaves all that after, on a branch.
	if _, err := log.Rewind(last, time.Time{}, furl.Person); err != nil {
		panic(err)
	}
	show("rewound")
	if _, err := log.Rewind(opened, time.Time{}, furl.Person); err != nil {
		panic(err)
	}
	show("and forth again")

	// Output:
	// as recorded            fix the bug | {"file":"a.go"} | package a | fixed
	// masked                 fix the bug | {"file":"a.go"} | (masked) | fixed
	// truncated              (3 messages hidden) | fixed
	// truncation lifted      fix the bug | {"file":"a.go"} | (masked) | fixed
	// result opened          fix the bug | {"file":"a.go"} | package a | fixed
	// pinned: true
	// rewound                fix the bug | {"file":"a.go"} | package a | fixed
	// and forth again        fix the bug | {"file":"a.go"} | package a | fixed
}
