package agents

import (
	"iter"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what is read to find a working folder: texts, bytes at the start of
// each, and bytes of a path.
const (
	folderTexts = 24
	folderBytes = 64 << 10
	folderPath  = 1024
)

// WorkingFolder returns the absolute path of the folder that an agent works in, as
// it tells its model, and "" if the texts do not have it. Claude Code, opencode, pi,
// Cline and others write "Working directory: PATH", Codex "<cwd>PATH</cwd>", Gemini CLI a
// list of "Workspace Directories". Texts
// are the instructions and first messages of a conversation; the number and the
// bytes that are read are limited.
func WorkingFolder(texts iter.Seq[string]) string {
	n := 0
	for text := range texts {
		if n++; n > folderTexts {
			break
		}
		if folder := folderIn(text[:min(len(text), folderBytes)]); folder != "" {
			return folder
		}
	}
	return ""
}

// folderPhrases introduce a working folder, without their first letter, whose case
// differs.
var folderPhrases = []string{"<cwd>", "orking directory", "orking Directory", "orking in the directory", "orkspace Directories:**\n  - "}

func folderIn(text string) string {
	for _, phrase := range folderPhrases {
		for rest := text; ; {
			i := strings.Index(rest, phrase)
			if i < 0 {
				break
			}
			rest = rest[i+len(phrase):]
			if folder := Folder(namedAfter(rest)); folder != "" {
				return folder
			}
		}
	}
	return ""
}

// namedAfter returns the value after a phrase: the rest of the line without
// punctuation, or what is in quotes.
func namedAfter(text string) string {
	text, _, _ = strings.Cut(text[:min(len(text), folderPath+64)], "\n")
	text = strings.TrimPrefix(strings.TrimSpace(text), "is")
	text = strings.TrimLeft(text, ": *")
	for _, quote := range []string{"``", "''", `""`, "()"} {
		if inner, ok := strings.CutPrefix(text, quote[:1]); ok {
			inner, _, _ = strings.Cut(inner, quote[1:])
			return inner
		}
	}
	text, _, _ = strings.Cut(text, "<")
	return strings.TrimSpace(text)
}

// Folder returns an absolute path without a trailing slash, and "" for anything
// else. A path of Windows gets an upper-case drive and backslashes: agents write C:\x, c:\x
// and C:/x for one folder.
func Folder(name string) string {
	if len(name) > folderPath || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return ""
	}
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	if len(name) > 3 && name[1] == ':' && (name[2] == '\\' || name[2] == '/') && unicode.IsLetter(rune(name[0])) {
		clean := path.Clean(strings.ReplaceAll(name[2:], `\`, "/"))
		return strings.ToUpper(name[:1]) + ":" + strings.ReplaceAll(clean, "/", `\`)
	}
	return ""
}
