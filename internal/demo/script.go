package demo

import (
	"fmt"
	"strings"
)

// afternoon is the whole session: what the user asks for, one thing after the
// other.
func (a *agent) afternoon() {
	a.midnight()
	a.closedRange()
	a.wrapErrors(0, 1, 2)
	a.shoreDemand()
	a.newRule()
	a.partialUpdate()
	a.clock()
	a.export()
	a.wrapErrors(3, 4, 5)
	a.paging()
	a.windUp()
}

// Paths that many of the tasks touch.
const (
	planner     = "internal/planner/planner.go"
	plannerTest = "internal/planner/planner_test.go"
	rulesGo     = "internal/planner/rules.go"
	rulesTest   = "internal/planner/rules_test.go"
	apiGo       = "internal/api/api.go"
	storeGo     = "internal/store/store.go"
)

func modelOf(e entity) string { return "internal/model/" + e.Var + ".go" }
func storeOf(e entity) string { return "internal/store/" + e.Table + ".go" }
func testOf(e entity) string  { return "internal/store/" + e.Table + "_test.go" }
func apiOf(e entity) string   { return "internal/api/" + e.Table + ".go" }

// midnight is the bug that the session begins with.
func (a *agent) midnight() {
	a.user(0, "The harbour master says two vessels were given berth A3 in the same night: one came at 19:30, the other at 01:00, and the first was still there. There is a failing test for it in internal/planner, TestPlanAcrossMidnight. Please find out why and fix it, but don't make planning slower than it has to be.")
	a.do("I'll look at the layout of the project first and run the test that fails.",
		a.bash("git log --oneline | head -5 && git ls-files | xargs wc -l", "Recent commits and files", a.listing(), false, 1, 2),
		a.test("planner", a.midnightFails()))
	a.do("TestPlanAcrossMidnight fails as described. Let me read the planner and its tests.", a.see(planner), a.see(plannerTest))
	a.do("`free` asks for the calls that arrive on the same day as this one. A call that arrived the evening before and still lies there is never seen. Let me see who else uses ArrivesAtBetween, and what exactly it returns.",
		a.grep(`ArrivesAtBetween|FindByBerthCode`, ""))
	a.do("", a.see("internal/store/calls.go"), a.see("internal/model/call.go"))
	a.do("The planner has two ways to ask: by time of arrival, or by berth. How long can a call last? If there is a limit, looking back that far is enough.",
		a.grep(`DepartsAt|departs_at|MaxStay`, ""))
	a.do("", a.see("internal/store/calls_test.go"))
	a.do("There is no limit on the length of a stay, so no window of arrivals is safe. FindByBerthCode has what is needed: all calls at one berth, which `overlap` can then judge. How many are there per berth?",
		a.bash(`psql quay_dev -c "SELECT berth_code, count(*), max(departs_at - arrives_at) FROM calls GROUP BY 1 ORDER BY 2 DESC LIMIT 12"`, "Calls per berth", a.callsPerBerth(), false, 1, 3))
	a.edit("Several thousand for the busy berths, so fetching all of them for every candidate would be slow. The right question is which calls at this berth have not left before this one arrives. I'll change the interface in planner.go first.",
		planner, "type CallSource interface", "\tFindByBerthCode(ctx context.Context, berthCode string) ([]*model.Call, error)",
		"\tAtBerthBetween(ctx context.Context, berthCode string, from, to time.Time) ([]*model.Call, error)")
	a.edit("Now `free` itself: everything at this berth that overlaps, with the gap on both sides.",
		planner, "func (p *Planner) free(", `	day := c.ArrivesAt.Truncate(24 * time.Hour)
	others, err := p.calls.ArrivesAtBetween(ctx, day, day.Add(24*time.Hour))
	if err != nil {
		return false, err
	}`, `	others, err := p.calls.AtBerthBetween(ctx, b.Code, c.ArrivesAt.Add(-p.Gap), c.DepartsAt.Add(p.Gap))
	if err != nil {
		return false, fmt.Errorf("calls at berth %s: %w", b.Code, err)
	}`)
	a.edit("The store needs the query. It belongs beside ArrivesAtBetween in calls.go.",
		"internal/store/calls.go", "// ArrivesAtBetween", "// ArrivesAtBetween", `// AtBerthBetween returns the calls that lie at a berth at any time in
// [from, to), in order of arrival.
func (s *CallStore) AtBerthBetween(ctx context.Context, berthCode string, from, to time.Time) ([]*model.Call, error) {
	if !from.Before(to) {
		return nil, fmt.Errorf("calls at %s: %s is not before %s", berthCode, from, to)
	}
	return s.query(ctx, "WHERE berth_code = $1 AND arrives_at < $3 AND departs_at > $2 ORDER BY arrives_at, id", berthCode, from, to)
}

// ArrivesAtBetween`)
	a.do("", a.testAll(append(a.broken("planner", plannerTest, "func TestPlanTakesTheBestBerth", "p := New(fakeCalls{}",
		"cannot use fakeCalls{} (value of type fakeCalls) as CallSource value in argument to New: fakeCalls does not implement CallSource (missing method AtBerthBetween)"),
		fmt.Sprintf("%s:%d:11: cannot use fakeCalls{…} as CallSource value in argument to New: fakeCalls does not implement CallSource (missing method AtBerthBetween)",
			plannerTest, a.line(plannerTest, "func TestPlanRefusesATakenBerth", "p := New(fakeCalls{other}")))...))
	a.edit("The fake in planner_test.go has to follow the interface.", plannerTest, "func (f fakeCalls) FindByBerthCode",
		`func (f fakeCalls) FindByBerthCode(_ context.Context, berthCode string) ([]*model.Call, error) {
	var found []*model.Call
	for _, c := range f {
		if c.BerthCode == berthCode {`,
		`func (f fakeCalls) AtBerthBetween(_ context.Context, berthCode string, from, to time.Time) ([]*model.Call, error) {
	var found []*model.Call
	for _, c := range f {
		if c.BerthCode == berthCode && c.ArrivesAt.Before(to) && c.DepartsAt.After(from) {`)
	a.do("", a.test("planner"))
	a.addAfter("It passes. I'll add a test of the query in the store as well, with a stay that spans two midnights.",
		"internal/store/calls_test.go", "func TestCallStoreRoundTrip(", `func TestCallStoreAtBerthBetween(t *testing.T) {
	s := NewCallStore(openTest(t), quiet)
	ctx := context.Background()
	long := newCall(1)
	long.BerthCode, long.ArrivesAt, long.DepartsAt = "A3", noon, noon.Add(40*time.Hour)
	insert(t, s, long)
	for _, at := range []time.Duration{-time.Hour, 13 * time.Hour, 37 * time.Hour, 40 * time.Hour} {
		got, err := s.AtBerthBetween(ctx, "A3", noon.Add(at), noon.Add(at+2*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if want := at < 40*time.Hour; (len(got) == 1) != want {
			t.Errorf("%s after noon: got %d calls, want the long one: %v", at, len(got), want)
		}
	}
}`)
	a.do("", a.test("store"))
	a.do("Both pass. Last, everything together.", a.testAll())
	a.do(fmt.Sprintf("Fixed. `Planner.free` (%s:%d) asked only for calls that arrive on the same UTC day, so a vessel that came the evening before was invisible. It now asks the store for the calls at that berth which overlap the stay, through the new `CallStore.AtBerthBetween` (internal/store/calls.go:%d). One query per candidate berth as before, and it can use an index on (berth_code, arrives_at); there is none yet, tell me if you want a migration.\n\nTestPlanAcrossMidnight passes, and TestCallStoreAtBerthBetween covers a stay across two midnights.",
		planner, a.line(planner, "func (p *Planner) free(", "func"), a.line("internal/store/calls.go", "func (s *CallStore) AtBerthBetween", "func")))
}

// midnightFails is the failure that the session begins with.
func (a *agent) midnightFails() failure {
	return failure{"TestPlanAcrossMidnight", plannerTest, "func TestPlanAcrossMidnight", "t.Errorf",
		"call 1 was given A3 while call 2 still lies there: got <nil>, want no berth is free"}
}

// listing is what git knows of the project.
func (a *agent) listing() string {
	var b strings.Builder
	for _, c := range []string{"planner: a failing test for calls across midnight", "store: tides by station", "api: audit who replaces a call", "planner: tugs have room or they don't", "quay: 0.4.0"} {
		fmt.Fprintf(&b, "%07x %s\n", a.rng.Uint32()>>4, c)
	}
	total := 0
	for _, path := range a.project.paths("") {
		n := strings.Count(a.project.files[path], "\n")
		total += n
		fmt.Fprintf(&b, "%7d %s\n", n, path)
	}
	fmt.Fprintf(&b, "%7d total\n", total)
	return b.String()
}

func (a *agent) callsPerBerth() string {
	b := &strings.Builder{}
	b.WriteString(" berth_code | count |       max\n------------+-------+------------------\n")
	n := 4200
	for i := range 12 {
		n -= 80 + a.rng.IntN(300)
		fmt.Fprintf(b, " %c%d         | %5d | %d days %02d:%02d:00\n", 'A'+i%5, 1+i*3%7, n, 1+a.rng.IntN(11), a.rng.IntN(24), 15*a.rng.IntN(4))
	}
	b.WriteString("(12 rows)\n")
	return b.String()
}
