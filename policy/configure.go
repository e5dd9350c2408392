package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Configure sets options of a policy from a JSON object, by their names in JSON.
// Options that it does not name stay as they are. A name that no policy has
// defines a [Pipeline]:
//
//	{"context_threshold": 0.8, "stages": [{"mask": {"keep_results": 8}}, "truncate"]}
//
// Each element of stages is the name of a stage, or an object with that name and
// the stage's options. The stages are [Mask] (mask), [Clip] (clip), [Shorten]
// (shorten), [Truncate] (truncate), [Evict] (evict), [Extract] (extract),
// [Compact] (compact), and those that AddStage added. Invalid options change nothing; the error
// then joins an [OptionError] for each.
func (s *Set) Configure(name string, options []byte) error {
	i := s.find(name)
	var o Options
	if i >= 0 {
		o = s.entries[i].options
	} else if keys, _, _ := members(options); slices.Contains(keys, "stages") {
		o = custom{&Pipeline{Label: name}}
	} else {
		return errors.Join(&OptionError{Err: fmt.Errorf("%w; or define it by stages", s.unknown(name))})
	}
	d := &decoder{set: s, policy: name}
	if i >= 0 {
		d.common = s.entries[i].common
	}
	o = d.options(o, options)
	if len(d.errs) > 0 {
		return errors.Join(d.errs...)
	}
	if i >= 0 {
		s.entries[i].options, s.entries[i].common = o, d.common
	} else {
		s.add(name, o)
	}
	return nil
}

// OptionError is an option that Configure cannot set.
type OptionError struct {
	// Path leads to the option: keys, and the indexes of elements of lists. It
	// is empty if the error is about all options.
	Path []string
	Err  error
}

func (e *OptionError) Error() string { return e.Err.Error() }

// decoder sets options from JSON.
type decoder struct {
	set    *Set
	policy string
	common commonOptions // of the policy
	errs   []error
}

func (d *decoder) errorf(path []string, format string, args ...any) {
	d.errs = append(d.errs, &OptionError{slices.Clone(path), fmt.Errorf(format, args...)})
}

// options returns a copy of the options with those in the JSON set.
func (d *decoder) options(o Options, data []byte) Options {
	what := fmt.Sprintf("policy %q", d.policy)
	if own, ok := o.(custom); ok {
		own.Policy = copyOf(own.Policy)
		d.object(nil, what, data, fieldsOf(own.Policy), own.validate)
		return own
	}
	if own, ok := o.(added); ok {
		return added{configured(d, what, data, own.Preset, Preset.Validate)}
	}
	return configured(d, what, data, o, Options.validate)
}

// configured returns a copy of the struct o with the fields in the JSON set.
func configured[T any](d *decoder, what string, data []byte, o T, validate func(T) error) T {
	v := reflect.New(reflect.TypeOf(o))
	v.Elem().Set(reflect.ValueOf(o))
	fields := fieldsOf(v.Interface())
	for name, field := range fieldsOf(&d.common) { // every policy has them
		if _, ok := fields[name]; !ok && len(fields) > 0 {
			fields[name] = field
		}
	}
	d.object(nil, what, data, fields, func() error {
		if err := d.common.Validate(); err != nil {
			return err
		}
		return validate(v.Interface().(T))
	})
	return v.Elem().Interface().(T)
}

// object sets fields by their names in JSON. An error that validate returns
// counts as one of the key that was set last.
func (d *decoder) object(path []string, what string, data []byte, fields map[string]reflect.Value, validate func() error) {
	keys, values, err := members(data)
	if err != nil {
		d.errorf(path, "invalid options of %s: expected keys with values", what)
		return
	}
	set := make(map[string]bool)
	for i, key := range keys {
		path := append(path, key)
		name := snakeCase(key)
		field, ok := fields[name]
		switch {
		case !ok:
			d.errorf(path, "unknown key %q for %s: %s", key, what, expected(fields))
			continue
		case set[name]:
			d.errorf(path, "%s is set twice", name)
			continue
		}
		set[name] = true
		if !d.value(path, key, values[i], field) {
			continue
		}
		if err := validate(); err != nil {
			d.errorf(path, "%w", err)
			return // the other keys would repeat it
		}
	}
}

// snakeCase returns a key as furl writes it. Some of the origins are written in TypeScript,
// and their configurations say minKeepMessages for min_keep_messages (R6).
func snakeCase(key string) string {
	var b strings.Builder
	for i, c := range key {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// value sets one field and reports whether it could.
func (d *decoder) value(path []string, key string, data []byte, field reflect.Value) bool {
	switch to := field.Addr().Interface().(type) {
	case *[]Stage:
		return d.stages(path, data, to)
	case *Writer:
		var text string
		if json.Unmarshal(data, &text) != nil {
			d.errorf(path, "invalid %s %s: expected a text", key, data)
			return false
		}
		*to = Template(text)
		return true
	}
	if field.Kind() == reflect.Slice {
		field.SetZero() // or it would be decoded into the elements of the original
	}
	if bytes.Equal(data, []byte("null")) || json.Unmarshal(data, field.Addr().Interface()) != nil {
		d.errorf(path, "invalid %s %s: expected %s", key, data, kindOf(field.Type()))
		return false
	}
	return true
}

// stages reads the stages of a pipeline.
func (d *decoder) stages(path []string, data []byte, to *[]Stage) bool {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil || len(list) == 0 {
		d.errorf(path, "invalid stages: expected a list of stages, such as [clip, {mask: {keep_results: 8}}]")
		return false
	}
	before := len(d.errs)
	var stages []Stage
	for i, item := range list {
		path := append(path, strconv.Itoa(i))
		var name string
		options := []byte("{}")
		if json.Unmarshal(item, &name) != nil {
			keys, values, err := members(item)
			if err != nil || len(keys) != 1 {
				d.errorf(path, "invalid stage: expected its name, or its name and its options, such as mask: {keep_results: 8}")
				continue
			}
			name, options = keys[0], values[0]
			path = append(path, name)
		}
		st, err := d.set.stage(name)
		if err != nil {
			d.errorf(path, "%w", err)
			continue
		}
		st = d.stage(path, st, options)
		stages = append(stages, st)
	}
	*to = stages
	return len(d.errs) == before
}

// stage sets the options of a copy of a stage.
func (d *decoder) stage(path []string, st Stage, options []byte) Stage {
	v := reflect.ValueOf(st)
	if v.Kind() != reflect.Pointer { // a method cannot set its fields
		v = reflect.New(v.Type())
		v.Elem().Set(reflect.ValueOf(st))
	}
	d.object(path, fmt.Sprintf("stage %q", st.Name()), options, fieldsOf(v.Interface()), func() error { return check(v.Interface()) })
	if reflect.TypeOf(st).Kind() != reflect.Pointer {
		v = v.Elem()
	}
	return v.Interface().(Stage)
}

// members returns the keys of a JSON object in order, with their values.
func members(data []byte) (keys []string, values [][]byte, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.New("not an object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, nil, err
		}
		keys, values = append(keys, key.(string)), append(values, value)
	}
	return keys, values, nil
}

// fieldsOf returns the fields of the struct that to points to, by their names in
// JSON.
func fieldsOf(to any) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	v := reflect.ValueOf(to)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return fields
	}
	v = v.Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "" && name != "-" {
			fields[name] = v.FieldByIndex(f.Index)
		}
	}
	return fields
}

// expected lists the keys that an object may have.
func expected(fields map[string]reflect.Value) string {
	if len(fields) == 0 {
		return "it has no options"
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return "expected one of " + strings.Join(names, ", ")
}

// kindOf says what a field of a type may hold.
func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return "a whole number"
	case reflect.Float64, reflect.Float32:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "keys with values"
}

// copyOf returns a copy of what a pointer points to, and other values as they
// are.
func copyOf[T any](value T) T {
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.Pointer {
		return value
	}
	c := reflect.New(v.Type().Elem())
	c.Elem().Set(v.Elem())
	return c.Interface().(T)
}
