package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/storage"
)

// planted is a password that must not be repeated; it needs escaping in a
// URL.
const planted = "pl4nted p@ss/w0rd"

// tells fails the test if an error contains the password, however it is
// printed, or wraps the configuration of a connection.
func tells(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	leaks(t, what, fmt.Sprintf("%v %+v %#v", err, err, err))
	var walk func(error)
	walk = func(err error) {
		if err == nil {
			return
		}
		leaks(t, what, err.Error())
		switch err := err.(type) {
		case *pgconn.ConnectError, *pgconn.ParseConfigError:
			t.Errorf("%s: the error wraps a %T, which contains the whole configuration", what, err)
		case interface{ Unwrap() []error }:
			for _, e := range err.Unwrap() {
				walk(e)
			}
		default:
			walk(errors.Unwrap(err))
		}
	}
	walk(err)
}

func leaks(t *testing.T, what, text string) {
	t.Helper()
	for _, form := range []string{planted, url.QueryEscape(planted), url.PathEscape(planted), "pl4nted"} {
		if strings.Contains(text, form) {
			t.Errorf("%s contains the password: %s", what, text)
			return
		}
	}
}

func TestNoPasswordInErrors(t *testing.T) {
	dir := t.TempDir()
	escaped := url.QueryEscape(planted)
	quoted := "password='" + planted + "'"
	for name, address := range map[string]string{
		"a port that is none":        "postgres://me:" + escaped + "@host:port/db",
		"not escaped":                "postgres://me:" + planted + "@host:5432/db",
		"a mode that is none":        "postgres://me:" + escaped + "@host/db?sslmode=" + "sometimes",
		"the password in the query":  "postgres://me@host/db?sslmode=no&password=" + escaped,
		"keywords, cut off":          "host=h user=me password='" + planted,
		"keywords, a mode":           "host=h user=me sslmode=no " + quoted,
		"nobody there":               "postgres://me:" + escaped + "@/db?host=" + dir,
		"nobody there, keywords":     "host=" + dir + " user=me dbname=db " + quoted,
		"the password as a number":   "postgres://me:" + escaped + "@host/db?connect_timeout=" + escaped,
		"the password as everything": escaped + ":" + escaped,
	} {
		_, err := Open(t.Context(), address, nil)
		tells(t, name, err)
	}
	// A wrong user, a wrong database, and a wrong password where it is
	// checked.
	at, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword("nobody-of-this-name", planted)
	_, err = Open(t.Context(), at.String(), nil)
	tells(t, "a user who does not exist", err)
	at.User, at.Path = url.UserPassword("furl", planted), "/no-such-database"
	_, err = Open(t.Context(), at.String(), nil)
	tells(t, "a database that does not exist", err)
}

// The password is not in the log of a lost connection, in the final error, or
// in the place of a working store.
func TestNoPasswordInLog(t *testing.T) {
	at, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword(at.User.Username(), planted) // the server does not ask for it
	p := newProxy(t, at.String())
	var log lockedBuffer
	s := reopen(t, p.url, &Options{Retry: 200 * time.Millisecond, Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	key := furl.SessionKey{Session: "s"}
	appendAll(t, s, key, talk(t, "x", 1, 10))
	if _, err := s.Watch(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	p.set(refusing)
	tells(t, "append", s.Append(t.Context(), key, storage.Batch{Meta: &storage.Meta{}}))
	_, err = s.Stats(t.Context())
	tells(t, "stats", err)
	_, err = Open(t.Context(), p.url, nil)
	tells(t, "open", err)
	p.set(passing)
	stats, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leaks(t, "the place", stats.Place)
	if strings.Contains(stats.Place, "@") || !strings.HasPrefix(stats.Place, "postgres://127.0.0.1:") {
		t.Errorf("the place is %s", stats.Place)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if log.String() == "" {
		t.Error("a lost connection is not logged")
	}
	leaks(t, "the log", log.String())
}

// lockedBuffer is a buffer for a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
