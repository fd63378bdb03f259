package anthropic

import (
	"strconv"
	"strings"
)

// traits are what the adapter has to know of a model before it asks it.
type traits struct {
	adaptive bool  // thinks as it sees fit, led by an effort
	unasked  bool  // thinks unless it is disabled
	manual   bool  // thinks within a budget of tokens
	forced   bool  // can be made to call a tool
	formats  bool  // can be held to a JSON Schema
	output   int64 // tokens of an answer by default
}

// traitsOf are a model's traits by its name. A name that isn't the vendor's is a
// model of a server that imitates the protocol: it is asked for nothing special.
// Source: https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting,
// .../structured-outputs, .../models/opus-5-5/whats-new-opus-5-5, November 2026.
func traitsOf(name string) traits {
	family, v := generation(name)
	if family == "" {
		return traits{forced: true, output: 8192}
	}
	always := family == "fable" || family == "mythos" || family == "opus" && v >= 55
	t := traits{
		adaptive: always || v >= 46,
		unasked:  always || v >= 50,
		manual:   !always && v >= 37 && v <= 45,
		forced:   !always && v < 55,
		formats:  always || v >= 45 || family == "opus" && v == 41,
		output:   4096,
	}
	switch {
	case t.unasked:
		t.output = 64_000
	case v >= 37:
		t.output = 32_000
	case v >= 35:
		t.output = 8192
	}
	return t
}

// generation takes a name apart: the family, and the version as two digits, such
// as 46 for claude-opus-4-6. Old names have the version first, some servers put
// their own name before it, dates follow it. What isn't of the vendor has no family.
func generation(name string) (family string, version int) {
	_, rest, ok := strings.Cut(name, "claude-")
	if !ok {
		return "", 0
	}
	numbers := 0
	for _, word := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("-@.:", r) }) {
		n, err := strconv.Atoi(word)
		switch {
		case err != nil && family == "":
			family = word
		case err == nil && len(word) <= 2 && numbers < 2:
			version = version*10 + n
			numbers++
		}
	}
	if numbers == 1 {
		version *= 10
	}
	return family, version
}

// TakesImages reports whether a model of the vendor is known to take pictures:
// those since Claude 3 do.
func TakesImages(name string) bool { return since(name, 30) }

// TakesFiles reports whether a model of the vendor is known to take PDF documents:
// those since Claude 3.5 do.
// Source: https://platform.claude.com/docs/en/build-with-claude/pdf-support, November 2026.
func TakesFiles(name string) bool { return since(name, 35) }

func since(name string, version int) bool {
	family, v := generation(name)
	return family == "fable" || family == "mythos" || family != "" && v >= version
}
