package tui

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/furlhq/furl/tool"
)

const (
	foldLines = 10      // a longer paste is folded
	foldChars = 2000    // a longer paste is folded
	maxImage  = 5 << 20 // bytes
	maxImages = 20      // of one message
)

var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// fold is a part of the input that is shown as a label: pasted text, or an image.
type fold struct {
	label string
	text  string
	image *tool.Part
}

// cleanPaste removes control characters from pasted text, except newlines and tabs.
func cleanPaste(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\r", "\n")
	s = strings.ToValidUTF8(s, "\ufffd")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// needsFold reports that pasted text is shown as a label. The input shows a tab as
// spaces, so text with tabs is folded to keep them.
func needsFold(s string) bool {
	return strings.Count(s, "\n") >= foldLines || len(s) > foldChars && len([]rune(s)) > foldChars || strings.Contains(s, "\t")
}

// imagePaths returns the paths of images, if pasted text consists of such paths only, as
// terminals paste the files that are dropped on them.
func imagePaths(text string) []string {
	text = strings.TrimSpace(text)
	if len(text) > 16<<10 || strings.Contains(text, "\n") {
		return nil
	}
	var paths []string
	if p := imagePath(text); p != "" { // spaces in it are not quoted
		return []string{p}
	}
	words, ok := shellWords(text)
	if !ok || len(words) == 0 {
		return nil
	}
	for _, w := range words {
		p := imagePath(w)
		if p == "" {
			return nil
		}
		paths = append(paths, p)
	}
	return paths
}

// imagePath returns the path of an image that exists, "" if s is none.
func imagePath(s string) string {
	if u, err := url.Parse(s); err == nil && u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") {
		s = filepath.FromSlash(u.Path)
	}
	if rest, ok := strings.CutPrefix(s, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		s = filepath.Join(home, rest)
	}
	ext := strings.ToLower(filepath.Ext(s))
	if !filepath.IsAbs(s) || !slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif", ".webp"}, ext) {
		return ""
	}
	if info, err := os.Stat(s); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return s
}

// shellWords splits a line at spaces, with quotes and backslashes as in a shell. It
// reports false if a quote is not closed.
func shellWords(s string) (words []string, ok bool) {
	var word strings.Builder
	started, quote := false, rune(0)
	runes := []rune(s)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, started = r, true
		case r == '\\' && quote != '\'' && filepath.Separator != '\\' && i+1 < len(runes):
			i++
			word.WriteRune(runes[i])
			started = true
		case quote == 0 && r == ' ':
			if started {
				words = append(words, word.String())
			}
			word.Reset()
			started = false
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if started {
		words = append(words, word.String())
	}
	return words, quote == 0
}

// readImage reads an image file.
func readImage(path string) (*tool.Part, error) {
	name := label(filepath.Base(path))
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("attach %s: %w", name, err)
	}
	if info.Size() > maxImage {
		return nil, fmt.Errorf("attach %s: %d bytes, expected at most %d (5 MB)", name, info.Size(), maxImage)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("attach %s: %w", name, err)
	}
	kind := http.DetectContentType(data)
	if !slices.Contains(imageTypes, kind) || len(data) > maxImage {
		return nil, fmt.Errorf("attach %s: not a PNG, JPEG, GIF or WebP image", name)
	}
	return &tool.Part{Type: kind, Data: data}, nil
}
