package workspace

import (
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/config"
)

// OpenAudit opens the audit log of the configuration, nil if there is none.
func OpenAudit(c *config.Config, file string) (*audit.Log, error) {
	if c.Audit.File == "" {
		return nil, nil
	}
	return audit.Open(config.Beside(file, c.Audit.File), &audit.Options{MaxSize: c.Audit.MaxSize})
}
