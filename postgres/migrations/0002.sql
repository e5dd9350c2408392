-- Version 2. The tables are those of version 1. Records may be takeovers, which
-- versions of furl that know version 1 cannot read. No session has an id that
-- is reserved: see rename.go.

select 2;
