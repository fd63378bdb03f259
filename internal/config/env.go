package config

import (
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/template"
	"github.com/belay-run/belay/internal/model/catalog"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/secret/vault"
)

// Env is what a process was started with.
type Env struct {
	Vars []string // NAME=value
	Dir  string   // the working directory
}

// Get is the value of a variable.
func (e Env) Get(name string) string { return process.Getenv(e.Vars, name) }

// Abs makes a path absolute, relative to the working directory.
func (e Env) Abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(e.Dir, path)
}

// ConfigDir is the person's folder of settings, or empty.
func (e Env) ConfigDir() string { return e.own("XDG_CONFIG_HOME", ".config") }

// CacheDir is the program's folder for what can be made anew, or empty.
func (e Env) CacheDir() string { return e.own("XDG_CACHE_HOME", ".cache") }

// own is the program's folder of a kind: where a variable says, else below the home
// directory; a relative path says nothing.
func (e Env) own(variable, below string) string {
	if dir := e.Get(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "belay")
	}
	if home := e.Get("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, below, "belay")
	}
	return ""
}

// StoreDir is the store's directory, which need not exist: the one that is named,
// or the person's.
func (e Env) StoreDir(named string) (string, error) {
	if named != "" {
		return e.Abs(named), nil
	}
	if dir := e.own("XDG_STATE_HOME", filepath.Join(".local", "state")); dir != "" {
		return dir, nil
	}
	return "", belay.Errorf(belay.CodeUsage, "there is no home directory to keep sessions in").At("HOME").WithHint("--store DIR")
}

// FindWorkspace is the real path of what to work on: the directory that is named,
// or the repository of the current one.
func (e Env) FindWorkspace(named string) (string, error) {
	dir, where := named, "--workspace"
	if dir == "" {
		dir, where = e.Dir, "the current directory"
	}
	if dir == "" {
		return "", belay.Errorf(belay.CodeWorkspace, "it does not exist").At(where).WithHint("cd to a directory that does")
	}
	ws, err := CheckWorkspace(e.Abs(dir))
	if err != nil || named != "" {
		return ws, err
	}
	return RepositoryOf(ws), nil
}

// Vault is where the person's secrets are kept; what is read of it is hidden by s.
// identity names the file that opens it, if it is another than the environment's.
func (e Env) Vault(identity string, s *secret.Scrubber) (vault.Vault, error) {
	dir := e.ConfigDir()
	if dir == "" {
		return vault.Vault{}, belay.Errorf(belay.CodeUsage, "there is no home directory to keep secrets in").At("HOME").WithHint("XDG_CONFIG_HOME names the folder of settings")
	}
	v := vault.Vault{Dir: dir, Loaded: func(name, value string) { s.Add(name, value) }}
	switch {
	case identity != "":
		v.IdentityPath = e.Abs(identity)
	case e.Get("BELAY_SECRET_KEY") != "":
		v.Identity = e.Get("BELAY_SECRET_KEY")
	case e.Get("BELAY_IDENTITY") != "":
		v.IdentityPath = e.Abs(e.Get("BELAY_IDENTITY"))
	}
	return v, nil
}

// KeptSecrets are the names of the person's secrets.
func (e Env) KeptSecrets(s *secret.Scrubber) (names []string, err error) {
	v, err := e.Vault("", s)
	if err != nil || !v.Exists() {
		return nil, nil //nolint:nilerr // no home directory, no secrets
	}
	list, err := v.List()
	for _, e := range list {
		names = append(names, e.Name)
	}
	return names, err
}

// Models is the name of the files that extend the catalogue: of the person and of
// the machine. A workspace has none: it must not say what things cost.
const Models = "models.yaml"

// Catalog is the embedded catalogue of models with the files of the machine and
// the person over it.
func (e Env) Catalog() (*catalog.Catalog, error) {
	paths := []string{filepath.Join(systemDir, Models)}
	if dir := e.ConfigDir(); dir != "" {
		paths = append(paths, filepath.Join(dir, Models))
	}
	var models []catalog.File
	for _, path := range paths {
		b, err := contentOf(path, maxConfig, belay.CodeBadConfig)
		if err != nil {
			return nil, err
		}
		models = append(models, catalog.File{Name: path, Data: b})
	}
	return catalog.New(models...)
}

// Templates are those of the program, the person and a workspace.
func (e Env) Templates(workspace string) (*template.Catalog, error) {
	user := ""
	if dir := e.ConfigDir(); dir != "" {
		user = filepath.Join(dir, "templates")
	}
	return template.Open(user, filepath.Join(workspace, ".belay", "templates"))
}
