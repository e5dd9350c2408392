// Package postgres keeps furl's sessions in a PostgreSQL database, for several
// processes and machines that share one store.
//
// A [Store] makes its tables, in the schema furl, when it is first opened. It
// is a [furl.Store] that can be searched, keeps vectors, tells of appends,
// deletes, and checks itself.
//
// # What it promises
//
// An append is one statement in a transaction of its own: one round trip, and
// acknowledged when the server has committed it. Whether that outlives the
// server is the server's setting: synchronous_commit = off is overruled,
// fsync = off is reported by a check, and a fail-over keeps what the standby
// was waited for (synchronous_standby_names).
//
// When the connection is lost in the middle, nobody knows whether the server
// has committed. The store then appends the same records again, which is
// harmless: if they are there, it was a repetition. It goes on for
// Options.Retry, over a restart or a fail-over, and then says that it does
// not know.
//
// Every row carries tenant and session, and every statement that writes is
// about one session, so that the tables can be divided by them: in hash
// partitions of one server (Options.Partitions), or over the servers of a
// compatible engine. docs/stores.md says how. Bodies are therefore kept once
// per session, not once per tenant.
package postgres
