-- Every table begins its primary key with (tenant, session), and no statement
-- that writes touches rows of two sessions: a store can be divided by them.
-- A table with the mark "by session" is divided in a store that is made of
-- partitions. Names are compared byte by byte, on all servers; those that are
-- not ours, such as a tenant's, can be any bytes.

create table furl.sessions (
    tenant   bytea not null,
    session  text collate "C" not null,
    life     bigint not null,             -- random: another one after a deletion
    records  bigint not null,             -- how many, which is the newest one's seq
    messages bigint not null,             -- of the records
    bytes    bigint not null,             -- of the messages on the wire
    indexed  bigint not null default 0,   -- the search index's cursor
    created  timestamptz not null,
    updated  timestamptz not null,
    hint     bigint,                      -- the print of meta.hint; null: none
    meta     bytea not null,              -- JSON
    primary key (tenant, session)
) /* by session */;

-- The counters change with each append. None of them stands in an index, so
-- that a row is replaced within its page.
create index sessions_hint on furl.sessions (tenant, hint) where hint is not null;

create table furl.records (
    tenant  bytea not null,
    session text collate "C" not null,
    seq     bigint not null,
    stored  timestamptz not null,
    same    bigint,            -- the record of this session that holds the body
    print   bigint,            -- of a body that others may refer to
    size    integer not null,  -- of the body, unpacked, or of a message without one
    sum     integer not null,  -- CRC-32C of head and unpacked body
    chain   bytea,             -- of a message
    head    bytea not null,
    body    bytea,             -- packed; null: none, or in the record "same"
    primary key (tenant, session, seq)
) /* by session */;

-- Bodies are packed already.
alter table furl.records alter column body set storage external;

create index records_chain on furl.records (tenant, chain, stored desc, seq desc) where chain is not null;
create index records_print on furl.records (tenant, session, print) where print is not null;

create table furl.pages (
    tenant  bytea not null,
    session text collate "C" not null,
    bucket  bigint not null,
    segment bigint not null,
    data    bytea not null,
    primary key (tenant, session, bucket, segment)
) /* by session */;

alter table furl.pages alter column data set storage external;

create table furl.vectors (
    tenant  bytea not null,
    session text collate "C" not null,
    model   bytea not null,
    content bytea not null,
    data    bytea not null,
    primary key (tenant, session, model, content)
) /* by session */;

alter table furl.vectors alter column data set storage external;

create index vectors_content on furl.vectors (tenant, model, content);
