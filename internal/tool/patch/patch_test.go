package patch_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/tool/patch"
)

type files = map[string]string

// apply parses and applies, and gives the tree afterwards.
func apply(text string, before files) (after files, remarks []string, err error) {
	p, err := patch.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	a, err := p.Apply(func(name string) (string, bool, error) {
		c, ok := before[name]
		return c, ok, nil
	})
	if err != nil {
		return nil, nil, err
	}
	after = maps.Clone(before)
	if after == nil {
		after = files{}
	}
	names := p.Names()
	for _, c := range a.Changes {
		if !slices.Contains(names, c.Name) {
			return nil, nil, fmt.Errorf("%s changes but isn't named in %v", c.Name, names)
		}
		if content, ok := before[c.Name]; ok != c.Was || content != c.Before {
			return nil, nil, fmt.Errorf("%s was %q, not %q", c.Name, content, c.Before)
		}
		delete(after, c.Name)
		if c.Is {
			after[c.Name] = c.After
		}
	}
	return after, a.Remarks, nil
}

// lines makes a content of single words.
func lines(words string) string { return strings.ReplaceAll(words, " ", "\n") + "\n" }

const ten = "1 2 3 4 5 6 7 8 9 10"

// Guarantee: T15.
func TestPatchesApply(t *testing.T) {
	for _, c := range []struct {
		name, patch   string
		before, after files
		remark        string // of the only remark; empty: none
	}{
		{"a change by git", "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@ func\n 1\n-2\n+two\n 3\n",
			files{"f": lines("1 2 3 4")}, files{"f": lines("1 two 3 4")}, ""},
		{"a change without prefixes", "--- f\n+++ f\n@@ -2 +2 @@\n-2\n+two\n", files{"f": lines("1 2 3")}, files{"f": lines("1 two 3")}, ""},
		{"times after the names", "--- a/f\t2020-01-01 10:00\n+++ b/f\t2020-01-02\n@@ -1 +1 @@\n-1\n+one\n", files{"f": "1\n"}, files{"f": "one\n"}, ""},
		{"text before, between and after", "From: x\nSubject: y\n\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+one\nnothing\n\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-1\n+one\n-- \n2.39\n\n",
			files{"f": "1\n", "g": "1\n"}, files{"f": "one\n", "g": "one\n"}, ""},
		{"a new file", "--- /dev/null\n+++ b/d/f\n@@ -0,0 +1,2 @@\n+1\n+2\n", nil, files{"d/f": "1\n2\n"}, ""},
		{"a new file without an end", "diff --git a/f b/f\nnew file mode 100755\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+1\n\\ No newline at end of file\n", nil, files{"f": "1"}, ""},
		{"a new empty file", "diff --git a/f b/f\nnew file mode 100644\nindex 000..e69\n", nil, files{"f": ""}, ""},
		{"a removed file", "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n", files{"f": lines("1 2")}, files{}, ""},
		{"a removed empty file", "diff --git a/f b/f\ndeleted file mode 100644\nindex e69..000\n", files{"f": ""}, files{}, ""},
		{"a moved file", "diff --git a/f b/d/g\nsimilarity index 100%\nrename from f\nrename to d/g\n", files{"f": "1\n"}, files{"d/g": "1\n"}, ""},
		{"a moved and changed file", "diff --git a/f b/g\nsimilarity index 60%\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n",
			files{"f": lines("1 2")}, files{"g": lines("1 two")}, ""},
		{"a copied file", "diff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n", files{"f": "1\n"}, files{"f": "1\n", "g": "1\n"}, ""},
		{"a copy of what a file was before the patch", "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+one\ndiff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n", files{"f": "1\n"}, files{"f": "one\n", "g": "1\n"}, ""},
		{"a copy of a file that was moved away", "diff --git a/f b/a\nsimilarity index 100%\nrename from f\nrename to a\ndiff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n", files{"f": "1\n"}, files{"a": "1\n", "g": "1\n"}, ""},
		{"names with spaces and quotes", "diff --git \"a/\\303\\274 x\" \"b/\\303\\274 x\"\n--- \"a/\\303\\274 x\"\n+++ \"b/\\303\\274 x\"\n@@ -1 +1 @@\n-1\n+one\ndiff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n@@ -1 +1 @@\n-1\n+one\n",
			files{"ü x": "1\n", "a b": "1\n"}, files{"ü x": "one\n", "a b": "one\n"}, ""},
		{"a folder called a", "--- a/a/f\n+++ b/a/f\n@@ -1 +1 @@\n-1\n+one\n", files{"a/f": "1\n"}, files{"a/f": "one\n"}, ""},
		{"both names begin with a/", "--- a/f\n+++ a/f\n@@ -1 +1 @@\n-1\n+one\n", files{"a/f": "1\n"}, files{"a/f": "one\n"}, ""},
		{"only a mode, and a change", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\ndiff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-1\n+one\n",
			files{"f": "1\n", "g": "1\n"}, files{"f": "1\n", "g": "one\n"}, "f: its mode was not changed to 100755"},
		{"lines added without any around", "--- a/f\n+++ b/f\n@@ -2,0 +3 @@\n+x\n", files{"f": lines("1 2 3")}, files{"f": lines("1 2 x 3")}, ""},
		{"lines added before all", "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", files{"f": lines("1 2")}, files{"f": lines("x 1 2")}, ""},
		{"a removed line that looks like a header", "--- a/f\n+++ b/f\n@@ -1,3 +1,2 @@\n 1\n--- x\n+++ y\n-3\n", files{"f": "1\n-- x\n3\n"}, files{"f": "1\n++ y\n"}, ""},
		{"an end that comes", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n\\ No newline at end of file\n+2\n", files{"f": "1\n2"}, files{"f": "1\n2\n"}, ""},
		{"an end that goes", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+2\n\\ No newline at end of file\n", files{"f": "1\n2\n"}, files{"f": "1\n2"}, ""},
		{"an end that isn't spoken of stays missing", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n", files{"f": "1\n2"}, files{"f": "1\ntwo"}, ""},
		{"the line without an end goes", "--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n 1\n-2\n\\ No newline at end of file\n", files{"f": "1\n2"}, files{"f": "1\n"}, ""},
		{"CR LF stays", "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n 1\n-2\n+two\n+more\n", files{"f": "1\r\n2\r\n3\r\n"}, files{"f": "1\r\ntwo\r\nmore\r\n3\r\n"}, ""},
		{"a patch in CR LF", "--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-1\r\n+one\r\n", files{"f": "1\n"}, files{"f": "one\n"}, ""},
		{"wrong line numbers", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n 6\n-7\n+x\n 8\n", files{"f": lines(ten)}, files{"f": lines("1 2 3 4 5 6 x 8 9 10")}, "f, hunk 1: at line 6 instead of 1"},
		{"the second hunk moves with the first", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -4,1 +4,1 @@\n-x\n+X\n", files{"f": lines("x x a b x x")}, files{"f": lines("x x a B x X")},
			"f, hunk 1: at line 3 instead of 1|f, hunk 2: at line 6 instead of 4"},
		{"wrong counts", "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n 1\n-2\n+two\n 3\n", files{"f": lines("1 2 3 4")}, files{"f": lines("1 two 3 4")}, "f, hunk 1: the counts of its header are wrong"},
		{"counts that are too small", "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n 1\n-2\n+two\n 3\n", files{"f": lines("1 2 3 4")}, files{"f": lines("1 two 3 4")}, "f, hunk 1: the counts of its header are wrong"},
		{"no numbers", "--- a/f\n+++ b/f\n@@ ... @@\n 1\n-2\n+two\n", files{"f": lines("1 2 3")}, files{"f": lines("1 two 3")}, ""},
		{"white space at the end of lines", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n", files{"f": "1  \n2\t\n3\n"}, files{"f": "1  \ntwo\n3\n"}, "f, hunk 1: white space, quotes or the end of the file differ"},
		{"quotes", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n it's \"so\"\n-2\n+two\n", files{"f": "it’s “so”\n2\n"}, files{"f": "it’s “so”\ntwo\n"}, "f, hunk 1: white space, quotes or the end of the file differ"},
		{"a first line that changed", "--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n other\n second\n-third\n+3\n fourth\n", files{"f": lines("first second third fourth")}, files{"f": lines("first second 3 fourth")}, "f, hunk 1: fuzz 1"},
		{"blank lines that lost their space", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n 1\n\n-2\n+two\n", files{"f": "1\n\n2\n"}, files{"f": "1\n\ntwo\n"}, ""},
		{"the same file twice", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+one\n--- a/f\n+++ b/f\n@@ -2 +2 @@\n-2\n+two\n", files{"f": lines("1 2")}, files{"f": lines("one two")}, ""},
		{"a fence around it", "```diff\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+one\n```\n", files{"f": "1\n"}, files{"f": "one\n"}, ""},

		{"the other form", "*** Begin Patch\n*** Add File: d/new\n+1\n+\n+2\n*** Update File: f\n@@\n 1\n-2\n+two\n*** Delete File: g\n*** End Patch\n",
			files{"f": lines("1 2 3"), "g": "x\n"}, files{"d/new": "1\n\n2\n", "f": lines("1 two 3")}, ""},
		{"a move in it", "*** Begin Patch\n*** Update File: f\n*** Move to: d/g\n@@\n-1\n+one\n*** End Patch", files{"f": "1\n"}, files{"d/g": "one\n"}, ""},
		{"only a move", "*** Begin Patch\n*** Update File: f\n*** Move to: g\n*** End Patch", files{"f": "1\n"}, files{"g": "1\n"}, ""},
		{"an anchor", "*** Begin Patch\n*** Update File: f\n@@ func b\n-x\n+y\n*** End Patch", files{"f": "func a\nx\nfunc b\nx\n"}, files{"f": "func a\nx\nfunc b\ny\n"}, ""},
		{"two anchors", "*** Begin Patch\n*** Update File: f\n@@ class B\n@@   def m\n-x\n+y\n*** End Patch", files{"f": "class A\n  def m\nx\nclass B\n  def m\nx\n"}, files{"f": "class A\n  def m\nx\nclass B\n  def m\ny\n"}, ""},
		{"an anchor that isn't there", "*** Begin Patch\n*** Update File: f\n@@ nowhere\n-x\n+y\n*** End Patch", files{"f": lines("a x b")}, files{"f": lines("a y b")}, `f: the line "nowhere" after @@ was not found; the hunk fits in one place only`},
		{"lines added after an anchor", "*** Begin Patch\n*** Update File: f\n@@ 2\n+x\n*** End Patch", files{"f": lines("1 2 3")}, files{"f": lines("1 2 x 3")}, ""},
		{"lines added at the end", "*** Begin Patch\n*** Update File: f\n@@\n+x\n*** End Patch", files{"f": lines("1 2")}, files{"f": lines("1 2 x")}, ""},
		{"the end of the file", "*** Begin Patch\n*** Update File: f\n@@\n-x\n+y\n*** End of File\n*** End Patch", files{"f": lines("x a x")}, files{"f": lines("x a y")}, ""},
		{"later places after earlier ones", "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n@@\n-x\n+y\n*** End Patch", files{"f": lines("x a x")}, files{"f": lines("x b y")}, ""},
		{"hunks out of order", "*** Begin Patch\n*** Update File: f\n@@\n-3\n+c\n@@\n-1\n+a\n*** End Patch", files{"f": lines("1 2 3")}, files{"f": lines("a 2 c")}, ""},
		{"hunks that share what stays", "*** Begin Patch\n*** Update File: f\n@@\n 1\n-2\n+b\n 3\n@@\n 3\n-4\n+d\n*** End Patch", files{"f": lines("1 2 3 4")}, files{"f": lines("1 b 3 d")}, ""},
		{"no @@ at all", "*** Begin Patch\n*** Update File: f\n 1\n-2\n+two\n*** End Patch", files{"f": lines("1 2")}, files{"f": lines("1 two")}, ""},
		{"no frame", "*** Update File: f\n@@\n-1\n+one\n", files{"f": "1\n"}, files{"f": "one\n"}, `it ends without "*** End Patch"`},
		{"replacing a file", "*** Begin Patch\n*** Delete File: f\n*** Add File: f\n+new\n*** End Patch", files{"f": "old\n"}, files{"f": "new\n"}, ""},
		{"moves in a row", "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** Update File: b\n*** Move to: c\n*** End Patch", files{"a": "1\n"}, files{"c": "1\n"}, ""},
	} {
		after, remarks, err := apply(c.patch, c.before)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !maps.Equal(after, c.after) {
			t.Errorf("%s: got %q, want %q", c.name, after, c.after)
		}
		if got := strings.Join(remarks, "|"); got != c.remark {
			t.Errorf("%s: remarks %q, want %q", c.name, got, c.remark)
		}
	}
}

func TestPatchesThatAreNone(t *testing.T) {
	for _, c := range []struct{ name, patch, code, says string }{
		{"nothing", "", patch.CodeNotAPatch, "no change of a file"},
		{"prose", "change the 1 to a 2, please\n", patch.CodeNotAPatch, "no change"},
		{"a hunk of no file", "@@ -1 +1 @@\n-1\n+2\n", patch.CodeBadPatch, "(line 1 of the patch): a hunk stands before any file"},
		{"no hunk", "--- a/f\n+++ b/f\n", patch.CodeBadPatch, "f (line 1 of the patch): it has no hunk"},
		{"a hunk that changes nothing", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n 1\n", patch.CodeBadPatch, "f, hunk 1 (line 3 of the patch): the hunk has no line with + or -"},
		{"a line without a sign", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-1\n+2\nfunc\n x\n+y\n", patch.CodeBadPatch, `f, hunk 1 (line 6 of the patch): a line begins with "f"`},
		{"binary data", "diff --git a/f b/f\nindex 1..2\nGIT binary patch\nliteral 3\n", patch.CodeUnsupported, "binary"},
		{"binary files", "diff --git a/f b/f\nBinary files a/f and b/f differ\n", patch.CodeUnsupported, "binary"},
		{"an empty name", "--- \n+++ f\n@@ -0,0 +1 @@\n+1\n", patch.CodeBadPatch, "(line 1 of the patch): it names no file"},
		{"no names", "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-1\n+2\n", patch.CodeBadPatch, "names no file"},
		{"an unknown verb", "*** Begin Patch\n*** Rename File: f\n*** End Patch", patch.CodeBadPatch, `there is no "Rename File"`},
		{"a new file without signs", "*** Begin Patch\n*** Add File: f\nx\n*** End Patch", patch.CodeBadPatch, `a line of a new file begins with "x"`},
		{"an update of nothing", "*** Begin Patch\n*** Update File: f\n*** End Patch", patch.CodeBadPatch, "it has no hunk"},
		{"an empty frame", "*** Begin Patch\n*** End Patch", patch.CodeNotAPatch, "no change of a file"},
		{"text in the frame", "*** Begin Patch\nhello\n*** End Patch", patch.CodeBadPatch, `"hello" is no line of a patch here`},
		{"too many files", "*** Begin Patch\n" + strings.Join(many(51), ""), patch.CodeBadPatch, "touches 51 files"},
	} {
		_, err := patch.Parse(c.patch)
		p, ok := errors.AsType[*patch.Problem](err)
		if !ok || p.Code != c.code || !strings.Contains(p.Error(), c.says) {
			t.Errorf("%s: got %v, want %s %q", c.name, err, c.code, c.says)
		}
	}
}

func many(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("*** Delete File: f%d\n", i))
	}
	return all
}

// Guarantee: T15.
func TestPatchesThatDoNotFit(t *testing.T) {
	for _, c := range []struct{ name, patch, code, says string }{
		{"another line", "--- a/f\n+++ b/f\n@@ -2,3 +2,3 @@\n 2\n-three\n+x\n 4\n", patch.CodeNoMatch,
			`f, hunk 1 (line 3 of the patch): line 5 of the patch expects "three", but line 3 of the file is "3"`},
		{"other white space", "--- a/f\n+++ b/f\n@@ -10,2 +10,2 @@\n 10\n-    in\n+x\n", patch.CodeNoMatch, `but line 11 of the file is "\tin"`},
		{"beyond the end", "--- a/f\n+++ b/f\n@@ -11,2 +11,2 @@\n \tin\n last\n-more\n+x\n", patch.CodeNoMatch, `is "more", but the file ends after line 12`},
		{"two places", "--- a/g\n+++ b/g\n@@ @@\n-x\n+y\n", patch.CodeAmbiguous, "fits in 2 places, at lines 1, 3"},
		{"wrong numbers and two places", "--- a/g\n+++ b/g\n@@ -2 +2 @@\n-x\n+y\n", patch.CodeAmbiguous, "fits in 2 places"},
		{"the same line twice", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+x\n@@ -1 +1 @@\n-1\n+y\n", patch.CodeOverlap, "it changes line 1, which hunk 1 changes too"},
		{"a file that isn't there", "--- a/no\n+++ b/no\n@@ -1 +1 @@\n-1\n+x\n", patch.CodeMissing, "no does not exist"},
		{"a new file that is there", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", patch.CodeExists, "f exists already"},
		{"a move onto a file", "*** Begin Patch\n*** Update File: f\n*** Move to: g\n*** End Patch", patch.CodeExists, "g exists already"},
		{"removing part of a file", "--- a/g\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-a\n", patch.CodeNotEmpty, "has 1 lines that the patch doesn't know"},
		{"nothing new", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+1\n", patch.CodeNoChange, "changes nothing"},
		{"lines far below", "--- a/f\n+++ b/f\n@@ -99,0 +100 @@\n+x\n", patch.CodeNoMatch, "after line 99, but the file has 12 lines"},
		{"an anchor for new lines that isn't there", "*** Begin Patch\n*** Update File: f\n@@ nowhere\n+y\n*** End Patch", patch.CodeNoMatch, `the line "nowhere" after @@ does not occur`},
		{"an empty file", "--- a/e\n+++ b/e\n@@ -1 +1 @@\n-1\n+x\n", patch.CodeNoMatch, "the file is empty"},
		{"a new file with old lines", "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n 1\n+x\n", patch.CodeNoMatch, "the file is made by it"},
		{"all that is wrong is said", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-no\n+x\n--- a/no\n+++ b/no\n@@ -1 +1 @@\n-1\n+x\n", patch.CodeNoMatch, "\nno (line 6 of the patch): no does not exist"},
	} {
		_, _, err := apply(c.patch, files{"f": lines(ten) + "\tin\nlast\n", "g": lines("x a x"), "e": ""})
		ps, ok := errors.AsType[patch.Problems](err)
		if !ok || ps[0].Code != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %s %q", c.name, err, c.code, c.says)
			continue
		}
		if ps[0].Hint == "" && c.code != patch.CodeNoChange {
			t.Errorf("%s: no hint", c.name)
		}
	}
}

func TestAMismatchSaysWhatToDo(t *testing.T) {
	before := files{"f": "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 2\n}\n"}
	for _, c := range []struct{ name, patch, want, got, hint string }{
		{"white space only", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n func a() {\n-    return 1\n+    return 3\n", "    return 1", "\treturn 1", "white space only"},
		{"applied already", "--- a/f\n+++ b/f\n@@ -5,2 +5,2 @@\n func b() {\n-\treturn 3\n+\treturn 2\n", "\treturn 3", "\treturn 2", "there already"},
		{"anything else", "--- a/f\n+++ b/f\n@@ -5,2 +5,2 @@\n func b() {\n-\tpanic(3)\n+\treturn 3\n", "\tpanic(3)", "\treturn 2", "copy its lines exactly"},
	} {
		_, _, err := apply(c.patch, before)
		ps, _ := errors.AsType[patch.Problems](err)
		if len(ps) != 1 || ps[0].Want != c.want || ps[0].Got != c.got || !strings.Contains(ps[0].Hint, c.hint) || ps[0].Hunk != 1 {
			t.Errorf("%s: got %+v", c.name, err)
		}
	}
}

func TestNamesAreAllThatAPatchTouches(t *testing.T) {
	p, err := patch.Parse("*** Begin Patch\n*** Update File: ./b\n*** Move to: ../c\n*** Add File: a//x\n*** Delete File: /etc/d\n*** Delete File: b\n*** End Patch")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Names(), []string{"../c", "/etc/d", "a/x", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
