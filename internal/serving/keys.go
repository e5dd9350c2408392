package serving

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/private"
)

// gatewayKeys are the keys that a gateway accepts.
type gatewayKeys struct {
	clients, operators []string
}

// KeysOf reads the keys of a configuration file. Errors contain no keys.
func KeysOf(c *config.Config, file string) (k gatewayKeys, err error) {
	if k.clients, err = ClientKeys(c, file); err != nil {
		return k, err
	}
	k.operators, err = OperatorKeys(c, file)
	return k, err
}

// ClientKeys returns the keys of which clients must send one: those of the variable
// and of the file that the configuration names. Without either, there are none.
func ClientKeys(c *config.Config, file string) ([]string, error) {
	return readKeys("gateway.client_keys", c.Gateway.ClientKeysEnv, c.Gateway.ClientKeysFile, file)
}

// OperatorKeys returns the operator's keys in the same way.
func OperatorKeys(c *config.Config, file string) ([]string, error) {
	return readKeys("gateway.operator_key", c.Gateway.OperatorKeyEnv, c.Gateway.OperatorKeyFile, file)
}

func readKeys(setting, variable, name, file string) (keys []string, err error) {
	if variable != "" {
		if keys = keysIn(os.Getenv(variable), ","); len(keys) == 0 {
			return nil, fmt.Errorf("%s_env: $%s has no key; set it where furl runs", setting, variable)
		}
	}
	if name != "" {
		text, err := private.Read(config.Beside(file, name))
		if err != nil {
			return nil, fmt.Errorf("%s_file: %w", setting, err)
		}
		more := keysIn(string(text), "\n")
		if len(more) == 0 {
			return nil, fmt.Errorf("%s_file: %s has no key", setting, name)
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// keysIn splits a text into keys. Items that start with # are comments.
func keysIn(text, separator string) (keys []string) {
	for key := range strings.SplitSeq(text, separator) {
		if key = strings.TrimSpace(key); key != "" && key[0] != '#' {
			keys = append(keys, key)
		}
	}
	return keys
}

// PrivateFiles checks the files with secrets that a configuration uses. It returns an
// error for each one that other users can read.
func PrivateFiles(c *config.Config, file string) (exposed []*private.ExposedError) {
	var names []string
	for _, name := range []string{c.Gateway.ClientKeysFile, c.Gateway.OperatorKeyFile, c.Gateway.KeysFile, c.Gateway.TLS.KeyFile, c.Encryption.KeyFile} {
		if name != "" {
			names = append(names, config.Beside(file, name))
		}
	}
	if name, err := TenantSecretFile(); c.Gateway.Tenants && err == nil {
		names = append(names, name)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			continue // reading it returns the error
		}
		if e, ok := errors.AsType[*private.ExposedError](private.Check(name, info)); ok {
			exposed = append(exposed, e)
		}
	}
	return exposed
}
