package catalog_test

import (
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/price"
)

// A user's file overrides the built-in catalogue.
func Example() {
	mine, err := catalog.Parse("my-models.yaml", []byte(`
models:
  - id: claude-opus-4-5   # a price of our own
    prices: {input: 4.5}
  - id: house-model
    window: 65536
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	models, err := catalog.Default().Merge(mine)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, _ := models.Lookup("anthropic/claude-opus-4.5-20251101")
	fmt.Println(m.ID, m.Window)
	fmt.Printf("$%.4f\n", price.OfRequest(&m, furl.Usage{Input: 1000, CacheRead: 50_000, Output: 500}, time.Now()))
	_, known := models.Lookup("gpt-nobody-knows")
	fmt.Println(known)
	// Output:
	// claude-opus-4-5 200000
	// $0.0420
	// false
}
