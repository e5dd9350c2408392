package session_test

import (
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// A second reduction in a row hides nothing and records nothing, under each policy. After
// new messages, policies act again.
func TestReduceTwice(t *testing.T) {
	presets, _ := inMemory(t, session.Options{})
	for _, name := range presets.Options().Policies.Names() {
		for _, window := range []int{6_000, 20_000, 200_000} {
			all, _ := inMemory(t, session.Options{Window: window})
			s := all.Create(storage.Meta{Model: "m"})
			appendAll(t, s, steps(t, 60, 400))
			reduce := func() *session.Reduction {
				t.Helper()
				head := s.Head()
				preview, err := s.Reduce(t.Context(), session.ReduceOptions{Policy: name, DryRun: true})
				if err != nil {
					t.Fatal(err)
				}
				done, err := s.Reduce(t.Context(), session.ReduceOptions{Policy: name})
				if err != nil || len(preview.Planned) != len(done.Planned) || int(s.Head()-head) != len(done.Planned) {
					t.Fatalf("%s: %d records for %+v after a preview of %+v, %v", name, s.Head()-head, done, preview, err)
				}
				return done
			}
			first, second := reduce(), reduce()
			if (len(first.Planned) == 0) != (name == "none") || len(second.Planned) > 0 || second.After != first.After || second.Before != first.After {
				t.Fatalf("%s, window %d: the first reduction has made\n%+v\nand the second\n%+v", name, window, first, second)
			}
			if name == "none" {
				continue
			}
			if second.Reason != "there is nothing more to hide since it was last applied" {
				t.Errorf("%s: the reason is %q", name, second.Reason)
			}
			appendAll(t, s, []*furl.Message{message(t, furl.RoleAssistant, text("So be it.")), message(t, furl.RoleUser, text("Go on."))})
			if later := reduce(); name == "sliding-window" && len(later.Planned) == 0 {
				t.Errorf("%s hides nothing after new messages: %+v", name, later)
			}
		}
	}
}
