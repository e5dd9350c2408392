package session_test

import "github.com/furlhq/furl/internal/dev/sessiontest"

// Shared with the tests of sessions and of exchanges.
var (
	inMemory  = sessiontest.Open
	reopen    = sessiontest.Reopen
	modelOf   = sessiontest.ModelOf
	message   = sessiontest.Message
	text      = sessiontest.Text
	call      = sessiontest.Call
	result    = sessiontest.Result
	steps     = sessiontest.Steps
	appendAll = sessiontest.AppendAll
	encoded   = sessiontest.Encoded
	checked   = sessiontest.Checked
	still     = sessiontest.Still
	errDown   = sessiontest.ErrDown
)
