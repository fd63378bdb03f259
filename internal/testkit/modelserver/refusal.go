package modelserver

// Refusal is how a vendor's or a server's HTTP answer refuses a request that is longer
// than the model's context.
type Refusal struct {
	Name   string
	Status int
	Body   string
	Limit  int64 // the context that it names; 0: none
}

// Scene is the refusal as what the server says.
func (r Refusal) Scene() Scene {
	return Scene{Fault: Fault{Status: r.Status, Body: r.Body, Header: map[string]string{"Content-Type": "application/json"}}}
}

// Refusals are all that are known, in the vendors' words.
func Refusals() []Refusal {
	return []Refusal{
		{"anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, 200000},
		{"anthropic, with the answer", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 188240 + 21333 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"}}`, 200000},
		{"anthropic, in bytes", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, 0},
		{"bedrock", 400, `{"message":"Input is too long for requested model."}`, 0},
		{"openai chat", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 128000},
		{"openai responses", 400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`, 0},
		{"gemini", 400, `{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, 1048576},
		{"gemini, without brackets", 400, `{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed 1048576.","status":"INVALID_ARGUMENT"}}`, 1048576},
		{"xai", 400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, 131072},
		{"copilot", 400, `{"error":{"message":"prompt token count of 12345 exceeds the limit of 8192","code":"model_max_prompt_tokens_exceeded"}}`, 8192},
		{"groq", 400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error"}}`, 0},
		{"openrouter", 400, `{"error":{"message":"This endpoint's maximum context length is 1,048,576 tokens. However, you requested about 1293741 tokens","code":400}}`, 1048576},
		{"llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":10000,"n_ctx":4096}}`, 4096},
		{"llama.cpp, in words", 400, `{"error":{"code":400,"message":"request (10000 tokens) exceeds the available context size (4096 tokens), try increasing it"}}`, 4096},
		{"lm studio", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}`, 0},
		{"sglang", 400, `{"object":"error","message":"The input (40000 tokens) is longer than the model's context length (32768 tokens).","code":400}`, 32768},
		{"moonshot", 400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)","type":"invalid_request_error"}}`, 262144},
		{"minimax", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"invalid params, context window exceeds limit (2013)"}}`, 0},
		{"a code and no words", 400, `{"error":{"code":"context_length_exceeded"}}`, 0},
		{"words and no code", 400, `{"error":{"message":"Context length exceeded"}}`, 0},
		{"a front's page", 413, `<html><h1>413 Request Entity Too Large</h1></html>`, 0},
	}
}
