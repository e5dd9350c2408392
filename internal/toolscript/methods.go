package toolscript

import (
	"strconv"
	"strings"
)

// call is the value of a call. A function that is given to something unknown is read
// with unknown arguments.
func (c *cursor) call(v value, args []value) value {
	switch v.kind {
	case kindTool:
		c.record(v.text, args)
		return value{}
	case kindFunction:
		return c.apply(v.function, append([]value{}, args...))
	case kindMethod:
		if result, ok := c.method(&v, args); ok {
			return result
		}
	}
	for i := range args {
		switch a := &args[i]; {
		case a.kind == kindFunction && !a.function.applied:
			c.apply(a.function, nil)
		case (a.kind == kindToolbox || a.kind == kindTool) && v.kind == kindUnknown && c.quiet == 0:
			c.broken = true // it may be called from there
		}
	}
	return value{}
}

// method is the result of one of the methods that scripts put texts and lists
// together with.
func (c *cursor) method(m *value, args []value) (value, bool) {
	first := value{}
	if len(args) > 0 {
		first = args[0]
	}
	switch on := m.base; {
	case on == nil && m.text == "String":
		return textValue(c.words(first, 0)), true
	case on == nil:
		return value{}, false
	case on.kind == kindMethod && on.base == nil:
		return c.global(on.text+"."+m.text, first)
	case on.kind == kindList:
		return c.ofList(*m, args, first)
	case on.kind == kindText:
		return c.ofText(on.text, m.text, args)
	}
	return value{}, false
}

func (c *cursor) global(name string, first value) (value, bool) {
	switch name {
	case "Promise.all", "Promise.allSettled", "Promise.resolve", "Object.freeze":
		return first, true
	case "Object.keys", "Object.values", "Object.entries":
		if first.kind != kindObject {
			return value{}, true
		}
		var list []value
		for _, f := range *first.fields {
			switch name {
			case "Object.keys":
				list = append(list, textValue(f.name))
			case "Object.values":
				list = append(list, f.value)
			default:
				list = append(list, listValue([]value{textValue(f.name), f.value}))
			}
		}
		return listValue(list), c.charge(16 * len(list))
	case "JSON.stringify":
		if first.kind == kindUnknown {
			return value{}, true
		}
		json := first.appendJSON(nil, 0)
		return textValue(string(json)), c.charge(len(json))
	}
	return value{}, false
}

func (c *cursor) ofList(m value, args []value, first value) (value, bool) {
	elements := *m.base.elements
	switch m.text {
	case "map", "flatMap", "forEach":
		if first.kind != kindFunction {
			return value{}, false
		}
		var list []value
		for i, e := range elements {
			if i == maxRounds {
				c.broken = true
				break
			}
			v := c.apply(first.function, []value{e, {kind: kindLiteral, text: strconv.Itoa(i)}, *m.base})
			if m.text == "flatMap" && v.kind == kindList {
				list = append(list, *v.elements...)
			} else {
				list = append(list, v)
			}
		}
		return listValue(list), c.charge(16 * len(list))
	case "filter", "sort", "flat", "values":
		if first.kind == kindFunction && !first.function.applied {
			c.apply(first.function, nil)
		}
		return *m.base, m.text != "flat"
	case "entries":
		var list []value
		for i, e := range elements {
			list = append(list, listValue([]value{{kind: kindLiteral, text: strconv.Itoa(i)}, e}))
		}
		return listValue(list), c.charge(16 * len(list))
	case "push":
		if c.quiet == 0 && c.charge(16*len(args)) {
			*m.base.elements = append(elements[:len(elements):len(elements)], args...)
		}
		return value{}, true
	case "concat":
		list := append([]value{}, elements...)
		for _, a := range args {
			if a.kind == kindList {
				list = append(list, *a.elements...)
			} else {
				list = append(list, a)
			}
		}
		return listValue(list), c.charge(16 * len(list))
	case "join":
		separator := ","
		if first.kind == kindText {
			separator = first.text
		} else if len(args) > 0 {
			separator = Hole
		}
		return textValue(c.join(elements, separator, 0)), true
	}
	return value{}, false
}

func (c *cursor) ofText(s, name string, args []value) (value, bool) {
	for _, a := range args {
		if a.kind != kindText {
			return value{}, false
		}
	}
	switch {
	case len(args) == 0:
		switch name {
		case "trim":
			return textValue(strings.TrimSpace(s)), true
		case "trimEnd":
			return textValue(strings.TrimRight(s, " \t\r\n")), true
		case "trimStart":
			return textValue(strings.TrimLeft(s, " \t\r\n")), true
		case "toString":
			return textValue(s), true
		}
	case name == "split" && len(args) == 1:
		n := 1 + strings.Count(s, args[0].text)
		if !c.charge(16*n) || args[0].text == "" {
			return value{}, true
		}
		var list []value
		for part := range strings.SplitSeq(s, args[0].text) {
			list = append(list, textValue(part))
		}
		return listValue(list), true
	case (name == "replace" || name == "replaceAll") && len(args) == 2 && args[0].text != "":
		n := strings.Count(s, args[0].text)
		if name == "replace" {
			n = min(n, 1)
		}
		if !c.charge(len(s) + n*len(args[1].text)) {
			return value{}, true
		}
		return textValue(strings.Replace(s, args[0].text, args[1].text, n)), true
	case name == "concat":
		return textValue(c.join(append([]value{textValue(s)}, args...), "", 0)), true
	}
	return value{}, false
}
