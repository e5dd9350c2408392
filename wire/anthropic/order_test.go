package anthropic

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// Each letter is a message: u the user, s instructions in the list, a the
// assistant; runs in brackets are hidden under a marker, m.
func TestInstructionsStandBeforeTheAssistant(t *testing.T) {
	for _, test := range []struct{ shown, want string }{
		{"usauau", "usauau"},
		{"us[au]au", "umsau"},
		{"us[auau]u", "umus"},
		{"us[au]usau", "umussau"},
		{"us[a]uau", "umusau"},
		{"usau[sauau]au", "usaumau"},
		{"us[au]sau", "umssau"},
		{"usausus[a]u", "usausumus"}, // the first is the client's own
		{"us[au]", "ums"},
		{"uss[au]au", "umssau"},
	} {
		if got := shownOrder(t, test.shown); got != test.want {
			t.Errorf("%s: got %s, want %s", test.shown, got, test.want)
		}
	}
}

// Whatever is hidden, the provider accepts the request.
func TestInstructionsAreTakenWhateverIsHidden(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for range 2000 {
		var b strings.Builder
		for range 1 + r.IntN(6) {
			b.WriteByte('u')
			if r.IntN(2) == 0 {
				b.WriteByte('s')
			}
			b.WriteByte('a')
		}
		b.WriteByte('u')
		list := b.String()
		var steps []int // where a step starts
		for i := range list {
			if list[i] == 'a' {
				steps = append(steps, i)
			}
		}
		from := r.IntN(len(steps))
		to := len(list) - 1
		if next := from + 1 + r.IntN(len(steps)-from); next < len(steps) {
			to = steps[next]
		}
		list = list[:steps[from]] + "[" + list[steps[from]:to] + "]" + list[to:]
		shownOrder(t, list)
	}
}

// shownOrder encodes a view both ways, validates the requests, and returns
// the order of the messages sent.
func shownOrder(t *testing.T, shown string) string {
	t.Helper()
	var raws []string
	lo, hi := -1, -1
	for _, c := range shown {
		n := len(raws)
		switch c {
		case '[':
			lo = n
		case ']':
			hi = n
		case 'u':
			raws = append(raws, fmt.Sprintf(`{"role":"user","content":"u%d"}`, n))
		case 's':
			raws = append(raws, fmt.Sprintf(`{"role":"system","content":"s%d"}`, n))
		case 'a':
			raws = append(raws, fmt.Sprintf(`{"role":"assistant","content":"a%d"}`, n))
		}
	}
	req := decode(t, `{"model":"m","max_tokens":9,"messages":[`+strings.Join(raws, " , ")+`]}`)
	v := viewOf(req.Messages)
	if lo >= 0 {
		mark(v, lo, hi, "m")
	}
	body, err := Codec.EncodeRequest(req, v)
	if err != nil {
		t.Fatalf("%s: %v", shown, err)
	}
	list, err := EncodeMessages(v)
	if err != nil {
		t.Fatalf("%s: %v", shown, err)
	}
	sent := decode(t, string(body))
	if len(list) != len(sent.Messages) {
		t.Fatalf("%s: %d messages one way, %d the other", shown, len(list), len(sent.Messages))
	}
	var order strings.Builder
	for i := range sent.Messages {
		if got, want := message(t, string(list[i])).Blocks[0].Text, sent.Messages[i].Blocks[0].Text; got != want {
			t.Errorf("%s: message %d is %q one way, %q the other", shown, i, want, got)
		}
		order.WriteByte(sent.Messages[i].Blocks[0].Text[0])
	}
	if lo >= 0 && !strings.Contains(shown, "sus[") {
		if err := Codec.Validate(sent, furl.Model{SystemInside: true}); err != nil {
			t.Errorf("%s was sent as %s: %v", shown, order.String(), err)
		}
	}
	return order.String()
}
