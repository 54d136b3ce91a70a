import fc from 'fast-check'
import t, { type Test } from 'tap'
import {
  durationBetween,
  durationFrom,
  formatDuration,
  integerBetween,
  oneOf,
  type Parsed,
  type Parser,
  parseBool,
  parseCidr,
  parseClusterCidrs,
  parseDnsLabel,
  parseDuration,
  parseHeaderText,
  parseHttpUrl,
  parseInteger,
  parseList,
  parseListen,
  parseNetwork,
  zeroOrDurationFrom,
} from '../../src/config/grammar.ts'

const valueIn = <T>(parsed: Parsed<T>) => ('value' in parsed ? parsed.value : undefined)

/** Asserts that a parser takes some texts for these values, and no other. */
function table<T>(t: Test, parse: Parser<T>, good: [string, T][], bad: string[]) {
  for (const [text, value] of good) t.same(parse(text), { value }, `${JSON.stringify(text)} is right`)
  for (const text of bad) t.match(parse(text), { fault: /./ }, `${JSON.stringify(text)} is wrong`)
}

t.test('booleans are those of Go and no others', async (t) => {
  table(
    t,
    parseBool,
    [
      ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text): [string, boolean] => [text, true]),
      ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text): [string, boolean] => [text, false]),
    ],
    ['', 'yes', 'on', ' true', 'true ', 'tRuE', 'maybe', '2'],
  )
})

t.test('integers have a sign and decimal digits', async (t) => {
  table(
    t,
    parseInteger,
    [
      ['5', 5],
      ['+5', 5],
      ['-1', -1],
      ['007', 7],
      ['-0', 0],
    ],
    ['', ' 5', '5 ', '5.0', '0x10', '1e3', '1_000', '--1', '9007199254740993'],
  )
  table(t, integerBetween(1, 3), [['3', 3]], ['0', '4', 'x'])
})

t.test('durations are those of Go', async (t) => {
  table(
    t,
    parseDuration,
    [
      ['0', 0],
      ['-0', 0],
      ['+0s', 0],
      ['1.5h', 5_400_000],
      ['2h45m', 9_900_000],
      ['1h1h', 7_200_000],
      ['.5s', 500],
      ['1.s', 1000],
      ['-1.5s', -1500],
      ['300us', 0.3],
      ['300\u00b5s', 0.3],
      ['300\u03bcs', 0.3],
      ['1ns', 1e-6],
      ['7500ms', 7500],
    ],
    [
      '',
      '+',
      '-',
      '10',
      '10 s',
      '1d',
      '.s',
      's',
      '1s2',
      'ms1',
      ' 1s',
      '1S',
      '1e3s',
      '9223372036854775808ns',
      '2562048h',
      '--1s',
    ],
  )
})

t.test('a duration made of parts is the sum of its parts', async () => {
  const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const
  const part = fc.tuple(fc.nat(1000), fc.constantFrom<keyof typeof units>('ms', 's', 'm', 'h'))
  fc.assert(
    fc.property(fc.constantFrom('', '+', '-'), fc.array(part, { minLength: 1, maxLength: 6 }), (sign, parts) => {
      const sum = parts.reduce((total, [count, unit]) => total + count * units[unit], 0)
      const text = sign + parts.map(([count, unit]) => `${count}${unit}`).join('')
      return (valueIn(parseDuration(text)) ?? Number.NaN) === (sign === '-' ? 0 - sum : sum)
    }),
  )
})

t.test('a duration that was written by us is read as the same', async () => {
  fc.assert(fc.property(fc.integer(), (ms) => valueIn(parseDuration(formatDuration(ms))) === ms))
})

t.test('no text makes a parser throw', async () => {
  const parsers: Parser<unknown>[] = [
    parseBool,
    parseInteger,
    parseDuration,
    parseCidr,
    parseClusterCidrs,
    parseListen,
    parseHttpUrl,
    parseDnsLabel,
  ]
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom(...'0123456789.:/[]+-hms'), maxLength: 24 }),
  )
  fc.assert(fc.property(text, (text) => parsers.every((parse) => 'value' in parse(text) || 'fault' in parse(text))))
})

t.test('durations can have a most', async (t) => {
  table(
    t,
    durationBetween(0, 86_400_000),
    [
      ['0', 0],
      ['24h', 86_400_000],
    ],
    ['24h1ms', '700h', '-1s', 'x'],
  )
  t.match(durationBetween(0, 86_400_000)('700h'), { fault: /at most 24h/ })
})

t.test('durations can have a least', async (t) => {
  table(t, durationFrom(1000), [['1s', 1000]], ['999ms', '-1s', '0', 'x'])
  table(
    t,
    zeroOrDurationFrom(1000),
    [
      ['0s', 0],
      ['0', 0],
      ['1s', 1000],
    ],
    ['500ms', '-1s', '10 seconds'],
  )
  t.match(durationFrom(90_000)('1s'), { fault: /at least 1m30s/ })
})

t.test('lists are split at commas, blanks and empty items dropped', async (t) => {
  table(
    t,
    parseList,
    [
      ['a, b ,,c', ['a', 'b', 'c']],
      ['', []],
    ],
    [],
  )
})

t.test('CIDRs are those of Go', async (t) => {
  table(
    t,
    parseNetwork,
    [
      ['10.0.1.5/24', '10.0.1.0/24'],
      ['10.0.1.5/32', '10.0.1.5/32'],
      ['10.255.1.5/9', '10.128.0.0/9'],
      ['0.0.0.0/0', '0.0.0.0/0'],
      ['2001:db8:0:0::1/64', '2001:db8::/64'],
      ['fd00:10::/48', 'fd00:10::/48'],
    ],
    [
      '',
      '10.0.0.0',
      '10.0.0.0/',
      '10.0.0.0/33',
      '010.0.0.0/8',
      '10.0.0/8',
      'fe80::1%eth0/64',
      '::/129',
      'a/8',
      '10.0.0.0/-1',
      '10.0.0.0/8 ',
    ],
  )
  t.match(valueIn(parseCidr('10.0.1.5/24')), {
    family: 'ipv4',
    address: '10.0.1.5',
    prefix: 24,
    network: '10.0.1.0/24',
  })
})

t.test('a network holds its address and has no host bits', async () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.nat(32), (address, prefix) => {
      const bits = (text: string) =>
        text
          .split('.')
          .map((byte) => Number(byte).toString(2).padStart(8, '0'))
          .join('')
      const network = (valueIn(parseNetwork(`${address}/${prefix}`)) ?? '').split('/')[0] ?? ''
      return bits(network) === bits(address).slice(0, prefix).padEnd(32, '0')
    }),
  )
  fc.assert(
    fc.property(fc.ipV6(), fc.nat(128), (address, prefix) => {
      const once = valueIn(parseNetwork(`${address}/${prefix}`))
      return once === undefined || valueIn(parseNetwork(once)) === once
    }),
  )
})

t.test('cluster CIDRs are one, or two of different families', async (t) => {
  table(
    t,
    parseClusterCidrs,
    [
      ['10.244.0.0/16', ['10.244.0.0/16']],
      ['10.244.0.0/16, fd00:10::/48', ['10.244.0.0/16', 'fd00:10::/48']],
    ],
    ['', '10.244.0.0/16,', '10.244.0.0/16,10.245.0.0/16', '10.244.0.0/16,fd00::/48,fd01::/48', 'ten'],
  )
})

t.test('listen addresses have a port, and a host or none', async (t) => {
  table(
    t,
    parseListen,
    [
      [':8080', { host: '', port: 8080 }],
      ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
      ['localhost:65535', { host: 'localhost', port: 65535 }],
      ['[::1]:80', { host: '::1', port: 80 }],
    ],
    ['', '8080', 'localhost', 'localhost:', ':65536', '::1:80', '[::1]', '[x]:80', 'http://a:80', 'a b:80', 'u@h:80'],
  )
})

t.test('words, labels, header texts and URLs', async (t) => {
  table(t, oneOf('all', 'one', 'off'), [['one', 'one']], ['', 'ONE', 'two words'])
  t.same(oneOf('a', 'b', 'c')('d'), { fault: 'is unknown, write a, b or c' })
  table(t, parseDnsLabel, [['prod-1', 'prod-1']], ['', 'Prod', '-a', 'a-', 'a.b', 'a'.repeat(64)])
  table(t, parseHeaderText, [['to ken', 'to ken']], ['secret\n', 'secr\u0000et', 'токены'])
  table(
    t,
    parseHttpUrl,
    [
      ['https://api.example.org/v1/', 'https://api.example.org/v1'],
      ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ],
    [
      '',
      'api.example.org',
      'ftp://example.org',
      'https://user:word@example.org',
      'https://example.org?a=b',
      'https://example.org#a',
    ],
  )
})
