package operation

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/furlhq/furl"
)

// An input is a struct. Its fields have the tags json, the name in JSON; flag, the name of a
// flag; arg, what the arguments are called in the help, in brackets if they can be left out;
// and help, where quotes mark what the value of a flag is called. Fields are of type string, bool, furl.Seq, *furl.Seq or []string, or structs with
// such fields.

// field is a field of an input.
type field struct {
	reflect.StructField
	value reflect.Value
}

// fields returns the fields of an input, those of embedded structs included.
func fields(in any) (list []field) {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Anonymous {
				walk(v.Field(i))
			} else {
				list = append(list, field{f, v.Field(i)})
			}
		}
	}
	walk(reflect.ValueOf(in).Elem())
	return list
}

// Flags adds the flags of an input to a set. Parsing it sets the fields.
func Flags(set *pflag.FlagSet, in any) {
	for _, f := range fields(in) {
		name, help := f.Tag.Get("flag"), strings.ReplaceAll(f.Tag.Get("help"), "'", "`")
		if name == "" {
			continue
		}
		switch to := f.value.Addr().Interface().(type) {
		case *bool:
			set.BoolVar(to, name, *to, help)
		case *string:
			set.StringVar(to, name, *to, help)
		case *[]string:
			set.StringArrayVar(to, name, *to, help)
		case *furl.Seq:
			set.Uint64Var((*uint64)(to), name, uint64(*to), help)
			set.Lookup(name).DefValue = "0"
		case **furl.Seq:
			set.Var(&record{to}, name, help)
		default:
			panic(fmt.Sprintf("flag --%s has the type %s", name, f.Type))
		}
	}
}

// record is the value of a flag for a record number, which may be 0.
type record struct{ to **furl.Seq }

func (r *record) Type() string { return "number" }

func (r *record) String() string {
	if r.to == nil || *r.to == nil {
		return ""
	}
	return fmt.Sprint(**r.to)
}

func (r *record) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return err
	}
	seq := furl.Seq(n)
	*r.to = &seq
	return nil
}

// Arguments sets the field that takes arguments. It reports an Invalid if they are missing,
// too many, or no record numbers where these are expected.
func Arguments(in any, args []string) error {
	for _, f := range fields(in) {
		usage := f.Tag.Get("arg")
		if usage == "" {
			continue
		}
		usage, optional := strings.Trim(usage, "[]"), strings.HasPrefix(usage, "[")
		if f.value.Kind() == reflect.Slice { // an operation says itself what is missing
			f.value.Set(reflect.ValueOf(args).Convert(f.Type))
			return nil
		}
		text, isText := f.value.Addr().Interface().(*string)
		seq, _ := f.value.Addr().Interface().(**furl.Seq)
		switch {
		case len(args) == 0 && optional:
		case len(args) == 0:
			return invalid("missing argument: expected " + usage)
		case len(args) > 1:
			return invalid(fmt.Sprintf("unexpected argument %q after %s", args[1], usage))
		case isText:
			*text = args[0]
		case (&record{seq}).Set(args[0]) != nil:
			return invalid(fmt.Sprintf("invalid record number %q", args[0]))
		}
		return nil
	}
	if len(args) > 0 {
		return invalid(fmt.Sprintf("unexpected argument %q", args[0]))
	}
	return nil
}

// Usage returns what the arguments of an operation are called, such as "HANDLE...", "" for
// none.
func (o *Operation) Usage() string {
	for _, f := range fields(o.Input()) {
		if usage := f.Tag.Get("arg"); usage != "" {
			return usage
		}
	}
	return ""
}

// Words returns an input as arguments and flags of a command line.
func Words(in any) (words []string) {
	var flags []string
	for _, f := range fields(in) {
		name, value := f.Tag.Get("flag"), reflect.Indirect(f.value)
		switch {
		case f.value.IsZero():
		case value.Kind() == reflect.Slice:
			for i := range value.Len() {
				words = append(words, value.Index(i).String())
			}
		case name == "" || f.Tag.Get("arg") != "":
			words = append(words, fmt.Sprint(value))
		case value.Kind() == reflect.Bool:
			flags = append(flags, "--"+name)
		default:
			flags = append(flags, "--"+name, fmt.Sprint(value))
		}
	}
	return append(words, flags...)
}

// InJSON describes the input of an operation for programs, such as {"handles":[…]}.
func (o *Operation) InJSON() string {
	var list []string
	for _, f := range fields(o.Input()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		value := "…"
		switch f.value.Interface().(type) {
		case []string:
			value = "[…]"
		case furl.Seq, *furl.Seq:
			value = "N"
		}
		list = append(list, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(list, ",") + "}"
}
