// Package recallbench measures search: what package recall finds, beside what
// SQLite's own full-text search finds on the same texts, and how long it takes
// in a large store. It has benchmarks only; docs/recall.md has what they said.
package recallbench
