package eval

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes results as the XML that continuous integration reads: a suite
// for each category.
func JUnit(w io.Writer, results []Result) error {
	var all junitSuites
	var total time.Duration
	took := map[string]time.Duration{}
	results = slices.Clone(results)
	slices.SortFunc(results, func(a, b Result) int { return strings.Compare(a.Scenario.ID, b.Scenario.ID) })
	for _, r := range results {
		category := r.Scenario.Category
		i := slices.IndexFunc(all.Suites, func(s junitSuite) bool { return s.Name == category })
		if i < 0 {
			i = len(all.Suites)
			all.Suites = append(all.Suites, junitSuite{Name: category})
		}
		c := junitCase{Name: r.Scenario.ID, Class: category, File: r.Scenario.File, Time: seconds(r.Took)}
		all.Tests++
		all.Suites[i].Tests++
		if !r.Passed() {
			first, _, _ := strings.Cut(r.Failures[0], "\n")
			c.Failure = &junitFailure{Message: first, Text: strings.Join(r.Failures, "\n")}
			all.Failures++
			all.Suites[i].Failures++
		}
		all.Suites[i].Cases = append(all.Suites[i].Cases, c)
		total += r.Took
		took[category] += r.Took
	}
	slices.SortFunc(all.Suites, func(a, b junitSuite) int { return strings.Compare(a.Name, b.Name) })
	for i, s := range all.Suites {
		all.Suites[i].Time = seconds(took[s.Name])
	}
	all.Time = seconds(total)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
