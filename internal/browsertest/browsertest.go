// Package browsertest opens a page in Chromium for tests, with a new profile.
// It collects console messages, exceptions and network requests, so that a test
// can check that there were none.
package browsertest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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

	mu       sync.Mutex
	said     []string
	requests []string
}

// Open writes a page to a file and opens it in Chromium at 1280 by 900 pixels.
// It skips the test if Chromium is not installed.
func Open(t *testing.T, content []byte) *Page {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("Chromium is not installed: apt-get install chromium, or brew install --cask chromium")
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))
	alloc, cancel := chromedp.NewExecAllocator(limit, opts...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	p.Size(1280, 900)
	p.address = (&url.URL{Scheme: "file", Path: file}).String()
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
		p.said = append(p.said, fmt.Sprint(ev.Entry.Level, " ", ev.Entry.Text))
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, ev.Request.URL)
	}
}

// Do runs actions, for at most 20 seconds.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
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

// Silent fails if the page wrote to the console, threw an exception, or
// requested anything except itself.
func (p *Page) Silent() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.said {
		p.t.Errorf("browser message: %s", s)
	}
	if len(p.requests) != 1 || p.requests[0] != p.address {
		p.t.Errorf("requests: %q, want only the page itself", p.requests)
	}
}
