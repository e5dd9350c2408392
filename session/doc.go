// Package session is the library's face: durable sessions that can be
// appended to, viewed, kept within a model's window, rewound, restored,
// searched, forked and watched.
//
//	all, err := session.New(store, nil)       // any storage.Store
//	s := all.Create(storage.Meta{})              // or all.Open, all.Find
//	_, err = s.Append(ctx, messages...)       // stored when it returns
//	fit, err := s.Fit(ctx, model, preamble...) // plan, record, view
//	list, err := fit.Encode(furl.FormatAnthropic)
//	…                                         // send it
//	err = s.Observe(ctx, fit, reply)          // usage and reply
//
// # Sessions
//
// A [Session] is the fold of its records in memory. It can be dropped at any
// time and read again ([Sessions.Drop]), and gives the same views then. All of
// its methods may be called at the same time. Several processes may use one
// session on one store: an append is a compare-and-swap, and one that comes
// second is made again on top of what came first.
//
// # Looking and changing
//
// [Session.Rewind] goes back and says where to; [Session.Lift] takes one
// reduction back, [Session.Restore] shows blocks through all of them,
// [Session.Pin], [Session.Keep] and [Session.Release] say what policies may
// hide; [Session.Preview] and [Session.Reduce] hide by hand. [Session.Search]
// and [Session.Get] find and return what the view does not show.
// [Session.Context] says where the tokens are, [Session.Reductions] what became
// of each reduction, [Session.Branches] which conversations there are, and
// [Session.Check] holds a session against the laws of package furl.
//
// # Clients
//
// A client that knows nothing of furl resends its whole history with each
// request. [Sessions.Begin] finds the session and the place in it where the
// history goes on, plans, and gives the body to send. [Exchange.Commit] records
// what is new in the request once the provider has accepted it, and
// [Exchange.Done] records the reply. [Session.RequestBody] rebuilds what the
// client sent and what was sent in its place. Packages gateway and furlhttp are that
// with a connection on each side.
package session
