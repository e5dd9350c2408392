-- Format 2: no session has an id that is reserved. There is nothing to do for
-- it here; see rename.go.
SELECT 1;
