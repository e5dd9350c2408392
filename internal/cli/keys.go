package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/furlhq/furl/internal/config"
)

// clientKeys gives the keys that clients must show: those of the variable and
// those of the file that the configuration, which stands in file, names. There
// are none if it names neither. No error holds a key.
func clientKeys(c *config.Config, file string) (keys []string, err error) {
	if name := c.Gateway.ClientKeysEnv; name != "" {
		if keys = keysIn(os.Getenv(name), ","); len(keys) == 0 {
			return nil, fmt.Errorf("gateway.client_keys_env: $%s holds no key", name)
		}
	}
	if name := c.Gateway.ClientKeysFile; name != "" {
		text, err := os.ReadFile(beside(name, file))
		if err != nil {
			return nil, fmt.Errorf("gateway.client_keys_file: %w", err)
		}
		more := keysIn(string(text), "\n")
		if len(more) == 0 {
			return nil, fmt.Errorf("gateway.client_keys_file: %s holds no key", name)
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// keysIn cuts a text into keys. What begins with a # is a remark.
func keysIn(text, separator string) (keys []string) {
	for key := range strings.SplitSeq(text, separator) {
		if key = strings.TrimSpace(key); key != "" && key[0] != '#' {
			keys = append(keys, key)
		}
	}
	return keys
}

// beside gives the path that a configuration file names, which is meant from
// where that file is.
func beside(name, file string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(file), name)
}
