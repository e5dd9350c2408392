package furl

import "errors"

// ErrConflict means that the record to append after is no longer the head. Read
// again, then retry.
var ErrConflict = errors.New("the log has grown since it was read")

// ErrNotOnPath means that a record is not on the path.
var ErrNotOnPath = errors.New("not on this path")

// ErrOpenCall means that a user message would follow a tool call without
// result.
var ErrOpenCall = errors.New("a tool call has no result yet")

// ErrDamaged is returned when stored bytes are not what was written.
var ErrDamaged = errors.New("the store is damaged")
