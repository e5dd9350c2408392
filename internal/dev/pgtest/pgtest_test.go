package pgtest

import (
	"os"
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	a, b := URL(t), URL(t)
	if a == b {
		t.Fatalf("two tests would share the database %s", a)
	}
	if err := run(a, "create table x (n int)"); err != nil {
		t.Fatal(err)
	}
	if err := run(b, "select * from x"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a table of one database in the other: %v", err)
	}
}

func TestCrashAndRestart(t *testing.T) {
	s := Start(t)
	if err := s.Exec("create table kept as select 42 as n"); err != nil {
		t.Fatal(err)
	}
	for name, crash := range map[string]func() error{"crash": func() error { s.Crash(); return nil }, "kill": s.Kill} {
		if err := crash(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := s.Exec("select 1"); err == nil {
			t.Fatalf("%s: the server still answers", name)
		}
		if err := s.Restart(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n, err := s.count("select n from kept"); n != 42 || err != nil {
			t.Errorf("%s: %d, %v after a restart", name, n, err)
		}
	}
	s.Stop()
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the data is still there after Stop: %v", err)
	}
}

func TestStandby(t *testing.T) {
	s := Start(t)
	o := s.Standby(t)
	if err := s.Exec("create table kept as select 42 as n"); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	if err := o.Promote(); err != nil {
		t.Fatal(err)
	}
	if n, err := o.count("select n from kept"); n != 42 || err != nil {
		t.Errorf("%d, %v after the fail-over", n, err)
	}
	if err := run(s.URL("postgres", o), "insert into kept values (43)"); err != nil {
		t.Errorf("the client does not find the new server: %v", err)
	}
}

func TestPgBouncer(t *testing.T) {
	direct := URL(t)
	pooled := PgBouncer(t, direct, 2)
	if err := run(pooled, "create table kept as select 42 as n"); err != nil {
		t.Fatal(err)
	}
	if err := run(direct, "insert into kept values (43)"); err != nil {
		t.Errorf("the table of the pooler is in another database: %v", err)
	}
}
