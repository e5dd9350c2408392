// Package strictyaml reads YAML files that people write. An unknown key, a
// repeated key, a value of the wrong type and a second document are errors.
// Each error names the file, the key, the value and the line, and says what was
// expected. Several errors are reported at once.
//
// The form of an error is
//
//	furl.yaml: unknown key "polciy" (line 3): did you mean "policy"?
//	furl.yaml: invalid retention.age "soon" (line 7): expected a duration such as 12h or 90d
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/furlhq/furl/internal/lazyregexp"
)

const (
	// maxErrors bounds how many errors are reported at once.
	maxErrors = 20
	// maxValues bounds how many values are read. Aliases (*x) can repeat a
	// value, so the size of the file does not bound it.
	maxValues = 1_000_000
)

// file is a file that is being read.
type file struct {
	name   string
	errs   []error
	values int // read so far
}

// Parse parses data and calls read with the value at its root, which is null
// if the file is empty. It returns the errors of the syntax or those that read
// reported. The name is how errors call the file.
func Parse(name string, data []byte, read func(root Value)) error {
	f := &file{name: name}
	root, err := parse(name, data)
	if err != nil {
		return err
	}
	read(Value{file: f, node: root})
	return errors.Join(f.errs...)
}

func parse(name string, data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: 1}, nil
	case err != nil:
		return nil, syntaxError(name, err)
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
		return doc.Content[0], nil
	case err != nil:
		return nil, syntaxError(name, err)
	}
	return nil, Error(name, second.Line, "second document", `expected one document; remove "---"`)
}

// parserError is how the YAML parser writes an error.
var parserError = lazyregexp.New(`^(?:yaml: )?(?:line ([0-9]+): )?(.*)`)

// textAndLine returns the text of an error of the YAML parser and its line, 0 if
// it names none.
func textAndLine(text string) (string, int) {
	m := parserError.FindStringSubmatch(text)
	line, _ := strconv.Atoi(m[1]) // 0 without a number
	return m[2], line
}

func syntaxError(name string, err error) error {
	text, line := textAndLine(err.Error())
	return Error(name, line, "invalid YAML", text)
}

// Error returns an error in the form of this package. What says what is wrong,
// remedy, which may be empty, what to do or what was expected.
func Error(name string, line int, what, remedy string) error {
	if remedy != "" {
		remedy = ": " + remedy
	}
	return fmt.Errorf("%s: %s (line %d)%s", name, what, max(line, 1), remedy)
}
