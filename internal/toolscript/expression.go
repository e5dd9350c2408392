package toolscript

import (
	"slices"
	"strconv"
)

// expressions reads expressions with commas between them, and returns the last one's
// value.
func (c *cursor) expressions(s *scope) value {
	for {
		v := c.expression(s)
		if !c.take(",") {
			return v
		}
	}
}

// expression reads an expression without commas.
func (c *cursor) expression(s *scope) value {
	if !c.step() {
		c.at = len(c.tokens)
		return value{}
	}
	c.depth++
	defer func() { c.depth-- }()
	if f, ok := c.arrow(s); ok {
		return f
	}
	if t := c.now(); t.kind == tokenName && c.ahead(1).kind == tokenMark {
		switch c.ahead(1).text {
		case "=", "+=", "??=", "||=", "&&=", "-=", "*=", "/=":
			return c.assignment(s)
		}
	}
	v := c.either(s)
	switch {
	case c.take("?"):
		yes := c.expression(s)
		c.take(":")
		no := c.expression(s)
		if yes.kind == kindText && no.kind == kindText && yes.text == no.text {
			return yes
		}
		return value{}
	case c.take("="): // to a field, an element or a pattern
		return c.expression(s)
	}
	return v
}

func (c *cursor) assignment(s *scope) value {
	name, mark := c.now().text, c.ahead(1).text
	c.at += 2
	v := c.expression(s)
	if mark != "=" {
		before, _ := s.find(name)
		if mark == "+=" {
			v = c.plus(before, v)
		} else {
			v = value{}
		}
	}
	if c.quiet == 0 {
		s.assign(name, v)
	}
	return v
}

// either reads operands of ||, && and ??. The first of them counts where it is known.
func (c *cursor) either(s *scope) value {
	v := c.sum(s)
	for {
		var other value
		switch {
		case c.take("||"), c.take("??"):
			other = c.sum(s)
			if v.kind == kindUnknown || v.kind == kindLiteral {
				v = other
			}
		case c.take("&&"):
			v = c.sum(s)
		default:
			return v
		}
	}
}

// operations are operators whose results are not looked at.
var operations = map[string]bool{"-": true, "*": true, "/": true, "%": true, "**": true, "===": true, "!==": true, "==": true, "!=": true,
	"<": true, ">": true, "<=": true, ">=": true, "&": true, "|": true, "^": true, "<<": true, ">>": true, ">>>": true,
	"-=": true, "*=": true, "/=": true, "+=": true, "??=": true, "||=": true, "&&=": true}

// sum reads operands of + and of other operators.
func (c *cursor) sum(s *scope) value {
	v := c.operand(s)
	for {
		t := c.now()
		switch {
		case t.is("+"):
			c.at++
			v = c.plus(v, c.operand(s))
		case t.kind == tokenMark && operations[t.text], t.isName("instanceof"), t.isName("in"):
			c.at++
			c.operand(s)
			v = value{}
		default:
			return v
		}
	}
}

func (c *cursor) operand(s *scope) value {
	if !c.step() {
		c.at = len(c.tokens)
		return value{}
	}
	c.depth++
	defer func() { c.depth-- }()
	t := c.now()
	switch {
	case t.isName("await"), t.is("+"):
		c.at++
		return c.operand(s)
	case t.is("!"), t.is("-"), t.is("~"), t.is("++"), t.is("--"), t.isName("typeof"), t.isName("void"), t.isName("delete"), t.isName("yield"), t.isName("new"):
		c.at++
		c.operand(s)
		return value{}
	}
	return c.postfix(s, c.primary(s))
}

// primary reads a literal, a name, or what is in brackets.
func (c *cursor) primary(s *scope) value {
	t := c.now()
	switch t.kind {
	case tokenString:
		c.at++
		return textValue(t.text)
	case tokenNumber:
		c.at++
		return value{kind: kindLiteral, text: t.text}
	case tokenPattern:
		c.at++
		return value{}
	case tokenTemplate:
		c.at++
		return c.template(t, s, false)
	case tokenName:
		if t.text == "function" || t.text == "async" && c.ahead(1).isName("function") {
			c.takeName("async")
			return c.functionExpression(s)
		}
		c.at++
		v, known := s.find(t.text)
		if !known && c.bare && c.peek("(") && !slices.Contains(builtins, t.text) {
			return value{kind: kindTool, text: t.text}
		}
		return v
	}
	switch t.text {
	case "(":
		end := t.match
		c.at++
		v := c.expressions(s)
		c.at = end + 1
		return v
	case "[":
		return listValue(c.elements("[", s))
	case "{":
		return c.object(s)
	case ")", "]", "}", ";", ",", ":", "":
		return value{} // an operand is missing
	}
	c.at++
	return value{}
}

// template reads a template, raw if its escapes count as written.
func (c *cursor) template(t *token, s *scope, raw bool) value {
	var parts []value
	for i, p := range t.parts {
		if i > 0 {
			inner := cursor{reader: c.reader, tokens: t.inserts[i-1]}
			parts = append(parts, inner.expressions(s))
		}
		if raw {
			parts = append(parts, textValue(p.raw))
		} else {
			parts = append(parts, textValue(p.text))
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return textValue(c.join(parts, "", 0))
}

// elements reads those between brackets, also the arguments of a call.
func (c *cursor) elements(open string, s *scope) []value {
	if !c.peek(open) {
		return nil
	}
	end := min(c.now().match, len(c.tokens))
	c.at++
	list := []value{}
	for c.at < end {
		start := c.at
		spread := c.take("...")
		v := c.expression(s)
		switch {
		case spread && v.kind == kindList:
			if c.charge(16 * len(*v.elements)) {
				list = append(list, *v.elements...)
			}
		default:
			list = append(list, v)
		}
		c.at = min(max(c.at, start+1), end)
		if c.at < end && !c.peek(",") {
			c.at = c.nextComma(end) // what is not understood
			list[max(len(list)-1, 0)] = value{}
		}
		c.take(",")
	}
	c.at = end + 1
	return list
}

func (c *cursor) object(s *scope) value {
	end := min(c.now().match, len(c.tokens))
	c.at++
	fields := []field{}
	v := value{kind: kindObject, fields: &fields}
	for c.at < end {
		start := c.at
		switch key := c.now(); {
		case c.take("..."):
			if from := c.expression(s); from.kind == kindObject {
				if c.charge(16 * len(*from.fields)) {
					for _, f := range *from.fields {
						v.set(f.name, f.value)
					}
				}
			}
		case c.ahead(1).is(":"):
			c.at += 2
			v.set(key.text, c.expression(s))
		case c.ahead(1).is("(") && key.kind == tokenName: // a method
			c.at++
			v.set(key.text, c.functionAfter(s))
		case key.is("["):
			c.at++
			name := c.expression(s)
			c.at = key.match + 1
			if c.take(":") {
				if e := c.expression(s); name.kind == kindText {
					v.set(name.text, e)
				}
			}
		case key.kind == tokenName:
			c.at++
			e, _ := s.find(key.text)
			v.set(key.text, e)
		}
		c.at = min(max(c.at, start+1), end)
		c.at = c.nextComma(end)
		c.take(",")
	}
	c.at = end + 1
	c.broken = c.broken || len(fields) == maxFields
	return v
}

// arrow reads a function with an arrow, if there is one.
func (c *cursor) arrow(s *scope) (value, bool) {
	params := c.at
	if c.now().isName("async") && !c.ahead(1).is("=>") {
		params++
	}
	after := params + 1
	switch t := c.ahead(params - c.at); {
	case t.is("("):
		after = t.match + 1
	case t.kind != tokenName:
		return value{}, false
	}
	if after >= len(c.tokens) || !c.tokens[after].is("=>") {
		return value{}, false
	}
	f := &funcValue{tokens: c.tokens, params: params, body: after + 1, scope: s}
	c.at = after + 1
	c.skipBody(s)
	return c.defined(f), true
}

// skipBody goes behind the body of a function.
func (c *cursor) skipBody(s *scope) {
	if c.peek("{") {
		c.at = c.now().match + 1
		return
	}
	c.quiet++
	c.expression(s)
	c.quiet--
}

// functionExpression reads function name(…) {…}.
func (c *cursor) functionExpression(s *scope) value {
	c.at++
	c.take("*")
	if c.now().kind == tokenName {
		c.at++
	}
	return c.functionAfter(s)
}

// functionAfter reads the parameters and the body of a function.
func (c *cursor) functionAfter(s *scope) value {
	params := c.now()
	if !params.is("(") {
		return value{}
	}
	f := &funcValue{tokens: c.tokens, params: c.at, body: params.match + 1, scope: s}
	c.at = params.match + 1
	if !c.peek("{") {
		return value{}
	}
	c.at = c.now().match + 1
	return c.defined(f)
}

func (c *cursor) defined(f *funcValue) value {
	if c.quiet == 0 {
		c.functions = append(c.functions, f)
	}
	return value{kind: kindFunction, function: f}
}

// postfix reads fields, elements and calls of a value.
func (c *cursor) postfix(s *scope, v value) value {
	for {
		t := c.now()
		optional := t.is("?.")
		if optional {
			c.at++
			t = c.now()
		}
		switch {
		case t.is("."), optional && t.kind == tokenName:
			if !optional {
				c.at++
			}
			name := c.now()
			if name.kind == tokenName {
				c.at++
			}
			v = c.member(v, textValue(name.text))
		case t.is("["):
			c.at++
			key := c.expressions(s)
			c.at = t.match + 1
			v = c.member(v, key)
		case t.is("("):
			v = c.call(v, c.elements("(", s))
		case t.kind == tokenTemplate:
			c.at++
			raw := v.kind == kindMethod && v.base != nil && v.base.text == "String" && v.text == "raw"
			v = c.template(t, s, raw)
			if !raw {
				v = value{}
			}
		case t.is("++"), t.is("--"):
			c.at++
			v = value{}
		default:
			return v
		}
	}
}

// member is a field, an element or a method.
func (c *cursor) member(v, key value) value {
	switch {
	case v.kind == kindToolbox && key.kind == kindText:
		return value{kind: kindTool, text: key.text}
	case v.kind == kindToolbox:
		return value{kind: kindTool}
	case v.kind == kindObject && key.kind == kindText:
		if f, ok := v.field(key.text); ok {
			return f
		}
	case v.kind == kindList && key.kind == kindLiteral:
		if i, err := strconv.Atoi(key.text); err == nil && i < len(*v.elements) {
			return (*v.elements)[i]
		}
		return value{}
	}
	if key.kind == kindText && v.kind != kindUnknown && v.kind != kindLiteral {
		return value{kind: kindMethod, text: key.text, base: &v}
	}
	return value{}
}
