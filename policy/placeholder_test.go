package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
)

// tellingNames returns the telling names in one text.
func tellingNames(s *furl.State, text string, maxTokens int, c furl.Counter) []string {
	return telling(s, slices.Values([]string{text}), nameBudget{most: maxTokens}, c, nil)
}

func TestTellingNames(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "see main.go and old_name")
	s.say(furl.RoleAssistant, "main.go has old_name")
	s.say(furl.RoleUser, "main.go")
	const hidden = "main.go new_one old_name new_two x new_one /a/path/that/is/longer"
	s.say(furl.RoleUser, hidden)
	for _, tt := range []struct {
		tokens int
		want   string
	}{
		{0, ""},
		{1, "new_one"}, // it is there twice
		{2, "main.go new_one"},
		{3, "main.go new_one old_name"},
		{4, "main.go new_one old_name new_two"},
		{5, "main.go new_one old_name new_two /a/path/that/is/longer"},
	} {
		got := tellingNames(s.log.State(), hidden, tt.tokens, words{})
		if strings.Join(got, " ") != tt.want {
			t.Errorf("in %d tokens: %q, want %q", tt.tokens, got, tt.want)
		}
	}
}

func TestTellingNamesBudget(t *testing.T) {
	name := rapid.SampledFrom([]string{"alpha_1", "beta_22", "gamma_333", "/delta/4/4", "epsilon-5", "word", "zeta_6"})
	rapid.Check(t, func(rt *rapid.T) {
		s := newSession(t)
		for range rapid.IntRange(1, 5).Draw(rt, "blocks") {
			s.say(furl.RoleUser, strings.Join(rapid.SliceOfN(name, 0, 8).Draw(rt, "block"), " "))
		}
		hidden := strings.Join(rapid.SliceOfN(name, 0, 30).Draw(rt, "hidden"), " ")
		most := rapid.IntRange(0, 30).Draw(rt, "tokens")
		got := tellingNames(s.log.State(), hidden, most, nil)
		if n := count(nil, strings.Join(got, " ")); n > most {
			rt.Fatalf("%q has %d tokens, more than %d", got, n, most)
		}
		all := slices.Collect(lexer.Names(hidden))
		at := -1
		for _, n := range got {
			i := slices.Index(all, strings.TrimPrefix(n, "/"))
			if i <= at {
				rt.Fatalf("%q is not in the order of %q", got, hidden)
			}
			at = i
		}
		if !slices.Equal(got, tellingNames(s.log.State(), hidden, most, nil)) {
			rt.Fatal("other names the second time")
		}
	})
}

// What a placeholder lists is what the view no longer shows.
func TestStandInNames(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "look")
	for i := range 6 {
		s.step("grep", fmt.Sprintf("common_name only_here_%d in_two_%d %s", i, i/2, text(60)))
	}
	s.plan(&Pipeline{Label: "p", Stages: []Stage{&Mask{KeepSteps: 2, Text: Placeholder(100)}}}, s.budget(0))
	var shown []string
	v := s.view()
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			shown = append(shown, v.Messages[i].Blocks[j].Words())
		}
	}
	all := strings.Join(shown, "\n")
	for i := range 6 {
		if n := strings.Count(all, fmt.Sprintf("only_here_%d", i)); n != 1 {
			t.Errorf("only_here_%d is shown %d times", i, n)
		}
	}
	for i, want := range []int{1, 1, 2} { // the last in two results that are shown
		if n := strings.Count(all, fmt.Sprintf("in_two_%d", i)); n != want {
			t.Errorf("in_two_%d is shown %d times, want %d", i, n, want)
		}
	}
	if n := strings.Count(all, "common_name"); n != 3 { // those in results go in their turn
		t.Errorf("common_name is shown %d times, want 3", n)
	}
}

func TestTemplateNames(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "look")
	s.step("grep", "first_name second_name "+text(60))
	s.step("bash", "ok")
	s.plan(&Pipeline{Label: "p", Stages: []Stage{&Mask{Text: Template("{tool} {names:1} {names} {names:x} {error}.")}}}, s.budget(0))
	if got, want := s.view().Messages[2].Blocks[0].Words(), "grep first_name second_name {names:x} ."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
