package demo

import (
	"bytes"
	"embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"text/template"
)

// module is the path of the project's Go module.
const module = "example.org/quay"

//go:embed project/*.tmpl
var sources embed.FS

var templates = template.Must(template.New("").
	Funcs(template.FuncMap{"add": func(a, b int) int { return a + b }}).
	ParseFS(sources, "project/*.tmpl"))

// project is a tree of files in memory.
type project struct {
	files map[string]string // by path
}

// paths gives the files in a folder and below, sorted; "" is the whole tree.
func (p *project) paths(under string) []string {
	var out []string
	for path := range p.files {
		if strings.HasPrefix(path, under) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// entity is one kind of thing the service keeps: a struct, a table and a
// handler are generated for each.
type entity struct {
	Name, Var, Recv, Table, Plural, Article, About string

	Fields []field
}

type field struct {
	Name, Type, Col, Words, About string
	Min, Max                      float64 // of floats
	Sample                        string  // a value in tests
	// Filled in by the generator.
	Limit, Rows, Groups, Each, Night int
}

// Arg is the field as the name of an argument.
func (f field) Arg() string {
	head, tail := f.Name[:1], f.Name[1:]
	return strings.ToLower(head) + tail
}

var entities = []entity{
	{Name: "Berth", Var: "berth", Recv: "b", Table: "berths", Plural: "berths", Article: "a", About: "a place at a quay where one vessel can lie", Fields: []field{
		{Name: "Code", Type: "string", Col: "code", Words: "code", About: "as painted on the quay, such as A3", Sample: "A"},
		{Name: "Quay", Type: "string", Col: "quay", Words: "quay", About: "the quay it is part of", Sample: "North quay "},
		{Name: "LengthM", Type: "float64", Col: "length_m", Words: "length", About: "usable length in metres", Min: 20, Max: 420, Sample: "120.5"},
		{Name: "DepthM", Type: "float64", Col: "depth_m", Words: "depth", About: "depth in metres at chart datum", Min: 2, Max: 24, Sample: "6.25"},
		{Name: "CraneReachM", Type: "float64", Col: "crane_reach_m", Words: "crane reach", About: "how far a crane reaches over the edge", Min: 0, Max: 60, Sample: "18.0"},
		{Name: "ShorePower", Type: "bool", Col: "shore_power", Words: "whether there is shore power", About: "a vessel can switch its engines off"},
		{Name: "MaxTugs", Type: "int", Col: "max_tugs", Words: "number of tugs", About: "how many tugs have room beside a vessel", Sample: "2"},
	}},
	{Name: "Vessel", Var: "vessel", Recv: "v", Table: "vessels", Plural: "vessels", Article: "a", About: "a ship that calls at the harbour", Fields: []field{
		{Name: "IMO", Type: "string", Col: "imo", Words: "IMO number", About: "seven digits, never reused", Sample: "93142"},
		{Name: "Name", Type: "string", Col: "name", Words: "name", About: "as registered", Sample: "Rosalind "},
		{Name: "Flag", Type: "string", Col: "flag", Words: "flag", About: "country code of two letters", Sample: "N"},
		{Name: "LengthM", Type: "float64", Col: "length_m", Words: "length over all", About: "in metres", Min: 8, Max: 400, Sample: "92.4"},
		{Name: "BeamM", Type: "float64", Col: "beam_m", Words: "beam", About: "greatest width in metres", Min: 2, Max: 62, Sample: "14.2"},
		{Name: "DraughtM", Type: "float64", Col: "draught_m", Words: "draught", About: "in metres, fully laden", Min: 0.5, Max: 22, Sample: "5.1"},
		{Name: "Hazardous", Type: "bool", Col: "hazardous", Words: "whether the cargo is hazardous", About: "it must lie apart from others"},
	}},
	{Name: "Call", Var: "call", Recv: "c", Table: "calls", Plural: "calls", Article: "a", About: "one visit of a vessel", Fields: []field{
		{Name: "VesselName", Type: "string", Col: "vessel_name", Words: "name of the vessel", About: "as announced by the agent", Sample: "Rosalind "},
		{Name: "BerthCode", Type: "string", Col: "berth_code", Words: "berth", About: "code of the berth, once planned", Sample: "A"},
		{Name: "ArrivesAt", Type: "time.Time", Col: "arrives_at", Words: "arrival", About: "first line ashore"},
		{Name: "DepartsAt", Type: "time.Time", Col: "departs_at", Words: "departure", About: "last line off"},
		{Name: "State", Type: "string", Col: "state", Words: "state", About: "asked, planned, moored or gone", Sample: "asked"},
		{Name: "Tugs", Type: "int", Col: "tugs", Words: "number of tugs", About: "how many were ordered", Sample: "1"},
		{Name: "CargoT", Type: "float64", Col: "cargo_t", Words: "cargo", About: "tonnes to be moved", Min: 0, Max: 90000, Sample: "2400.0"},
	}},
	{Name: "Tide", Var: "tide", Recv: "t", Table: "tides", Plural: "tides", Article: "a", About: "one turn of the tide at a station", Fields: []field{
		{Name: "Station", Type: "string", Col: "station", Words: "station", About: "code of the gauge", Sample: "HOEK"},
		{Name: "At", Type: "time.Time", Col: "at", Words: "time", About: "of high or low water"},
		{Name: "HeightM", Type: "float64", Col: "height_m", Words: "height", About: "in metres above chart datum", Min: -4, Max: 14, Sample: "1.85"},
		{Name: "High", Type: "bool", Col: "high", Words: "whether it is high water", About: "low water otherwise"},
		{Name: "Source", Type: "string", Col: "source", Words: "source", About: "who predicted or measured it", Sample: "table"},
	}},
	{Name: "Tariff", Var: "tariff", Recv: "t", Table: "tariffs", Plural: "tariffs", Article: "a", About: "what a class of vessels pays", Fields: []field{
		{Name: "Class", Type: "string", Col: "class", Words: "class", About: "coaster, bulk, container, cruise", Sample: "coaster"},
		{Name: "CentsPerMetre", Type: "int", Col: "cents_per_metre", Words: "price per metre", About: "in cents, for each metre of length", Sample: "310"},
		{Name: "CentsPerHour", Type: "int", Col: "cents_per_hour", Words: "price per hour", About: "in cents, for each hour begun", Sample: "1875"},
		{Name: "MinimumCents", Type: "int", Col: "minimum_cents", Words: "minimum", About: "in cents, for one call", Sample: "22000"},
		{Name: "ValidFrom", Type: "time.Time", Col: "valid_from", Words: "first day", About: "from midnight local time"},
	}},
	{Name: "Invoice", Var: "invoice", Recv: "i", Table: "invoices", Plural: "invoices", Article: "an", About: "what one call costs", Fields: []field{
		{Name: "Number", Type: "string", Col: "number", Words: "number", About: "counts up within a year", Sample: "2026-00"},
		{Name: "CallID", Type: "int", Col: "call_id", Words: "call", About: "id of the call it is for", Sample: "40"},
		{Name: "TotalCents", Type: "int", Col: "total_cents", Words: "total", About: "in cents, without tax", Sample: "48000"},
		{Name: "TaxRate", Type: "float64", Col: "tax_rate", Words: "tax rate", About: "0.21 for 21 per cent", Min: 0, Max: 0.3, Sample: "0.09"},
		{Name: "IssuedAt", Type: "time.Time", Col: "issued_at", Words: "time of issue", About: "when it was sent"},
		{Name: "Paid", Type: "bool", Col: "paid", Words: "whether it is paid", About: "in full"},
	}},
}

// rule is one of the planner's rules.
type rule struct {
	Name, Key, Words, About             string
	Setting, SettingAbout, SettingWords string
	Default                             float64
	Need, Have                          string
	// Filled in by the generator.
	Wide, Narrow, Low, Middle int
	Cases                     []ruleCase
}

// Type is the type of the setting.
func (rule) Type() string { return "float64" }

// Literal is the rule with its default, in Go.
func (r rule) Literal() string { return fmt.Sprintf("%s{%s: %g}", r.Name, r.Setting, r.Default) }

type ruleCase struct {
	Title, Literal, Berth, Want  string
	Length, Draught, Room, Depth float64
}

var rules = []rule{
	{Name: "DepthClearance", Key: "depth", Words: "water under the keel", About: "keeps water under the keel at low tide", Setting: "MarginM", SettingAbout: "metres left under the keel", SettingWords: "a margin of", Default: 0.6,
		Need: "v.DraughtM + r.MarginM", Have: "b.DepthM + lowest(tides, c.ArrivesAt, c.DepartsAt)"},
	{Name: "LengthFit", Key: "length", Words: "room along the quay", About: "keeps room for the lines fore and aft", Setting: "SpareM", SettingAbout: "metres kept free at the ends", SettingWords: "spare room of", Default: 12,
		Need: "v.LengthM + r.SpareM", Have: "b.LengthM"},
	{Name: "CraneReach", Key: "crane", Words: "reach of the crane", About: "wants the crane to reach the far side of the hold", Setting: "OffsetM", SettingAbout: "metres between fender and crane rail", SettingWords: "an offset of", Default: 2.5,
		Need: "v.BeamM + r.OffsetM", Have: "b.CraneReachM"},
	{Name: "PilotNotice", Key: "pilot", Words: "notice to the pilots", About: "gives the pilots time to send somebody out", Setting: "Hours", SettingAbout: "hours of notice the pilots ask for", SettingWords: "a notice of", Default: 6,
		Need: "r.Hours", Have: "c.ArrivesAt.Sub(c.CreatedAt).Hours()"},
	{Name: "QuietHours", Key: "quiet", Words: "work before the quiet hours", About: "lets noisy cargo finish before the town sleeps", Setting: "TonnesPerHour", SettingAbout: "what two cranes move in an hour", SettingWords: "a pace of", Default: 180,
		Need: "c.CargoT / r.TonnesPerHour", Have: "hoursUntil(c.ArrivesAt, 22)"},
	{Name: "TugRoom", Key: "tugs", Words: "room for tugs", About: "keeps the tugs of neighbours out of each other's way", Setting: "PerVessel", SettingAbout: "tugs assumed where none were ordered", SettingWords: "an assumption of", Default: 1,
		Need: "max(float64(c.Tugs), r.PerVessel)", Have: "float64(b.MaxTugs)"},
}

// newProject generates the project as the session finds it.
func newProject(seed uint64) *project {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := &project{files: make(map[string]string)}
	for _, e := range entities {
		e.Fields = slices.Clone(e.Fields)
		for i := range e.Fields {
			f := &e.Fields[i]
			f.Limit = 50 * (1 + rng.IntN(10))
			f.Groups = 2 + rng.IntN(3)
			f.Each = 2 + rng.IntN(3)
			f.Rows = f.Groups * f.Each
			f.Night = max(0, min(f.Rows-11, 3))
		}
		p.render("internal/model/"+e.Var+".go", "model.go.tmpl", e)
		p.render("internal/store/"+e.Table+".go", "store.go.tmpl", e)
		p.render("internal/store/"+e.Table+"_test.go", "store_test.go.tmpl", e)
		p.render("internal/api/"+e.Table+".go", "api.go.tmpl", e)
	}
	all := slices.Clone(rules)
	for i := range all {
		fillRule(&all[i], rng)
	}
	data := map[string]any{"Rules": all}
	p.render("internal/planner/planner.go", "planner.go.tmpl", data)
	p.render("internal/planner/planner_test.go", "planner_test.go.tmpl", data)
	p.render("internal/planner/rules.go", "rules.go.tmpl", data)
	p.render("internal/planner/rules_test.go", "rules_test.go.tmpl", data)
	p.files["go.mod"] = "module " + module + "\n\ngo 1.26\n\nrequire github.com/jackc/pgx/v5 v5.8.0\n"
	p.files["README.md"] = readme
	p.files["CHANGELOG.md"] = changelog
	p.files["internal/store/store.go"] = storeCommon
	p.files["internal/api/api.go"] = apiCommon
	return p
}

// fillRule gives a rule its steps and its test cases.
func fillRule(r *rule, rng *rand.Rand) {
	r.Narrow = 1 + rng.IntN(3)
	r.Wide = r.Narrow + 2 + rng.IntN(8)
	r.Middle = 2 + rng.IntN(2)
	r.Low = r.Middle + 1 + rng.IntN(3)
	for i, title := range []string{"plenty of it", "just enough", "a little short", "nothing to spare", "much too little"} {
		c := ruleCase{Title: title, Literal: r.Literal(), Want: "Accepted"}
		if i == 2 || i == 4 {
			c.Want = "Refused"
		}
		c.Berth = fmt.Sprintf("%c%d", 'A'+rng.IntN(5), 1+rng.IntN(9))
		c.Length = float64(60+rng.IntN(160)) + 0.5
		c.Draught = float64(30+rng.IntN(70)) / 10
		c.Room = c.Length + float64(40-12*i)
		c.Depth = c.Draught + float64(4-i)*0.7
		r.Cases = append(r.Cases, c)
	}
}

func (p *project) render(path, name string, data any) {
	p.files[path] = execute(name, data)
}

func execute(name string, data any) string {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic(err) // the templates and what goes into them are fixed
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
