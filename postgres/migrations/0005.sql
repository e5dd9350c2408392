-- Version 5. A rewrite of a session is a function too, for Citus: see 0004.sql. All
-- stores have the table of the keys of tenants, which was made with the first key
-- before. On Citus it is on every node.

create table if not exists furl.tenant_keys (tenant bytea primary key, keys bytea not null);

-- rewrite returns how many of the records it has replaced, or -1 if the session has
-- another number of records or other metadata than expected.
create function furl.rewrite(
    _tenant bytea, _session text, _records bigint,
    _was bytea,                                        -- the expected metadata
    _seq bigint[], _print bigint[], _size integer[], _sum integer[], _chain bytea[], _head bytea[], _body bytea[],
    _drop bytea[],                                     -- digests of contents
    _digests bytea[], _sizes integer[], _data bytea[], -- contents; null: none
    _meta bytea, _hint bigint                          -- null: unchanged
) returns bigint language plpgsql as $$
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
