package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// shared is the browser of a package whose TestMain calls Main.
var shared struct {
	on    bool
	start sync.Once
	ctx   context.Context // of the browser; nil: not started
	stop  func()
	err   error
}

// Main runs the tests of a package, which share one browser. Each page has its own
// cookies and storage. Without Main, each page starts a browser, which takes a second.
//
//	func TestMain(m *testing.M) { os.Exit(browsertest.Main(m)) }
func Main(m *testing.M) int {
	shared.on = true
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	return code
}

// newTab returns the context of a new tab, and a function that closes it.
func newTab(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	path := chromium()
	if path == "" {
		t.Skip("Chromium is not installed: apt-get install chromium, or brew install --cask chromium")
	}
	if !shared.on {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		tab, stop := newBrowser(ctx, path, t.TempDir())
		return tab, func() { stop(); cancel() }
	}
	shared.start.Do(func() { shared.err = startShared(path) })
	if shared.err != nil {
		t.Fatalf("start %s: %v", path, shared.err)
	}
	ctx, cancel := context.WithTimeout(shared.ctx, limit)
	tab, stop := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	return tab, func() { stop(); cancel() }
}

// newBrowser returns the context of a browser that starts with its first use, and a
// function that stops it.
func newBrowser(ctx context.Context, path, profile string) (context.Context, context.CancelFunc) {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile))
	alloc, cancel := chromedp.NewExecAllocator(ctx, opts...)
	browser, stop := chromedp.NewContext(alloc)
	return browser, func() { stop(); cancel() }
}

// startShared starts the browser that all tests of the package share.
func startShared(path string) error {
	profile, err := os.MkdirTemp("", "browsertest")
	if err != nil {
		return err
	}
	ctx, stop := newBrowser(context.Background(), path, profile)
	shared.stop = func() {
		_ = chromedp.Cancel(ctx) // waits for its end, so that nothing writes to the profile
		stop()
		_ = os.RemoveAll(profile)
	}
	if err := chromedp.Do(ctx); err != nil {
		return fmt.Errorf("first tab: %w", err)
	}
	shared.ctx = ctx
	return nil
}

// chromium returns the path of the browser, or "".
func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	return ""
}
