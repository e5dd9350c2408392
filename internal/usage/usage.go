// Package usage has the errors of what a person has typed. Commands exit with another code
// for them than for failures.
package usage

import "fmt"

// Error is an error of the command line.
type Error struct{ err error }

func (e Error) Error() string { return e.err.Error() }
func (e Error) Unwrap() error { return e.err }

// Wrap makes an error one of the command line.
func Wrap(err error) error { return Error{err} }

// Errorf is fmt.Errorf for an error of the command line.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }
