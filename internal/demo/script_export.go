package demo

import (
	"fmt"
	"strings"
	"time"
)

// export adds a file for the bookkeeper, and finds a cent that is missing.
func (a *agent) export() {
	a.user(6*time.Minute+10*time.Second, "The bookkeeper wants invoices as CSV: number, call, total, tax, gross, issued, paid, in that order, amounts with two decimals. GET /v1/invoices.csv with the same filters as the list. And she says that some gross amounts are a cent off, so have a look at how tax is computed.")
	invoices := entities[5]
	a.do("", a.see(modelOf(invoices)), a.grep(`(?i)taxrate|tax_rate|gross`, ""))
	a.do("There is no gross amount anywhere: clients compute it from total_cents and tax_rate. I'd rather have it in one place. Let me see how the API gives invoices out, and what a tax rate looks like in the database.",
		a.see(apiOf(invoices)),
		a.bash(`psql quay_dev -c "SELECT number, total_cents, tax_rate, total_cents * tax_rate AS tax FROM invoices ORDER BY id DESC LIMIT 16"`, "Newest invoices", a.taxes(), false, 1, 3))
	a.addAfter("Half a cent appears in about every fourth row. Rounding halves up, once per invoice, is what the tax office asks for; a float times an int and then a conversion cuts off instead.",
		modelOf(invoices), "func (i *Invoice) Validate", `// TaxCents is the tax on the total, rounded to the cent, halves up.
func (i *Invoice) TaxCents() int {
	// The rate has at most four decimals; integers keep halves exact.
	rate := int(math.Round(i.TaxRate * 10000))
	return (i.TotalCents*rate + 5000) / 10000
}

// GrossCents is the total with tax.
func (i *Invoice) GrossCents() int { return i.TotalCents + i.TaxCents() }`)
	a.edit("", modelOf(invoices), "import (", "\t\"fmt\"\n", "\t\"fmt\"\n\t\"math\"\n")
	test := "internal/model/invoice_test.go"
	a.write("Package model has no tests yet; this deserves one.", test, invoiceTest)
	a.do("", a.bash("go test -v ./internal/model/", "Run the tests of model", fmt.Sprintf("=== RUN   TestInvoiceTax\n    invoice_test.go:%d: 12345 at 0.09: got 1111, want 1112\n--- FAIL: TestInvoiceTax (0.00s)\nFAIL\nFAIL\t%s/internal/model\t0.004s\n", a.line(test, "func TestInvoiceTax", "t.Errorf"), module), true, 4, 9))
	a.do("12345 × 0.09 is 1111.05, so 1111 is right and my expectation was not: I wrote the table too quickly.", a.see(test))
	a.edit("", test, "cases := []struct", "{12345, 0.09, 1112}", "{12345, 0.09, 1111}")
	a.edit("And one whose half is exact: 4350 × 0.09 = 391.5.", test, "cases := []struct", "{50, 0.09, 5},", "{50, 0.09, 5},\n\t\t{4350, 0.09, 392},")
	a.do("", a.bash("go test -v ./internal/model/", "Run the tests of model", fmt.Sprintf("=== RUN   TestInvoiceTax\n--- PASS: TestInvoiceTax (0.00s)\nPASS\nok  \t%s/internal/model\t0.003s\n", module), false, 4, 9))
	a.edit("Now the route. `list` chooses the filter and writes JSON in one function; the choice moves to a function of its own that both use.",
		apiOf(invoices), "func (h *InvoiceHandler) list", "func (h *InvoiceHandler) list(w http.ResponseWriter, r *http.Request) error {\n\tq := r.URL.Query()\n\tvar found []*model.Invoice\n\tvar err error\n",
		"func (h *InvoiceHandler) list(w http.ResponseWriter, r *http.Request) error {\n\tfound, err := h.find(r)\n\tif err != nil {\n\t\treturn err\n\t}\n\tpage := make([]invoiceJSON, 0, len(found))\n\tfor _, i := range found {\n\t\tpage = append(page, toInvoiceJSON(i))\n\t}\n\treturn writeJSON(w, http.StatusOK, page)\n}\n\n// find returns the invoices that the filters of a request ask for.\nfunc (h *InvoiceHandler) find(r *http.Request) ([]*model.Invoice, error) {\n\tq := r.URL.Query()\n\tvar found []*model.Invoice\n\tvar err error\n")
	a.edit("", apiOf(invoices), ") find(", "\tif err != nil {\n\t\treturn err\n\t}\n\tpage := make([]invoiceJSON, 0, len(found))\n\tfor _, i := range found {\n\t\tpage = append(page, toInvoiceJSON(i))\n\t}\n\treturn writeJSON(w, http.StatusOK, page)\n", "\treturn found, err\n")
	a.do("", a.testAll(a.broken("api", apiOf(invoices), ") find(", "return badRequest", "not enough return values\n\thave (error)\n\twant ([]*model.Invoice, error)")...))
	a.do("", a.see(apiOf(invoices), a.line(apiOf(invoices), "// find returns", "//"), 45))
	for _, f := range invoices.Fields {
		switch f.Type {
		case "float64":
			a.edit("", apiOf(invoices), ") find(", "\t\t\treturn badRequest(\"min_"+f.Col, "\t\t\treturn nil, badRequest(\"min_"+f.Col)
		case "time.Time":
			a.edit("", apiOf(invoices), ") find(", "\t\t\treturn badRequest(\""+f.Col, "\t\t\treturn nil, badRequest(\""+f.Col)
		}
	}
	a.edit("", apiOf(invoices), ") find(", "\t\treturn badRequest(\"a list of", "\t\treturn nil, badRequest(\"a list of")
	a.write("", "internal/api/export.go", exportGo)
	a.edit("", apiOf(invoices), ") Register(", "\tmux.Handle(\"GET /v1/invoices/{id}\"", "\tmux.Handle(\"GET /v1/invoices.csv\", handle(h.export))\n\tmux.Handle(\"GET /v1/invoices/{id}\"")
	a.do("", a.testAll(), a.bash(`curl -s 'localhost:8340/v1/invoices.csv?min_tax_rate=0.05&limit=4'`, "Try the export", a.csv(), false, 1, 3))
	a.do(fmt.Sprintf("`GET /v1/invoices.csv` takes the filters of the list (internal/api/export.go:%d). Tax is computed in one place now, `Invoice.TaxCents` and `GrossCents` in internal/model/invoice.go, rounded to the cent with halves up; TestInvoiceTax has the cases that were a cent off.", a.line("internal/api/export.go", "// export writes", "//")))
}

func (a *agent) taxes() string {
	b := &strings.Builder{}
	b.WriteString("   number    | total_cents | tax_rate |    tax\n-------------+-------------+----------+-----------\n")
	for i := range 16 {
		total, rate := 20000+50*a.rng.IntN(900), 0.21
		if a.rng.IntN(3) == 0 {
			rate = 0.09
		}
		fmt.Fprintf(b, " 2026-%06d | %11d | %8.2f | %9.2f\n", 418-i, total, rate, float64(total)*rate)
	}
	b.WriteString("(16 rows)\n")
	return b.String()
}

func (a *agent) csv() string {
	b := &strings.Builder{}
	b.WriteString("number,call,total,tax,gross,issued,paid\n")
	for i := range 4 {
		total := 20000 + 50*a.rng.IntN(900)
		tax := (total*21 + 50) / 100
		fmt.Fprintf(b, "2026-%06d,%d,%.2f,%.2f,%.2f,2026-02-%02d,%v\n", 402+i, 1031+7*i, float64(total)/100, float64(tax)/100, float64(total+tax)/100, 11+2*i, i%3 == 0)
	}
	return b.String()
}

const invoiceTest = `package model

import "testing"

func TestInvoiceTax(t *testing.T) {
	cases := []struct {
		total int
		rate  float64
		want  int
	}{
		{0, 0.21, 0},
		{10000, 0.21, 2100},
		{12345, 0.09, 1112},
		{50, 0.09, 5},
		{48050, 0.21, 10091},
	}
	for _, c := range cases {
		i := Invoice{TotalCents: c.total, TaxRate: c.rate}
		if got := i.TaxCents(); got != c.want {
			t.Errorf("%d at %.2f: got %d, want %d", c.total, c.rate, got, c.want)
		}
		if got := i.GrossCents(); got != c.total+i.TaxCents() {
			t.Errorf("%d at %.2f: gross %d does not add up", c.total, c.rate, got)
		}
	}
}
`

const exportGo = `package api

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// exportHeader is the order of columns that bookkeeping asks for.
var exportHeader = []string{"number", "call", "total", "tax", "gross", "issued", "paid"}

// export writes the invoices that the filters ask for as CSV.
func (h *InvoiceHandler) export(w http.ResponseWriter, r *http.Request) error {
	found, err := h.find(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", "attachment; filename=\"invoices.csv\"")
	out := csv.NewWriter(w)
	if err := out.Write(exportHeader); err != nil {
		return err
	}
	for _, i := range found {
		err := out.Write([]string{
			i.Number,
			strconv.Itoa(i.CallID),
			euros(i.TotalCents),
			euros(i.TaxCents()),
			euros(i.GrossCents()),
			i.IssuedAt.Format(time.DateOnly),
			strconv.FormatBool(i.Paid),
		})
		if err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// euros writes an amount with two decimals.
func euros(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
`
