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
	locks bool // the operand before the command is a file that is locked, and -c may stand before a source
	shell bool // what is started is a source or a file of commands
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
	{name: "flock", skip: 1, locks: true, opts: "-e -x -s -u -n -F -o -v -w= -E= --exclusive --shared --unlock --nonblock --close --no-fork --verbose --timeout= --wait= --conflict-exit-code="},
	{name: "dash,sh,bash,rbash,ash,ksh,mksh,zsh", shell: true, opts: "-[elxuvfCbhmn] -c:c -s:k -o=q --login --norc --noprofile --posix --verbose --restricted --version:v --help:v"},
	{name: "nohup", opts: ""},
	{name: "setsid", opts: "-c -f -w --ctty --fork --wait"},
	{name: "stdbuf", opts: "-i= -o= -e= --input= --output= --error="},
	{name: "timeout,gtimeout", skip: 1, opts: "-k= -s= -v --kill-after= --signal= --foreground --preserve-status --verbose"},
	{name: "xargs,gxargs", input: true, opts: "-0 -o -p -r -t -x -a=r -d= -E= -e? -I=I -i?I -L= -l? -n= -P= -s= --null --arg-file=r --delimiter= --eof? --replace?I --max-lines? --max-args= --max-procs= --max-chars= --interactive --no-run-if-empty --verbose --exit --open-tty --show-limits --process-slot-var="},
	{name: "watch", joins: true, opts: "-b -c -d? -e -g -n= -p -t -x -w -q= -r --beep --color --differences? --errexit --chgexit --interval= --precise --no-title --exec --no-wrap --equexit="},
	{name: "setarch,linux32,linux64,i386,x86_64,uname26", opts: "-R -3 -v -B -F -I -L -S -T -X -Z --addr-no-randomize --verbose"},
	{name: "fakeroot,unbuffer,catchsegv,dbus-run-session,xvfb-run,caffeinate,chronic,torsocks,tsocks,proxychains,proxychains4", class: WriteWorkspace, why: "it changes what the program meets", opts: "-q -a -n= -s= -d -i -m -u -t= -f=r -p"},
	{name: "uv run,poetry run,pipenv run,rye run,hatch run,pdm run,bundle exec,conda run", class: WriteWorkspace, why: "it prepares an environment of the workspace", opts: "--frozen --no-sync --locked --quiet -q --offline --active --no-dev --all-extras --with=N --python= -p= --project=C --directory=C -n= --env-file=r -m:U"},
	{name: "docker exec,podman exec,nerdctl exec,docker compose exec,docker-compose exec,podman compose exec", skip: 1, away: true, class: Destructive, why: "it runs in a container, with the rights that it has", opts: "-d -i -t -T -e= -u= -w= --detach --interactive --tty --env= --env-file=r --user= --workdir= --privileged:E --detach-keys= --index="},
	{name: "kubectl exec,oc exec", skip: 1, away: true, class: Destructive, why: "it runs in a cluster", opts: "-i -t -q -c= -n= --container= --namespace= --stdin --tty --quiet --context= --kubeconfig=r"},
	{name: "git bisect run", class: WriteWorkspace, why: "it changes the repository", opts: ""},
	{name: "git submodule foreach", class: WriteWorkspace, why: "it runs in other repositories", away: true, joins: true, opts: "--recursive --quiet -q"},
	{name: "busybox,toybox", opts: ""},
	{name: "ssh", skip: 1, away: true, joins: true, class: Network, why: "it connects to another machine", opts: "-4 -6 -a -C -f -g -K -k -M -N -n -q -s -T -t -V -v -x -X -Y -y -A:D -b= -c= -e= -i=r -l= -m= -p= -P= -Q= -B= -I=U -E=w -F=U -J=h -D=D -L=D -R=D -S= -W=h -w=D -O= -o=o"},
}

// wrap takes a wrapper's options and judges what it starts.
func (s *start) wrap(p *wrapping, words []word) {
	if p.class != "" {
		s.raise(p.class, p.why)
	}
	rest := s.options(p.row(), words)
	if p.shell {
		s.shell(rest)
		return
	}
	if rest = append(s.split, rest...); p.env {
		rest = s.environment(rest)
	}
	for range min(p.skip, len(rest)) {
		if p.name == "ssh" {
			s.host(rest[0])
		}
		if p.locks && !(rest[0].lit && wholeNumber(rest[0].text)) {
			s.writes(rest[0])
		}
		rest = rest[1:]
	}
	if hasWord(rest[:min(1, len(rest))], "--") {
		rest = rest[1:]
	}
	s.certain(words[:max(0, len(words)-len(rest))])
	if p.away {
		in := s.sc.inner()
		in.dirs = dirs{}
		s.sc = in
	}
	if len(rest) > 0 && strings.HasPrefix(p.name, "uv ") && strings.Contains(rest[0].text, "://") {
		s.raise(Destructive, "it downloads "+clip(rest[0].src)+", and nothing is known about what it runs")
	}
	switch {
	case len(rest) == 0:
		s.finish()
	case p.locks && hasWord(rest[:1], "-c", "--command") && len(rest) > 1:
		s.joined(rest[1:2])
	case p.joins:
		s.joined(rest)
	case p.input && s.replace != "":
		s.r.run(replaced(rest, s.replace), s.within(), s.inner())
	case p.input:
		s.r.run(append(rest[:len(rest):len(rest)], opaque("{}")), s.within(), s.inner())
	default:
		s.r.run(rest, s.within(), s.inner())
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

// shell judges a shell that is started by name: it reads a string, a file, or its
// input.
func (s *start) shell(rest []word) {
	if hasWord(rest[:min(1, len(rest))], "-") {
		rest = rest[1:]
	}
	switch {
	case strings.HasSuffix(s.name, "zsh"):
		s.unknown("zsh reads a source by rules of its own")
	case s.odd:
		s.unknown("an option changes how the shell reads")
	case s.version && len(s.args) == 1:
		s.finish()
	case len(rest) > 0 && strings.HasPrefix(rest[0].text, "+"):
		s.unknown("option " + clip(rest[0].src) + " changes how the shell reads")
	case s.string && len(rest) == 0:
		s.finish()
	case s.string && !rest[0].lit:
		s.unknown("it runs " + clip(rest[0].src) + ", which only shows when it runs")
	case s.string:
		s.code(rest[0].text)
	case len(rest) > 0 && !s.stdin:
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
	s.r.script(src, dialectOf(s.name, s.args), s.within(), s.wrappedIn())
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
