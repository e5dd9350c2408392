package strictyaml_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/strictyaml"
)

// server is what the tests read.
type server struct {
	names []string
	open  bool
	port  int64
	rate  float64
	any   any
}

type reader = func(strictyaml.Value)

// parse reads
//
//	server: {names: [TEXT], mode: fast or slow, open: BOOL, port: WHOLE, rate: NUMBER, any: ANYTHING}
//	servers: [{names, …}]
func parse(text string) (servers []server, err error) {
	read := func(v strictyaml.Value) {
		var s server
		for read, v := range strictyaml.Object(v, map[string]reader{
			"names": func(v strictyaml.Value) {
				for item := range v.List("a list of names") {
					if name, ok := item.Text("a name"); ok {
						s.names = append(s.names, name)
					}
				}
			},
			"mode": func(v strictyaml.Value) { v.OneOf("fast", "slow") },
			"open": func(v strictyaml.Value) { s.open, _ = v.Bool() },
			"port": func(v strictyaml.Value) { s.port, _ = v.Whole("a port", 65535) },
			"rate": func(v strictyaml.Value) { s.rate, _ = v.Number("a rate", 2) },
			"any":  func(v strictyaml.Value) { v.Decode(&s.any) },
		}) {
			read(v)
		}
		servers = append(servers, s)
	}
	err = strictyaml.Parse("f", []byte(text), func(root strictyaml.Value) {
		for read, v := range strictyaml.Object(root, map[string]reader{
			"server": read,
			"servers": func(v strictyaml.Value) {
				for item := range v.List("a list of servers") {
					read(item)
					item.Require("names", "add the names of the server")
				}
			},
		}) {
			read(v)
		}
	})
	return servers, err
}

func TestParse(t *testing.T) {
	servers, err := parse(`
server: {names: &n [a, 7, 2026-10-07], mode: slow, open: TRUE, port: 8_080, rate: 1.5, any: {x: [1]}}
servers:
  - {names: *n, open: false, port: 0, rate: 2}
  - names:
`)
	if err != nil || len(servers) != 3 {
		t.Fatalf("got %+v, %v", servers, err)
	}
	first, second := servers[0], servers[1]
	if got := strings.Join(first.names, " "); got != "a 7 2026-10-07" || !first.open || first.port != 8080 || first.rate != 1.5 || first.any == nil {
		t.Errorf("got %+v", first)
	}
	if len(second.names) != 3 || second.open || second.rate != 2 {
		t.Errorf("with an alias: got %+v", second)
	}
	for _, empty := range []string{"", "# nothing yet\n", "~\n", "server:\n", "servers:\n"} {
		if _, err := parse(empty); err != nil {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"sever: {}":                                `f: unknown key "sever" (line 1): did you mean "server"?`,
		"Server: {}":                               `f: unknown key "Server" (line 1): did you mean "server"?`,
		"severe: {}":                               `f: unknown key "severe" (line 1): did you mean "server"?`,
		"server:\n  made: fast":                    `f: unknown key "made" (line 2): did you mean "mode"?`,
		"server:\n  name: fast":                    `f: unknown key "name" (line 2): did you mean "names"?`,
		"server:\n  rope: 1":                       `f: unknown key "rope" (line 2): expected one of any, mode, names, open, port, rate`,
		"zebra: {}":                                `f: unknown key "zebra" (line 1): expected one of server, servers`,
		"server:\n  ab: 1":                         `f: unknown key "ab" (line 2): expected one of any, mode, names, open, port, rate`,
		"server:\n  port: 1\n\n  port: 2":          `f: duplicate key "port" (line 4): first on line 2`,
		"server: &s {port: 1}\nservers:\n- <<: *s": "f: unsupported key \"<<\" (line 3): repeat single values with &x and *x\nf: missing names (line 3): add the names of the server",
		"[a]: 1":                                   `f: invalid key (line 1): expected a word`,
		"server: 5":                                `f: invalid server "5" (line 1): expected "key: value" lines`,
		"server: [5]":                              `f: invalid server (line 1): expected "key: value" lines, not a list`,
		"5":                                        `f: invalid file "5" (line 1): expected "key: value" lines`,
		"servers: {}":                              `f: invalid servers (line 1): expected a list of servers, not a mapping`,
		"servers:\n- port: 1":                      `f: missing names (line 2): add the names of the server`,
		"servers:\n- 5":                            `f: invalid servers "5" (line 2): expected "key: value" lines`,
		"servers:\n- {names: [a, [b]]}":            `f: invalid names (line 2): expected a name, not a list`,
		"server:\n  names: [true]":                 `f: invalid server.names "true" (line 2): expected a name`,
		"server:\n  names: [a,\n\n ~]":             `f: missing value of server.names (line 4): expected a name`,
		"server:\n  mode: quick":                   `f: invalid server.mode "quick" (line 2): expected one of fast, slow`,
		"server:\n  open: yes":                     `f: invalid server.open "yes" (line 2): expected true or false`,
		"server:\n  open: 'true'":                  `f: invalid server.open "true" (line 2): expected true or false without quotes`,
		"server:\n  port:":                         `f: missing value of server.port (line 2): expected a port`,
		"server:\n  port: 65536":                   `f: invalid server.port "65536" (line 2): expected a port`,
		"server:\n  port: -1":                      `f: invalid server.port "-1" (line 2): expected a port`,
		"server:\n  port: 99999999999999999999":    `f: invalid server.port "99999999999999999999" (line 2): expected a port`,
		"server:\n  rate: .nan":                    `f: invalid server.rate ".nan" (line 2): expected a rate`,
		"server:\n  rate: 2.1":                     `f: invalid server.rate "2.1" (line 2): expected a rate`,
		"server: &s\n  any: *s":                    `f: invalid server.any (line 2): anchor 's' value contains itself`,
		"server: {}\n---\nserver: {}":              `f: second document (line 2): expected one document; remove "---"`,
		"server: {}\n---\n[":                       `f: invalid YAML (line 3): did not find expected node content`,
		"server: [":                                `f: invalid YAML (line 1): did not find expected node content`,
		"server: *x":                               `f: invalid YAML (line 1): unknown anchor 'x' referenced`,
		"server:\n  port: " + strings.Repeat("x", 300): `f: invalid server.port "` + strings.Repeat("x", 80) + `" (line 2): expected a port`,
		"server:\n  port: \"\\e[2J\"":                  `f: invalid server.port "\x1b[2J" (line 2): expected a port without quotes`,
	} {
		_, err := parse(text)
		if err == nil || err.Error() != want {
			t.Errorf("%q\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// Errors are reported together and in order, but at most 20.
func TestErrorsTogether(t *testing.T) {
	_, err := parse("server:\n  prt: 1\n  open: 2\nservers: 3\n")
	want := "f: unknown key \"prt\" (line 2): did you mean \"port\"?\n" +
		"f: invalid server.open \"2\" (line 3): expected true or false\n" +
		"f: invalid servers \"3\" (line 4): expected a list of servers"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	_, err = parse("servers:\n" + strings.Repeat("  - 5\n", 500))
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); !ok || len(joined.Unwrap()) != 20 {
		t.Errorf("got %v, want 20 errors", err)
	}
}

// Aliases cannot make a small file cost much.
func TestAliasesAreBounded(t *testing.T) {
	text := "server: {names: &n [" + strings.Repeat("a,", 20_000) + "]}\nservers:\n" + strings.Repeat("- {names: *n}\n", 2_000)
	_, err := parse(text)
	if err == nil || !strings.Contains(err.Error(), "too many values") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one error about too many values", err)
	}
}

func TestGet(t *testing.T) {
	err := strictyaml.Parse("f", []byte("a:\n  b: 1 # one\n"), func(root strictyaml.Value) {
		a, _ := root.Get("a")
		b, ok := a.Get("b")
		if !ok || b.Key() != "a.b" || b.Line() != 2 || b.LineComment() != "# one" {
			t.Errorf("got %v on line %d, comment %q", b, b.Line(), b.LineComment())
		}
		if _, ok := b.Get("c"); ok {
			t.Error("a number has a key")
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// Errors about a secret and the values in it quote none of them.
func TestSecret(t *testing.T) {
	err := strictyaml.Parse("f", []byte("a:\n  b: planted\n  c: [true]\n  d: planted\n"), func(root strictyaml.Value) {
		a, _ := root.Get("a")
		for v := range a.Secret().Entries("keys") {
			for item := range v.List("a list") {
				item.Text("a text")
			}
		}
		b, _ := a.Secret().Get("d")
		b.Expected("a key")
	})
	want := "f: invalid a.b (line 2): expected a list\nf: invalid a.c (line 3): expected a text\n" +
		"f: invalid a.d (line 4): expected a list\nf: invalid a.d (line 4): expected a key"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestAt(t *testing.T) {
	err := strictyaml.Parse("f", []byte("a:\n  - x\n  - b:\n      c: &c\n        d: 1\ne: *c\n"), func(root strictyaml.Value) {
		for _, path := range []string{"", "a", "a 0", "a 1 b", "a 1 b c d", "a 1 b x", "a 7", "e d"} {
			root.At(strings.Fields(path)).ReportKey(path, "")
		}
	})
	want := "f:  (line 1)\nf: a (line 1)\nf: a 0 (line 2)\nf: a 1 b (line 3)\nf: a 1 b c d (line 5)\nf: a 1 b x (line 3)\nf: a 7 (line 1)\nf: e d (line 5)"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"server: {names: &n [a], mode: slow, open: true, port: 1, rate: 1.5, any: {x: [1]}}\nservers: [{names: *n}]\n",
		"servers: [&a [*a]]", "&a server: *a", "server: &s {any: *s}", "servers:\n- port: 1\n---\n", "server: !!binary x", "\ufeffserver: {}", "a: [", "? [a]\n: b",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := parse(text)
		if err == nil {
			return
		}
		if !strings.HasPrefix(err.Error(), "f: ") || !strings.Contains(err.Error(), " (line ") {
			t.Errorf("an error without file or line: %q", err)
		}
	})
}
