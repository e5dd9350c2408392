package web_test

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/dev/browsertest"
)

// A person hides, undoes, expands, pins, previews a policy and changes settings, by clicks
// and keys, and sees the price first and the change after it.
func TestBrowserActing(t *testing.T) {
	a := newActing(t, "furl chat")
	b := browsertest.OpenURL(t, a.url+"?at=3.0")
	panel := func(text string) {
		t.Helper()
		b.Wait(`document.getElementById('act').open && document.getElementById('act').innerText.includes(` + quoted(text) + `)`)
	}
	closed := func() { t.Helper(); b.Wait(`!document.getElementById('act').open`) }
	confirm := func() { t.Helper(); b.Click("#act form button.primary") }
	b.Wait(`document.querySelector('#inspector [data-for="3.0"]')`)

	b.Run("hide", func(t *testing.T) {
		b.Click(`#inspector a[href*="act/hide?at=3.0"]:not([href*=steps])`)
		panel("Each later request costs")
		b.Screenshot("act-hide")
		confirm()
		panel("Hid the")
		b.Wait(`document.querySelector('.part[data-at="3.0"]').classList.contains('masked')`)
		b.Wait(`document.querySelector('#inspector a[href*="act/expand?at=3.0"]')`)
		b.Screenshot("act-hidden")
	})
	b.Run("undo by its key", func(t *testing.T) {
		b.Key("u")
		panel("Undid reduction")
		b.Wait(`!document.querySelector('.part[data-at="3.0"]').classList.contains('masked')`)
		b.Key("\x1b")
		closed()
	})
	b.Run("expand by its key", func(t *testing.T) {
		b.Wait(`document.querySelector('#inspector a[href*="act/hide?at=3.0"]')`)
		if status, text := a.do("hide", "at", "3.0"); status != 200 {
			t.Fatal(status, text)
		}
		b.Wait(`document.querySelector('#inspector a[href*="act/expand?at=3.0"]')`)
		b.Key("e")
		panel("sees the original again")
		confirm()
		panel("This has no undo")
		b.Wait(`!document.querySelector('.part[data-at="3.0"]').classList.contains('masked')`)
		b.Click("#act [data-close]")
		closed()
	})
	b.Run("pin by its key", func(t *testing.T) {
		b.Key("p")
		panel("No policy hides it")
		confirm()
		panel("Pinned the result")
		b.Wait(`document.querySelector('#inspector header').innerText.includes('pinned')`)
		b.Key("u")
		panel("Preferred") // as the expansion has left it
		b.Key("\x1b")
		closed()
	})
	b.Run("preview and apply a policy", func(t *testing.T) {
		b.Click(`.above a[href$="act/reduce"]`)
		panel("Choose a policy")
		b.Click(`#act input[value="rolling-mask-5"]`)
		panel("mask would hide")
		b.Screenshot("act-preview")
		confirm()
		panel("Applied rolling-mask-5")
		b.Wait(`document.querySelector('.part[data-at="5.0"].masked')`)
		b.Screenshot("act-reduced")
		b.Click("#act form[data-undo] button")
		panel("Undid reduction")
		b.Wait(`!document.querySelector('.part[data-at="5.0"].masked')`)
		b.Click("#act [data-close]")
		closed()
	})
	b.Run("settings", func(t *testing.T) {
		b.Click(`.above a[href$="act/settings"]`)
		panel("What is hidden stays hidden")
		browsertest.Eval[any](b, `document.querySelector('#act [name=context_limit]').value = '64000'`)
		b.Screenshot("act-settings")
		confirm()
		panel("context_limit = 64000")
		b.Wait(`document.getElementById('meter').innerText.includes('64,000')`)
		b.Click("#act [data-close]")
		closed()
	})
	b.Run("continue from here and go back", func(t *testing.T) {
		b.Click(`#inspector a[href*="act/rewind"]`)
		panel("Rewind to record 3")
		confirm()
		b.Wait(`document.querySelector('#act [data-done]')`)
		panel("continues after 3 messages")
		b.Wait(`!document.getElementById('m61') && document.getElementById('m3')`)
		b.Screenshot("act-rewound")
		b.Key("u")
		b.Wait(`document.getElementById('m61')`)
		panel("continues after 61 messages")
	})
	b.Run("narrow and dark", func(t *testing.T) {
		b.Click("#act [data-close]")
		closed()
		b.Size(390, 844)
		b.Media("", "dark")
		b.Click(`.above a[href$="act/branches"]`)
		panel("The conversation has one branch.")
		b.Screenshot("act-branches-390")
	})
	b.Silent()
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `\'`) + "'" }
