package plan

import "github.com/belay-run/belay/event"

type askArgs struct {
	Question string   `json:"question" jsonschema:"the question"`
	Options  []string `json:"options,omitempty" jsonschema:"to choose from"`
}

// Ask reads the arguments of ask_user, with the same care as Complete.
func Ask(args []byte) (question string, options []string, problem *event.Problem) {
	var in struct {
		Question *string    `json:"question"`
		Options  *[]*string `json:"options"`
	}
	keys, err := read(AskName, args, &in, "question", "options")
	if err != nil {
		return "", nil, invalid(err)
	}
	if question, err = text("question", in.Question); err != nil {
		return "", nil, invalid(err)
	}
	if _, given := keys["options"]; given {
		if options, err = texts("options", in.Options); err != nil {
			return "", nil, invalid(err)
		}
	}
	return question, options, nil
}
