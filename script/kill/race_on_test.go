//go:build race

package kill

// race makes the large loops smaller.
const race = true
