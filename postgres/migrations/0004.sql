-- Version 4. Each writing operation on a session is also a function of simple
-- statements about single tables. On Citus a call runs whole on the session's
-- node, as one remote command without a prepared transaction, if its arguments
-- are constants. Elements of arrays are copied to variables, because an
-- element in a statement is looked up from the array's start. No statement
-- calls a volatile function, which Citus refuses in an update.
--
-- _at_once inserts all rows by one statement, which is faster on one server and
-- slower on Citus.

-- furl.format has a primary key, without which Citus cannot copy it to a new node.
alter table furl.format add primary key (version);

-- append returns the number of records that it has added: all, or 0 if the
-- session has another number of records or other metadata than expected.
create function furl.append(
    _tenant bytea, _session text, _after bigint,
    _same bigint[], _print bigint[], _size integer[], _sum integer[], _chain bytea[], _head bytea[], _body bytea[],
    _records bigint, _messages bigint, _bytes bigint, _meta bytea, _hint bigint,
    _was bytea,                                     -- the expected metadata; null: any
    _life bigint,                                   -- of a new session
    _digests bytea[], _sizes integer[], _data bytea[], -- contents; null: none
    _at_once boolean
) returns bigint language plpgsql as $$
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

-- write_index returns null if the session does not exist, and otherwise
-- whether it has written, and the session's cursor and number of records.
create function furl.write_index(
    _tenant bytea, _session text, _after bigint, _to bigint, _drop_all boolean, _drop bigint[],
    _bucket bigint[], _segment bigint[], _data bytea[], _at_once boolean
) returns bigint[] language plpgsql as $$
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

-- put_vectors returns whether the session exists.
create function furl.put_vectors(_tenant bytea, _session text, _model bytea, _content bytea[], _data bytea[], _at_once boolean)
returns boolean language plpgsql as $$
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

-- delete_session returns whether the session existed.
create function furl.delete_session(_tenant bytea, _session text) returns boolean language plpgsql as $$
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
