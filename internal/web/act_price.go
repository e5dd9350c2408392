package web

import (
	"fmt"

	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/policy"
)

// price says what an action does to the price of the next requests.
func (v *visit) price(p policy.Price) *operation.PriceWords {
	return operation.WordsOf(p, v.modelName())
}

// samePrice says that an action does not change the next request.
func (v *visit) samePrice(why string) *operation.PriceWords {
	return &operation.PriceWords{Size: fmt.Sprintf("The next request still has %s.", operation.Tokens(v.s.Context("").Size)), Lines: []string{why}, Free: true}
}

// modelName is the session's model for a person.
func (v *visit) modelName() string {
	if m := v.s.Meta().Model; m != "" {
		return visible.Line(m)
	}
	return "the model"
}
