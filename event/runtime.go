package event

// RuntimeWarning is an anomaly that stopped nothing.
type RuntimeWarning struct {
	fact
	Code    string `json:"code"`
	Message string `json:"message"`
}

// RuntimeError is something of the runtime that stopped: never the fault of a
// model, a tool or a person.
type RuntimeError struct {
	fact
	Code    string `json:"code"`
	Message string `json:"message"`
	Where   string `json:"where,omitempty"`
	Hint    string `json:"hint,omitempty"`
}
