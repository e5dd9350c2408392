package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// inputSchema returns the schema of a tool's input. It checks what providers check: a
// request with one invalid schema is refused as a whole. It does not check formats and
// patterns, whose dialects differ.
func inputSchema(value any) (json.RawMessage, error) {
	if value == nil {
		value = map[string]any{}
	}
	schema, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("invalid input schema: expected an object")
	}
	schema = maps.Clone(schema)
	switch schema["type"] {
	case "object":
	case nil:
		schema["type"] = "object"
	default:
		return nil, errors.New(`invalid input schema: expected the type "object"`)
	}
	if schema["properties"] == nil {
		schema["properties"] = map[string]any{}
	}
	delete(schema, "$schema")
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		delete(schema, key) // providers refuse these at the top; the server checks them
	}
	if err := checkSchema(schema, 0); err != nil {
		return nil, fmt.Errorf("invalid input schema: %w", err)
	}
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("invalid input schema: %w", err)
	}
	if len(data) > maxSchema {
		return nil, fmt.Errorf("the input schema has %d bytes, more than the limit of %d", len(data), maxSchema)
	}
	return data, nil
}

// maxDepth limits how deep a schema is nested.
const maxDepth = 32

var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// checkSchema checks the structure of a schema.
func checkSchema(value any, depth int) error {
	if _, ok := value.(bool); ok {
		return nil
	}
	schema, ok := value.(map[string]any)
	if !ok {
		return errors.New("expected an object")
	}
	if depth > maxDepth {
		return fmt.Errorf("nested more than %d times", maxDepth)
	}
	if err := checkTypes(schema["type"]); err != nil {
		return err
	}
	if required, ok := schema["required"]; ok && depth == 0 {
		names, ok := required.([]any)
		if !ok || slices.ContainsFunc(names, func(v any) bool { _, text := v.(string); return !text }) {
			return errors.New("required: expected a list of names")
		}
	}
	if enum, ok := schema["enum"]; ok {
		if _, ok := enum.([]any); !ok {
			return errors.New("enum: expected a list")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		if err := checkPart(key, schema[key], depth+1); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func checkTypes(value any) error {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, t := range list {
		name, ok := t.(string)
		if value != nil && (!ok || !slices.Contains(typeNames, name)) {
			return fmt.Errorf("type: unknown type %.40q", fmt.Sprint(t))
		}
	}
	return nil
}

// checkPart checks the schemas in one keyword of a schema.
func checkPart(key string, value any, depth int) error {
	switch key {
	case "properties", "patternProperties", "$defs", "definitions":
		object, ok := value.(map[string]any)
		if !ok {
			return errors.New("expected an object")
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if err := checkSchema(object[name], depth); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	case "anyOf", "oneOf", "allOf", "prefixItems":
		list, ok := value.([]any)
		if !ok {
			return errors.New("expected a list")
		}
		for _, item := range list {
			if err := checkSchema(item, depth); err != nil {
				return err
			}
		}
	case "items":
		if list, ok := value.([]any); ok { // of earlier drafts
			return checkPart("prefixItems", list, depth)
		}
		return checkSchema(value, depth)
	case "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else":
		return checkSchema(value, depth)
	}
	return nil
}
