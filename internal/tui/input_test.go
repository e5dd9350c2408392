package tui

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInputLines(t *testing.T) {
	tt := newTester(t, newScript(say("ok")), 80, 24)
	tt.types("one")
	tt.keys("alt+enter")
	tt.types("two")
	tt.keys("ctrl+j")
	tt.types(`three\`)
	tt.keys("enter")
	tt.types("four")
	tt.shows("❯ one\n  two\n  three\n  four\n")
	for range 10 {
		tt.keys("alt+enter")
	}
	if rows := tt.m.input.area.Height(); rows != maxInputRows {
		t.Errorf("the input has %d rows, expected %d", rows, maxInputRows)
	}
	tt.keys("enter")
	tt.settle()
	if want := "one\ntwo\nthree\nfour" + strings.Repeat("\n", 10); tt.conv.sent() != want {
		t.Errorf("sent %q, expected %q", tt.conv.sent(), want)
	}
}

func TestPaste(t *testing.T) {
	long := strings.Repeat("line\n", 119) + "line"
	wide := strings.Repeat("字", 2001)
	for _, test := range []struct{ name, paste, input, sent string }{
		{"short", "a\r\nb\x1b[31m\x00\x9bc", "a\nb[31mc", "a\nb[31mc"},
		{"long", long, "[pasted 120 lines]", long},
		{"wide", wide, "[pasted 2001 characters]", wide},
		{"tabs", "\tx\x07", "[pasted 1 characters]", "\tx"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tt := newTester(t, newScript(say("ok")), 80, 24)
			tt.pastes(test.paste)
			if test.name == "tabs" {
				test.input = "[pasted 2 characters]"
			}
			tt.inputIs(test.input)
			tt.keys("enter")
			tt.settle()
			if tt.conv.sent() != test.sent {
				t.Errorf("sent %q, expected %q", tt.conv.sent(), test.sent)
			}
		})
	}

	tt := newTester(t, newScript(say("ok")), 80, 24)
	tt.types("a ")
	tt.pastes(long)
	tt.types(" b ")
	tt.pastes(strings.ReplaceAll(long, "line", "[pasted 120 lines]"))
	tt.inputIs("a [pasted 120 lines] b [pasted 120 lines, 2]")
	tt.keys("backspace") // removes the label as a whole
	tt.inputIs("a [pasted 120 lines] b ")
	tt.keys("enter")
	tt.settle()
	if want := "a " + long + " b "; tt.conv.sent() != want {
		t.Errorf("sent %q", tt.conv.sent())
	}

	// Of any size.
	tt = newTester(t, newScript(say("ok")), 80, 24)
	huge := strings.Repeat("0123456789abcde\n", 500_000)
	tt.pastes(huge)
	tt.inputIs("[pasted 500000 lines]")
	tt.keys("enter")
	tt.settle()
	if tt.conv.sent() != huge {
		t.Errorf("sent %d bytes, expected %d", len(tt.conv.sent()), len(huge))
	}
}

const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

func TestPasteImage(t *testing.T) {
	dir := t.TempDir()
	png, err := base64.StdEncoding.DecodeString(onePixel)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain, spaces := write("a.png", png), write("b [c].PNG", png)
	fake, big := write("fake.png", []byte("no image")), write("big.jpg", append([]byte("\xff\xd8\xff"), make([]byte, maxImage)...))

	tt := newTester(t, newScript(say("ok")), 80, 24)
	tt.pastes(plain + "\n")
	tt.types(" and ")
	tt.pastes("'" + spaces + "' " + plain)
	tt.inputIs("[image 1: a.png] and [image 2: b (c).PNG] [image 3: a.png]")
	tt.keys("backspace")
	tt.inputIs("[image 1: a.png] and [image 2: b (c).PNG] ")
	tt.keys("enter")
	tt.settle()
	in := tt.conv.inputs[0]
	if len(in.Media) != 2 || in.Media[0].Type != "image/png" || string(in.Media[1].Data) != string(png) {
		t.Errorf("sent %d images", len(in.Media))
	}

	for _, path := range []string{strings.ReplaceAll(spaces, " ", `\ `), `"` + plain + `"`, "file://" + plain} {
		in := newInput(">")
		if err := in.paste(path); err != nil || in.images() != 1 {
			t.Errorf("paste %s: %d images, %v", path, in.images(), err)
		}
	}
	for _, path := range []string{fake, big} {
		in := newInput(">")
		if err := in.paste(path); err == nil || in.images() != 0 || in.text() != path {
			t.Errorf("paste %s: %d images, error %v, input %q", path, in.images(), err, in.text())
		}
	}
	for _, text := range []string{"a.png", filepath.Join(dir, "none.png"), plain + " is an image", dir, ""} {
		if p := imagePaths(text); p != nil {
			t.Errorf("%q has images %q", text, p)
		}
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"one", "two\nlines", "two\nlines", " ", "three\x1b\xff"} {
		if err := h.add(s); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	// A line that was not written completely is ignored, and does not damage the next.
	f, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	fmt.Fprint(f, `"torn`)
	f.Close()
	os.Chmod(path, 0o644)
	h, err = openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.add("four"); err != nil {
		t.Fatal(err)
	}
	h, err = openHistory(path)
	if got := fmt.Sprintf("%q", h.entries); err != nil || got != `["one" "two\nlines" "three\x1b�" "four"]` {
		t.Errorf("entries %s, error %v", got, err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}

	tt := newTesterWith(t, newScript(say("ok")), h, 80, 24)
	tt.types("draft")
	tt.keys("up")
	tt.inputIs("four")
	tt.keys("up")
	tt.inputIs("three")
	tt.keys("up")
	tt.inputIs("two\nlines")
	tt.keys("up") // within the input
	tt.inputIs("two\nlines")
	tt.keys("up", "up", "up")
	tt.inputIs("one")
	tt.keys("down", "down", "down", "down", "down")
	tt.inputIs("draft")
	tt.keys("ctrl+u", "ctrl+r")
	tt.types("LI")
	tt.shows("search: LI  two lines")
	tt.keys("enter")
	tt.inputIs("two\nlines")

	// The file does not grow without bound.
	for i := range 2*maxHistory + 10 {
		h.add(fmt.Sprint("entry ", i))
	}
	h, err = openHistory(path)
	if err != nil || len(h.entries) != maxHistory || h.entries[maxHistory-1] != fmt.Sprint("entry ", 2*maxHistory+9) {
		t.Errorf("%d entries, error %v", len(h.entries), err)
	}
	data, _ := os.ReadFile(path)
	if n := strings.Count(string(data), "\n"); n != maxHistory {
		t.Errorf("%d lines in the file", n)
	}
}
