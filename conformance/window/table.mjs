// Writes how js-tiktoken packs texts and how okapibm25 scores them, for
// TestChunksArePackedAsByAnotherLibrary and TestScoresAreThoseOfAnotherLibrary:
//
//   npm ci --prefix conformance/window
//   node conformance/window/table.mjs >conformance/testdata/window.json
import { getEncoding } from 'js-tiktoken'
import okapi from 'okapibm25'
import { readFileSync } from 'node:fs'

const encoding = getEncoding('cl100k_base')
const here = new URL('.', import.meta.url)

// pack fills groups with whole things: where each ends, and its tokens.
const pack = (things, limit) => {
  const groups = []
  for (const [i, thing] of things.entries()) {
    const n = encoding.encode(thing, 'all').length
    const last = groups.at(-1)
    if (last && last[1] + n <= limit) groups[groups.length - 1] = [i + 1, last[1] + n]
    else groups.push([i + 1, n])
  }
  return groups
}

const lines = (text) => text.match(/[^\n]*\n|[^\n]+$/g) ?? []
const packed = []
for (const file of ['conformance/testdata/session.csv', 'internal/engine/testdata/golden/0.1.jsonl', 'internal/policy/shell/testdata/blind.jsonl']) {
  const things = lines(readFileSync(new URL('../../' + file, here), 'utf8'))
  for (const limit of [200, 1000, 18000]) packed.push({ file, limit, groups: pack(things, limit) })
}

// Words of one length: okapibm25 counts a word also where it is a part of another.
let seed = 17
const random = (n) => (seed = (seed * 48271) % 2147483647) % n
const word = () => 'w' + [...Array(3)].map(() => 'abcdefghij'[Math.min(random(10), random(10))]).join('')
const documents = [...Array(60)].map(() => [...Array(1 + random(80))].map(word).join(' '))
const questions = [...Array(20)].map(() => [...new Set([...Array(1 + random(6))].map(word))])
questions.push(['zzzz'], [documents[7].split(' ')[0], 'zzzz'])
const scored = questions.map((words) => ({ question: words.join(' '), scores: (okapi.default ?? okapi)(documents, words, { k1: 1.2, b: 0.75 }) }))

const version = (name) => JSON.parse(readFileSync(new URL('package.json', here))).devDependencies[name]
const rows = (list) => list.map((row) => '  ' + JSON.stringify(row)).join(',\n')
console.log(`{"packages": {"js-tiktoken": "${version('js-tiktoken')}", "okapibm25": "${version('okapibm25')}"},\n "packed": [\n${rows(packed)}\n ],\n "documents": [\n${rows(documents)}\n ],\n "scored": [\n${rows(scored)}\n ]}`)
