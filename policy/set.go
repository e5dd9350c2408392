package policy

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// Options are the options of one preset: [ToolAge], [SlidingWindow],
// [Compaction], [Rolling], [Graduated], [RollingMask], [Clear100k] or [Auto].
// The zero value of each means the preset's defaults.
type Options interface {
	// validate returns an error for the first invalid option.
	validate() error
	// build makes the policy. The name is the one it was chosen by.
	build(name string, in *building) furl.Policy
}

// building is what a preset is built with besides its own options.
type building struct {
	Settings
	set *Set
}

// Set is the policies that can be chosen by name: the presets with their
// options, and policies of your own. Change a Set before it is used; after that
// it is safe for concurrent use.
type Set struct {
	entries []entry
	stages  []Stage
	rules   map[string][]ModelRule // by the name of the policy they replace
}

// entry is a policy in a Set.
type entry struct {
	name     string
	options  Options
	common   commonOptions
	unlisted bool // Names does not have it
}

// NewSet returns a Set of all presets. The given options replace the defaults of
// their presets; those of Auto and RollingMask hold for all presets of that
// type. Invalid options are reported by Policy.
func NewSet(options ...Options) *Set {
	s := &Set{
		entries: []entry{
			{name: "none", options: none{}},
			{name: toolAge, options: ToolAge{}},
			{name: "sliding-window", options: SlidingWindow{}},
			{name: "compaction", options: Compaction{}},
			{name: "rolling", options: Rolling{}},
			{name: graduated, options: Graduated{}},
			{name: "rolling-mask-10", options: RollingMask{}},
			{name: "rolling-mask-5", options: RollingMask{}},
			{name: "clear-100k", options: Clear100k{}},
			{name: "auto", options: Auto{}},
			{name: "auto:frugal", options: Auto{}},
			{name: "auto:faithful", options: Auto{}},
		},
		stages: []Stage{&Mask{}, &Clip{}, &Shorten{}, &Truncate{}, &Evict{}, &Extract{}, &Compact{}},
	}
	for _, o := range options {
		v := reflect.Indirect(reflect.ValueOf(o)) // pointers to options are Options too
		for i := range s.entries {
			if reflect.TypeOf(s.entries[i].options) == v.Type() {
				s.entries[i].options = v.Interface().(Options)
			}
		}
	}
	return s
}

// Clone returns a copy that can be changed without changing s.
func (s *Set) Clone() *Set {
	return &Set{slices.Clone(s.entries), slices.Clone(s.stages), maps.Clone(s.rules)}
}

// AddStage makes a stage of your own available to Configure by its name. The prototype's exported fields are its options, by their names in JSON,
// and their values the defaults. If it has a method Validate() error, that
// checks the options that Configure sets. A stage with the same name is replaced.
func (s *Set) AddStage(prototype Stage) {
	if i := slices.IndexFunc(s.stages, func(st Stage) bool { return st.Name() == prototype.Name() }); i >= 0 {
		s.stages[i] = prototype
		return
	}
	s.stages = append(s.stages, prototype)
}

// AddPolicy adds a policy of your own, by its name. A policy with the same name
// is replaced. If it is a [Pipeline], the Threshold and the Summarizer of the
// Settings apply to it.
func (s *Set) AddPolicy(p furl.Policy) { s.add(p.Name(), custom{p}) }

func (s *Set) add(name string, o Options) {
	if i := s.index(name); i >= 0 {
		s.entries[i].options = o
		return
	}
	s.entries = append(s.entries, entry{name: name, options: o})
}

// Preset is a policy with options that another package defines, such as those of package
// agents. It is a struct whose exported fields are its options, by their names in JSON.
// The zero value of each means its default.
type Preset interface {
	// Validate returns an error for the first invalid option.
	Validate() error
	// Policy makes the policy. The name is the one it was chosen by. If it is a
	// [Pipeline], the Threshold and the Summarizer of the Settings apply to it.
	Policy(name string, s Settings) furl.Policy
}

// AddUnlisted adds a preset by its name. Policy and Configure accept the name; Names does
// not list it. A policy with the same name is replaced.
func (s *Set) AddUnlisted(name string, p Preset) {
	s.add(name, added{p})
	s.entries[s.index(name)].unlisted = true
}

// Has reports whether a policy has that name. Other names for policies do not count.
func (s *Set) Has(name string) bool { return s.index(name) >= 0 }

func (s *Set) index(name string) int {
	return slices.IndexFunc(s.entries, func(e entry) bool { return e.name == name })
}

// find returns the index of the policy that a name chooses, -1 if there is none.
func (s *Set) find(name string) int {
	if i := s.index(name); i >= 0 {
		return i
	}
	name, _ = splitResults(name)
	if name == safeguard || name == defaultMode {
		name = "compaction"
	}
	return s.index(name)
}

// safeguard and defaultMode are other names of the preset compaction (R6).
const (
	safeguard   = "safeguard"
	defaultMode = "default"
)

// Names returns the names of all policies: the presets, then policies of your
// own. It leaves out the other names that Policy accepts: those of Unlisted,
// safeguard and default for compaction, and those of the presets of auto that hide only
// results, as auto:frugal:results.
func (s *Set) Names() []string { return s.names(false) }

// Unlisted returns the names of the presets that AddUnlisted added.
func (s *Set) Unlisted() []string { return s.names(true) }

func (s *Set) names(unlisted bool) []string {
	var names []string
	for i := range s.entries {
		if s.entries[i].unlisted == unlisted {
			names = append(names, s.entries[i].name)
		}
	}
	return names
}

// Variants returns the names of all policies, with those of auto that hide only results.
func (s *Set) Variants() []string {
	var names []string
	for i := range s.entries {
		name := s.entries[i].name
		if s.entries[i].unlisted {
			continue
		}
		names = append(names, name)
		if _, ok := s.entries[i].options.(Auto); ok {
			names = append(names, name+onlyResults)
		}
	}
	return names
}

// Policy makes the policy with that name. An unknown name is an error that lists
// the names; an invalid option is an error too.
func (s *Set) Policy(name string, settings Settings) (furl.Policy, error) {
	if rules := s.rules[name]; len(rules) > 0 {
		return s.byModel(name, settings, rules)
	}
	return s.policy(name, settings)
}

// policy is Policy without the rules for models.
func (s *Set) policy(name string, settings Settings) (furl.Policy, error) {
	i := s.find(name)
	if i < 0 {
		return nil, s.unknown(name)
	}
	if err := settings.validate(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	if err := s.entries[i].options.validate(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	in := &building{settings, s}
	if settings.Off {
		return none{}.build(name, in), nil
	}
	e := &s.entries[i]
	common := e.common
	if _, ok := e.options.(added); ok && common.ExcludeTools == nil {
		common.ExcludeTools = []string{} // it does what another agent does
	}
	common.ToolOptions = common.Plus(settings.ToolOptions)
	common.RepairEdits = cmp.Or(settings.RepairEdits, common.RepairEdits)
	p := keeping(e.options.build(name, in), common)
	if settings.runsFirst() && s.entries[i].name != toolAge {
		first := s.toolAge()
		if err := first.validate(); err != nil {
			return nil, fmt.Errorf("policy %s: %w", toolAge, err)
		}
		p = chain{first: withoutBackstop(keeping(first.build(toolAge, in), common)), then: p}
	}
	return p, nil
}

// unknown is the error for a name that no policy has.
func (s *Set) unknown(name string) error {
	return fmt.Errorf("unknown policy %q: choose one of %s", name, strings.Join(s.Names(), ", "))
}

// toolAge returns the options of the preset tool-age.
func (s *Set) toolAge() ToolAge {
	o, _ := s.entries[s.index(toolAge)].options.(ToolAge)
	return o
}

// compaction returns the options of the preset compaction.
func (s *Set) compaction() Compaction {
	o, _ := s.entries[s.index("compaction")].options.(Compaction)
	return o
}

// stage returns a copy of the stage with that name and its default options.
func (s *Set) stage(name string) (Stage, error) {
	for _, st := range s.stages {
		if st.Name() == name {
			return copyOf(st), nil
		}
	}
	names := make([]string, len(s.stages))
	for i, st := range s.stages {
		names[i] = st.Name()
	}
	return nil, fmt.Errorf("unknown stage %q: choose one of %s", name, strings.Join(names, ", "))
}

// added is a preset of another package.
type added struct{ Preset }

func (a added) validate() error { return a.Validate() }

func (a added) build(name string, in *building) furl.Policy {
	return custom{a.Policy(name, in.Settings)}.build(name, in)
}

// custom is a policy that a program added. It has no options of a preset.
type custom struct{ furl.Policy }

func (c custom) validate() error {
	return check(c.Policy)
}

func (c custom) build(_ string, in *building) furl.Policy {
	if p, ok := c.Policy.(*Pipeline); ok {
		return p.with(&in.Settings)
	}
	return c.Policy
}
