package web_test

import (
	"fmt"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// The transcript as the model sees it is live too: new messages appear, and after a reduction
// it has the rows that the model sees. The size in the ribbon and the meter stay the same.
func TestBrowserLiveModel(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 8, 300))
	b := browsertest.OpenURL(t, serve(t, all, nil)+"/furl/sessions/"+string(s.ID())+"?see=model")
	b.Wait(`document.querySelector('#ribbon').dataset.request == '0'`)
	sessiontest.AppendAll(t, s, []*furl.Message{sessiontest.Message(t, furl.RoleUser, sessiontest.Text("said while the page is open"))})
	b.Wait(fmt.Sprintf(`document.getElementById('m%d')?.innerText.includes('said while')`, s.Head()))
	if _, err := s.Reduce(t.Context(), session.ReduceOptions{Policy: "rolling-mask-5"}); err != nil {
		t.Fatal(err)
	}
	b.Wait(`document.querySelectorAll('#transcript .part.placeholder, #transcript .part .placeholder, #transcript .masked').length > 0 || document.getElementById('transcript').innerText.includes('masked')`)
	b.Wait(fmt.Sprintf(`!document.getElementById('m%d') && document.getElementById('transcript').innerText.includes('said while')`, s.Head()))
	b.Wait(`document.querySelector('#meter strong').innerText + ' tokens' == document.querySelector('#ribbon .used').innerText.replace(/ \(.*/, '')`)
	b.Silent()
}

// The time until the prompt cache expires counts down, and then the meter is loaded again.
func TestBrowserCacheClock(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 2, 300))
	b := browsertest.OpenURL(t, serve(t, all, nil)+"/furl/sessions/"+string(s.ID()))
	b.Wait(`document.querySelector('#ribbon').dataset.request == '0'`)
	browsertest.Eval[any](b, `document.getElementById('meter').innerHTML = '<p data-left="3661">cache expires in 1:01:01 · next input $0.09</p>'`)
	b.Wait(`/^cache expires in 1:0[01]:\d\d · next input \$0\.09$/.test(document.querySelector('[data-left]').textContent) && !document.querySelector('[data-left]').textContent.includes('1:01:01')`)
	browsertest.Eval[any](b, `document.getElementById('meter').innerHTML = '<p data-left="2">cache expires in 0:02</p>'`)
	b.Wait(`!document.querySelector('[data-left]') && document.querySelector('#meter .size')`)
	b.Silent()
}
