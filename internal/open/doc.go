// Package open has the open sessions: their logs in memory and the values derived from
// them. It plans their requests, and changes and stores them.
//
// A [Session] is read (Read) and changed (Update) under one lock. A change in progress is a
// value, a [Change]: it has the log and the metadata as they will be. Other callers see
// neither before it is committed. A request is prepared as such a change (Prepare), and committed
// when the provider has accepted it.
//
// Programs use package session, which has queries and operations that do this. Packages
// internal/exchange, agent and gateway use both.
package open
