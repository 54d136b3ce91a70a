import t from 'tap'
import {
  ALONE_MS,
  decideDeletion,
  type Evidence,
  YOUNG_NODE_MS,
} from '../../../src/controllers/node-lifecycle/decide.ts'

const now = 10_000_000
const proven: Evidence = {
  nowMs: now,
  nodeCreatedMs: 0,
  firstNotFoundMs: now - 5_000,
  monitorPeriodMs: 5_000,
  sighted: true,
  seesOthers: true,
}

t.test('absence is proven by two answers a monitor period apart and a witness', async (t) => {
  t.equal(decideDeletion(proven).kind, 'delete')
  t.equal(decideDeletion({ ...proven, sighted: false }).kind, 'delete')
})

t.test('one answer, or two that are too close, prove nothing', async (t) => {
  t.same(decideDeletion({ ...proven, firstNotFoundMs: now }), { kind: 'wait', forMs: 5_000 })
  t.same(decideDeletion({ ...proven, firstNotFoundMs: now - 4_999 }), { kind: 'wait', forMs: 1 })
})

t.test('without a witness a human decides, however long it lasts', async (t) => {
  t.equal(decideDeletion({ ...proven, sighted: false, seesOthers: false, firstNotFoundMs: 0 }).kind, 'hold')
})

t.test('the last machine that a credential saw may be one to which it lost its access, for ten minutes', async (t) => {
  const alone = { ...proven, seesOthers: false }
  t.match(decideDeletion(alone), { kind: 'hold', why: /lost its access/ })
  t.equal(decideDeletion({ ...alone, firstNotFoundMs: now - ALONE_MS + 1 }).kind, 'hold')
  t.equal(decideDeletion({ ...alone, firstNotFoundMs: now - ALONE_MS }).kind, 'delete')
})

t.test('a machine that nobody has seen yet gets five minutes to appear', async (t) => {
  const young = { ...proven, sighted: false, nodeCreatedMs: now - 1_000 }
  t.same(decideDeletion(young), { kind: 'wait', forMs: YOUNG_NODE_MS - 1_000 })
  t.equal(decideDeletion({ ...young, sighted: true }).kind, 'delete', 'but one that was seen is old enough')
})
