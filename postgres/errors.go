package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
)

// badAddress returns the error for an invalid address. The address is not
// repeated, because it may contain a password in an unexpected place. The
// details are included only if the address can be parsed well enough to be
// sure that they do not contain the password.
func badAddress(address string, err error) error {
	const form = "invalid database address: expected postgres://user:password@host:5432/database"
	u, bad := url.Parse(address)
	if bad != nil || u.Scheme == "" {
		return errors.New(form)
	}
	_, detail, ok := strings.Cut(err.Error(), "`: ")
	if !ok || containsAny(detail, urlSecrets(u)) {
		return errors.New(form)
	}
	return errors.New("invalid database address: " + detail)
}

// secrets lists the texts that must not appear in errors. A password that
// equals the name of the user or the database is not treated as a secret.
func secrets(address string, conn *pgx.ConnConfig) []string {
	found := []string{conn.Password}
	if u, err := url.Parse(address); err == nil {
		found = append(found, urlSecrets(u)...)
	}
	return slices.DeleteFunc(found, func(p string) bool {
		return p == "" || p == conn.User || p == conn.Database
	})
}

func urlSecrets(u *url.URL) []string {
	var found []string
	if p, ok := u.User.Password(); ok && p != "" {
		found = append(found, p, url.QueryEscape(p), url.PathEscape(p))
	}
	for _, key := range []string{"password", "sslpassword"} {
		if p := u.Query().Get(key); p != "" {
			found = append(found, p)
		}
	}
	return found
}

func containsAny(text string, parts []string) bool {
	for _, p := range parts {
		if p != "" && strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// mentions reports whether an address sets a parameter.
func mentions(address, name string) bool { return strings.Contains(address, name+"=") }

// clean returns an error that may be returned to callers: without secrets,
// and without the connection's configuration, which some of pgx's errors
// contain.
func (s *Store) clean(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "*****")
	}
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	_, parse := errors.AsType[*pgconn.ParseConfigError](err)
	if !connect && !parse && text == err.Error() {
		return err
	}
	plain := &plainError{text: text}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, furl.ErrConflict, storage.ErrNoSession, furl.ErrDamaged, record.ErrNewerFormat} {
		if errors.Is(err, known) {
			plain.is = append(plain.is, known)
		}
	}
	return plain
}

// plainError is the text of an error and the known errors that it wrapped.
type plainError struct {
	text string
	is   []error
}

func (e *plainError) Error() string   { return e.text }
func (e *plainError) Unwrap() []error { return e.is }

// SQLSTATEs, from Appendix A of PostgreSQL's documentation.
const (
	codeReadOnly      = "25006"
	codeNoSchema      = "3F000"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeUndefined     = "42P01" // no such table
	codeTooMany       = "53300" // connections
	codeStarting      = "57P03"
	codeInternal      = "XX000"
)

// code returns the SQLSTATE of the server's error, "" for other errors.
func code(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// transient reports whether work may succeed when retried: the connection or
// the server was lost, or the server could not serve at the moment.
func transient(err error) bool {
	switch c := code(err); {
	case strings.HasPrefix(c, "08"), // connection exception
		strings.HasPrefix(c, "57P"), // shut down, crashed, starting
		c == codeTooMany, c == codeReadOnly, c == codeSerialization, c == codeDeadlock:
		return true
	case c != "":
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed) || pgconn.SafeToRetry(err)
}

// nodeTexts are in messages of Citus about a lost connection to another node
// that have no SQLSTATE of their own.
var nodeTexts = []string{
	"could not commit transaction for shard",
	"connection to the remote node",
	"server closed the connection unexpectedly",
	"connection not open",
	"lost connection to node",
	"failure on connection marked as essential",
	"postmaster was shut down", // the server itself was killed
}

// fromNode reports whether a server reports with an error of Citus that it
// lost another node. The outcome is then unknown, and work is repeated, which is safe.
func fromNode(err error) bool {
	if errors.Is(err, errNode) {
		return true
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
		return false
	case pg.Code == codeInternal:
		return containsAny(pg.Message, nodeTexts)
	}
	return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P")
}

// lost reports whether an error means that the server is unreachable, rather
// than that it could not do something.
func lost(err error) bool {
	switch code(err) {
	case codeReadOnly, codeSerialization, codeDeadlock:
		return false
	}
	return errors.Is(err, errSilent) || transient(err)
}
