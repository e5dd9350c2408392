package policy

import "fmt"

// option is an option with its name in JSON, to be validated.
type option struct {
	name  string
	value float64
	most  float64 // 0: no limit
}

// shareOption is an option between 0 and 1.
func shareOption(name string, value float64) option { return option{name, value, 1} }

// number is an option that is not negative.
func number(name string, value int) option { return option{name, float64(value), 0} }

// validate returns an error for the first option out of range.
func validate(options ...option) error {
	for _, o := range options {
		switch {
		case !(o.value >= 0): // also for NaN
			return fmt.Errorf("invalid %s %v: expected 0 or more", o.name, o.value)
		case o.most > 0 && o.value > o.most:
			return fmt.Errorf("invalid %s %v: expected at most %v", o.name, o.value, o.most)
		}
	}
	return nil
}

// check validates the options of a stage or policy, if it can do that: those of
// this package, or those of a program that added its own.
func check(v any) error {
	switch v := v.(type) {
	case interface{ validate() error }:
		return v.validate()
	case interface{ Validate() error }:
		return v.Validate()
	}
	return nil
}

// isOn is the value of a switch, or its default.
func isOn(s *bool, byDefault bool) bool {
	if s == nil {
		return byDefault
	}
	return *s
}
