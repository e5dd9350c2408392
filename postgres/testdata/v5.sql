SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE SCHEMA furl;

CREATE FUNCTION furl.append(_tenant bytea, _session text, _after bigint, _same bigint[], _print bigint[], _size integer[], _sum integer[], _chain bytea[], _head bytea[], _body bytea[], _records bigint, _messages bigint, _bytes bigint, _meta bytea, _hint bigint, _was bytea, _life bigint, _digests bytea[], _sizes integer[], _data bytea[], _at_once boolean) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    at timestamptz := clock_timestamp();
    n integer := coalesce(array_length(_head, 1), 0);
    a_same bigint; a_print bigint; a_size integer; a_sum integer; a_chain bytea; a_head bytea; a_body bytea;
begin
    if _after = 0 then
        insert into furl.sessions (tenant, session, life, records, messages, bytes, created, updated, meta, hint)
        values (_tenant, _session, _life, _records, _messages, _bytes, at, at, coalesce(_meta, '{}'), _hint)
        on conflict (tenant, session) do nothing returning updated into at;
    elsif _meta is null then
        update furl.sessions set
            records = records + _records, messages = messages + _messages, bytes = bytes + _bytes, updated = greatest(updated, at)
        where tenant = _tenant and session = _session and records = _after
        returning updated into at;
    else
        update furl.sessions set
            records = records + _records, messages = messages + _messages, bytes = bytes + _bytes, updated = greatest(updated, at),
            meta = _meta, hint = _hint
        where tenant = _tenant and session = _session and records = _after and (_was is null or meta = _was)
        returning updated into at;
    end if;
    if not found then
        return 0;
    end if;
    if _at_once then
        insert into furl.records (tenant, session, seq, stored, same, print, size, sum, chain, head, body)
        select _tenant, _session, _after + b.n, at, coalesce(p.seq, nullif(b.same, 0)),
            case when p.seq is null and b.same = 0 then nullif(b.print, 0) end,
            b.size, b.sum, b.chain, b.head,
            case when p.seq is null and b.same = 0 then b.body end
        from unnest(_same, _print, _size, _sum, _chain, _head, _body)
            with ordinality as b (same, print, size, sum, chain, head, body, n)
        left join lateral (
            select p.seq from furl.records p
            where p.tenant = _tenant and p.session = _session and p.print = nullif(b.print, 0) and p.body = b.body
            limit 1
        ) p on true;
        insert into furl.contents (tenant, session, digest, size, data)
        select _tenant, _session, c.digest, c.size, c.data from unnest(_digests, _sizes, _data) as c (digest, size, data)
        on conflict do nothing;
        return n;
    end if;
    for i in 1 .. n loop
        a_same := nullif(_same[i], 0); a_print := nullif(_print[i], 0); a_size := _size[i]; a_sum := _sum[i];
        a_chain := _chain[i]; a_head := _head[i]; a_body := _body[i];
        if a_print is not null and _after > 0 then
            select seq into a_same from furl.records
            where tenant = _tenant and session = _session and print = a_print and body = a_body limit 1;
        end if;
        if a_same is not null then
            a_print := null; a_body := null;
        end if;
        insert into furl.records (tenant, session, seq, stored, same, print, size, sum, chain, head, body)
        values (_tenant, _session, _after + i, at, a_same, a_print, a_size, a_sum, a_chain, a_head, a_body);
    end loop;
    for i in 1 .. coalesce(array_length(_digests, 1), 0) loop
        a_head := _digests[i]; a_size := _sizes[i]; a_body := _data[i];
        insert into furl.contents (tenant, session, digest, size, data) values (_tenant, _session, a_head, a_size, a_body)
        on conflict do nothing;
    end loop;
    return n;
end $$;

CREATE FUNCTION furl.delete_session(_tenant bytea, _session text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
    existed boolean;
begin
    delete from furl.sessions where tenant = _tenant and session = _session;
    existed := found;
    delete from furl.records where tenant = _tenant and session = _session;
    delete from furl.pages where tenant = _tenant and session = _session;
    delete from furl.vectors where tenant = _tenant and session = _session;
    delete from furl.contents where tenant = _tenant and session = _session;
    return existed;
end $$;

CREATE FUNCTION furl.put_vectors(_tenant bytea, _session text, _model bytea, _content bytea[], _data bytea[], _at_once boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
    a_content bytea; a_data bytea;
begin
    perform 1 from furl.sessions where tenant = _tenant and session = _session for key share;
    if not found then
        return false;
    end if;
    if _at_once then
        insert into furl.vectors (tenant, session, model, content, data)
        select _tenant, _session, _model, v.content, v.data from unnest(_content, _data) as v (content, data)
        on conflict do nothing;
        return true;
    end if;
    for i in 1 .. coalesce(array_length(_content, 1), 0) loop
        a_content := _content[i]; a_data := _data[i];
        insert into furl.vectors (tenant, session, model, content, data) values (_tenant, _session, _model, a_content, a_data)
        on conflict do nothing;
    end loop;
    return true;
end $$;

CREATE FUNCTION furl.rewrite(_tenant bytea, _session text, _records bigint, _was bytea, _seq bigint[], _print bigint[], _size integer[], _sum integer[], _chain bytea[], _head bytea[], _body bytea[], _drop bytea[], _digests bytea[], _sizes integer[], _data bytea[], _meta bytea, _hint bigint) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    n bigint := 0; total bigint; one bigint;
    a_seq bigint; a_same bigint; a_print bigint; a_size integer; a_sum integer; a_chain bytea; a_head bytea; a_body bytea;
begin
    perform 1 from furl.sessions where tenant = _tenant and session = _session and records = _records and meta = _was for no key update;
    if not found then
        return -1;
    end if;
    -- Records that share a body with a replaced one get a copy of it.
    for a_seq, a_same in
        select seq, same from furl.records
        where tenant = _tenant and session = _session and same = any(_seq) and seq <> all(_seq)
    loop
        select body into a_body from furl.records where tenant = _tenant and session = _session and seq = a_same;
        update furl.records set same = null, body = a_body where tenant = _tenant and session = _session and seq = a_seq;
    end loop;
    for i in 1 .. coalesce(array_length(_seq, 1), 0) loop
        a_seq := _seq[i]; a_print := nullif(_print[i], 0); a_size := _size[i]; a_sum := _sum[i];
        a_chain := _chain[i]; a_head := _head[i]; a_body := _body[i];
        update furl.records set same = null, print = a_print, size = a_size, sum = a_sum, chain = a_chain, head = a_head, body = a_body
        where tenant = _tenant and session = _session and seq = a_seq and (chain is null) = (a_chain is null);
        get diagnostics one = row_count;
        n := n + one;
    end loop;
    if n <> coalesce(array_length(_seq, 1), 0) then
        raise exception '% of % records are of the same kind', n, array_length(_seq, 1);
    end if;
    delete from furl.contents where tenant = _tenant and session = _session and digest = any(_drop);
    for i in 1 .. coalesce(array_length(_digests, 1), 0) loop
        a_head := _digests[i]; a_size := _sizes[i]; a_body := _data[i];
        insert into furl.contents (tenant, session, digest, size, data) values (_tenant, _session, a_head, a_size, a_body)
        on conflict do nothing;
    end loop;
    delete from furl.pages where tenant = _tenant and session = _session;
    delete from furl.vectors where tenant = _tenant and session = _session;
    select coalesce(sum(size) filter (where chain is not null), 0) into total from furl.records where tenant = _tenant and session = _session;
    if _meta is null then
        update furl.sessions set indexed = 0, bytes = total where tenant = _tenant and session = _session;
    else
        update furl.sessions set indexed = 0, bytes = total, meta = _meta, hint = _hint where tenant = _tenant and session = _session;
    end if;
    return n;
end $$;

CREATE FUNCTION furl.write_index(_tenant bytea, _session text, _after bigint, _to bigint, _drop_all boolean, _drop bigint[], _bucket bigint[], _segment bigint[], _data bytea[], _at_once boolean) RETURNS bigint[]
    LANGUAGE plpgsql
    AS $$
declare
    a_cursor bigint; has bigint;
    a_bucket bigint; a_segment bigint; a_data bytea;
begin
    update furl.sessions set indexed = _to
    where tenant = _tenant and session = _session and (_drop_all or indexed = _after) and records >= _to
    returning records into has;
    if not found then
        select indexed, records into a_cursor, has from furl.sessions where tenant = _tenant and session = _session;
        return case when found then array[0, a_cursor, has] end;
    end if;
    if _drop_all then
        delete from furl.pages where tenant = _tenant and session = _session;
    elsif _drop is not null then
        delete from furl.pages where tenant = _tenant and session = _session and segment = any(_drop);
    end if;
    if _at_once then
        insert into furl.pages (tenant, session, bucket, segment, data)
        select _tenant, _session, p.bucket, p.segment, p.data from unnest(_bucket, _segment, _data) as p (bucket, segment, data)
        on conflict (tenant, session, bucket, segment) do update set data = excluded.data;
        return array[1, _to, has];
    end if;
    for i in 1 .. coalesce(array_length(_data, 1), 0) loop
        a_bucket := _bucket[i]; a_segment := _segment[i]; a_data := _data[i];
        insert into furl.pages (tenant, session, bucket, segment, data)
        values (_tenant, _session, a_bucket, a_segment, a_data)
        on conflict (tenant, session, bucket, segment) do update set data = excluded.data;
    end loop;
    return array[1, _to, has];
end $$;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE furl.contents (
    tenant bytea NOT NULL,
    session text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    size integer NOT NULL,
    data bytea NOT NULL
);
ALTER TABLE ONLY furl.contents ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE furl.format (
    version integer NOT NULL,
    partitions integer NOT NULL
);

CREATE TABLE furl.pages (
    tenant bytea NOT NULL,
    session text NOT NULL COLLATE pg_catalog."C",
    bucket bigint NOT NULL,
    segment bigint NOT NULL,
    data bytea NOT NULL
);
ALTER TABLE ONLY furl.pages ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE furl.records (
    tenant bytea NOT NULL,
    session text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    stored timestamp with time zone NOT NULL,
    same bigint,
    print bigint,
    size integer NOT NULL,
    sum integer NOT NULL,
    chain bytea,
    head bytea NOT NULL,
    body bytea
);
ALTER TABLE ONLY furl.records ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE furl.sessions (
    tenant bytea NOT NULL,
    session text NOT NULL COLLATE pg_catalog."C",
    life bigint NOT NULL,
    records bigint NOT NULL,
    messages bigint NOT NULL,
    bytes bigint NOT NULL,
    indexed bigint DEFAULT 0 NOT NULL,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    hint bigint,
    meta bytea NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE furl.tenant_keys (
    tenant bytea NOT NULL,
    keys bytea NOT NULL
);

CREATE TABLE furl.vectors (
    tenant bytea NOT NULL,
    session text NOT NULL COLLATE pg_catalog."C",
    model bytea NOT NULL,
    content bytea NOT NULL,
    data bytea NOT NULL
);
ALTER TABLE ONLY furl.vectors ALTER COLUMN data SET STORAGE EXTERNAL;

INSERT INTO furl.contents VALUES ('\x74', 'fixture', '\x8addc184f885bb5b0fe7fd4a9308fa4e4b379269b593deff0e40610994af0b8c', 11, '\x00612073686f7274206f6e65');
INSERT INTO furl.contents VALUES ('\x74', 'fixture', '\xb33583d74a9d25323b27373aee9794821bef151a6b6a04c091f5bd8406be068e', 6000, '\x0128b52ffd607016a50000606120746f6f6c2c20616e642001540c033061f7');

INSERT INTO furl.format VALUES (5, 0);

INSERT INTO furl.pages VALUES ('\x74', 'fixture', 1, 2, '\x70616765');

INSERT INTO furl.records VALUES ('\x74', 'fixture', 1, '2026-11-23 06:36:41.66762+00', NULL, NULL, 78, 1684765582, '\xca0a9ebf28ac4f428248f5082f0e1ff0c9383a470621a7106b653351af72e4c9', '\x01010001cad6b9950d853500006d20ca0a9ebf28ac4f428248f5082f0e1ff0c9383a470621a7106b653351af72e4c9047573657209616e7468726f70696320ca0a9ebf28ac4f428248f5082f0e1ff0c9383a470621a7106b653351af72e4c9010000009c01000000020c3200', '\x007b22636f6e74656e74223a226669787475726520302036623662386131643164376239323637373333306664666463653238396632643266346663323739222c22726f6c65223a2275736572227d');
INSERT INTO furl.records VALUES ('\x74', 'fixture', 2, '2026-11-23 06:36:41.66762+00', NULL, NULL, 83, 301101741, '\x802d3620149f28f457e56e1b4e740a08c1eb6e4a97c04261016cb3568a180b9f', '\x01020101ccd6b9950d853500006d20802d3620149f28f457e56e1b4e740a08c1eb6e4a97c04261016cb3568a180b9f09617373697374616e7409616e7468726f706963208bdab5b24bacff481fe906b1f6b160d7f8acd6f139b7b88d11bd9f94f4b752ce01000000a601000000020c3200', '\x007b22636f6e74656e74223a226669787475726520312038323464653865666132333932663030383038326432333366636135666161333637383732656564222c22726f6c65223a22617373697374616e74227d');
INSERT INTO furl.records VALUES ('\x74', 'fixture', 3, '2026-11-23 06:36:41.66762+00', NULL, NULL, 78, -1734548053, '\xa69b20f0c56e9c7fcff9134272ab54cdbbf9e7e1b13a442790560bd068db52c7', '\x01030201ced6b9950d853500006d20a69b20f0c56e9c7fcff9134272ab54cdbbf9e7e1b13a442790560bd068db52c7047573657209616e7468726f70696320f98e1ace276cde433aad7afe566bf51da6efe79b83420874581ae35129f8a2e0010000009c01000000020c3200', '\x007b22636f6e74656e74223a226669787475726520322065613736616563366636636531343939626538303936306434326337663163363561623033666633222c22726f6c65223a2275736572227d');
INSERT INTO furl.records VALUES ('\x74', 'fixture', 4, '2026-11-23 06:36:41.66762+00', NULL, NULL, 83, -960445004, '\x7019442b21f711bc3f6cbb1f87bfd88a36f82a6ec23d2eabc53710477de2348b', '\x01040301d0d6b9950d853500006d207019442b21f711bc3f6cbb1f87bfd88a36f82a6ec23d2eabc53710477de2348b09617373697374616e7409616e7468726f7069632069b1277e5f404974b98241358ec0afee7174b0a97139905785e7fb3021a4a34d01000000a601000000020c3200', '\x007b22636f6e74656e74223a226669787475726520332066336265326261316564616332343162333961313730343036356466376338643461363033333262222c22726f6c65223a22617373697374616e74227d');
INSERT INTO furl.records VALUES ('\x74', 'fixture', 5, '2026-11-23 06:36:41.66762+00', NULL, NULL, 0, 618713302, NULL, '\x010504000078016d20000000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000000000000000000000000000000000000000000000e000000000000000000', NULL);
INSERT INTO furl.records VALUES ('\x74', 'fixture', 6, '2026-11-23 06:36:41.66762+00', NULL, NULL, 0, 633419206, NULL, '\x010605000072046d61736b000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000010102000200690668696464656e0000', NULL);
INSERT INTO furl.records VALUES ('\x74', 'fixture', 7, '2026-11-23 06:36:41.66762+00', NULL, NULL, 0, -615174369, NULL, '\x01070600007406000000', NULL);
INSERT INTO furl.records VALUES ('\x74', 'fixture', 8, '2026-11-23 06:36:41.66762+00', NULL, 5204534074810395665, 528, 862294617, '\x0000000000000000000000000000000000000000000000000000000000000000', '\x01080700006d200000000000000000000000000000000000000000000000000000000000000000047573657200201336da0a2cf37aa071004c8fa787dad10fcc42839cbbe3c0fd89c11270c29ade0100000000000000021af40300', '\x029004787b22726f6c65223a2275736572222c22636f6e74656e74223a226c6f6e672011051900e30004227d');
INSERT INTO furl.records VALUES ('\x74', 'fixture', 9, '2026-11-23 06:36:41.66762+00', 8, NULL, 528, -1161315428, '\x0000000000000000000000000000000000000000000000000000000000000000', '\x01090800006d200000000000000000000000000000000000000000000000000000000000000000047573657200201336da0a2cf37aa071004c8fa787dad10fcc42839cbbe3c0fd89c11270c29ade0100000000000000021af40300', NULL);
INSERT INTO furl.records VALUES ('\x74', 'fixture', 10, '2026-11-23 06:36:41.66762+00', NULL, NULL, 0, -251943114, NULL, '\x010a0900006809', NULL);
INSERT INTO furl.records VALUES ('\x74', 'fixture', 11, '2026-11-23 06:36:41.66762+00', NULL, NULL, 0, -1139917895, NULL, '\x020b0a00006f090102ac0204', NULL);
INSERT INTO furl.records VALUES ('\x74', 'fixture', 12, '2026-11-23 06:36:41.66762+00', NULL, NULL, 0, -22031350, NULL, '\x030c0b000078016d200000000000000000000000000000000000000000000000000000000000000000200000000000000000000000000000000000000000000000000000000000000000000000000000000000000000208addc184f885bb5b0fe7fd4a9308fa4e4b379269b593deff0e40610994af0b8c0020b33583d74a9d25323b27373aee9794821bef151a6b6a04c091f5bd8406be068e0200ff0173', NULL);

INSERT INTO furl.sessions VALUES ('\x74', 'fixture', 5868164006183449705, 12, 6, 1378, 3, '2026-11-23 06:36:41.66762+00', '2026-11-23 06:36:41.66762+00', 5016473715004516759, '\x7b227469746c65223a22412066697874757265222c2268696e74223a2274686520636c69656e742773227d');

INSERT INTO furl.vectors VALUES ('\x74', 'fixture', '\x6d', '\x0100000000000000000000000000000000000000000000000000000000000000', '\x76');

ALTER TABLE ONLY furl.contents
    ADD CONSTRAINT contents_pkey PRIMARY KEY (tenant, session, digest);

ALTER TABLE ONLY furl.format
    ADD CONSTRAINT format_pkey PRIMARY KEY (version);

ALTER TABLE ONLY furl.pages
    ADD CONSTRAINT pages_pkey PRIMARY KEY (tenant, session, bucket, segment);

ALTER TABLE ONLY furl.records
    ADD CONSTRAINT records_pkey PRIMARY KEY (tenant, session, seq);

ALTER TABLE ONLY furl.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (tenant, session);

ALTER TABLE ONLY furl.tenant_keys
    ADD CONSTRAINT tenant_keys_pkey PRIMARY KEY (tenant);

ALTER TABLE ONLY furl.vectors
    ADD CONSTRAINT vectors_pkey PRIMARY KEY (tenant, session, model, content);

CREATE INDEX records_chain ON furl.records USING btree (tenant, chain, stored DESC, seq DESC) WHERE (chain IS NOT NULL);

CREATE INDEX records_print ON furl.records USING btree (tenant, session, print) WHERE (print IS NOT NULL);

CREATE INDEX sessions_hint ON furl.sessions USING btree (tenant, hint) WHERE (hint IS NOT NULL);

CREATE INDEX vectors_content ON furl.vectors USING btree (tenant, model, content);
