// Writes what @pydantic/genai-prices says that requests to the catalogue's models
// cost, for TestCostsAreThoseOfGenaiPrices:
//
//   npm ci --prefix conformance/prices
//   node conformance/prices/table.mjs >conformance/testdata/prices.json
import { calcPrice } from '@pydantic/genai-prices'
import { readFileSync } from 'node:fs'

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url)))
const version = read('package.json').devDependencies['@pydantic/genai-prices']
const { models } = read('../../internal/model/catalog/models.json')

const day = '2026-11-21T12:00:00Z'
const usages = {
  plain: { input: 10_000, output: 1_000 },
  read: { input: 10_000, cached: 6_000, output: 1_000 },
  written: { input: 10_000, cached: 6_000, cacheWrite: 3_000, output: 1_000 },
  long: { input: 300_000, cached: 100_000, output: 1_000 },
  'at 100000': { input: 100_000 },
  'over 100000': { input: 100_001 },
  'at 200000': { input: 200_000 },
  'over 200000': { input: 200_001 },
  'at 272000': { input: 272_000 },
  'over 272000': { input: 272_001 },
  'next year': { input: 10_000, output: 1_000, at: '2027-01-02T12:00:00Z' },
}

const row = ({ provider, model, context }) => {
  const out = { provider, model, usd: {} }
  for (const [name, { input, output = 0, cached = 0, cacheWrite = 0, at = day }] of Object.entries(usages)) {
    if (input + output > context) continue // the model doesn't read as much
    const usage = { input_tokens: input, output_tokens: output, cache_read_tokens: cached, cache_write_tokens: cacheWrite }
    const said = calcPrice(usage, model, { providerId: provider, timestamp: new Date(at) })
    if (!said) continue // it doesn't know the model
    out.is = said.model.id
    out.usd[name] = said.total_price
  }
  return out
}

const rows = models.filter((m) => m.usd_per_million).map((m) => '  ' + JSON.stringify(row(m)))
for (const u of Object.values(usages)) u.at ??= day
const lines = Object.entries(usages).map(([k, v]) => `  ${JSON.stringify(k)}: ${JSON.stringify(v)}`)
console.log(`{"package": "@pydantic/genai-prices", "version": "${version}",\n "usages": {\n${lines.join(',\n')}\n },\n "models": [\n${rows.join(',\n')}\n ]}`)
