// Package rebuild describes the bodies of a request so that they can be rebuilt
// byte for byte: the one that the client sent and the one that furl sent.
//
// A body is cut into a frame, the values of its fields for instructions and
// tools, and the elements of its message list. The frame has all other bytes.
// These parts are mostly the same from one request to the next, so the session
// stores each as a content, by its digest. A message list has the elements of
// the list before it and a few new ones, which are messages of the log. An edit
// script says which, in some ten bytes; see script.go.
//
// [Describe] makes the description, [Body] the body of one.
package rebuild
