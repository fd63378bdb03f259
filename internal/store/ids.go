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

	implied = 1<<fieldSession | 1<<fieldThread | 1<<fieldTask
)

var idPrefixes = [...]string{
	"", belay.PrefixTurn, belay.PrefixStep, belay.PrefixCall, belay.PrefixRun, belay.PrefixCommand,
	belay.PrefixThread, belay.PrefixTask, belay.PrefixSession, belay.PrefixAction, belay.PrefixProcess,
	belay.PrefixOutput, belay.PrefixSubagent, belay.PrefixJob, belay.PrefixItem, belay.PrefixFlow,
	belay.PrefixEvent, belay.PrefixRuntime,
}

var errIDs = errors.New("the stored identities can't be read")

// appendIDs adds the stored form of ids, as they stand in a stream of a session.
func appendIDs(dst []byte, session belay.SessionID, stream belay.StreamID, ids *belay.IDs) []byte {
	f := [fieldCount]string{
		fieldTurn: string(ids.Turn), fieldStep: string(ids.Step), fieldCall: string(ids.Call), fieldRun: string(ids.Run),
		fieldRequest: string(ids.Request), fieldAction: string(ids.Action), fieldProcess: string(ids.Process),
		fieldArtifact: ids.Artifact, fieldOutput: string(ids.Output), fieldParentTask: string(ids.ParentTask),
		fieldSubagent: string(ids.Subagent), fieldJob: string(ids.Job), fieldItem: string(ids.Item),
		fieldEvidence: ids.Evidence, fieldChannel: ids.Channel,
	}
	var set uint64
	imply := func(own, other int, id, stream string) {
		if id == stream && id != "" {
			set |= 1 << own
			return
		}
		f[other] = id
	}
	imply(fieldSession, fieldOtherSession, string(ids.Session), string(session))
	imply(fieldThread, fieldOtherThread, string(ids.Thread), idIn(stream, belay.KindThread))
	imply(fieldTask, fieldOtherTask, string(ids.Task), idIn(stream, belay.KindTask))
	for i, id := range f {
		if id != "" {
			set |= 1 << i
		}
	}
	dst = binary.AppendUvarint(dst, set)
	for _, id := range f {
		if id != "" {
			dst = appendID(dst, id)
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
	set, n := binary.Uvarint(b)
	if n <= 0 || set>>fieldCount != 0 {
		return ids, errIDs
	}
	b = b[n:]
	var f [fieldCount]string
	for i := range f {
		if set&(1<<i) != 0 && implied&(1<<i) == 0 {
			if f[i], b, err = readID(b); err != nil {
				return ids, err
			}
		}
	}
	if len(b) != 0 {
		return ids, errIDs
	}
	if set&(1<<fieldSession) != 0 {
		f[fieldOtherSession] = string(session)
	}
	if set&(1<<fieldThread) != 0 {
		f[fieldOtherThread] = stream.ID()
	}
	if set&(1<<fieldTask) != 0 {
		f[fieldOtherTask] = stream.ID()
	}
	return belay.IDs{
		Session: belay.SessionID(f[fieldOtherSession]), Thread: belay.ThreadID(f[fieldOtherThread]),
		Turn: belay.TurnID(f[fieldTurn]), Task: belay.TaskID(f[fieldOtherTask]), ParentTask: belay.TaskID(f[fieldParentTask]),
		Run: belay.RunID(f[fieldRun]), Step: belay.StepID(f[fieldStep]), Call: belay.CallID(f[fieldCall]),
		Action: belay.ActionID(f[fieldAction]), Subagent: belay.SubagentID(f[fieldSubagent]),
		Process: belay.ProcessID(f[fieldProcess]), Job: belay.JobID(f[fieldJob]), Item: belay.ItemID(f[fieldItem]),
		Artifact: f[fieldArtifact], Evidence: f[fieldEvidence], Channel: f[fieldChannel],
		Output: belay.OutputID(f[fieldOutput]), Request: belay.CommandID(f[fieldRequest]),
	}, nil
}

func readID(b []byte) (id string, rest []byte, err error) {
	if len(b) == 0 || int(b[0]) >= len(idPrefixes) {
		return "", nil, errIDs
	}
	if b[0] != 0 {
		if len(b) < 17 {
			return "", nil, errIDs
		}
		return formatID(idPrefixes[b[0]], b[1:17]), b[17:], nil
	}
	text, rest, ok := readBytes(b[1:])
	if !ok || len(text) == 0 {
		return "", nil, errIDs
	}
	return string(text), rest, nil
}

// readBytes reads a length and that many bytes.
func readBytes(b []byte) (part, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
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
