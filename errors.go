package furl

import "errors"

// ErrConflict is returned by an append whose "after" is no longer the head.
// Match or read again, then retry.
var ErrConflict = errors.New("the log has grown since it was read")

// ErrNotOnPath is returned for a reference to a record that is not on the
// path it is used on.
var ErrNotOnPath = errors.New("not on this path")

// ErrOpenCall is returned when a user message would follow a tool call that
// has no result yet.
var ErrOpenCall = errors.New("a tool call has no result yet")

// ErrNoSession is returned for a session that the store does not have.
var ErrNoSession = errors.New("no such session")

// ErrNewerFormat is returned on opening a store that a newer furl has written.
// Nothing is changed in it.
var ErrNewerFormat = errors.New("the store was written by a newer version of furl")

// ErrDamaged is returned when stored bytes are not what was written.
var ErrDamaged = errors.New("the store is damaged")
