//go:build !race

package shell

const fewer = 1
