package event

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/belay-run/belay"
)

// MarshalJSON writes the standard's form. A known payload is written in the
// table's version whatever Version says, an unknown one as it was recorded.
//
// It is what encoding/json makes of wire, written by hand: every fact that
// anybody follows passes here.
func (e Envelope) MarshalJSON() ([]byte, error) {
	payload, err := e.Encoded()
	if err != nil {
		return nil, err
	}
	when, err := e.Time.UTC().MarshalJSON()
	if err != nil {
		return nil, err
	}
	b := appendText(make([]byte, 0, 768+len(payload)), `{"type":`, e.Type())
	b = appendText(b, `,"eventId":`, string(e.ID()))
	b = append(append(b, `,"timestamp":`...), when...)
	b = strconv.AppendInt(append(b, `,"sequence":`...), e.Seq, 10)
	b = appendText(b, `,"stream":`, string(e.Stream))
	b = appendText(b, `,"schemaVersion":`, SchemaVersion)
	b = appendText(b, `,"runtimeId":`, string(e.Runtime))
	b = appendIDs(b, &e.IDs)
	if v := e.version(); v > 1 { // 1 is the default and is left out
		b = strconv.AppendInt(append(b, `,"payloadVersion":`...), int64(v), 10)
	}
	if e.Requires != 0 {
		b = strconv.AppendInt(append(b, `,"requires":`...), int64(e.Requires), 10)
	}
	b = append(b, `,"payload":`...)
	if b, err = appendPayload(b, e.Data, payload); err != nil {
		return nil, err
	}
	return appendRest(b, e.Refs, promoted(e.Data))
}

// appendPayload adds a payload's JSON. That of a known type is as marshal wrote
// it; that of another type may be anything that was once read.
func appendPayload(b []byte, p Payload, raw []byte) ([]byte, error) {
	if _, unknown := p.(Unknown); !unknown {
		return append(b, raw...), nil
	}
	to := bytes.NewBuffer(b)
	if err := json.Compact(to, raw); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

// appendRest adds what few facts have, and the end.
func appendRest(b []byte, refs map[string]belay.Ref, p Promoted) ([]byte, error) {
	if len(refs) > 0 {
		more, err := marshal(refs)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"refs":`...), more...)
	}
	if p != (Promoted{}) {
		more, err := marshal(p)
		if err != nil {
			return nil, err
		}
		b = append(append(b, ','), more[1:len(more)-1]...)
	}
	return append(b, '}'), nil
}

// appendIDs adds the identities that a fact has, in the order of belay.IDs.
func appendIDs(b []byte, ids *belay.IDs) []byte {
	for _, id := range [...]struct{ name, value string }{
		{`,"sessionId":`, string(ids.Session)}, {`,"threadId":`, string(ids.Thread)}, {`,"turnId":`, string(ids.Turn)},
		{`,"taskId":`, string(ids.Task)}, {`,"parentTaskId":`, string(ids.ParentTask)}, {`,"runId":`, string(ids.Run)},
		{`,"stepId":`, string(ids.Step)}, {`,"toolCallId":`, string(ids.Call)}, {`,"actionId":`, string(ids.Action)},
		{`,"subagentId":`, string(ids.Subagent)}, {`,"processId":`, string(ids.Process)}, {`,"jobId":`, string(ids.Job)},
		{`,"jobItemId":`, string(ids.Item)}, {`,"artifactId":`, ids.Artifact}, {`,"evidenceId":`, ids.Evidence},
		{`,"channelId":`, ids.Channel}, {`,"outputRef":`, string(ids.Output)}, {`,"requestId":`, string(ids.Request)},
	} {
		if id.value != "" {
			b = appendText(b, id.name, id.value)
		}
	}
	return b
}

// appendText adds a name with its colon and a text in quotes.
func appendText(b []byte, name, text string) []byte {
	b = append(b, name...)
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := marshal(text) // a string always has its JSON
			return append(b, quoted...)
		}
	}
	b = append(append(b, '"'), text...)
	return append(b, '"')
}
