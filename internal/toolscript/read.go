package toolscript

import "slices"

// Limits of what is read of one script, so that a hostile one costs little.
const (
	maxSource    = 1 << 20 // bytes
	maxSteps     = 200_000 // expressions and statements
	maxDepth     = 60      // of what is nested
	maxApplied   = 8       // functions that call each other
	maxWritten   = 4 << 20 // bytes of texts that are put together
	maxArguments = 1 << 20 // bytes of the arguments of a call
	maxCalls     = 500
	maxRounds    = 200 // of a loop
	maxFields    = 500 // of an object
)

// reader follows a script from its start: it knows the values of literals and what is put
// together from them, takes each branch once, and each loop over a known list once
// per element. It runs nothing.
type reader struct {
	calls   []call
	steps   int
	depth   int
	applied int
	written int
	quiet   int  // > 0: an expression is only skipped
	bare    bool // functions that the script does not define are tools
	broken  bool
	// functions are those that the script defines, to be read even if nothing that is
	// understood calls them.
	functions []*funcValue
	returned  []value // of the functions that are being read
}

// call is a call of a tool; name is "" and input the zero value if unknown.
type call struct {
	name  string
	input value
}

// read finds the calls of tools in the tokens of a script.
func (r *reader) read(tokens []token, toolboxes []string) {
	c := cursor{reader: r, tokens: tokens}
	global := &scope{}
	for _, name := range toolboxes {
		global.declare(name, value{kind: kindToolbox})
	}
	for _, name := range globals {
		global.declare(name, value{kind: kindMethod, text: name})
	}
	for _, name := range literals {
		global.declare(name, value{kind: kindLiteral, text: name})
	}
	c.statements(len(tokens), global)
	for i := 0; i < len(r.functions); i++ {
		if f := r.functions[i]; !f.applied {
			r.apply(f, nil)
		}
	}
}

// globals are some objects of the language, builtins its functions.
var (
	globals  = [...]string{"Promise", "JSON", "Object", "Array", "String"}
	literals = [...]string{"true", "false", "null", "undefined"}
	builtins = []string{"Number", "Boolean", "Date", "Error", "Map", "Set", "RegExp", "parseInt", "parseFloat", "isNaN", "isFinite", "setTimeout"}
)

// step counts, and reports whether reading may go on.
func (r *reader) step() bool {
	if r.steps++; r.steps > maxSteps || r.depth > maxDepth {
		r.broken = true
	}
	return r.steps <= maxSteps && r.depth <= maxDepth
}

// record notes a call of a tool.
func (r *reader) record(name string, args []value) {
	switch {
	case r.quiet > 0:
		return
	case len(r.calls) == maxCalls:
		r.broken = true
		return
	}
	c := call{name: name}
	if len(args) > 0 {
		c.input = args[0]
	}
	r.calls = append(r.calls, c)
}

// apply reads the body of a function with arguments; those that are missing are
// unknown.
func (r *reader) apply(f *funcValue, args []value) value {
	if r.quiet > 0 {
		return value{}
	}
	f.applied = true
	if r.applied == maxApplied || !r.step() {
		r.broken = true
		return value{}
	}
	r.applied++
	s := f.scope.inner()
	c := cursor{reader: r, tokens: f.tokens, at: f.params}
	c.parameters(s, args)
	c.at = f.body
	result := value{}
	if c.peek("{") {
		r.returned = append(r.returned, value{})
		end := c.tokens[c.at].match
		c.at++
		c.statements(end, s)
		result = r.returned[len(r.returned)-1]
		r.returned = r.returned[:len(r.returned)-1]
	} else {
		result = c.expression(s)
	}
	r.applied--
	return result
}

// written charges for a text that is put together.
func (r *reader) charge(bytes int) bool {
	if r.written += bytes; r.written > maxWritten {
		r.broken = true
		return false
	}
	return true
}

// words is a value as a part of a text.
func (r *reader) words(v value, depth int) string {
	switch {
	case v.kind == kindText || v.kind == kindLiteral:
		return v.text
	case v.kind == kindList && depth < 3:
		return r.join(*v.elements, ",", depth+1)
	}
	return Hole
}

// join puts texts together.
func (r *reader) join(elements []value, separator string, depth int) string {
	var list []string
	size := 0
	for i, e := range elements {
		if i > 0 {
			list = append(list, separator)
		}
		list = append(list, r.words(e, depth))
		size += len(separator) + len(list[len(list)-1])
		if !r.step() || size > maxWritten {
			r.broken = true
			return Hole
		}
	}
	if !r.charge(size) {
		return Hole
	}
	return concat(list)
}

func (r *reader) plus(a, b value) value {
	if a.kind == kindUnknown && b.kind == kindUnknown || a.kind == kindLiteral && b.kind == kindLiteral {
		return value{}
	}
	return textValue(r.join([]value{a, b}, "", 0))
}

func concat(list []string) string {
	n := 0
	for _, s := range list {
		n += len(s)
	}
	out := make([]byte, 0, n)
	for _, s := range list {
		out = append(out, s...)
	}
	return string(out)
}

// cursor is a place in a list of tokens.
type cursor struct {
	*reader
	tokens []token
	at     int
}

var noToken = token{kind: tokenMark}

func (c *cursor) now() *token { return c.ahead(0) }

func (c *cursor) ahead(n int) *token {
	if c.at+n < len(c.tokens) {
		return &c.tokens[c.at+n]
	}
	return &noToken
}

func (c *cursor) peek(mark string) bool { return c.now().is(mark) }

func (c *cursor) take(mark string) bool {
	if c.peek(mark) {
		c.at++
		return true
	}
	return false
}

func (c *cursor) takeName(names ...string) bool {
	if t := c.now(); t.kind == tokenName && slices.Contains(names, t.text) {
		c.at++
		return true
	}
	return false
}

// statements reads up to a token, and goes behind it.
func (c *cursor) statements(end int, s *scope) {
	end = min(end, len(c.tokens))
	c.declareFunctions(end, s)
	for c.at < end {
		start := c.at
		c.statement(s)
		if c.at == start {
			c.at++ // what is no statement
		}
	}
	c.at = end + 1
}

// declareFunctions declares the functions of a list of statements, which may be called
// before them.
func (c *cursor) declareFunctions(end int, s *scope) {
	start := c.at
	for i := start; i < end && c.quiet == 0; i++ {
		t := &c.tokens[i]
		switch {
		case t.match > i:
			i = t.match
		case t.isName("function") && (i == start || startsStatement(&c.tokens[i-1])):
			c.at = i
			name := c.ahead(1)
			if name.is("*") {
				name = c.ahead(2)
			}
			if f := c.functionExpression(s); name.kind == tokenName {
				s.declare(name.text, f)
			}
			i = c.at - 1
		}
		if i%16 == 0 {
			c.steps++
		}
	}
	c.at = start
}

// startsStatement reports whether a statement may follow the token.
func startsStatement(before *token) bool {
	switch before.kind {
	case tokenMark:
		return before.is(";") || before.is("}") || before.is(")") || before.is("]")
	case tokenName:
		return !operators[before.text] || before.text == "else"
	}
	return true
}

func (c *cursor) block(s *scope) {
	end := c.now().match
	c.at++
	c.statements(end, s.inner())
}

func (c *cursor) statement(s *scope) {
	if !c.step() {
		c.at = len(c.tokens)
		return
	}
	c.depth++
	defer func() { c.depth-- }()
	t := c.now()
	if t.is("{") {
		c.block(s)
		return
	}
	if t.kind != tokenName {
		c.expressions(s)
		return
	}
	switch t.text {
	case "const", "let", "var":
		c.at++
		c.declarations(s)
	case "export", "default", "else", "do", "try", "finally":
		c.at++
	case "if", "while", "with", "switch":
		c.at++
		if c.take("(") {
			c.expressions(s)
			c.take(")")
		}
	case "catch":
		c.at++
		if c.peek("(") {
			c.at = c.now().match + 1
		}
	case "case":
		c.at++
		c.expression(s)
		c.take(":")
	case "for":
		c.at++
		c.takeName("await")
		c.loop(s)
	case "return", "throw":
		c.at++
		if !c.peek(";") && !c.peek("}") {
			v := c.expressions(s)
			if n := len(c.returned); t.text == "return" && n > 0 && c.quiet == 0 {
				c.returned[n-1] = v
			}
		}
	case "function", "async":
		if t.text == "async" && !c.ahead(1).isName("function") {
			c.expressions(s)
			return
		}
		c.takeName("async")
		c.quiet++ // it is declared
		c.functionExpression(s)
		c.quiet--
	default:
		c.expressions(s)
	}
}

func (c *cursor) declarations(s *scope) {
	for {
		start := c.at
		c.at = c.skipPattern()
		v := value{kind: kindLiteral, text: "undefined"}
		if c.take("=") {
			v = c.expression(s)
		}
		end := c.at
		c.at = start
		c.bind(s, v)
		c.at = max(c.at, end)
		if !c.take(",") {
			return
		}
	}
}

// skipPattern is where a pattern of a declaration ends.
func (c *cursor) skipPattern() int {
	if t := c.now(); t.is("{") || t.is("[") {
		return t.match + 1
	}
	return c.at + 1
}

// bind declares the names of a pattern: a name, {a, b: c, ...d} or [a, b].
func (c *cursor) bind(s *scope, v value) {
	t := c.now()
	switch {
	case t.kind == tokenName:
		c.at++
		if c.quiet == 0 {
			s.declare(t.text, v)
		}
	case t.is("["):
		c.at++
		for i := 0; c.at < t.match; i++ {
			if c.peek(",") { // an element that is left out
				c.at++
				continue
			}
			if c.take("...") {
				rest := value{}
				if v.kind == kindList && i <= len(*v.elements) {
					rest = listValue((*v.elements)[i:])
				}
				c.element(s, rest, true)
			} else if v.kind == kindList {
				in := i < len(*v.elements)
				e := value{}
				if in {
					e = (*v.elements)[i]
				}
				c.element(s, e, in)
			} else {
				c.element(s, value{}, true)
			}
			c.at = max(c.at, min(c.nextComma(t.match), t.match))
			c.take(",")
		}
		c.at = t.match + 1
	case t.is("{"):
		c.at++
		for c.at < t.match {
			rest := c.take("...")
			key := c.now()
			name := key.text
			if key.is("[") {
				c.at, name = key.match, ""
			}
			if c.ahead(1).is(":") {
				c.at += 2
			}
			e, in := v.field(name)
			switch {
			case rest:
				e, in = v, true
			case v.kind != kindObject:
				e, in = c.member(v, textValue(name)), true
			}
			c.element(s, e, in)
			c.at = max(c.at, min(c.nextComma(t.match), t.match))
			c.take(",")
		}
		c.at = t.match + 1
	default:
		c.at++
	}
	c.at = min(c.at, len(c.tokens))
}

// element binds a pattern that may have a default.
func (c *cursor) element(s *scope, v value, in bool) {
	start := c.at
	c.at = c.skipPattern()
	if c.take("=") {
		if other := c.expression(s); !in {
			v = other
		}
	}
	end := c.at
	c.at = start
	c.bind(s, v)
	c.at = max(c.at, end)
}

// nextComma is where the next comma is that is in no bracket, at most end.
func (c *cursor) nextComma(end int) int {
	for i := c.at; i < end && i < len(c.tokens); i++ {
		switch t := &c.tokens[i]; {
		case t.is(","):
			return i
		case t.match > i:
			i = t.match
		}
	}
	return end
}

// parameters binds those of a function: a name, or patterns in brackets.
func (c *cursor) parameters(s *scope, args []value) {
	if !c.peek("(") {
		v := value{}
		if len(args) > 0 {
			v = args[0]
		}
		c.bind(s, v)
		return
	}
	end := min(c.now().match, len(c.tokens))
	c.at++
	for i := 0; c.at < end; i++ {
		rest := c.take("...")
		switch {
		case rest && args != nil:
			c.element(s, listValue(slices.Clone(args[min(i, len(args)):])), true)
		case args == nil || rest:
			c.element(s, value{}, true)
		case i < len(args):
			c.element(s, args[i], true)
		default:
			c.element(s, value{}, false)
		}
		c.at = max(c.at, min(c.nextComma(end), end))
		c.take(",")
	}
	c.at = end + 1
}

// loop reads for (…) and its body: once per element of a known list.
func (c *cursor) loop(s *scope) {
	if !c.peek("(") {
		return
	}
	end := min(c.now().match, len(c.tokens))
	c.at++
	inner := s.inner()
	declared := c.takeName("const", "let", "var")
	pattern := c.at
	after := c.skipPattern()
	if after >= end || !c.tokens[after].isName("of") {
		c.at = pattern
		if declared {
			c.declarations(inner)
		}
		for c.at < end {
			start := c.at
			c.expressions(inner)
			if c.at = max(c.at, start+1); c.at > end {
				c.at = end
			}
		}
		c.at = end + 1
		c.statement(inner)
		return
	}
	c.at = after + 1
	over := c.expression(s)
	rounds := []value{{}}
	if over.kind == kindList {
		rounds = *over.elements
	}
	if len(rounds) > maxRounds {
		rounds, c.broken = rounds[:maxRounds], true
	}
	body := end + 1
	for _, element := range rounds {
		round := s.inner()
		c.at = pattern
		c.bind(round, element)
		c.at = body
		c.statement(round)
	}
	if len(rounds) == 0 {
		c.at = body
		c.quiet++
		c.statement(inner)
		c.quiet--
	}
}
