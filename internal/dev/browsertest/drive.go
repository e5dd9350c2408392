package browsertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// wait is how long actions may take, on a machine that many other programs use. Only a
// failure takes that long.
const wait = 90 * time.Second

// Key presses keys: characters, or those of package kb such as kb.Enter.
func (p *Page) Key(keys string) {
	p.t.Helper()
	p.Do(chromedp.KeyEvent(keys))
}

// Click waits until the first element that matches a CSS selector is visible, and
// clicks in its middle.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// Text waits until the first element that matches a CSS selector is visible, and returns
// its text as it is drawn.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	p.do("text of "+selector, chromedp.WaitVisible(chromedp.CSS(selector)))
	ctx, cancel := context.WithTimeout(p.ctx, wait)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
	if err != nil {
		p.t.Fatalf("text of %s: %v", selector, err)
	}
	return text
}

// Wait waits until a JavaScript expression is true, also across navigations. After 90
// seconds it fails the test.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, wait)
	defer cancel()
	var last error
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")", chromedp.EvalIgnoreExceptions))
		if ok && err == nil {
			return
		}
		if ctx.Err() == nil && err != nil {
			last = err // while the browser navigates, or the expression throws
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			p.t.Fatalf("not true after %s: %s (last error: %v)", wait, expression, last)
		}
	}
}

// Throttle makes the processor slower by a factor, for the page.
func (p *Page) Throttle(factor float64) {
	p.t.Helper()
	p.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: factor})
		return err
	}))
}

// Leave evaluates a JavaScript expression that opens another page, such as
// history.back(). It does not wait for that page. The browser answers before it evaluates
// the expression: an evaluation that is still under way when the page goes is an error.
func (p *Page) Leave(expression string) {
	p.t.Helper()
	Eval[any](p, "void setTimeout(() => { "+expression+" })")
}

// Go opens another page.
func (p *Page) Go(address string) {
	p.t.Helper()
	p.Do(chromedp.Navigate(address))
}

// Screenshot writes the viewport as name.png to the folder that $FURL_SCREENSHOTS names.
// Without the variable it does nothing.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	dir := os.Getenv("FURL_SCREENSHOTS")
	if dir == "" {
		return
	}
	p.Drawn()
	ctx, cancel := context.WithTimeout(p.ctx, wait)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatalf("screenshot %s: %v", name, err)
	}
	file := filepath.Join(dir, filepath.FromSlash(name)+".png")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// Point moves the mouse to a place in the first element that matches a CSS selector: x and
// y are shares of its width and height. Then it presses or releases the left button, if
// action is "press" or "release"; "move" only moves, also while the button is pressed.
func (p *Page) Point(action, selector string, x, y float64) {
	p.t.Helper()
	box := Eval[[]float64](p, fmt.Sprintf(`(b => [b.left, b.top, b.width, b.height])(document.querySelector(%q).getBoundingClientRect())`, selector))
	e := input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: box[0] + x*box[2], Y: box[1] + y*box[3]}
	send := chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, input.DispatchMouseEvent, e)
		return err
	})
	if p.pressed {
		e.Button, e.Buttons = input.MouseButtonLeft, 1
	}
	p.do("mouse on "+selector, send)
	switch action {
	case "press":
		p.pressed = true
		e.Type, e.Button, e.Buttons, e.ClickCount = input.DispatchMouseEventTypeMousePressed, input.MouseButtonLeft, 1, 1
	case "release":
		p.pressed = false
		e.Type, e.Button, e.Buttons, e.ClickCount = input.DispatchMouseEventTypeMouseReleased, input.MouseButtonLeft, 0, 1
	default:
		return
	}
	p.do(action+" on "+selector, send)
}

// Still emulates a person's wish for reduced motion, or its absence.
func (p *Page) Still(reduced bool) {
	p.t.Helper()
	value := "no-preference"
	if reduced {
		value = "reduce"
	}
	p.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: value}},
		})
		return err
	}))
}
