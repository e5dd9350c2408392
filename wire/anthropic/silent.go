package anthropic

import "github.com/furlhq/furl/internal/rawjson"

// Silent implements wire.API. The data decides what the event is; the event
// name is used if the data does not say.
func (codec) Silent(event string, data []byte) bool {
	r := rawjson.NewReader(data)
	if r.Kind() == '{' {
		for key := range r.Fields() {
			if string(key) == "type" {
				if t, ok := r.String(); ok {
					event = t
				}
				break
			}
		}
	}
	return event == "message_start" || event == "ping"
}
