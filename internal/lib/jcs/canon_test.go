package jcs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/lib/jcs"
)

// Guarantee: G10.
func TestSpelling(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"the structure example of RFC 8785, 3.2.2",
			"{\n \"numbers\": [333333333.33333329, 1E30, 4.50,\n 2e-3, 0.000000000000000000000000001],\n" +
				` "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",` + "\n \"literals\": [null, true, false]\n}",
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{"the sorting example of RFC 8785, 3.2.3",
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",` +
				`"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\"," +
				"\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"},
		{"white space goes", " [ 1 , { \"b\" : 2 , \"a\" : [ ] } ] ", `[1,{"a":[],"b":2}]`},
		{"shorter keys first", `{"aa":1,"a":2,"":3}`, `{"":3,"a":2,"aa":1}`},
		{"nested objects are sorted too", `{"b":{"z":1,"y":2},"a":0}`, `{"a":0,"b":{"y":2,"z":1}}`},
		{"only what must be escaped is", `"\u007f\u2028<>&\/\u0001"`, "\"\u007f\u2028<>&/\\u0001\""},
		{"empty object", "{}", "{}"},
		{"a word", "null", "null"},
	} {
		got, err := jcs.JSON([]byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.name, got, err, c.want)
		}
	}
}

// The first block is the appendix B of RFC 8785, the second our exception.
func TestNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "-0.0e7": "0", "5e-324": "5e-324", "-5e-324": "-5e-324",
		"1.7976931348623157e308": "1.7976931348623157e+308", "-1.7976931348623157e308": "-1.7976931348623157e+308",
		"9007199254740992": "9007199254740992", "-9007199254740992": "-9007199254740992",
		"295147905179352830000": "295147905179352830000", "9.999999999999997e22": "9.999999999999997e+22",
		"1e23": "1e+23", "1.0000000000000001e23": "1.0000000000000001e+23", "999999999999999700000": "999999999999999700000",
		"999999999999999900000": "999999999999999900000", "1e21": "1e+21", "9.999999999999997e-7": "9.999999999999997e-7",
		"0.000001": "0.000001", "333333333.3333332": "333333333.3333332", "333333333.33333325": "333333333.33333325",
		"333333333.3333333": "333333333.3333333", "333333333.3333334": "333333333.3333334", "333333333.33333343": "333333333.33333343",
		"-0.0000033333333333333333": "-0.0000033333333333333333", "1424953923781206.2": "1424953923781206.2",

		"9007199254740993": "9007199254740993", "-9007199254740993.0": "-9007199254740993",
		"900719925474099300e-2": "9007199254740993", "18446744073709551615": "18446744073709551615",
		"0.10000000000000000001": "0.10000000000000000001", "1e400": "1e+400", "1E+0400": "1e+400", "-12e-500": "-1.2e-499",
		"123456789012345678901234567890": "1.2345678901234567890123456789e+29", "10.0": "10", "1.50e1": "15",
		"1.23e-323": "1.23e-323", "0.30000000000000001": "0.3", "0.123456789012345678": "0.123456789012345678",
	} {
		got, err := jcs.JSON([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", in, got, err, want)
		}
	}
}

// Guarantee: G10.
func TestRefusals(t *testing.T) {
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for _, c := range []struct {
		name, in string
		kind     jcs.Kind
		says     string
	}{
		{"duplicate key", `{"a":1,"b":{"c":1,"c":2}}`, jcs.Duplicate, `key "c" occurs twice at byte 18 ($.b.c)`},
		{"duplicate key in two spellings", `{"a":1,"\u0061":2}`, jcs.Duplicate, `"a" occurs twice`},
		{"no key", `{"a":{`, jcs.Syntax, "the text ends in the middle of a value at byte 6 ($.a)"},
		{"no second key", `{"a":[0,{"b":1,}]}`, jcs.Syntax, "invalid character ',' at start of value at byte 14 ($.a[1])"},
		{"no colon", `{"a" 1}`, jcs.Syntax, "($.a)"},
		{"lone high surrogate", `["x","\ud800"]`, jcs.Encoding, "half of a surrogate pair in a string at byte 6 ($[1])"},
		{"lone low surrogate", `"\udc00"`, jcs.Encoding, "half of a surrogate"},
		{"high surrogate with a letter after it", `"\ud800\u0041"`, jcs.Encoding, "half of a surrogate"},
		{"invalid UTF-8", "{\"a\":\"x\xff\"}", jcs.Encoding, "invalid UTF-8 at byte 7 ($.a)"},
		{"encoded surrogate", "\"\xed\xa0\x80\"", jcs.Encoding, "invalid UTF-8"},
		{"too deep", deep, jcs.Limit, "more than 64 levels"},
		{"exponent beyond reason", "1e99999999999999999999", jcs.Limit, "exponent"},
		{"nothing", " ", jcs.Syntax, "ends where a value should be"},
		{"a key of digits", `{"0":[1,{"a b":nul}]}`, jcs.Syntax, `($.0[1]["a b"])`},
		{"two values", "1 2", jcs.Syntax, "something follows the value at byte 2"},
		{"leading zero", "01", jcs.Syntax, "something follows the value at byte 1"},
		{"plus sign", "+1", jcs.Syntax, "at start of value"},
		{"bare point", "1.", jcs.Syntax, "the text ends"},
		{"bare exponent", "1e+", jcs.Syntax, "the text ends"},
		{"bare minus", "-", jcs.Syntax, "the text ends"},
		{"trailing comma", `{"a":1,}`, jcs.Syntax, "invalid character ','"},
		{"cut off", `{"path":"a`, jcs.Syntax, "the text ends in the middle of a value at byte 10 ($.path)"},
		{"raw newline", "\"a\nb\"", jcs.Syntax, "control character"},
		{"unknown escape", `"\x41"`, jcs.Syntax, "invalid escape sequence"},
		{"bad hex", `"\u00G0"`, jcs.Syntax, "invalid escape sequence"},
		{"hex that is punctuation", `"\u00:0"`, jcs.Syntax, "invalid escape sequence"},
		{"misspelt word", "nul", jcs.Syntax, "the text ends"},
		{"byte order mark", "\ufeff{}", jcs.Syntax, "invalid character"},
	} {
		got, err := jcs.JSON([]byte(c.in))
		var e *jcs.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: got %s, %v; want an error", c.name, got, err)
			continue
		}
		if e.Kind != c.kind || !strings.Contains(e.Error(), c.says) {
			t.Errorf("%s: got %s %q; want %s %q", c.name, e.Kind, e, c.kind, c.says)
		}
	}
	if _, err := jcs.JSON([]byte(deep[1 : len(deep)-1])); err != nil {
		t.Errorf("64 levels: %v", err)
	}
}

// FuzzJSON: what canon accepts encoding/json accepts with the same meaning, and
// the canonical spelling is its own canonical spelling.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"b":[1.5e3,-0,"\ud83d\ude00"],"a":null}`, `[9007199254740993,1e400,0.1]`, `"\u0000/"`, `{"a":1,"a":2}`, "[[]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := jcs.JSON(in)
		if err != nil {
			if e := (*jcs.Error)(nil); !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(in) {
				t.Fatalf("%q: error %#v", in, err)
			} else if e.Kind == jcs.Syntax && json.Valid(in) {
				t.Fatalf("%q is JSON, but: %v", in, err)
			}
			return
		}
		again, err := jcs.JSON(out)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q: again %q, %v", out, again, err)
		}
		if a, b := decode(t, in), decode(t, out); !reflect.DeepEqual(a, b) {
			t.Fatalf("%q means %v, %q means %v", in, a, out, b)
		}
	})
}

// decode reads JSON with numbers as float64, or as exact text where a float64
// is out of range.
func decode(t *testing.T, b []byte) any {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return number(v)
}

func number(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = number(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = number(v[k])
		}
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return f + 0 // one zero
		}
		x, _, _ := big.ParseFloat(v.String(), 10, 200, big.ToNearestEven)
		return x.String()
	}
	return v
}
