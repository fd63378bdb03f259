package shell

// codePrograms run code that they are given: a file of the workspace is a
// script, anything else is Unparsable. The option table holds those that bring
// code (U), a file (f) or only say something (v).
var codePrograms = []program{
	{name: "python,python2,python3,python3.9,python3.10,python3.11,python3.12,python3.13,python3.14,pypy,pypy3,ipython", style: posix, opts: "-c=U -m=M -V:v -VV:v --version:v -h:v --help:v -b -B -d -E -i:U -I -O -OO -P -q -s -S -u -v -x -W= -X= --check-hash-based-pycs="},
	{name: "node,nodejs,iojs,tsx,ts-node", style: posix, opts: "-v:v --version:v -h:v --help:v -e=U -p=U --eval=U --print=U -i:U --interactive:U -c --check -r=U --require=U --import=U --loader=U --experimental-loader=U --inspect? --inspect-brk? --inspect-port= --max-old-space-size= --stack-size= --trace-warnings --no-warnings --trace-uncaught --enable-source-maps --test --test-reporter= --watch --watch-path=r --env-file=r --experimental-strip-types --experimental-vm-modules --input-type= --expose-gc --harmony --preserve-symlinks --trace-deprecation --unhandled-rejections= --disable-warning= --no-deprecation --throw-deprecation --run=W --cpu-prof:W --heap-prof:W"},
	{name: "deno,electron,phantomjs,casperjs,qjs,quickjs,d8,jsc,rhino,nashorn,jjs,hermes,mongo-shell", class: Destructive, why: "what it runs isn't judged", opts: "--version:v --help:v -V:v *"},
	{name: "perl,perl5", style: posix, opts: "-e=U -E=U -v:v -V?v -h:v -c:U -n:U -p:U -i?U -M=U -m=U -d?U -D?U -x?U -F=U -l? -0? -C? -I=U -s -S -t -T -u -U -w -W -X -a --version:v --help:v"},
	{name: "ruby,jruby,truffleruby,mruby,irb,pry", style: posix, opts: "-e=U -v:v --version:v -h:v --help:v --copyright:v -c -n:U -p:U -i?U -l -r=U -I=U -C=C -s -S -T? -w -W? -x?U -a -F= -E= -K? -0? --disable= --enable= --yjit --jit --verbose"},
	{name: "php,hhvm", style: posix, opts: "-r=U -R=U -B=U -E=U -a:U -F=f -f=f -v:v --version:v -h:v -i:v -m:v -l -n -w -s -q -d=U -c=U -z=U -S=N -t=r --ini:v"},
	{name: "lua,lua5.1,lua5.2,lua5.3,lua5.4,luajit,texlua", style: posix, opts: "-e=U -l=U -i:U -v:v -E -W -"},
	{name: "Rscript,R,julia,octave,matlab,gnuplot,maxima,gap,sage,scilab,tclsh,wish,guile,racket,scheme,sbcl,clisp,ecl,clojure,elixir,iex,erl,escript,runghc,runhaskell,ocaml,swipl,gprolog,groovy,scala,kotlin,jshell,jrunscript,java,mono,pwsh,powershell,cmd,fish,elvish,xonsh,apl,dyalog,forth,gforth,smalltalk,gst,coffee,livescript,lsc,haxe,neko,hl,wasmtime,wasmer,wasm3,wazero,qemu-x86_64,wine,box64,love,godot,csi,fsi,dotnet-script,nodemon,pm2,forever,supervisor,gunicorn,uvicorn,hypercorn,daphne,flask,django-admin,celery,streamlit,jupyter,jupyter-notebook,jupyter-lab,papermill,nbconvert,rails,puma,unicorn,rackup,artisan,symfony,http-server,serve,live-server,browser-sync,json-server", style: posix, opts: "--version:v -version:v -V:v -v:v -jar=f -cp=f -classpath=f --class-path=f -e=U -E=U -c=U -r=U -x=U -i=U --eval=U --expression=U --command=U -Command=U -EncodedCommand=U -File=f /c=U -m=U -p=U"},
	{name: "csh,tcsh,nu,rc,es,ion,osh,ysh,oil,ghci", style: posix, opts: "--version:v -c=U -e=U --commands=U"},
	{name: "dc", style: posix, opts: "-e=U --expression=U -f=f --file=f -V:v --version:v -h:v"},
	{name: "ed,ex,red", class: Destructive, why: "an editor's commands aren't judged", opts: "*"},
}

// editPrograms are editors.
var editPrograms = []program{
	{name: "vi,vim,nvim,view,gvim,mvim,rvim,elvis", class: Destructive, why: "an editor can write and run anything", opts: "--version:v --help:v -h:v -c=U --cmd=U -S=U -s=U -u=U -U=U -es:U -l=U --startuptime=w --server= --remote-expr=U --remote-send=U -w=w -W=w -i=w *"},
	{name: "emacs,emacsclient,mg,zile,jed", class: Destructive, why: "an editor can write and run anything", opts: "--version:v --help:v --eval=U -eval=U -e=U -f=U --funcall=U -l=U --load=U --script=U -x=U --execute=U *"},
	{name: "nano,pico,micro,kak,hx,helix,joe,ne,amp,code,code-insiders,codium,cursor,windsurf,zed,subl,atom,gedit,kate,kwrite,mousepad,notepad,idea,pycharm,webstorm,goland,clion,fleet,textmate,mate,bbedit,xed,geany,leafpad", class: Destructive, why: "an editor can write and run anything", opts: "--version:v --help:v *"},
	{name: "claude,codex,gemini,aider,opencode,goose,cline,amp-cli,cursor-agent,copilot,qwen,crush,openhands,belay,ollama,llm,sgpt,aichat,mods,interpreter", class: EscapeAttempt, why: "it starts another agent, with rules of its own", opts: "--version:v --help:v *"},
}
