// Package recall finds what a view does not show: lexical search over the
// texts of blocks.
//
// Three pure functions do the work, and do it alike whatever stores the
// texts: Terms cuts a text into what it can be found by, Parse does the same
// to a query and weighs it, and Excerpt cuts out the piece that shows why a
// text fits. Between them stands the ranking, BM25 with whole names before
// all, which sees a store only as lists of documents. Index is such a store,
// in memory, for one session.
package recall
