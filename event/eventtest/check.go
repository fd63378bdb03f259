package eventtest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay/event"
)

// Check reports whether a fact can stand in a log: it has a type, a place, a time
// and everything that its type needs. The error names all that is missing.
func Check(e event.Envelope) error {
	name := e.Type()
	if name == "" {
		return fmt.Errorf("a fact with payload %T has no type", e.Data)
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	var has map[string]json.RawMessage
	if err := json.Unmarshal(raw, &has); err != nil {
		return err
	}
	var missing []string
	lacks := func(absent bool, what string) {
		if absent {
			missing = append(missing, what)
		}
	}
	lacks(e.Stream == "", "stream")
	lacks(e.Seq < 1, "sequence")
	lacks(e.Time.IsZero(), "timestamp")
	lacks(e.Runtime == "", "runtimeId")
	lacks(e.IDs.Session == "", "sessionId")
	t, _ := event.Lookup(name)
	for _, need := range t.Needs {
		lacks(has[need] == nil, need)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s lacks %s", name, strings.Join(missing, ", "))
	}
	return nil
}
