package policy

import (
	"reflect"

	"github.com/furlhq/furl"
)

// DialFields are the numbers of auto's dial.
func DialFields() (names []string) {
	for f := range reflect.TypeFor[dial]().Fields() {
		names = append(names, f.Name)
	}
	return names
}

// WithDial returns auto with one number of its dial times a factor.
func WithDial(field string, factor float64) furl.Policy {
	d := balanced
	switch p := reflect.ValueOf(&d).Elem().FieldByName(field).Addr().UnsafePointer(); reflect.ValueOf(d).FieldByName(field).Kind() {
	case reflect.Int:
		*(*int)(p) = int(float64(*(*int)(p)) * factor)
	case reflect.Float64:
		*(*float64)(p) *= factor
	}
	p := Auto{}.build("auto", &building{}).(*Pipeline)
	for i, s := range p.Stages {
		switch s := s.(type) {
		case *auto:
			p.Stages[i] = &auto{dial: d}
		case *Clip:
			s.MaxTokens = d.clip
		}
	}
	return p
}
