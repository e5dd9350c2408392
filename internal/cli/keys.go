package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/furlhq/furl/internal/config"
)

// gatewayKeys are the keys that a gateway verifies.
type gatewayKeys struct {
	clients, operators []string
}

// keysOf reads the keys of a configuration, which is in file. No error holds a
// key.
func keysOf(c *config.Config, file string) (k gatewayKeys, err error) {
	if k.clients, err = clientKeys(c, file); err != nil {
		return k, err
	}
	k.operators, err = operatorKeys(c, file)
	return k, err
}

// clientKeys gives the keys one of which clients must show: those of the variable
// and those of the file that the configuration names. There are none if it names
// neither.
func clientKeys(c *config.Config, file string) ([]string, error) {
	return readKeys("gateway.client_keys", c.Gateway.ClientKeysEnv, c.Gateway.ClientKeysFile, file)
}

// operatorKeys gives the operator's keys, in the same way.
func operatorKeys(c *config.Config, file string) ([]string, error) {
	return readKeys("gateway.operator_key", c.Gateway.OperatorKeyEnv, c.Gateway.OperatorKeyFile, file)
}

func readKeys(setting, variable, name, file string) (keys []string, err error) {
	if variable != "" {
		if keys = keysIn(os.Getenv(variable), ","); len(keys) == 0 {
			return nil, fmt.Errorf("%s_env: $%s holds no key", setting, variable)
		}
	}
	if name != "" {
		text, err := readPrivate(beside(name, file))
		if err != nil {
			return nil, fmt.Errorf("%s_file: %w", setting, err)
		}
		more := keysIn(string(text), "\n")
		if len(more) == 0 {
			return nil, fmt.Errorf("%s_file: %s holds no key", setting, name)
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

// privateFiles looks at the files with secrets that a configuration uses, and
// gives an error for each that others can read.
func privateFiles(c *config.Config, file string) (exposed []*exposedError) {
	var names []string
	for _, name := range []string{c.Gateway.ClientKeysFile, c.Gateway.OperatorKeyFile} {
		if name != "" {
			names = append(names, beside(name, file))
		}
	}
	if name, err := tenantSecretFile(); c.Gateway.Tenants && err == nil {
		names = append(names, name)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			continue // who reads it says what is wrong
		}
		if e, ok := errors.AsType[*exposedError](private(name, info)); ok {
			exposed = append(exposed, e)
		}
	}
	return exposed
}
