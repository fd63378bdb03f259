package wire

import (
	"bytes"
	"encoding/json"
	"time"
)

// JSON is v without the escapes that only HTML needs.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Object is a call's arguments as an object, for vendors that take nothing else.
// What a model wrote that is none stands in it.
func Object(args json.RawMessage) json.RawMessage {
	switch {
	case len(args) == 0:
		return json.RawMessage(`{}`)
	case args[0] != '{':
		return json.RawMessage(`{"unreadable":` + string(args) + `}`)
	}
	return args
}

// first is an error's body without the list that some servers put around it.
func first(body []byte) []byte {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return body
}

// detailsOf are the reason and the wait in the details of a Google error.
// Source: https://google.aip.dev/193, google.rpc.ErrorInfo and google.rpc.RetryInfo.
func detailsOf(body []byte) (reason string, wait time.Duration) {
	var shape struct {
		Error struct {
			Details []struct {
				Reason string `json:"reason"`
				Delay  string `json:"retryDelay"` // such as 34.5s
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &shape) != nil {
		return "", 0
	}
	for _, d := range shape.Error.Details {
		if d.Reason != "" {
			reason = d.Reason
		}
		if t, err := time.ParseDuration(d.Delay); err == nil && t > 0 {
			wait = t
		}
	}
	return reason, wait
}
