package event

// TaskProfileResolved says what a task wants of a model.
type TaskProfileResolved struct {
	fact
	Kind         string   `json:"kind"`
	Source       string   `json:"source"` // settings, agent, default
	Capabilities []string `json:"capabilities,omitempty"`
	Latency      string   `json:"latency,omitempty"`
	Budget       string   `json:"budget,omitempty"`
	Fallback     string   `json:"fallback,omitempty"` // none, same_provider, any
}

// Route names a model at a provider.
type Route struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// Candidate is a model that could do it.
type Candidate struct {
	Route
	Capabilities []string `json:"capabilities,omitempty"`
	Context      int64    `json:"context,omitempty"`     // tokens it can read
	InputPrice   int64    `json:"inputPrice,omitempty"`  // micro-USD per million tokens
	OutputPrice  int64    `json:"outputPrice,omitempty"` // micro-USD per million tokens
}

// Excluded is a model that can't, and why.
type Excluded struct {
	Route
	Reason string `json:"reason"` // capability, credential, quota, network, policy, price
}

// RoutingCandidatesResolved lists what a request may be sent to.
type RoutingCandidatesResolved struct {
	fact
	Candidates []Candidate `json:"candidates,omitempty"`
	Excluded   []Excluded  `json:"excluded,omitempty"`
}

// RoutingDecided names the model and why it is that one.
type RoutingDecided struct {
	fact
	Route
	Mode          string  `json:"mode"`   // fixed, preferred, automatic
	Source        string  `json:"source"` // user, agent, policy, router
	Reason        string  `json:"reason"`
	Requested     *Route  `json:"requested,omitempty"` // what was asked for, if it is another
	Fallbacks     []Route `json:"fallbacks,omitempty"` // what follows if it fails, in order
	CapabilityGap string  `json:"capabilityGap,omitempty"`
	NeedsOverride bool    `json:"needsOverride,omitempty"` // a person has to agree first
}

// RoutingFallbackApplied says that the next of the fallbacks is tried.
type RoutingFallbackApplied struct {
	fact
	From   Route  `json:"from"`
	To     Route  `json:"to"`
	Reason string `json:"reason"`
	Left   int    `json:"left,omitempty"` // fallbacks that remain
}

// RoutingNotPossible says that no model can do it.
type RoutingNotPossible struct {
	fact
	Reason   string     `json:"reason"`
	Gap      []string   `json:"gap,omitempty"` // capabilities nobody has
	Excluded []Excluded `json:"excluded,omitempty"`
}

// RoutingSingleCandidate says that there was nothing to choose.
type RoutingSingleCandidate struct {
	fact
	Candidate
	Reason string `json:"reason,omitempty"`
}
