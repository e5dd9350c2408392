package demo

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// closedRange is a second bug: ranges that include their end.
func (a *agent) closedRange() {
	a.user(7*time.Minute+20*time.Second, "Good, that matches what she saw. While you are there: the list for midnight to midnight shows some arrivals twice, once on each day. Same cause?")
	a.do("Not the same, but close. I noticed that the comment of ArrivesAtBetween says [from, to) while I read it; let me check the query.",
		a.grep(`<= \$2`, "internal/store"), a.see("internal/store/calls.go", a.line("internal/store/calls.go", "// ArrivesAtBetween", "//")-4, 44))
	a.edit("There it is: `<= $2` includes the end of the range, so a call at exactly midnight is in both days. The comment is right and the query is wrong.",
		"internal/store/calls.go", "func (s *CallStore) ArrivesAtBetween", "arrives_at <= $2", "arrives_at < $2")
	a.do("", a.test("store", a.between15("Call", "ArrivesAt", "across midnight")))
	at := a.line("internal/store/calls_test.go", "func TestCallStoreArrivesAtBetween", "across midnight")
	a.do(fmt.Sprintf("The case \"across midnight\" in calls_test.go:%d counted the closed range. Let me see what it expects before I touch it.", at),
		a.see("internal/store/calls_test.go", at-18, 36))
	a.do("The row says 3 for 23:00 to 02:00, with one call per full hour: that is 23, 0 and 1, and so 3 is right for the half-open range. The fixture has only the hours up to 21:00 or so, which means that the count came from somewhere else. Let me print what comes back.",
		a.bash(`go test -run 'TestCallStoreArrivesAtBetween/across_midnight' -v ./internal/store/ -args -trace`, "Trace one case", a.trace(), true, 5, 12))
	a.edit("The trace shows no rows at all: the fixture never reaches midnight, and the old query was not exercised there. I'll say what the case really is.",
		"internal/store/calls_test.go", "func TestCallStoreArrivesAtBetween", `{"across midnight",`, `{"past the last",`)
	a.do("", a.test("store"))
	a.do("Passing. The grep showed the same query in other tables.", a.grep(`Between\(ctx context.Context, from`, "internal/store"))
	for _, i := range []int{3, 5, 4} {
		e := entities[i]
		a.do(a.pick("Next, "+e.Table+".go.", "", "The same for "+e.Plural+"."), a.see(storeOf(e)))
		f := timeField(e)
		a.edit(a.pick(
			fmt.Sprintf("%sBetween has the same closed end.", f.Name),
			fmt.Sprintf("Here it is again, in `%sStore.%sBetween`.", e.Name, f.Name)),
			storeOf(e), "Between(ctx", f.Col+" <= $2", f.Col+" < $2")
	}
	a.do("", a.testAll())
	a.do("Yes, a different one: the four `…Between` queries used `<= $2` although their comments promise [from, to). I changed ArrivesAtBetween (internal/store/calls.go) and the ones of tides, invoices and tariffs. DepartsAtBetween in calls.go has it as well; nothing calls it at the moment, so I left it. Shall I change it too?")
	a.user(95*time.Second, "Yes please, no exceptions.")
	a.edit("", "internal/store/calls.go", "func (s *CallStore) DepartsAtBetween", "departs_at <= $2", "departs_at < $2")
	a.do("", a.grep(`<= \$2`, "internal/store"))
	a.do("Done; no query in internal/store includes the end of a range any more.")
}

// between15 is a failure of a table test over a range of times.
func (a *agent) between15(name, field, title string) failure {
	e := entities[2]
	return failure{
		"Test" + name + "Store" + field + "Between/" + strings.ReplaceAll(title, " ", "_"),
		testOf(e), "func Test" + name + "Store" + field + "Between", "t.Errorf", "got 0 calls, want 3",
	}
}

func (a *agent) trace() string {
	var b strings.Builder
	b.WriteString("=== RUN   TestCallStoreArrivesAtBetween/across_midnight\n")
	for i := range 14 {
		fmt.Fprintf(&b, "    trace.go:31: row %2d id=%d arrives_at=2026-03-02T%02d:00:00Z berth_code=A%d state=asked in_range=false\n", i, 1180+i, min(23, 12+i*2/3), 1+i%4)
	}
	b.WriteString("    calls_test.go: got 0 calls, want 3\n--- FAIL: TestCallStoreArrivesAtBetween (0.02s)\nFAIL\nexit status 1\n")
	return b.String()
}

func timeField(e entity) field {
	for _, f := range e.Fields {
		if f.Type == "time.Time" {
			return f
		}
	}
	return field{}
}

var (
	storeFunc  = regexp.MustCompile(`func \(s \*\w+Store\) (\w+)\(`)
	bareReturn = regexp.MustCompile(`\t\treturn (nil, |0, |false, )?err\n`)
)

// wrapErrors makes the stores of some entities say what they were doing.
func (a *agent) wrapErrors(which ...int) {
	first := entities[which[0]]
	if which[0] == 0 {
		a.user(4*time.Minute, "The logs are full of lines like \"sql: connection is already closed\" and nobody knows which query it was. Can the stores wrap their errors with what they were doing? Start with berths, vessels and calls, and don't wrap ErrNotFound.")
	} else {
		a.user(11*time.Minute, "The wrapped errors already helped today. Please do the remaining stores the same way.")
	}
	a.do("", a.grep(`^\s+return (nil, |0, )?err$`, "internal/store"))
	for _, i := range which {
		e := entities[i]
		a.do(a.pick(
			fmt.Sprintf("I'll go through %s.", storeOf(e)),
			fmt.Sprintf("Now the %s.", e.Plural),
			fmt.Sprintf("%s is next; I read it again, since it has changed.", storeOf(e))), a.see(storeOf(e)))
		a.wrapStore(e, 4)
	}
	if e := entities[which[2]]; which[0] == 0 {
		a.do("", a.testAll(a.broken("store", storeOf(e), "func New", "return", "declared and not used: op")...))
		a.do(fmt.Sprintf("I left something behind in %s.", storeOf(e)), a.see(storeOf(e), 20, 30), a.grep(`\bop\b`, storeOf(e)))
		a.do("The grep finds nothing: the file on disk is fine, so that was a stale build of my last edit. Again.", a.testAll())
	} else {
		a.do("", a.testAll())
	}
	a.do(fmt.Sprintf("The stores of %s, %s and %s now say what they were doing, as in \"find %s by %s: …\". ErrNotFound is returned as it is, so errors.Is in internal/api/api.go goes on working; `query` and `scan%s` stay bare, because their callers wrap.",
		first.Plural, entities[which[1]].Plural, entities[which[2]].Plural, first.Plural, first.Fields[0].Words, first.Name))
}

// wrapStore wraps the errors of up to n functions of a store.
func (a *agent) wrapStore(e entity, n int) {
	path := storeOf(e)
	for _, m := range storeFunc.FindAllStringSubmatch(a.project.files[path], -1) {
		name := m[1]
		if n == 0 || name == "query" || name == "Get" {
			continue
		}
		head := "func (s *" + e.Name + "Store) " + name + "("
		body := a.project.files[path]
		body = body[strings.Index(body, head):]
		body = body[:strings.Index(body, "\n}\n")]
		found := bareReturn.FindAllStringSubmatch(body, -1)
		if len(found) == 0 {
			continue
		}
		n--
		last := found[len(found)-1]
		// The last bare return of a function is the one after its query.
		within := body[:strings.LastIndex(body, last[0])]
		within = within[strings.LastIndexByte(strings.TrimSuffix(within, "\n"), '\n')+1:]
		stmt := "\t\treturn " + last[1] + `fmt.Errorf("` + doing(e, name) + `: %w", err)` + "\n"
		a.edit(a.pick("", "", fmt.Sprintf("`%s`:", name), fmt.Sprintf("Then `%sStore.%s`.", e.Name, name)), path, head, within+last[0], within+stmt)
	}
}

// doing puts the name of a function into words.
func doing(e entity, fn string) string {
	for _, f := range e.Fields {
		switch fn {
		case "FindBy" + f.Name:
			return "find " + e.Plural + " by " + f.Words
		case f.Name + "AtLeast":
			return e.Plural + " by least " + f.Words
		case f.Name + "Between":
			return e.Plural + " between two times of " + f.Words
		case "Sum" + f.Name:
			return "sum of " + f.Words
		case "Set" + f.Name:
			return "set " + f.Col + " of " + e.Var
		}
	}
	return strings.ToLower(fn) + " " + e.Var
}

// clock gives the stores a clock of their own, for a test that fails at times.
func (a *agent) clock() {
	a.user(3*time.Minute, "TestVesselStoreRoundTrip fails about once in fifty runs on the CI machine, and TestBerthStoreRoundTrip did once. Can you see why? If it is time.Now, give the stores a clock.")
	vessels, berths := entities[1], entities[0]
	a.do("", a.bash("go test -count=100 -run 'RoundTrip' ./internal/store/", "Repeat the test", a.flaky(), true, 40, 90), a.grep(`time\.Now\(\)`, "internal"))
	a.do("Two of a hundred. The times that come back differ in the last digits: PostgreSQL keeps microseconds and time.Now has nanoseconds, so CreatedAt and UpdatedAt change on the way unless the last three digits happen to be zero.",
		a.see(testOf(vessels)), a.see(storeGo))
	a.edit("A clock that rounds to microseconds, in store.go, fixes it for all of them and lets tests set the time.", storeGo, "type scanner interface", "type scanner interface", `// Clock tells the time to the microsecond, as the database keeps it.
type Clock func() time.Time

// SystemClock is the clock of the machine.
func SystemClock() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

type scanner interface`)
	a.edit("", storeGo, "import (", "\t\"errors\"\n", "\t\"errors\"\n\t\"time\"\n")
	for _, e := range []entity{vessels, berths} {
		path := storeOf(e)
		a.do(a.pick("", "Now "+path+"."), a.see(path))
		a.edit("", path, "type "+e.Name+"Store struct", "\tlog *slog.Logger\n", "\tlog *slog.Logger\n\tnow Clock\n")
		a.edit("", path, "func New"+e.Name+"Store", "log: log.With(\"table\", \""+e.Table+"\")}", "log: log.With(\"table\", \""+e.Table+"\"), now: SystemClock}")
		a.edit("", path, ") Insert(", "now := time.Now()", "now := s.now()")
		a.edit("", path, ") Update(", "\t\ttime.Now(),\n", "\t\ts.now(),\n")
		a.edit("", path, ") Set", "time.Now())", "s.now())")
	}
	a.do("", a.testAll(a.broken("store", storeOf(vessels), "import (", "\"time\"", "\"time\" imported and not used")...))
	a.edit("vessels.go has no other use for package time.", storeOf(vessels), "import (", "\t\"log/slog\"\n\t\"time\"\n", "\t\"log/slog\"\n")
	a.do("", a.test("store"), a.bash("go test -count=200 -run 'RoundTrip' ./internal/store/", "Repeat the test", fmt.Sprintf("ok  \t%s/internal/store\t%.3fs\n", module, 41.2), false, 50, 100))
	a.do("It was the precision of time.Now: PostgreSQL keeps microseconds. `store.Clock` and `store.SystemClock` (internal/store/store.go) round, and berths and vessels use them; two hundred runs pass. The other four stores still call time.Now; their round trips don't compare times yet.")
}

func (a *agent) flaky() string {
	var b strings.Builder
	for _, e := range []entity{entities[1], entities[0]} {
		fmt.Fprintf(&b, "--- FAIL: Test%sStoreRoundTrip (0.01s)\n    %s_test.go:%d: %s %d: created_at 2026-03-02T14:51:07.%09dZ, want 2026-03-02T14:51:07.%09dZ\n",
			e.Name, e.Table, a.line(testOf(e), "RoundTrip", "t.Errorf"), e.Var, 300+a.rng.IntN(600), 482913000, 482913000+a.rng.IntN(999))
	}
	fmt.Fprintf(&b, "FAIL\nFAIL\t%s/internal/store\t38.114s\nFAIL\n", module)
	return b.String()
}
