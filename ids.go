package furl

// Tenant separates the users of one store: a keyed hash of a credential, or ""
// for a single user.
type Tenant string

// SessionID names a session among those of its tenant. It has 1 to 128
// characters out of letters, digits and _ . -, and is not reserved; see
// storage.ValidID.
type SessionID string

// SessionKey says where a session is: every row of a store carries both.
type SessionKey struct {
	Tenant  Tenant
	Session SessionID
}
