package wire

import "testing"

// Other limits are told in similar words.
func TestOtherLimitsAreNoOverflows(t *testing.T) {
	for _, body := range []string{
		`{"error":{"message":"the number of images exceeds the limit of 2000 images"}}`,
		`{"error":{"message":"the number of tools exceeds the limit of 128"}}`,
		`{"error":{"message":"max_tokens: 300000 > 128000, which is the maximum allowed number of output tokens"}}`,
	} {
		if f := (&Endpoint{}).StreamFailure(400, []byte(body)); f.Class != "bad_request" || f.Limit != 0 {
			t.Errorf("%s: %s with the limit %d", body, f.Class, f.Limit)
		}
	}
	for text, want := range map[string]int64{
		"maximum context length is 4096 bytes": 0, "maximum context length is 12 tokens": 0, "maximum context length is 99999999999999999999": 0,
		"maximum context length is the one of the model, 4096": 0, "maximum prompt length is 50,000 characters": 0,
		"prompt is too long: 9 tokens >": 0, "maximum context length of 4096": 4096,
	} {
		if limit, is := overflow(400, "", text, nil); !is || limit != want {
			t.Errorf("%s: %v, %d", text, is, limit)
		}
	}
}
