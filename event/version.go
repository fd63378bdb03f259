package event

// VersionOf is the current payloadVersion of a payload's type; 1 for Unknown.
func VersionOf(p Payload) int {
	if t := byPayload(p); t != nil {
		return t.Version
	}
	return 1
}
