package google

import (
	"strconv"
	"strings"
)

// latest is the generation of the vendor's names that say none.
const latest = 30

// generation is a model's version as two digits, such as 25 for gemini-2.5-pro;
// zero is a model that isn't one of this family.
func generation(name string) int {
	_, rest, ok := strings.Cut(name, "gemini-")
	if !ok {
		return 0
	}
	word, _, _ := strings.Cut(rest, "-")
	major, minor, _ := strings.Cut(word, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return latest // gemini-flash-latest
	}
	m, _ := strconv.Atoi(minor)
	return n*10 + m
}

// signs reports whether a model wants each first call of an answer signed.
// Source: https://ai.google.dev/gemini-api/docs/thought-signatures, November 2026.
func signs(name string) bool { return generation(name) >= 30 }

// partsInResults reports whether a model takes pictures and documents in the results of calls.
// Source: https://ai.google.dev/gemini-api/docs/function-calling, November 2026.
func partsInResults(name string) bool { return generation(name) >= 30 }

// thinking is how much a model thinks: a level, or a budget in tokens.
type thinking struct {
	Thoughts bool   `json:"includeThoughts"`
	Level    string `json:"thinkingLevel,omitempty"`
	Budget   int    `json:"thinkingBudget,omitempty"`
}

// budgets are efforts in tokens, for models that have no levels.
var budgets = map[string]int{"low": 1024, "medium": 8192, "high": 24_576}

// thinkingOf is an effort as the model takes it; nil leaves it to the model.
// Source: https://ai.google.dev/gemini-api/docs/thinking, November 2026.
func thinkingOf(name, effort string) *thinking {
	v := generation(name)
	switch {
	case budgets[effort] == 0 || v < 25 || strings.Contains(name, "image"):
		return nil
	case v < 30:
		return &thinking{Thoughts: true, Budget: budgets[effort]}
	case v == 30 && effort == "medium" && strings.Contains(name, "-pro"): // knows low and high only
		effort = "high"
	}
	return &thinking{Thoughts: true, Level: strings.ToUpper(effort)}
}

// formats reports whether a model can be held to a JSON Schema, and whether it can
// while it has tools.
func formats(name string) (alone, withTools bool) {
	v := generation(name)
	return v >= 25, v >= 30
}

// TakesImages reports whether a model is known to take pictures: all of the family do.
func TakesImages(name string) bool { return generation(name) > 0 }

// TakesFiles reports whether a model is known to take documents: all of the family do.
func TakesFiles(name string) bool { return generation(name) > 0 }
