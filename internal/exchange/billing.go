package exchange

import (
	"cmp"

	"github.com/furlhq/furl/wire"
)

// Claude Code's instructions start with a line that changes with each request. Anthropic
// caches a prompt as if the line were constant; at other providers no request reads what
// an earlier one has cached. With BeginOptions.HoldBilling, all requests of a session are
// sent with the line of its first one.

// settingBillingLine is the setting with the billing line of a session's first request.
// It is set with that request and never changed.
const settingBillingLine = "billing_line"

// maxBillingLine is the size in bytes of the longest line that is held. Claude Code's has
// about 90.
const maxBillingLine = 1 << 10

// holdBilling sets the billing line of the exchange, and that of the session if it has
// none. The line of an exchange does not change if it is prepared again: if two first
// requests are in flight, both are sent with their own line, and none is sent twice.
func (t *tx) holdBilling(x *Exchange) {
	if !x.holdsBilling {
		return
	}
	held := t.Meta().Settings[settingBillingLine]
	if x.billingLine == "" {
		line := wire.For(x.original.Format).BillingLine(x.original.Body)
		if line == "" || len(line) > maxBillingLine {
			return
		}
		x.billingLine = cmp.Or(held, line)
	}
	if held != "" {
		return
	}
	m := t.Meta().Clone()
	if m.Settings == nil {
		m.Settings = make(map[string]string)
	}
	m.Settings[settingBillingLine] = x.billingLine
	t.SetMeta(m)
}

// withBillingLine returns a body to send with the session's billing line.
func (x *Exchange) withBillingLine(body []byte) []byte {
	if x.billingLine == "" {
		return body
	}
	if held, ok := wire.For(x.original.Format).WithBillingLine(body, x.billingLine); ok {
		return held
	}
	return body
}
