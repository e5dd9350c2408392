-- Format 1. docs/internals/format.md describes what is in the columns.

CREATE TABLE migrations (
	version INTEGER PRIMARY KEY,
	at      INTEGER NOT NULL -- nanoseconds since 1970
);

CREATE TABLE tenants (
	id   INTEGER PRIMARY KEY,
	name BLOB NOT NULL UNIQUE
);

-- Ids are not used again, so that a reader of a session that was deleted
-- cannot come upon another.
CREATE TABLE sessions (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	tenant   INTEGER NOT NULL,
	name     TEXT NOT NULL,
	records  INTEGER NOT NULL,
	messages INTEGER NOT NULL,
	bytes    INTEGER NOT NULL,
	created  INTEGER NOT NULL, -- nanoseconds since 1970
	updated  INTEGER NOT NULL,
	indexed  INTEGER NOT NULL DEFAULT 0,
	meta     BLOB,             -- JSON
	hint     BLOB,             -- of meta, if there is one
	UNIQUE (tenant, name)
);
CREATE INDEX sessions_hint ON sessions (tenant, hint) WHERE hint IS NOT NULL;

-- The id is the session's times 2^32 plus the record's number: the records of
-- a session lie together and in order, and need no index.
CREATE TABLE records (
	id    INTEGER PRIMARY KEY,
	sum   INTEGER NOT NULL, -- CRC-32C of head and body
	head  BLOB NOT NULL,
	codec INTEGER,          -- NULL: the record has no body, or it is in bodies
	size  INTEGER,          -- of the body
	body  BLOB,
	big   INTEGER           -- of bodies
);
CREATE INDEX records_big ON records (big) WHERE big IS NOT NULL;

CREATE TABLE bodies (
	id     INTEGER PRIMARY KEY,
	tenant INTEGER NOT NULL,
	digest BLOB NOT NULL, -- SHA-256
	codec  INTEGER NOT NULL,
	size   INTEGER NOT NULL,
	data   BLOB NOT NULL
);
CREATE UNIQUE INDEX bodies_digest ON bodies (tenant, digest);

-- A chain is found by its first eight bytes; the record has all of it.
CREATE TABLE chains (
	tenant INTEGER NOT NULL,
	chain  INTEGER NOT NULL,
	at     INTEGER NOT NULL, -- when it was appended
	record INTEGER NOT NULL,
	PRIMARY KEY (tenant, chain, at, record)
) WITHOUT ROWID;

CREATE TABLE pages (
	id      INTEGER PRIMARY KEY,
	tenant  INTEGER NOT NULL,
	bucket  INTEGER NOT NULL,
	session INTEGER NOT NULL,
	segment INTEGER NOT NULL,
	data    BLOB NOT NULL
);
CREATE UNIQUE INDEX pages_bucket ON pages (tenant, bucket, session, segment);
CREATE INDEX pages_segment ON pages (session, segment);

CREATE TABLE vectors (
	id      INTEGER PRIMARY KEY,
	tenant  INTEGER NOT NULL,
	model   BLOB NOT NULL,
	content BLOB NOT NULL,
	data    BLOB NOT NULL
);
CREATE UNIQUE INDEX vectors_content ON vectors (tenant, model, content);

CREATE TABLE session_vectors (
	session INTEGER NOT NULL,
	vector  INTEGER NOT NULL,
	PRIMARY KEY (session, vector)
) WITHOUT ROWID;
CREATE INDEX session_vectors_vector ON session_vectors (vector);
