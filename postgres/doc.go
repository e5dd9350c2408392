// Package postgres stores furl's sessions in a PostgreSQL database, so that
// several processes and machines can share one store.
//
// Open creates the tables of a [Store], in the schema furl, if they do not
// exist. A Store is a [storage.Store] that also implements search, vectors,
// watching, deleting and checking.
//
// # Guarantees
//
// An append is one statement in its own transaction: one round trip,
// acknowledged when the server has committed it. Whether the commit survives
// a crash of the server depends on the server's settings: synchronous_commit
// = off is overridden, fsync = off is reported by a check, and after a
// fail-over the standby has what the server waited for
// (synchronous_standby_names).
//
// If the connection is lost during an append, the client cannot know whether
// the server has committed it. The store then repeats the append, which is
// safe: if the records exist, nothing is written. It retries for
// Options.Retry, across a restart or a fail-over, and then returns an error
// that says the outcome is unknown.
//
// Every row contains tenant and session, and every writing statement is about
// one session, so that the tables can be partitioned by them: in hash
// partitions of one server (Options.Partitions), or over the nodes of a Citus
// cluster, which Open recognizes. docs/operate/stores.md describes both. This is
// why bodies are stored once per session, not once per tenant.
package postgres
