package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// shoreDemand adds a field through all layers.
func (a *agent) shoreDemand() {
	a.user(13*time.Minute, "Next thing: a berth has shore power or it has not, but we need to know how much. Please add power_kw to berths: model, store, API, and a migration. 0 to 12000, and 0 where shore_power is false.")
	berths := entities[0]
	power := field{Name: "PowerKW", Type: "float64", Col: "power_kw", Words: "shore power", Max: 12000}
	a.do("I'll look at how the existing fields run through the layers.", a.grep(`(?i)shore_?power`, ""), a.bash("ls -1 migrations | tail -4", "Newest migrations", "0014_tide_station.sql\n0015_invoice_numbers.sql\n0016_call_tugs.sql\n0017_audit.sql\n", false, 1, 2))
	a.do("", a.see(modelOf(berths)), a.see(apiOf(berths)))
	a.edit("The model first.", modelOf(berths), "type Berth struct", "\tMaxTugs int", "\tPowerKW float64 // kilowatts of shore power, 0 without\n\tMaxTugs int")
	a.edit("", modelOf(berths), ") Validate() error", "\tif b.MaxTugs < 0", fmt.Sprintf("\tif b.PowerKW < 0 || b.PowerKW > %g {\n\t\treturn fmt.Errorf(\"berth %%d: shore power %%.0f kW is outside 0 to %g\", b.ID, b.PowerKW)\n\t}\n\tif b.PowerKW > 0 && !b.ShorePower {\n\t\treturn fmt.Errorf(\"berth %%d: %%.0f kW without shore power\", b.ID, b.PowerKW)\n\t}\n\tif b.MaxTugs < 0", power.Max, power.Max))
	a.edit("", modelOf(berths), ") Changed(", "\tif b.MaxTugs != old.MaxTugs", "\tif b.PowerKW != old.PowerKW {\n\t\tfields = append(fields, \"power_kw\")\n\t}\n\tif b.MaxTugs != old.MaxTugs")
	a.write("The migration, numbered after 0017_audit.sql.", "migrations/0018_berth_power.sql", "ALTER TABLE berths\n    ADD COLUMN power_kw double precision NOT NULL DEFAULT 0\n    CHECK (power_kw BETWEEN 0 AND 12000);\n\nALTER TABLE berths\n    ADD CONSTRAINT power_needs_shore_power CHECK (shore_power OR power_kw = 0);\n")
	path := storeOf(berths)
	a.edit("The store: columns, scan, insert, update.", path, "const berthColumns", "shore_power, max_tugs", "shore_power, power_kw, max_tugs")
	a.edit("", path, "func scanBerth", "\t\t&b.MaxTugs,", "\t\t&b.PowerKW,\n\t\t&b.MaxTugs,")
	a.do("", a.test("store", failure{"TestBerthStoreRoundTrip", testOf(berths), "func TestBerthStoreRoundTrip", "s.Insert", `pq: column "power_kw" does not exist`}))
	a.do("As expected, the test database has no such column yet.", a.bash("make migrate-test", "Migrate the test database", "applying 0018_berth_power.sql ... ok\nschema version 18\n", false, 3, 8))
	a.edit("Now Insert.", path, ") Insert(", "shore_power, max_tugs, created_at, updated_at)\n\t\tVALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", "shore_power, power_kw, max_tugs, created_at, updated_at)\n\t\tVALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
	a.edit("", path, ") Insert(", "\t\tb.MaxTugs,\n\t\tnow, now,", "\t\tb.PowerKW,\n\t\tb.MaxTugs,\n\t\tnow, now,")
	a.do("", a.see(path, a.line(path, "// Update writes", "//"), 30))
	a.edit("Update counts its placeholders by hand, so all of them behind shore_power move by one.", path, ") Update(", "max_tugs = $8, updated_at = $9", "power_kw = $8, max_tugs = $9, updated_at = $10")
	a.do("", a.test("store", failure{"TestBerthStoreRoundTrip", testOf(berths), "func TestBerthStoreRoundTrip", "s.Insert", "sql: expected 10 arguments, got 9"}))
	a.edit("I moved the placeholders and forgot the argument.", path, ") Update(", "\t\tb.MaxTugs,\n", "\t\tb.PowerKW,\n\t\tb.MaxTugs,\n")
	a.do("", a.test("store"))
	a.edit("The API.", apiOf(berths), "type berthJSON struct", "\tMaxTugs int `json:\"max_tugs\"`", "\tPowerKW float64 `json:\"power_kw\"`\n\tMaxTugs int `json:\"max_tugs\"`")
	a.edit("", apiOf(berths), "func toBerthJSON", "\t\tMaxTugs: b.MaxTugs,", "\t\tPowerKW: b.PowerKW,\n\t\tMaxTugs: b.MaxTugs,")
	a.edit("", apiOf(berths), ") apply(", "\tb.MaxTugs = j.MaxTugs", "\tb.PowerKW = j.PowerKW\n\tb.MaxTugs = j.MaxTugs")
	a.do("", a.see(testOf(berths)))
	a.edit("The round trip should cover the new field.", testOf(berths), "func newBerth(", "\t\tShorePower: n%2 == 0,", "\t\tShorePower: true,\n\t\tPowerKW: 800 + float64(n),")
	a.do("", a.testAll())
	a.do("power_kw is in: `model.Berth.PowerKW` with both checks in Validate, the store's columns, the API's berthJSON, and migrations/0018_berth_power.sql with the same checks in the database. Existing clients that PUT a berth without power_kw set it to 0; that is how PUT works for every field here, see `BerthHandler.replace`.")
}

// newRule adds a rule to the planner.
func (a *agent) newRule() {
	a.user(2*time.Minute, "Right, and the planner should use it: a cruise ship that needs more kilowatts than the berth has must not be put there. A rule like the others, please. Assume 45 kW per metre of length as the default.")
	r := rule{
		Name: "ShoreDemand", Key: "power", Words: "shore power for the hotel load", About: "keeps ships that need much power away from weak connections",
		Setting: "KWPerMetre", SettingAbout: "kilowatts per metre of length", SettingWords: "a demand of", Default: 45,
		Need: "v.LengthM * r.KWPerMetre", Have: "b.PowerKW", Wide: 1500, Narrow: 250, Low: 4, Middle: 2,
	}
	for i, want := range []string{"Accepted", "Accepted", "Refused", "Accepted"} {
		r.Cases = append(r.Cases, ruleCase{Title: []string{"plenty of it", "just enough", "too little", "no connection asked for"}[i],
			Literal: r.Literal(), Berth: fmt.Sprintf("C%d", i+1), Want: want, Length: 150, Draught: 6.1, Room: 240, Depth: 11})
	}
	a.do("", a.see(rulesGo), a.see(rulesTest))
	data := map[string]any{"Rules": []rule{r}}
	code := execute("rules.go.tmpl", data)
	a.write("I'll write it in a file of its own, in the shape of the others.", "internal/planner/power.go", code)
	tests := strings.Replace(execute("rules_test.go.tmpl", data), "\t\"time\"\n", "", 1)
	a.write("", "internal/planner/power_test.go", tests)
	a.do("", a.see(planner, a.line(planner, "// DefaultRules", "//")-2, 20))
	a.edit("", planner, "func DefaultRules", "\t\tTugRoom{PerVessel: 1},", "\t\tTugRoom{PerVessel: 1},\n\t\tShoreDemand{KWPerMetre: 45},")
	fails := []failure{{"TestShoreDemand/no_connection_asked_for", "internal/planner/power_test.go", "func TestShoreDemand", "t.Errorf",
		"shore power for the hotel load at C4: got Refused (needs 6750.00, has 0.00 at C4), want Accepted"},
		{"TestPlanTakesTheBestBerth", plannerTest, "func TestPlanTakesTheBestBerth", "t.Fatal(err)", "call 1 of vessel 7: no berth is free"}}
	a.do("", a.test("planner", fails...))
	a.do("Two failures with one cause: the rule demands power from every ship, and most never plug in. Only cruise ships ask for it, but the model does not say which vessel is one. What does the tariff go by?",
		a.grep(`cruise|Class\b`, "internal"), a.see("internal/model/vessel.go"))
	a.do("The class is only in the tariffs. Before I add a field to vessels I should ask: is there a column for it somewhere that I don't see?")
	a.user(6*time.Minute+40*time.Second, "No. Don't add one: calls that want shore power say so in State, \"asked+power\". Ugly, but it is what the agents send. Use that.")
	a.edit("Then the rule looks at the call.", "internal/planner/power.go", ") Check(", "\tneed := v.LengthM * r.KWPerMetre\n", "\tif !strings.HasSuffix(c.State, \"+power\") {\n\t\treturn accept(\"power\", 0)\n\t}\n\tneed := v.LengthM * r.KWPerMetre\n")
	a.edit("", "internal/planner/power.go", "import (", "\t\"time\"\n", "\t\"strings\"\n\t\"time\"\n")
	a.do("", a.see(plannerTest, 15, 40), a.grep(`asked`, "internal"))
	a.edit("The table needs a column for the state.", "internal/planner/power_test.go", "cases := []struct", "\t\trule   ShoreDemand\n", "\t\trule   ShoreDemand\n\t\tstate  string\n")
	for i, c := range r.Cases {
		state := `"asked+power"`
		if i == 3 {
			state = `"asked"`
		}
		a.edit("", "internal/planner/power_test.go", "cases := []struct", `"`+c.Title+`", `+c.Literal+`, vessel(`, `"`+c.Title+`", `+c.Literal+`, `+state+`, vessel(`)
	}
	a.edit("", "internal/planner/power_test.go", "t.Run(", "got := c.rule.Check(call(1, noon), &c.vessel, &c.berth, nil)", "asked := call(1, noon)\n\t\t\tasked.State = c.state\n\t\t\tgot := c.rule.Check(asked, &c.vessel, &c.berth, nil)")
	a.do("", a.test("planner"))
	a.do("", a.testAll())
	a.do("`ShoreDemand` (internal/planner/power.go) refuses a berth whose PowerKW is below 45 kW per metre of length, for calls whose State ends in \"+power\"; others pass with a score of 0. It is the last of DefaultRules, so the cheaper rules refuse first. TestShoreDemand covers enough, just enough, too little and not asked for.")
}

// partialUpdate lets clients change single fields.
func (a *agent) partialUpdate() {
	a.user(8*time.Minute, "You mentioned that PUT sets missing fields to zero. One of the shipping agents did exactly that this morning and emptied half a vessel. Please add PATCH for vessels and berths: only the fields in the body change.")
	vessels, berths := entities[1], entities[0]
	a.do("", a.see(apiOf(vessels)), a.see(apiGo))
	a.do("`replace` already loads the stored vessel and applies the body on top, so PATCH can decode into a vesselJSON filled from what is stored: what the body doesn't name keeps its value. Does anything else decode bodies this way?",
		a.grep(`NewDecoder|DisallowUnknownFields`, "internal"))
	for _, e := range []entity{vessels, berths} {
		if e.Name == "Berth" {
			a.do("The same for berths.", a.see(apiOf(e)))
		}
		a.edit("", apiOf(e), ") Register(", "\tmux.Handle(\"DELETE /v1/"+e.Table+"/{id}\"", "\tmux.Handle(\"PATCH /v1/"+e.Table+"/{id}\", handle(h.change))\n\tmux.Handle(\"DELETE /v1/"+e.Table+"/{id}\"")
		a.addAfter(a.pick("", "The handler goes behind `replace`."), apiOf(e), "func (h *"+e.Name+"Handler) replace", strings.NewReplacer("Vessel", e.Name, "vessel", e.Var, "VV", e.Recv).Replace(`// change sets the fields that the body names and leaves the others.
func (h *VesselHandler) change(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	VV, err := h.store.Get(r.Context(), id)
	if err != nil {
		return err
	}
	before, in := VV.Clone(), toVesselJSON(VV)
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return badRequest("vessel %d: %v", id, err)
	}
	in.apply(VV)
	if len(VV.Changed(before)) == 0 {
		return writeJSON(w, http.StatusOK, toVesselJSON(VV))
	}
	if err := h.store.Update(r.Context(), VV); err != nil {
		return err
	}
	h.audit.Record(r.Context(), "vessel.change", id)
	return writeJSON(w, http.StatusOK, toVesselJSON(VV))
}`))
	}
	a.do("", a.testAll())
	a.do("The API has no tests of its own, so I'll try it on the development server.",
		a.bash(`curl -s -X PATCH localhost:8340/v1/vessels/7 -d '{"draught_m": 6.4}' -i`, "Try PATCH", "HTTP/1.1 500 Internal Server Error\nContent-Type: text/plain; charset=utf-8\n\ninternal error\n", false, 1, 3),
		a.bash("tail -5 /home/mira/quay/dev.log", "Server log", a.devLog(), false, 1, 2))
	a.do("The log says that the update found ErrNotFound wrapped twice... no: it is Validate that fails, since vessel 7 has an empty flag in the database, from this morning probably. An invalid vessel should be answered with 400 and the reason, not with 500. Where do validation errors go?",
		a.grep(`Validate\(\)`, "internal"), a.see(apiGo, 38, 28))
	a.edit("`handle` knows statusError and ErrNotFound only. I'll give the stores' validation a sentinel that it can tell.", storeGo, "// ErrNotFound", "// ErrNotFound", "// ErrInvalid wraps what Validate finds wrong.\nvar ErrInvalid = errors.New(\"invalid\")\n\n// ErrNotFound")
	for _, e := range []entity{vessels, berths} {
		for _, fn := range []string{") Insert(", ") Update("} {
			a.edit("", storeOf(e), fn, "Validate(); err != nil {\n\t\treturn err\n", "Validate(); err != nil {\n\t\treturn fmt.Errorf(\"%w: %w\", ErrInvalid, err)\n")
		}
	}
	a.edit("", apiGo, "func handle(", "\t\tcase errors.Is(err, store.ErrNotFound):", "\t\tcase errors.Is(err, store.ErrInvalid):\n\t\t\thttp.Error(w, err.Error(), http.StatusBadRequest)\n\t\tcase errors.Is(err, store.ErrNotFound):")
	a.do("", a.testAll())
	a.do("", a.bash(`curl -s -X PATCH localhost:8340/v1/vessels/7 -d '{"draught_m": 6.4}' -i; curl -s -X PATCH localhost:8340/v1/vessels/7 -d '{"flag": "NL", "draught_m": 6.4}' -i`, "Try PATCH twice",
		"HTTP/1.1 400 Bad Request\nContent-Type: text/plain; charset=utf-8\n\ninvalid: vessel 7: flag is empty\nHTTP/1.1 200 OK\nContent-Type: application/json\n\n{\"id\":7,\"imo\":\"9314207\",\"name\":\"Rosalind\",\"flag\":\"NL\",\"length_m\":142.8,\"beam_m\":21.6,\"draught_m\":6.4,\"hazardous\":false,\"updated_at\":\"2026-03-02T14:38:20.114902Z\"}\n", false, 1, 3))
	a.do("PATCH works for vessels and berths (`VesselHandler.change`, `BerthHandler.change`): only the fields in the body change, an unknown field is a 400, and nothing is written when nothing changes. On the way: what Validate finds is now ErrInvalid and answered with 400 and the reason instead of 500; vessels and berths only so far.")
}

func (a *agent) devLog() string {
	var b strings.Builder
	for i := range 4 {
		fmt.Fprintf(&b, "time=2026-03-02T14:3%d:0%d.%03dZ level=INFO msg=request method=GET path=/v1/berths status=200 took=%dms\n", 2+i, a.rng.IntN(9), a.rng.IntN(999), 2+a.rng.IntN(30))
	}
	b.WriteString("time=2026-03-02T14:37:51.508Z level=ERROR msg=request method=PATCH path=/v1/vessels/7 status=500 err=\"vessel 7: flag is empty\"\n")
	return b.String()
}

// paging bounds the lists.
func (a *agent) paging() {
	a.user(5*time.Minute+30*time.Second, "The list of calls for a year took 40 seconds and 180 MB yesterday. Please page the lists: at most 200 per answer, `after` with the last id seen, and a next link. Calls and invoices are enough for now.")
	calls, invoices := entities[2], entities[5]
	a.do("", a.see(apiOf(calls)), a.see(storeOf(calls)))
	a.do("All lists go through `query(ctx, where, args...)`. Paging by id needs the order of the lists to be by id as well, and ArrivesAtBetween orders by time. Who depends on that order?", a.grep(`ArrivesAtBetween|IssuedAtBetween|FindByState`, "internal"))
	a.write("Only the handler. I'll page over (time, id), with a cursor that holds both.", "internal/api/page.go", pageGo)
	for _, e := range []entity{calls, invoices} {
		f := timeField(e)
		refused := "return "
		if e.Name == "Invoice" {
			a.do("Invoices now.", a.see(apiOf(e)), a.see(storeOf(e)))
			refused = "return nil, " // its filters are in a function of their own
		}
		a.addAfter("", storeOf(e), "func (s *"+e.Name+"Store) "+f.Name+"Between", strings.NewReplacer("Call", e.Name, "calls", e.Plural, "ArrivesAt", f.Name, "arrives_at", f.Col).Replace(`// ArrivesAtPage returns up to limit calls in [from, to) behind the one with that
// time and id, in order of both.
func (s *CallStore) ArrivesAtPage(ctx context.Context, from, to, at time.Time, id int64, limit int) ([]*model.Call, error) {
	found, err := s.query(ctx, "WHERE arrives_at >= $1 AND arrives_at < $2 AND (arrives_at, id) > ($3, $4) ORDER BY arrives_at, id LIMIT $5", from, to, at, id, limit)
	if err != nil {
		return nil, fmt.Errorf("page of calls from %s: %w", at.Format(time.RFC3339), err)
	}
	return found, nil
}`))
		a.edit("", apiOf(e), ") list(", "found, err = h.store."+f.Name+"Between(r.Context(), from, to)", "at, last, perr := parseCursor(q.Get(\"after\"), from)\n\t\tif perr != nil {\n\t\t\t"+refused+"badRequest(\"after: %v\", perr)\n\t\t}\n\t\tfound, err = h.store."+f.Name+"Page(r.Context(), from, to, at, last, pageLimit(q)+1)")
		a.edit("", apiOf(e), ") list(", "\treturn writeJSON(w, http.StatusOK, page)", "\tif limit := pageLimit(q); len(page) > limit {\n\t\tpage = page[:limit]\n\t\tend := found[limit-1]\n\t\tlinkNext(w, r, cursor(end."+f.Name+", end.ID))\n\t}\n\treturn writeJSON(w, http.StatusOK, page)")
	}
	a.do("", a.testAll(a.broken("api", apiOf(calls), ") list(", "pageLimit(q)", "undefined: pageLimit")...))
	a.do("page.go calls it `limit`; let me see what I wrote.", a.see("internal/api/page.go"), a.grep(`func (page|link|parse|cursor)`, "internal/api"))
	a.edit("", "internal/api/page.go", "func limitOf(", "func limitOf(", "func pageLimit(")
	a.do("", a.testAll())
	a.addAfter("A test for the pages: every call once, in order, whatever the limit.", testOf(calls), "func TestCallStoreRoundTrip(", `func TestCallStoreArrivesAtPage(t *testing.T) {
	s := NewCallStore(openTest(t), quiet)
	ctx := context.Background()
	for i := range 23 {
		c := newCall(i)
		c.ArrivesAt = noon.Add(time.Duration(i/3) * time.Hour) // several at the same time
		insert(t, s, c)
	}
	from, to := noon, noon.Add(24*time.Hour)
	for _, limit := range []int{1, 2, 5, 50} {
		at, id, seen := from, int64(0), 0
		for {
			page, err := s.ArrivesAtPage(ctx, from, to, at, id, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			seen += len(page)
			at, id = page[len(page)-1].ArrivesAt, page[len(page)-1].ID
		}
		if seen != 23 {
			t.Errorf("pages of %d: saw %d calls, want 23", limit, seen)
		}
	}
}`)
	a.do("", a.test("store"))
	a.do("Lists of calls and invoices by time are paged: at most 200, `after` takes the cursor from the Link header, rel=next (internal/api/page.go). `CallStore.ArrivesAtPage` and `InvoiceStore.IssuedAtPage` walk (time, id), so calls at the same minute are neither skipped nor repeated; TestCallStoreArrivesAtPage covers that with pages of 1, 2, 5 and 50.")
}

const pageGo = `package api

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// maxPage is how many entries a list has at most.
const maxPage = 200

// limitOf is how many entries the client wants.
func limitOf(q url.Values) int {
	n := pageSize(q)
	if n <= 0 || n > maxPage {
		return maxPage
	}
	return n
}

// cursor names the last entry of a page by its time and id.
func cursor(at time.Time, id int64) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s %d", at.UTC().Format(time.RFC3339Nano), id))
}

// parseCursor reads what cursor wrote; without one a list begins at from.
func parseCursor(s string, from time.Time) (time.Time, int64, error) {
	if s == "" {
		return from, 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return from, 0, err
	}
	var at string
	var id int64
	if _, err := fmt.Sscanf(string(raw), "%s %d", &at, &id); err != nil {
		return from, 0, err
	}
	t, err := time.Parse(time.RFC3339Nano, at)
	return t, id, err
}

// linkNext tells the client where the next page is.
func linkNext(w http.ResponseWriter, r *http.Request, after string) {
	u := *r.URL
	q := u.Query()
	q.Set("after", after)
	u.RawQuery = q.Encode()
	w.Header().Set("Link", fmt.Sprintf("<%s>; rel=\"next\"", u.String()))
}
`

// windUp looks over the day's work.
func (a *agent) windUp() {
	a.user(9*time.Minute, "That is enough for today. Go over the diff once more with fresh eyes, fix small things you find, then update CHANGELOG.md and README.md.")
	// The diff of an afternoon is long; the agent looks at it in two parts.
	isStore := func(c change) bool { return strings.HasPrefix(c.path, "internal/store/") }
	all := a.changes
	slices.SortStableFunc(all, func(x, y change) int { return strings.Compare(x.path, y.path) })
	a.changes = slices.DeleteFunc(slices.Clone(all), isStore)
	a.do("", a.bash("git diff --stat && git diff -- . ':!internal/store'", "Changes outside the store", a.diff(), false, 1, 2))
	a.changes = slices.DeleteFunc(slices.Clone(all), func(c change) bool { return !isStore(c) })
	a.do("", a.bash("git diff -- internal/store", "Changes in the store", a.diff(), false, 1, 2))
	a.changes = all
	a.edit("Three things. `AtBerthBetween` says \"at any time in\" but leaves out that touching stays don't count; a word on that.", "internal/store/calls.go", "// AtBerthBetween", "// [from, to), in order of arrival.", "// [from, to), in order of arrival. One that leaves at from does not count.")
	a.do("", a.see(planner, a.line(planner, "// Plan finds", "//"), 50))
	a.edit("Second, `Plan` returns the tide error bare while `free` wraps now.", planner, ") Plan(", "\t\treturn nil, err\n\t}\n\tvar choices", "\t\treturn nil, fmt.Errorf(\"tides for call %d: %w\", c.ID, err)\n\t}\n\tvar choices")
	a.edit("Third, `sort.Slice` is not stable, so two berths with one score may change places from run to run.", planner, ") Plan(", "sort.Slice(choices, func(i, j int) bool { return choices[i].Score > choices[j].Score })", "sort.SliceStable(choices, func(i, j int) bool { return choices[i].Score > choices[j].Score })")
	a.do("", a.testAll(), a.see("CHANGELOG.md"), a.see("README.md"))
	a.edit("", "CHANGELOG.md", "## Unreleased", "- The planner explains which rule refused a berth.", `- A vessel that came the evening before keeps its berth (TestPlanAcrossMidnight).
- Lists by time no longer include the end of the range.
- Errors of the stores say which query they come from.
- Berths have power_kw; the planner minds it for calls that ask for power.
- PATCH for vessels and berths. What Validate finds is answered with 400.
- Lists of calls and invoices are paged, at most 200 an answer.
- The planner explains which rule refused a berth.`)
	a.edit("", "README.md", "## Layout", "- internal/api: the HTTP interface under /v1", "- internal/api: the HTTP interface under /v1; lists of calls and invoices\n  are paged, follow the Link header\n- migrations: applied in order by make migrate")
	a.do("", a.testAll())
	a.do("Looked over and green. Changed on the way: the comment of `CallStore.AtBerthBetween`, the tide error in `Planner.Plan`, and a stable sort of the choices, so that berths with one score keep their order. CHANGELOG.md has seven lines under Unreleased, README.md mentions paging and migrations.\n\nOpen: an index on calls (berth_code, arrives_at); store.Clock and ErrInvalid in the four remaining stores; tests for internal/api, which has none.")
}
