// Package session provides durable sessions of LLM conversations: append to them,
// view them, keep them within a model's context window, rewind, restore, search,
// fork and watch them.
//
//	all, err := session.New(store, nil)       // any storage.Store
//	s := all.Create(storage.Meta{})              // or all.Open, all.Find
//	_, err = s.Append(ctx, messages...)       // stored when it returns
//	fit, err := s.Fit(ctx, model, preamble...) // plan, record, view
//	list, err := wire.For(furl.FormatAnthropic).EncodeView(fit.View)
//	…                                         // send it
//	err = s.Observe(ctx, fit, reply)          // usage and reply
//
// # Sessions
//
// A [Session] holds the folded records of a session in memory. It can be evicted
// at any time ([Sessions.Drop]) and read again, and then returns the same views. It
// is safe for concurrent use. Several processes may use one session in one store:
// an append is a compare-and-swap, and after a conflict it is repeated on top of
// the other one.
//
// # Reading and changing
//
// [Session.Rewind] continues from an earlier record. [Session.Restore] undoes one
// reduction, or shows blocks whatever hides them. [Session.Hold] limits what policies
// may hide. [Session.Reduce] reduces on request. [Session.Search] and
// [Session.Get] find and return hidden content. [Session.Context] returns the size
// of the context by its parts, [Session.Reductions] the reductions with their
// states, [Session.Branches] the conversations. [Session.Check] checks the
// invariants of package furl.
//
// # Requests
//
// [Session.ReceivedBody] rebuilds what a client sent, and [Session.SentBody] what was
// sent in its place.
//
// Package furlhttp serves clients that do not know furl and resend their whole
// history with each request.
package session
