package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// prepared keeps the statements of reads that come by the dozen: preparing one
// takes longer than what most of them do. database/sql prepares each once for
// every connection it runs on. SQLite would prepare one with "LIMIT ?" anew with
// each value, which it plans by; "LIMIT ? + 0" it does not look into.
type prepared struct {
	mu    sync.RWMutex
	stmts map[string]*sql.Stmt
}

// rows begins a query. Its text is one of a few that are always the same.
func (s *Store) rows(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// row asks for one row.
func (s *Store) row(ctx context.Context, query string, args ...any) scanner {
	stmt, err := s.statement(ctx, query)
	if err != nil {
		return failedRow{err}
	}
	return stmt.QueryRowContext(ctx, args...)
}

func (s *Store) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	p := &s.prepared
	p.mu.RLock()
	stmt := p.stmts[query]
	p.mu.RUnlock()
	if stmt != nil {
		return stmt, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if stmt = p.stmts[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.read.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if p.stmts == nil {
		p.stmts = make(map[string]*sql.Stmt)
	}
	p.stmts[query] = stmt
	return stmt, nil
}

// close ends the statements, before the connections they are prepared on.
func (p *prepared) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stmt := range p.stmts {
		stmt.Close()
	}
	clear(p.stmts)
}
