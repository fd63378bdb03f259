module github.com/belay-run/belay/web/build

go 1.26.0

require github.com/evanw/esbuild v0.28.2

require github.com/go-json-experiment/json v1.27.2 // indirect

require (
	github.com/belay-run/belay v0.0.0
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/belay-run/belay => ../..
