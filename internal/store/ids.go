package store

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// A fact's identities are stored as a set of fields and a value for each. What
// follows from the stream is a bit without a value; an id that the runtime
// made is a prefix number and 16 bytes; anything else is kept as text.
//
//	uvarint fields, then for each field with a value, in bit order:
//	    prefix number, 16 bytes        prefix_xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
//	    0, uvarint length, bytes       any other text
//
// Stored logs depend on both lists below: they only grow at the end.

const (
	fieldSession = iota // the stream's session: no value
	fieldThread         // the id of a thread's stream: no value
	fieldTurn
	fieldStep
	fieldCall
	fieldTask // the id of a task's stream: no value
	fieldRun
	fieldRequest
	fieldOtherTask
	fieldAction
	fieldProcess
	fieldArtifact
	fieldOutput
	fieldOtherSession
	fieldOtherThread
	fieldParentTask
	fieldSubagent
	fieldJob
	fieldItem
	fieldEvidence
	fieldChannel
	fieldCount
)

var idPrefixes = [...]string{
	"", belay.PrefixTurn, belay.PrefixStep, belay.PrefixCall, belay.PrefixRun, belay.PrefixCommand,
	belay.PrefixThread, belay.PrefixTask, belay.PrefixSession, belay.PrefixAction, belay.PrefixProcess,
	belay.PrefixOutput, belay.PrefixSubagent, belay.PrefixJob, belay.PrefixItem, belay.PrefixFlow,
	belay.PrefixEvent, belay.PrefixRuntime,
}

var errIDs = errors.New("the stored identities can't be read")

// fields are where the identities stand that don't follow from the stream.
func fields(ids *belay.IDs) [fieldCount]*string {
	return [fieldCount]*string{
		fieldTurn: (*string)(&ids.Turn), fieldStep: (*string)(&ids.Step), fieldCall: (*string)(&ids.Call), fieldRun: (*string)(&ids.Run),
		fieldRequest: (*string)(&ids.Request), fieldOtherTask: (*string)(&ids.Task), fieldAction: (*string)(&ids.Action),
		fieldProcess: (*string)(&ids.Process), fieldArtifact: &ids.Artifact, fieldOutput: (*string)(&ids.Output),
		fieldOtherSession: (*string)(&ids.Session), fieldOtherThread: (*string)(&ids.Thread), fieldParentTask: (*string)(&ids.ParentTask),
		fieldSubagent: (*string)(&ids.Subagent), fieldJob: (*string)(&ids.Job), fieldItem: (*string)(&ids.Item),
		fieldEvidence: &ids.Evidence, fieldChannel: &ids.Channel,
	}
}

// appendIDs adds the stored form of ids, as they stand in a stream of a session.
func appendIDs(dst []byte, session belay.SessionID, stream belay.StreamID, ids *belay.IDs) []byte {
	rest := *ids
	var set uint64
	imply := func(field int, id *string, stream string) {
		if *id == stream && stream != "" {
			set |= 1 << field
			*id = ""
		}
	}
	imply(fieldSession, (*string)(&rest.Session), string(session))
	imply(fieldThread, (*string)(&rest.Thread), idIn(stream, belay.KindThread))
	imply(fieldTask, (*string)(&rest.Task), idIn(stream, belay.KindTask))
	f := fields(&rest)
	for i, id := range f {
		if id != nil && *id != "" {
			set |= 1 << i
		}
	}
	dst = binary.AppendUvarint(dst, set)
	for _, id := range f {
		if id != nil && *id != "" {
			dst = appendID(dst, *id)
		}
	}
	return dst
}

// idIn is the id of a stream of that kind, or empty.
func idIn(s belay.StreamID, kind string) string {
	if k, id, _ := strings.Cut(string(s), "/"); k == kind {
		return id
	}
	return ""
}

func appendID(dst []byte, id string) []byte {
	if n := len(id) - 37; n > 0 && id[n] == '_' {
		p := byte(slices.Index(idPrefixes[1:], id[:n]) + 1)
		u, err := hex.DecodeString(strings.ReplaceAll(id[n+1:], "-", ""))
		if p > 0 && err == nil && len(u) == 16 && formatID(id[:n], u) == id { // no other spelling of the same bytes
			return append(append(dst, p), u...)
		}
	}
	dst = append(dst, 0)
	dst = binary.AppendUvarint(dst, uint64(len(id)))
	return append(dst, id...)
}

// readIDs is the inverse of appendIDs. It accepts nothing but a whole stored form.
func readIDs(b []byte, session belay.SessionID, stream belay.StreamID) (ids belay.IDs, err error) {
	d := NewDecoder(b)
	set := d.Uvarint()
	for i, id := range fields(&ids) {
		if id != nil && set&(1<<i) != 0 {
			*id = readID(d)
		}
	}
	if !d.Whole() || set>>fieldCount != 0 {
		return belay.IDs{}, errIDs
	}
	if set&(1<<fieldSession) != 0 {
		ids.Session = session
	}
	if set&(1<<fieldThread) != 0 {
		ids.Thread = belay.ThreadID(stream.ID())
	}
	if set&(1<<fieldTask) != 0 {
		ids.Task = belay.TaskID(stream.ID())
	}
	return ids, nil
}

func readID(d *Decoder) (id string) {
	form := d.Take(1)
	switch {
	case d.failed:
	case form[0] == 0:
		id = string(d.Bytes())
		d.failed = d.failed || id == ""
	case int(form[0]) < len(idPrefixes):
		if u := d.Take(16); !d.failed {
			id = formatID(idPrefixes[form[0]], u)
		}
	default:
		d.failed = true
	}
	return id
}

func formatID(prefix string, u []byte) string {
	out := make([]byte, 0, 64)
	out = append(append(out, prefix...), '_')
	out = hex.AppendEncode(out, u[0:4])
	out = hex.AppendEncode(append(out, '-'), u[4:6])
	out = hex.AppendEncode(append(out, '-'), u[6:8])
	out = hex.AppendEncode(append(out, '-'), u[8:10])
	out = hex.AppendEncode(append(out, '-'), u[10:16])
	return string(out)
}
