-- Version 3. Sessions have contents: bytes to which their records refer by
-- digest. They are deleted with their session. Records may be of version 3,
-- which versions of furl that know version 2 cannot read.

create table furl.contents (
    tenant  bytea not null,
    session text collate "C" not null,
    digest  bytea not null,    -- SHA-256
    size    integer not null,  -- unpacked
    data    bytea not null,    -- packed
    primary key (tenant, session, digest)
) /* by session */;

alter table furl.contents alter column data set storage external;
