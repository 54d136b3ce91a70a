import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseAnnotations } from '../../../src/cloud/hcloud/load-balancers/annotations.ts'
import { annotationsPage } from '../../../src/cloud/hcloud/load-balancers/annotations-page.ts'
import { PREFIX } from './bench.ts'

const parse = (annotations: Record<string, string>) =>
  parseAnnotations(Object.fromEntries(Object.entries(annotations).map(([name, value]) => [`${PREFIX}${name}`, value])))

t.test('the reference page is what the table says', async (t) => {
  t.equal(
    readFileSync(new URL('../../../docs/load-balancer-annotations.md', import.meta.url), 'utf8'),
    annotationsPage(),
  )
})

t.test('all faults are found at once, each naming its annotation and value', async (t) => {
  const { faults } = parse({ protocol: 'quic', 'use-private-ip': 'yes', 'health-check-port': '70000', name: '' })
  t.strictSame(
    faults.map(({ message }) => message),
    [
      `annotation ${PREFIX}protocol: "quic" is unknown, write tcp, http or https`,
      `annotation ${PREFIX}use-private-ip: "yes" is not a boolean, write true or false`,
      `annotation ${PREFIX}health-check-port: "70000" is out of range, write a whole number from 1 to 65535`,
      `annotation ${PREFIX}name: "" is empty, give it a value or remove the annotation`,
    ],
  )
})

t.test('values come out in the form that plans use', async (t) => {
  const cases: [string, string, unknown][] = [
    ['protocol', 'HTTPS', 'https'],
    ['algorithm-type', 'Least_Connections', 'least_connections'],
    ['use-private-ip', 'T', true],
    ['http-certificates', 'cert-a, 702', ['cert-a', '702']],
    ['http-status-codes', '2??, 301', ['2??', '301']],
    ['health-check-interval', '15', { seconds: 15, truncated: false }],
    ['health-check-interval', '1m', { seconds: 60, truncated: false }],
    ['http-cookie-lifetime', '7500ms', { seconds: 7, truncated: true }],
    ['private-subnet-ip-range', '10.0.1.5/24', '10.0.1.0/24'],
    ['private-ipv4', '', ''],
    ['location', '', ''],
    ['certificate-type', 'selfsigned', 'selfsigned'],
  ]
  for (const [name, value, expected] of cases) {
    const { values, faults } = parse({ [name]: value })
    t.strictSame({ values, faults }, { values: { [name]: expected }, faults: [] }, `${name}: ${value}`)
  }
})

t.test('what the API would refuse is refused before it is asked', async (t) => {
  const cases: Record<string, string[]> = {
    'use-private-ip': ['', 'true ', 'on'],
    'health-check-retries': ['2.5', ''],
    'health-check-interval': ['soon', '-5s', '10 s'],
    'http-timeout-idle': ['10s', '301s'],
    'http-cookie-name': ['a b', ''],
    'health-check-http-path': ['up', '/a b'],
    'health-check-http-domain': ['a b'],
    'http-status-codes': ['ok', '200,,301'],
    'private-ipv4': ['10.0.0', 'fd00::1'],
    'private-subnet-ip-range': ['10.0.0.0', 'fd00::/64'],
    'ipv4-rdns': ['not a name', ''],
    'node-selector': ['a in'],
    hostname: [''],
  }
  for (const [name, values] of Object.entries(cases))
    for (const value of values) t.equal(parse({ [name]: value }).faults.length, 1, `${name}: "${value}"`)
})

t.test('what has no effect is said, unless an old version wrote it', async (t) => {
  const { remarks, faults } = parse({
    'health-check-intervall': '5s',
    id: '7',
    ipv4: '192.0.2.1',
    'http-cookie-lifetime': '1900ms',
  })
  t.strictSame(faults, [])
  t.match(remarks, [
    /health-check-intervall is unknown and has no effect, the nearest is load-balancer\.hetzner\.cloud\/health-check-interval$/,
    /"1900ms" is taken as 1s/,
  ])
  t.equal(remarks.length, 2)
})
