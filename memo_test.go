package furl_test

import (
	"testing"
	"time"

	"github.com/furlhq/furl"
)

// forks counts how often a memo was forked, and after how many messages.
type forks struct{ depth, messages int }

func (f *forks) Fork(messages int) furl.Memo { return &forks{f.depth + 1, messages} }

func TestMemo(t *testing.T) {
	log := furl.NewLog()
	add := func(log *furl.Log) {
		t.Helper()
		m := furl.TextMessage(furl.RoleUser, "text")
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, m); err != nil {
			t.Fatal(err)
		}
	}
	type key struct{}
	created := 0
	memo := func(log *furl.Log) *forks {
		return log.State().Memo(key{}, func() furl.Memo { created++; return new(forks) }).(*forks)
	}
	add(log)
	draft := log.Draft()
	add(draft)
	first := memo(draft) // before the log has one
	if *first != (forks{1, 1}) {
		t.Errorf("the memo of a draft is %+v", *first)
	}
	if memo(draft) != first {
		t.Error("a draft has a new memo each time")
	}
	second := draft.Draft()
	if got := memo(second); *got != (forks{2, 2}) {
		t.Errorf("the memo of a draft's draft is %+v", *got)
	}
	own := memo(log)
	if own.depth != 0 || created != 1 {
		t.Errorf("the memo of the log is %+v, created %d times", *own, created)
	}
	add(log)
	if memo(log) != own {
		t.Error("a message replaces the memo")
	}
}
