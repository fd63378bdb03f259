// Package shell says what a shell command may do, without running it: which
// programs it starts, through pipes, lists, substitutions, functions,
// here-documents and the programs that start others, and how far each of them
// reaches. It reads text only: no file is opened, no link followed.
//
// # Classes
//
// Each command gets the strictest class that anything about it asks for, and the
// whole gets the strictest of its commands.
//
//	read-only        changes nothing, sends nothing; it runs in a boundary that holds it
//	                 to that, so what hides in it makes it no stricter
//	write-workspace  changes files of the workspace, or runs its programs
//	network          may send something to another machine; asking a name server does
//	destructive      removes or overwrites for good, changes the system, or may do
//	                 anything because nothing is known about it
//	escape-attempt   writes outside the workspace, to a protected name, or to a place
//	                 that is unknown; reads where keys are kept; asks for other
//	                 rights; changes the boundary
//	unparsable       what would run is unknown
//
// # What decides
//
//	a program that no row names                      destructive
//	a path to a program, inside the workspace        write-workspace at least
//	a path to a program, elsewhere                   destructive
//	an option that the program's row doesn't name    hides what it does; of a program that changes things destructive
//	a word of unknown number, or that may begin
//	with a dash (a pattern, $X, "$@", what xargs
//	appends, a response file @x)                     hides what it does, where some option does harm; behind -- every operand
//	a command word that isn't literal                unparsable
//	a subcommand that no row names                   destructive; of git unparsable: an alias runs anything
//	a wrapper (env, xargs, find -exec, sh -c …)      what it starts, and what it adds
//	code of another language in an option or stdin   unparsable
//	code of sed and awk that may run, write or read
//	anything, ${x@P} ${x:=…} ${!x}, arithmetic on
//	names, subscripts, integer variables             hides what it does
//	what hides, in a line that only reads            read-only
//	what hides, in any other line                    unparsable
//	git in another folder than the workspace       write-workspace: settings there may hold commands
//	PATH, IFS, LD_*, GIT_* and the like set          unparsable; PAGER and the like: the command in them
//	another variable set for a program               write-workspace
//	a file written                                   write-workspace, escape-attempt outside or protected
//	a file read that isn't literal                   read-only, but escape-attempt where the source names
//	                                                 a place of keys
//	a file removed                                   destructive, escape-attempt outside or protected
//	a change of directory                            later paths are read from every place it can lead to
//	what the shell that runs it may read otherwise   unparsable
//	control, invisible or misleading characters      unparsable
//	more than a bound                                unparsable
//
// Tables are data: a row of rows.go says what a program is without options, what
// each option does besides, and what its operands are, also where those begin a
// command. Options are looked up exactly as written; an abbreviation isn't
// known. Where no boundary holds a line, plain.go says which can be trusted.
//
// A source is read as the shell reads that runs it. In bash it is what bash
// does; in sh, which may be any of several shells, what POSIX doesn't have, or
// shells read in different ways, is Unparsable.
package shell
