-- Format 2. The tables are those of format 1. Records may be takeovers, which
-- versions of furl that know format 1 cannot read. No session has an id that is
-- reserved: see rename.go.

SELECT 2;
