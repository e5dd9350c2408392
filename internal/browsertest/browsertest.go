// Package browsertest opens a page in a real browser for tests: Chromium, with
// nothing of the user's. What the page says on its console and what it asks for
// is kept, so that a test can hold it to saying and asking for nothing.
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

// Page is a page open in a real browser. Its methods fail the test that they
// belong to.
type Page struct {
	t       *testing.T
	ctx     context.Context
	address string

	mu       sync.Mutex
	said     []string
	requests []string
}

// Open shows a page, written to a file, in Chromium at 1280 by 900 pixels.
// Without a browser the test is skipped.
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
		t.Skip("no Chromium to test the page in; to get one: apt-get install chromium, or brew install --cask chromium")
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

// Do does these actions, for at most 20 seconds.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// Run is one part of a test, whose failures are its own.
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

// Media makes the page think it is printed ("print"), or that the user wants
// it light or dark.
func (p *Page) Media(media, scheme string) {
	p.t.Helper()
	p.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// Eval gives the value of a JavaScript expression.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// Silent fails if the page complained, or asked for anything but itself.
func (p *Page) Silent() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.said {
		p.t.Errorf("the browser said: %s", s)
	}
	if len(p.requests) != 1 || p.requests[0] != p.address {
		p.t.Errorf("requests: %q, want only the page itself", p.requests)
	}
}
