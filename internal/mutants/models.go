package main

var modelMutants = []mutant{
	{breaks: "a model on another vendor's server has its own vendor's price",
		edits:  []edit{{"internal/catalog/lookup.go", "\tout.Prices = nil\n", ""}},
		caught: []suite{{"./internal/catalog", "TestAModelIsFound"}}},
	{breaks: "a price holds after its last day",
		edits:  []edit{{"internal/catalog/price.go", `t.UTC().Format(time.DateOnly) > p.Until`, `t.UTC().Format(time.DateOnly) < p.Until`}},
		caught: []suite{{"./internal/catalog", "TestCost"}}},
	{breaks: "reads from a cache whose price is unknown cost nothing",
		edits: []edit{
			{"internal/catalog/price.go", "if u.Cached > 0 && r.CacheRead == nil || ", "if "},
			{"internal/catalog/price.go", "\tif u.Cached > 0 {\n", "\tif u.Cached > 0 && r.CacheRead != nil {\n"}},
		caught: []suite{{"./internal/catalog", "TestCost"}}},
	{breaks: "costs are rounded down",
		edits:  []edit{{"internal/catalog/price.go", "if rem > 0 {", "if false && rem > 0 {"}},
		caught: []suite{{"./internal/catalog", "TestCost"}}},
	{breaks: "the bound of a request forgets that it may be written to a cache",
		edits:  []edit{{"internal/catalog/price.go", "dearest = max(dearest, *r.CacheWrite)", "dearest = max(dearest, r.Input)"}},
		caught: []suite{{"./internal/catalog", "TestBound|TestCostIsExact"}}},
	{breaks: "a name is found by another model's that it begins with",
		edits:  []edit{{"internal/catalog/lookup.go", "&& dated(name[end+1:])", "&& name[end+1:] != \"\""}},
		caught: []suite{{"./internal/catalog", "TestAModelIsFound"}}},
}
