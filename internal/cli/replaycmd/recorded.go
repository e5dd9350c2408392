package replaycmd

import (
	"time"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/recorded"
)

// filter returns the filter of --since and --project.
func (f *replayFlags) filter() (recorded.Filter, error) {
	var out recorded.Filter
	if f.since != "" {
		age, err := numbers.ParseAge(f.since)
		if err != nil {
			return out, cmdline.BadUsage("--since %s: %w", f.since, err)
		}
		out.After = time.Now().Add(-age)
	}
	if f.project != "" {
		var err error
		if out.InProject, err = recorded.ProjectFilter(f.project); err != nil {
			return out, err
		}
		out.Project = f.project
		if folder, err := recorded.FolderNamed(f.project); err == nil { // the name means another one elsewhere
			out.Project += "\x00" + folder
		}
	}
	return out, nil
}
