package storage

import (
	"context"

	"github.com/furlhq/furl"
)

// Rewriter is the ability to replace what a session already has. Only package
// encrypted and redaction use it: a log is otherwise append-only.
type Rewriter interface {
	// Rewrite changes a session, all or nothing. If it does not have w.Records
	// records, or other metadata than w.MetaWas, the error wraps
	// furl.ErrConflict and nothing changes. A session that does not exist is an
	// error wrapping ErrNoSession. Replaced bytes are overwritten as those of
	// deleted sessions are, not before Scrub has been called.
	Rewrite(ctx context.Context, key furl.SessionKey, w Rewrite) error

	// ContentIDs returns the ids of a session's contents.
	ContentIDs(ctx context.Context, key furl.SessionKey) ([]furl.Digest, error)

	// Scrub overwrites the bytes of replaced and deleted data, as far as the
	// store can.
	Scrub(ctx context.Context) error
}

// Rewrite is a change to what a session has. Its index pages and vectors are
// dropped, and are made again from the records.
type Rewrite struct {
	// Records is how many records the session has.
	Records furl.Seq
	// Put replaces the records with their numbers. They keep their times of
	// appending.
	Put []furl.Record
	// DropContents are removed first; then Contents are added under ContentIDs,
	// or their SHA-256 if that is nil.
	DropContents []furl.Digest
	Contents     [][]byte
	ContentIDs   []furl.Digest
	// Meta, if set, replaces the metadata, which must be MetaWas, if that is set.
	Meta, MetaWas *Meta
}

// Batch returns the parts of the rewrite that are those of an append.
func (w *Rewrite) Batch() *Batch {
	return &Batch{Meta: w.Meta, MetaWas: w.MetaWas, Contents: w.Contents, ContentIDs: w.ContentIDs}
}

// KeyStore is the ability to store the wrapped encryption keys of tenants. They
// are in a store, so that all processes that use it have them, and they are not
// part of its sessions: deleting all sessions of a tenant keeps its keys.
type KeyStore interface {
	// TenantKeys returns what SetTenantKeys stored, nil for nothing.
	TenantKeys(ctx context.Context, tenant furl.Tenant) ([]byte, error)

	// SetTenantKeys stores the keys of a tenant, if it has those of was, nil for
	// none. Otherwise the error wraps furl.ErrConflict. What was there is
	// overwritten.
	SetTenantKeys(ctx context.Context, tenant furl.Tenant, was, is []byte) error

	// KeyTenants returns the tenants that have keys, ordered by their names.
	KeyTenants(ctx context.Context) ([]furl.Tenant, error)
}
