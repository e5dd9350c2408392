package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/furlhq/furl/internal/strictyaml"
	"github.com/furlhq/furl/policy"
)

// SetPolicy makes a configuration file name a policy of the set for every session.
// If the set is nil, its policies are the presets. All
// else in it stays byte for byte, comments too; rules for single models still
// come first. A file that is not there is made. One that is not a right
// configuration is left as it is, and so is one in which the policy is written
// in a way that has no simple place to change.
func SetPolicy(file, chosen string, policies *policy.Set) error {
	data, err := os.ReadFile(file)
	mode := fs.FileMode(0o644)
	switch info, statErr := os.Stat(file); {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("write the configuration: %w", err)
		}
	case err != nil:
		return fmt.Errorf("write the configuration: %w", err)
	case len(data) > maxFile:
		return fmt.Errorf("%s is too large for a configuration file: at most %d bytes", file, maxFile)
	case statErr == nil:
		mode = info.Mode().Perm()
	}
	if data, err = setPolicy(file, data, chosen, policies); err != nil {
		return err
	}
	// A link is written through, not replaced.
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".furl-*")
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	defer os.Remove(tmp.Name()) // fails once it has its real name
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Chmod(mode), tmp.Close()); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// setPolicy gives a configuration with the policy in it.
func setPolicy(name string, data []byte, chosen string, policies *policy.Set) ([]byte, error) {
	if _, err := Parse(name, data, policies); err != nil {
		return nil, err
	}
	line := "policy: " + chosen
	value, ok := policyValue(name, data)
	if !ok {
		out := append([]byte(nil), data...)
		if len(bytes.TrimSpace(out)) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
			out = append(out, '\n')
		}
		return checked(name, append(out, line+"\n"...), chosen, policies)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	at := value.Line() - 1
	var old []byte // YAML has more line breaks than this
	if at < len(lines) {
		old = lines[at]
	}
	rest := ""
	if comment := value.LineComment(); comment != "" {
		if i := bytes.LastIndex(old, []byte(comment)); i >= 0 {
			rest = " " + string(old[i:])
		}
	}
	if rest == "" && bytes.HasSuffix(old, []byte("\n")) {
		rest = "\n"
	}
	if !bytes.HasPrefix(old, []byte("policy:")) {
		return nil, strictyaml.Error(name, value.Line(), "policy is not on a line of its own", "write "+line+" yourself")
	}
	lines[at] = []byte(line + rest)
	return checked(name, bytes.Join(lines, nil), chosen, policies)
}

// checked parses the result again: it must have the chosen policy.
func checked(name string, data []byte, chosen string, policies *policy.Set) ([]byte, error) {
	c, err := Parse(name, data, policies)
	if err != nil || c.Policy != chosen {
		return nil, fmt.Errorf("%s: cannot set the policy in this file; add policy: %s yourself", name, chosen)
	}
	return data, nil
}

// policyValue returns the value of the policy, false if the file has none.
func policyValue(name string, data []byte) (value strictyaml.Value, ok bool) {
	_ = strictyaml.Parse(name, data, func(root strictyaml.Value) { value, ok = root.Get("policy") }) // the caller has parsed it
	return value, ok
}
