package script

import (
	"os"
	"strings"
	"testing"
)

// TestTheExamplesOfTheSecretsDocumentWork: texts are looked through as docs/secrets.md says.
// What it says of belay login and belay secret is in secrets.txtar and login.txtar.
func TestTheExamplesOfTheSecretsDocumentWork(t *testing.T) {
	doc, err := os.ReadFile("../docs/secrets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "### Looking through texts\n")
	section, _, _ = strings.Cut(section, "\n### ")
	r := newDocsRun(t)
	token := "ghp_" + "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"
	r.write("log.txt", "login with token "+token+"\n")
	r.write("session.belay", strings.Repeat("\n", 6)+token+strings.Repeat("\n", 5)+"DB_PASSWORD=k3v-Vd9x!q\n")
	if !found || r.follow(section) != 2 {
		t.Error("the section is not where it was, or shows something else")
	}
}
