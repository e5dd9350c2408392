package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// prepared keeps the statements of frequent reads: preparing one takes longer
// than running most of them. database/sql prepares each once for every
// connection it runs on. SQLite would prepare "LIMIT ?" again for each value,
// because its planner uses the value; it does not evaluate "LIMIT ? + 0".
type prepared struct {
	mu    sync.RWMutex
	stmts map[string]*sql.Stmt
}

// rows starts a query. Its text must be one of a few constants.
func (s *Store) rows(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// row queries one row.
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

// close closes the statements. It must be called before their connections
// are closed.
func (p *prepared) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stmt := range p.stmts {
		stmt.Close()
	}
	clear(p.stmts)
}
