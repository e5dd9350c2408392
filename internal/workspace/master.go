package workspace

import (
	"fmt"
	"os"

	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/private"
)

// masterOf returns the master keys of a configuration, nil if it has none.
func masterOf(c *config.Config, file string) (encrypted.Master, error) {
	text, err := MasterText(c, file)
	if text == "" {
		return nil, err
	}
	m, err := encrypted.ParseMaster(text)
	if err != nil {
		return nil, fmt.Errorf("encryption.key_file and encryption.key_env: %w", err)
	}
	return m, nil
}

// MasterText returns the master keys in their written form, one per line.
func MasterText(c *config.Config, file string) (text string, err error) {
	if name := c.Encryption.KeyFile; name != "" {
		data, err := private.Read(config.Beside(file, name))
		if err != nil {
			return "", fmt.Errorf("encryption.key_file: %w", err)
		}
		text = string(data) + "\n"
	}
	if name := c.Encryption.KeyEnv; name != "" {
		value := os.Getenv(name)
		if value == "" {
			return "", fmt.Errorf("encryption.key_env: $%s has no key; set it where furl runs", name)
		}
		text += value
	}
	return text, nil
}
