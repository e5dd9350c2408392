// Package packed writes values as bytes for files that only the same build of furl reads, such as
// the index: booleans, numbers, strings, slices, arrays, maps, pointers and structs with all their
// fields, also those that are not exported. The bytes have no names and no types.
package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"
)

// Marshal returns a value as bytes. Equal values have equal bytes. It panics if the type has
// functions, channels or interfaces.
func Marshal(v any) []byte {
	return write(nil, addressable(reflect.ValueOf(v)))
}

// Unmarshal sets what a pointer points to from the bytes of Marshal of the same type. Bytes that
// are damaged are an error.
func Unmarshal(data []byte, to any) (err error) {
	r := reader{data: data}
	r.read(reflect.ValueOf(to).Elem())
	if r.bad || len(r.data) > 0 {
		return errDamaged
	}
	return nil
}

var errDamaged = errors.New("packed value is damaged")

var timeType = reflect.TypeFor[time.Time]()

func write(out []byte, v reflect.Value) []byte {
	if v.Type() == timeType {
		data, err := field(v).Interface().(time.Time).MarshalBinary()
		if err != nil { // the offset has more than 32,767 minutes
			data, _ = field(v).Interface().(time.Time).UTC().MarshalBinary()
		}
		return append(binary.AppendUvarint(out, uint64(len(data))), data...)
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(out, 1)
		}
		return append(out, 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(out, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(out, v.Uint())
	case reflect.Float32, reflect.Float64:
		return binary.LittleEndian.AppendUint64(out, math.Float64bits(v.Float()))
	case reflect.String:
		return append(binary.AppendUvarint(out, uint64(v.Len())), v.String()...)
	case reflect.Slice:
		if v.IsNil() {
			return append(out, 0)
		}
		out = binary.AppendUvarint(out, uint64(v.Len())+1)
		for i := range v.Len() {
			out = write(out, v.Index(i))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return append(out, 0)
		}
		var entries []string
		for key, value := range field(v).Seq2() {
			entries = append(entries, string(write(write(nil, addressable(key)), addressable(value))))
		}
		slices.Sort(entries)
		out = binary.AppendUvarint(out, uint64(len(entries))+1)
		for _, e := range entries {
			out = append(out, e...)
		}
		return out
	case reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(out, v.Bytes()...)
		}
		for i := range v.Len() {
			out = write(out, v.Index(i))
		}
		return out
	case reflect.Pointer:
		if v.IsNil() {
			return append(out, 0)
		}
		return write(append(out, 1), v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			out = write(out, v.Field(i))
		}
		return out
	}
	panic(fmt.Sprintf("packed: %s has no form in bytes", v.Type()))
}

// addressable returns a copy of a value of which fields that are not exported can be read.
func addressable(v reflect.Value) reflect.Value {
	p := reflect.New(v.Type()).Elem()
	p.Set(v)
	return p
}

// field returns a field of an addressable struct with the right to read and set it.
func field(v reflect.Value) reflect.Value {
	if v.CanSet() {
		return v
	}
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// reader reads values. After damage all are zero.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.data)) {
		r.bad, r.data = true, nil
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.data)
	r.take(uint64(max(size, 0)))
	r.bad = r.bad || size <= 0
	return n
}

func (r *reader) int() int64 {
	n, size := binary.Varint(r.data)
	r.take(uint64(max(size, 0)))
	r.bad = r.bad || size <= 0
	return n
}

func (r *reader) read(v reflect.Value) {
	v = field(v)
	if r.bad {
		return
	}
	if v.Type() == timeType {
		var t time.Time
		r.bad = t.UnmarshalBinary(r.take(r.uint())) != nil || r.bad
		v.Set(reflect.ValueOf(t))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		b := r.take(1)
		v.SetBool(len(b) == 1 && b[0] == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.uint())
	case reflect.Float32, reflect.Float64:
		if b := r.take(8); b != nil {
			v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	case reflect.String:
		v.SetString(string(r.take(r.uint())))
	case reflect.Slice:
		n := r.uint()
		if n == 0 || n-1 > uint64(len(r.data)) { // each element takes a byte or more
			r.bad = r.bad || n > 0
			return
		}
		list := reflect.MakeSlice(v.Type(), int(n-1), int(n-1))
		for i := range list.Len() {
			r.read(list.Index(i))
		}
		v.Set(list)
	case reflect.Map:
		n := r.uint()
		if n == 0 || n-1 > uint64(len(r.data)) {
			r.bad = r.bad || n > 0
			return
		}
		m := reflect.MakeMap(v.Type())
		for range n - 1 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			r.read(key)
			r.read(value)
			if r.bad {
				return
			}
			m.SetMapIndex(key, value)
		}
		v.Set(m)
	case reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			copy(v.Bytes(), r.take(uint64(v.Len())))
			return
		}
		for i := range v.Len() {
			r.read(v.Index(i))
		}
	case reflect.Pointer:
		if b := r.take(1); len(b) == 1 && b[0] == 1 {
			p := reflect.New(v.Type().Elem())
			r.read(p.Elem())
			v.Set(p)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			r.read(field)
		}
	default:
		panic(fmt.Sprintf("packed: %s has no form in bytes", v.Type()))
	}
}
