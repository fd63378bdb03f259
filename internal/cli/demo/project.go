// Package demo holds what belay demo works on: a tiny project with a failing
// test, and the script of a model that mends it.
package demo

import (
	"embed"
	"io/fs"
)

//go:embed demo.yaml
var script []byte

//go:embed project
var files embed.FS

// Objective is what the demo asks of the agent.
const Objective = "The test fails. Find out why, fix it, and show that it passes."

// Project is the throw-away project: greet.sh with a mistake, test.sh that
// finds it, and a README.
func Project() fs.FS {
	sub, err := fs.Sub(files, "project")
	if err != nil {
		panic("demo: the embedded directory has a name that isn't valid: " + err.Error())
	}
	return sub
}

// Script is the model's side, in the format of package scripted.
func Script() []byte { return append([]byte(nil), script...) }
