-- Format 3. Sessions have contents: bytes to which their records refer by
-- digest. They are in bodies, once for all sessions of a tenant. A body is
-- deleted with the last record or session that uses it. Records may be of
-- version 3, which versions of furl that know format 2 cannot read.

CREATE TABLE contents (
	session INTEGER NOT NULL,
	body    INTEGER NOT NULL,
	PRIMARY KEY (session, body)
) WITHOUT ROWID;
CREATE INDEX contents_body ON contents (body);
