// Package browsertest opens a page in Chromium for tests, with a new profile.
// It collects console messages, exceptions and network requests, so that a test
// can check that there were none. With Main, the tests of a package share one browser.
package browsertest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Page is a page that is open in the browser. Its methods fail the test on
// errors.
type Page struct {
	t       *testing.T
	ctx     context.Context
	address string
	pressed bool // the left button of the mouse

	mu       sync.Mutex
	said     []string
	requests []string
}

// limit is how long a page stays open at most.
const limit = 8 * time.Minute

// Open writes a page to a file and opens it in Chromium at 1280 by 900 pixels.
// It skips the test if Chromium is not installed.
func Open(t *testing.T, content []byte) *Page {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return OpenURL(t, (&url.URL{Scheme: "file", Path: file}).String())
}

// OpenURL opens the page at an address in Chromium at 1280 by 900 pixels, without
// cookies of other tests. It skips the test if Chromium is not installed.
func OpenURL(t *testing.T, address string) *Page {
	t.Helper()
	ctx, cancel := newTab(t)
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx, address: address}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	p.Size(1280, 900)
	p.Do(chromedp.Navigate(p.address))
	return p
}

func (p *Page) listen(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		p.said = append(p.said, fmt.Sprint("console ", ev.Type))
	case *runtime.EventExceptionThrown:
		text := ev.ExceptionDetails.Text
		if ev.ExceptionDetails.Exception != nil {
			text += ": " + ev.ExceptionDetails.Exception.Description
		}
		p.said = append(p.said, "exception "+text)
	case *log.EventEntryAdded:
		p.said = append(p.said, fmt.Sprint(ev.Entry.Level, " ", ev.Entry.Text, " ", ev.Entry.URL))
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, ev.Request.URL)
	}
}

// Do runs actions, for at most 90 seconds.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.do("browser", actions...)
}

func (p *Page) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, wait)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// Run runs f as a subtest; failures of the page's methods belong to it.
func (p *Page) Run(name string, f func(t *testing.T)) {
	whole := p.t
	whole.Run(name, func(t *testing.T) {
		p.t = t
		f(t)
	})
	p.t = whole
}

// Size sets the size of the window, in pixels.
func (p *Page) Size(width, height int64) {
	p.t.Helper()
	p.Do(chromedp.EmulateViewport(width, height))
}

// Media emulates a medium ("print", or "" for the screen) and a color scheme
// ("light" or "dark").
func (p *Page) Media(media, scheme string) {
	p.t.Helper()
	p.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// Drawn waits until the browser has drawn all changes so far.
func (p *Page) Drawn() {
	p.t.Helper()
	Eval[any](p, `new Promise((done) => requestAnimationFrame(() => setTimeout(done)))`)
}

// Eval returns the value of a JavaScript expression, or of its promise.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	await := func(e *runtime.EvaluateParams) { e.AwaitPromise = new(true) }
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, await))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// Silent fails if the page wrote to the console, threw an exception, or requested
// anything except itself. A page of a server may request anything of its own origin.
func (p *Page) Silent() {
	p.t.Helper()
	for _, problem := range p.noises() {
		p.t.Error(problem)
	}
}

// noises returns what Silent reports.
func (p *Page) noises() (problems []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.said {
		problems = append(problems, "browser message: "+s)
	}
	if strings.HasPrefix(p.address, "file:") {
		if len(p.requests) != 1 || p.requests[0] != p.address {
			problems = append(problems, fmt.Sprintf("requests: %q, want only the page itself", p.requests))
		}
		return problems
	}
	for _, r := range p.requests {
		if origin(r) != origin(p.address) {
			problems = append(problems, fmt.Sprintf("request for %.200s, which is not of the page's origin %s", r, origin(p.address)))
		}
	}
	return problems
}

// origin returns the scheme and host of an address.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host
}
