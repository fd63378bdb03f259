package event

// TaskProfileResolved lists what a task needs from a model.
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

// Candidate is a model that can serve the request.
type Candidate struct {
	Route
	Capabilities []string `json:"capabilities,omitempty"`
	Context      int64    `json:"context,omitempty"`     // tokens it can read
	InputPrice   int64    `json:"inputPrice,omitempty"`  // micro-USD per million tokens
	OutputPrice  int64    `json:"outputPrice,omitempty"` // micro-USD per million tokens
	Address      string   `json:"address,omitempty"`     // where its provider is reached
}

// Excluded is a model that can't serve the request, and why.
type Excluded struct {
	Route
	Reason string `json:"reason"` // capability, credential, quota, network, policy, price
}

// RoutingCandidatesResolved lists the models a request may be sent to.
type RoutingCandidatesResolved struct {
	fact
	Candidates []Candidate `json:"candidates,omitempty"`
	Excluded   []Excluded  `json:"excluded,omitempty"`
}

// RoutingDecided names the chosen model and why.
type RoutingDecided struct {
	fact
	Route
	Address       string  `json:"address,omitempty"` // where its provider is reached
	Mode          string  `json:"mode"`              // fixed, preferred, automatic
	Source        string  `json:"source"`            // user, agent, policy, router
	Reason        string  `json:"reason"`
	Requested     *Route  `json:"requested,omitempty"` // the route asked for, if different
	Fallbacks     []Route `json:"fallbacks,omitempty"` // next routes, in order
	CapabilityGap string  `json:"capabilityGap,omitempty"`
	NeedsOverride bool    `json:"needsOverride,omitempty"` // a person has to agree first
}

// RoutingFallbackApplied reports that the next fallback is tried.
type RoutingFallbackApplied struct {
	fact
	From    Route  `json:"from"`
	To      Route  `json:"to"`
	Address string `json:"address,omitempty"` // where the provider of To is reached
	Reason  string `json:"reason"`
	Left    int    `json:"left,omitempty"` // fallbacks that remain
}

// RoutingNotPossible reports that no model can serve the request.
type RoutingNotPossible struct {
	fact
	Reason   string     `json:"reason"`
	Gap      []string   `json:"gap,omitempty"` // capabilities no model has
	Excluded []Excluded `json:"excluded,omitempty"`
}

// RoutingSingleCandidate reports that there was only one candidate.
type RoutingSingleCandidate struct {
	fact
	Candidate
	Reason string `json:"reason,omitempty"`
}
