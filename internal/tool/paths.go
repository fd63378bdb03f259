package tool

import (
	"encoding/json"

	"github.com/belay-run/belay/internal/tool/patch"
)

// FormPatch is the PathForm of tools whose path argument is a patch.
const FormPatch = "patch"

// Paths are the files that a call names, by its tool's spec and as the call
// spells them; none when it names none or they can't be told.
func Paths(spec Spec, args []byte) []string {
	if spec.PathArg == "" {
		return nil
	}
	var in map[string]json.RawMessage
	var arg string
	if json.Unmarshal(args, &in) != nil || json.Unmarshal(in[spec.PathArg], &arg) != nil || arg == "" {
		return nil
	}
	switch spec.PathForm {
	case "":
		return []string{arg}
	case FormPatch:
		if p, err := patch.Parse(arg); err == nil {
			return p.Names()
		}
	}
	return nil
}
