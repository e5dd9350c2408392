// Package encrypted encrypts what a store has, with keys per tenant. New puts a
// layer over any store that has the needed abilities, which are those of inmem,
// sqlite and postgres.
//
// A tenant has a data key, and a secret for keyed digests. They are wrapped by a
// master key, which a Master has, and stored in the store (storage.KeyStore).
// Records, metadata, contents, pages of the search index and vectors are
// compressed and encrypted with AES-256-GCM, bound to their tenant, session and
// position: bytes that are swapped are refused. Chains, ids of contents and
// clients' ids of sessions are replaced by keyed digests.
//
// These stay visible: the names of tenants, the ids of sessions, the numbers,
// parents and sizes of records, times of appending, which buckets of the search
// index have pages, and the names of embedding models.
//
// Without a master key the layer changes nothing, and returns a *KeyError for
// encrypted data.
package encrypted
