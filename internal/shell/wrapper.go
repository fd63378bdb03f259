package shell

import "strings"

// wrapping says how a program that starts another one is written.
type wrapping struct {
	name  string // names that share the row, separated by commas
	opts  string // as in program; options end at the first operand
	skip  int    // operands before the command
	class Class  // what the wrapper adds, whatever it starts
	why   string
	env   bool // operands that look like NAME=value set variables
	input bool // words that nobody knows are appended, or replace {}
	away  bool // the command runs elsewhere: directories mean nothing there
	joins bool // the words are joined and read by a shell
	made  lazy[program]
}

// row is how its options are read.
func (p *wrapping) row() *program {
	return p.made.get(func() *program { return &program{name: "wrapper " + p.name, opts: p.opts, style: posix} })
}

// wrappers is every program whose operands are a command. Options of effect
// 'x' hold a source.
var wrappers = []wrapping{
	{name: "env", env: true, opts: "-i -0 -v -u= -C=C -S=S --ignore-environment --null --unset= --chdir=C --split-string=S --debug --block-signal? --default-signal? --ignore-signal? --list-signal-handling -a= --argv0="},
	{name: "sudo", env: true, class: EscapeAttempt, why: "it asks for other rights", opts: "-A -b -B -E -e:w -H -i -K -k -l -n -P -S -s -v -V -C= -c= -D=C -g= -h= -p= -R=E -r= -T= -t= -U= -u= --user= --group= --host= --prompt= --login --non-interactive --preserve-env? --reset-timestamp --set-home --shell --stdin --background --askpass --chdir=C --edit:w"},
	{name: "doas", env: true, class: EscapeAttempt, why: "it asks for other rights", opts: "-L -n -s -C= -u= -a="},
	{name: "run0,pkexec,gosu,su-exec,setpriv,capsh", class: EscapeAttempt, why: "it asks for other rights", opts: "*"},
	{name: "chroot", skip: 1, class: EscapeAttempt, why: "it leaves the file tree", away: true, opts: "--userspec= --groups= --skip-chdir"},
	{name: "nsenter,unshare", class: EscapeAttempt, why: "it changes the boundary", away: true, opts: "*"},
	{name: "time", opts: "-p -v -a -q -o=w -f= --append --format= --output=w --portability --quiet --verbose"},
	{name: "nice", opts: "-#: -n= --adjustment="},
	{name: "ionice", opts: "-c= -n= -t -p=D --class= --classdata= --ignore --pid=D"},
	{name: "chrt", skip: 1, opts: "-a -b -f -i -o -r -R -m -v -p:D -T= -P= -D="},
	{name: "taskset", skip: 1, opts: "-a -c -p:D --all-tasks --cpu-list --pid:D"},
	{name: "nohup", opts: ""},
	{name: "setsid", opts: "-c -f -w --ctty --fork --wait"},
	{name: "stdbuf", opts: "-i= -o= -e= --input= --output= --error="},
	{name: "timeout,gtimeout", skip: 1, opts: "-k= -s= -v --kill-after= --signal= --foreground --preserve-status --verbose"},
	{name: "xargs,gxargs", input: true, opts: "-0 -o -p -r -t -x -a=r -d= -E= -e? -I=I -i?I -L= -l? -n= -P= -s= --null --arg-file=r --delimiter= --eof? --replace?I --max-lines? --max-args= --max-procs= --max-chars= --interactive --no-run-if-empty --verbose --exit --open-tty --show-limits --process-slot-var="},
	{name: "watch", joins: true, opts: "-b -c -d? -e -g -n= -p -t -x -w -q= -r --beep --color --differences? --errexit --chgexit --interval= --precise --no-title --exec --no-wrap --equexit="},
	{name: "strace,ltrace", opts: "-c -C -d -D -f -F -h -i -k -q -r -t -T -u= -v -V -w -x -y -z -Z -a= -b= -e= -E= -I= -o=w -O= -p=D -P=r -s= -S= -U= -X= -tt -ttt -ff -yy -n=", class: WriteWorkspace, why: "it can change what the program meets"},
	{name: "setarch,linux32,linux64,i386,x86_64,uname26", opts: "-R -3 -v -B -F -I -L -S -T -X -Z --addr-no-randomize --verbose"},
	{name: "fakeroot,unbuffer,catchsegv,dbus-run-session,xvfb-run,caffeinate,chronic,torsocks,tsocks,proxychains,proxychains4", class: WriteWorkspace, why: "it changes what the program meets", opts: "-q -a -n= -s= -d -i -m -u -t= -f=r -p"},
	{name: "uv run,poetry run,pipenv run,rye run,hatch run,pdm run,bundle exec,conda run", class: WriteWorkspace, why: "it prepares an environment of the workspace", opts: "--frozen --no-sync --locked --quiet -q --offline --active --no-dev --all-extras --with=N --python= -p= --project=C --directory=C -n= --env-file=r -m:U"},
	{name: "docker exec,podman exec,nerdctl exec,docker compose exec,docker-compose exec,podman compose exec", skip: 1, away: true, class: Destructive, why: "it runs in a container, with the rights that it has", opts: "-d -i -t -T -e= -u= -w= --detach --interactive --tty --env= --env-file=r --user= --workdir= --privileged:E --detach-keys= --index="},
	{name: "kubectl exec,oc exec", skip: 1, away: true, class: Destructive, why: "it runs in a cluster", opts: "-i -t -q -c= -n= --container= --namespace= --stdin --tty --quiet --context= --kubeconfig=r"},
	{name: "git bisect run", class: WriteWorkspace, why: "it changes the repository", opts: ""},
	{name: "git submodule foreach", class: WriteWorkspace, why: "it runs in other repositories", away: true, joins: true, opts: "--recursive --quiet -q"},
	{name: "busybox,toybox", opts: ""},
	{name: "ssh", skip: 1, away: true, joins: true, class: Network, why: "it connects to another machine", opts: "-4 -6 -a -C -f -g -K -k -M -N -n -q -s -T -t -V -v -x -X -Y -y -A:D -b= -c= -e= -i=r -l= -m= -p= -P= -Q= -B= -I=U -E=w -F=U -J=h -D=D -L=D -R=D -S= -W=h -w=D -O= -o=o"},
	{name: "dash,sh,bash,rbash,ash,ksh,mksh,zsh", opts: ""},
	{name: "flock", opts: ""},
	{name: "script", opts: ""},
	{name: "su,runuser", opts: ""},
}

// wrapper judges a program that starts another; false is one that doesn't.
func (s *start) wrapper(base string) bool {
	p := entryOf(base).wrapping
	if p == nil {
		return false
	}
	switch base {
	case "sh", "bash", "rbash", "dash", "ash", "ksh", "mksh", "zsh":
		s.shell()
	case "flock":
		s.flock()
	case "script":
		s.script()
	case "su", "runuser":
		s.su()
	default:
		s.wrap(p, s.args)
	}
	return true
}

// wrap takes a wrapper's options and judges what it starts.
func (s *start) wrap(p *wrapping, words []word) {
	if p.class != "" {
		s.raise(p.class, p.why)
	}
	rest := s.options(p.row(), words)
	if rest = append(s.split, rest...); p.env {
		rest = s.environment(rest)
	}
	for range p.skip {
		if len(rest) > 0 {
			if p.name == "ssh" {
				s.host(rest[0])
			}
			rest = rest[1:]
		}
	}
	if len(rest) > 0 && rest[0].lit && rest[0].text == "--" {
		rest = rest[1:]
	}
	s.certain(words[:max(0, len(words)-len(rest))])
	if p.away {
		in := s.sc.inner()
		in.dirs = dirs{}
		s.sc = in
	}
	s.oddly(p, words, rest)
	if len(rest) == 0 {
		s.finish()
		return
	}
	s.inside(p, rest)
}

// oddly judges what some wrappers take for more than it looks: strace pipes to
// what -o names behind a sign, uv fetches a script.
func (s *start) oddly(p *wrapping, words, rest []word) {
	if strings.HasPrefix(p.name, "strace") {
		for _, w := range words[:max(0, len(words)-len(rest))] {
			if strings.ContainsAny(w.text, "|!") || !w.lit {
				s.raise(Unparsable, clip(w.src)+" may be a command that it writes to")
			}
		}
	}
	if len(rest) > 0 && strings.HasPrefix(p.name, "uv ") && strings.Contains(rest[0].text, "://") {
		s.raise(Destructive, "it downloads "+clip(rest[0].src)+", and nothing is known about what it runs")
	}
}

// certain judges the words before the command that a wrapper starts: one that
// may be an option, or several words, moves where the command begins.
func (s *start) certain(words []word) {
	for i, w := range words {
		taken := i > 0 && words[i-1].lit && words[i-1].option() && !w.split
		if !w.lit && (w.split || w.option() && !taken) {
			s.raise(Unparsable, clip(w.src)+" decides where the command begins, and only shows when it runs")
		}
	}
}

// inside judges the command that a wrapper starts.
func (s *start) inside(p *wrapping, rest []word) {
	switch {
	case p.joins:
		s.joined(rest)
		return
	case p.input && s.replace != "":
		rest = replaced(rest, s.replace)
	case p.input:
		rest = append(rest[:len(rest):len(rest)], opaque("{}"))
	}
	s.r.run(rest, s.within(), s.inner())
}

// inner is how a command inside this one is reached.
func (s *start) inner() call {
	return call{direct: true, in: s.call.in, paths: s.touched, wrapped: s.wrappedIn()}
}

// replaced makes words open in which a mark stands for what isn't known.
func replaced(words []word, mark string) []word {
	out := make([]word, len(words))
	for i, w := range words {
		if at := strings.Index(w.text, mark); w.lit && at >= 0 {
			w = word{text: w.text[:at], src: w.text}
		}
		out[i] = w
	}
	return out
}

// joined judges words that a wrapper joins into a source for a shell.
func (s *start) joined(words []word) {
	list, ok := texts(words)
	if !ok {
		s.raise(Unparsable, s.name+" hands a shell what only shows when it runs")
	}
	if s.finish(); ok {
		s.source(literal(strings.Join(list, " ")), s.name)
	}
}

// environment takes NAME=value before a command.
func (s *start) environment(words []word) []word {
	for len(words) > 0 {
		name, value, ok := strings.Cut(words[0].text, "=")
		if !ok || words[0].option() && words[0].lit {
			break
		}
		v := literal(value)
		if !words[0].lit {
			v = words[0].from(len(name) + 1)
		}
		s.r.variable(&s.touched, name, v, s.sc, true)
		words = words[1:]
	}
	return words
}

// splitString takes env -S, which splits its argument much as a shell does.
func (s *start) splitString(w word) {
	if !w.lit || strings.ContainsAny(w.text, "\\$#'\"`") {
		s.raise(Unparsable, "env -S splits its words by rules of its own")
		return
	}
	for f := range strings.FieldsSeq(w.text) {
		s.split = append(s.split, literal(f))
	}
}

// sshOption judges ssh -o NAME=value, where some names hold commands.
func (s *start) sshOption(w word) {
	name, value, _ := strings.Cut(w.text, "=")
	switch {
	case !w.lit:
		s.raise(Unparsable, "an option of ssh that only shows when it runs may hold a command")
	case oneOf(strings.ToLower(name), "proxycommand", "localcommand", "knownhostscommand"):
		s.source(literal(value), "ssh -o "+name)
	case !oneOf(strings.ToLower(name), "stricthostkeychecking", "userknownhostsfile", "batchmode", "connecttimeout", "loglevel", "port", "user", "identitiesonly", "serveraliveinterval", "serveralivecountmax", "connectionattempts", "preferredauthentications", "passwordauthentication", "compression"):
		s.raise(Unparsable, "ssh -o "+clip(name)+" isn't known")
	}
}

// shell judges a shell that is started by name.
func (s *start) shell() {
	var command, stdin bool
	i := 0
	for ; i < len(s.args); i++ {
		w := s.args[i]
		if !w.option() && !(w.lit && strings.HasPrefix(w.text, "+")) {
			break
		}
		if !w.lit {
			s.unknown(clip(w.src) + " may be any option of a shell")
			return
		}
		if w.text == "--" {
			i++
			break
		}
		switch {
		case strings.HasPrefix(w.text, "--"):
			switch w.text {
			case "--login", "--norc", "--noprofile", "--posix", "--verbose", "--restricted":
			case "--version", "--help":
				s.finish()
				return
			default:
				s.unknown("option " + clip(w.text) + " of a shell isn't known")
				return
			}
		default:
			letters := w.text[1:]
			if strings.Trim(letters, "cslexuvfCbhmno") != "" {
				s.unknown("option " + clip(w.text) + " of a shell changes how it reads")
				return
			}
			command = command || strings.Contains(letters, "c")
			stdin = stdin || strings.Contains(letters, "s")
			if strings.Contains(letters, "o") {
				if i++; i >= len(s.args) || !s.args[i].lit || !oneOf(s.args[i].text, "pipefail", "errexit", "nounset", "xtrace") {
					s.unknown("an option of a shell changes how it reads")
					return
				}
			}
		}
	}
	s.shellCode(s.args[i:], command, stdin)
}

// shellCode judges what a shell reads: a string, a file, or its input.
func (s *start) shellCode(rest []word, command, stdin bool) {
	switch {
	case command && len(rest) == 0:
		s.finish()
	case command && !rest[0].lit:
		s.unknown("it runs " + clip(rest[0].src) + ", which only shows when it runs")
	case command:
		s.code(rest[0].text)
	case len(rest) > 0 && !stdin && !(rest[0].lit && rest[0].text == "-"):
		s.runsFile(rest[0])
		s.finish()
	case s.call.in.known:
		s.code(s.call.in.text)
	default:
		s.unknown("it runs what it reads, which only shows then")
	}
}

// code judges what a shell runs, and records the shell itself only if nothing
// else of it is.
func (s *start) code(src string) {
	s.finishTouched()
	before := len(s.r.commands)
	s.r.script(src, s.within(), s.wrappedIn())
	if len(s.r.commands) == before {
		s.finish()
	}
}

// finishTouched records a wrapper of its own only if it does something itself.
func (s *start) finishTouched() {
	if s.touched.touched() {
		s.finish()
	}
}

// unknown records a command of which nobody can tell what it runs.
func (s *start) unknown(why string) {
	s.raise(Unparsable, why)
	s.finish()
}

var flockRow = program{name: "wrapper flock", style: posix, opts: "-e -x -s -u -n -F -o -v -w= -E= --exclusive --shared --unlock --nonblock --close --no-fork --verbose --timeout= --wait= --conflict-exit-code="}

// flock judges flock FILE COMMAND, flock FILE -c STRING and flock NUMBER.
func (s *start) flock() {
	rest := s.options(&flockRow, s.args)
	if len(rest) > 0 && !(rest[0].lit && wholeNumber(rest[0].text)) {
		s.writes(rest[0])
	}
	switch {
	case len(rest) < 2:
		s.finish()
	case rest[1].lit && (rest[1].text == "-c" || rest[1].text == "--command"):
		s.finish()
		if len(rest) > 2 {
			s.source(rest[2], "flock -c")
		}
	default:
		s.r.run(rest[1:], s.within(), s.inner())
	}
}

var scriptRow = program{name: "wrapper script", opts: "-a -e -f -q -c=x -E= -I=w -O=w -B=w -T=w -m= -o= -t?w --append --return --flush --quiet --command=x --log-in=w --log-out=w --log-io=w --log-timing=w --output-limit= --echo= --logging-format="}

// script judges script(1), which writes what a shell or a command prints.
func (s *start) script() {
	rest := s.options(&scriptRow, s.args)
	if len(rest) == 0 {
		rest = []word{literal("typescript")}
	}
	for _, w := range rest {
		s.writes(w)
	}
	for _, w := range s.args {
		if !w.lit || strings.HasPrefix(w.text, "--command") || w.option() && w.text[1] != '-' && strings.HasSuffix(w.text, "c") || w.text == "-c" {
			s.finish()
			return
		}
	}
	s.unknown("it starts a shell that reads its input")
}

var suRow = program{name: "wrapper su", opts: "- -c=x -l -m -p -P -f -s= -g= -G= -w= -u= --command=x --login --shell= --user= --group= --preserve-environment --pty --session-command=x"}

// su judges su and runuser, which start a shell as somebody else.
func (s *start) su() {
	s.raise(EscapeAttempt, "it asks for other rights")
	s.options(&suRow, s.args)
	s.finish()
}
