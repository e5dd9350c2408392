package readable

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// In a real browser the page has its style, fits a narrow screen, runs nothing
// and asks for nothing.
func TestHTMLInABrowser(t *testing.T) {
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
	var page bytes.Buffer
	if err := session(t, rand.New(rand.NewPCG(1, 2)), append(hostile, "word "+fmt.Sprintf("%0900d", 7))).HTML(&page, nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))
	alloc, cancel := chromedp.NewExecAllocator(limit, opts...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	var mu sync.Mutex
	var said, requests []string
	err := chromedp.Listen(ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventConsoleAPICalled:
			said = append(said, fmt.Sprint("console ", ev.Type))
		case *runtime.EventExceptionThrown:
			said = append(said, "exception "+ev.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			said = append(said, ev.Entry.Text)
		case *network.EventRequestWillBeSent:
			requests = append(requests, ev.Request.URL)
		}
	})
	if err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	address := (&url.URL{Scheme: "file", Path: file}).String()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(360, 800), chromedp.Navigate(address)); err != nil {
		t.Fatal(err)
	}
	for what, expression := range map[string]string{
		"the style is not applied":      `getComputedStyle(document.body).maxWidth === "980px"`,
		"the page is too wide":          `document.documentElement.scrollWidth <= 360`,
		"there are no messages":         `document.querySelectorAll("article").length > 5`,
		"nothing is dimmed":             `document.querySelectorAll(".dimmed").length > 0`,
		"a marker is open":              `document.querySelectorAll(".marker details:not([open])").length > 0`,
		"a link leads nowhere":          `[...document.querySelectorAll("a")].every(a => document.getElementById(a.hash.slice(1)))`,
		"there are scripts or handlers": `document.scripts.length === 0 && ![...document.querySelectorAll("*")].some(e => [...e.attributes].some(a => a.name.startsWith("on")))`,
	} {
		if ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression)); err != nil || !ok {
			t.Errorf("%s (%v)", what, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) > 0 || len(requests) != 1 || requests[0] != address {
		t.Errorf("the browser said %q and asked for %q", said, requests)
	}
}
