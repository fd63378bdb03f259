import decode from './lib/decode.mjs'
import encode from './lib/encode.mjs'
import format from './lib/format.mjs'
import parse from './lib/parse.mjs'

export {
  decode,
  encode,
  format,
  parse
}
