import type { Call } from '../../call.ts'
import { messageOf } from '../../errors.ts'
import type { KubernetesApi } from '../../kubernetes/api.ts'
import type { KubeObject } from '../../kubernetes/objects.ts'
import { custom, type Resource } from '../../kubernetes/resources.ts'
import { ok, problem, some, warning } from './finding.ts'
import type { Finding } from './types.ts'

export interface Right {
  role: 'forwarder' | 'worker' | 'metallb' | 'address'
  group: string
  resource: string
  subresource?: string
  namespace?: string
  name?: string
  verbs: readonly string[]
}

const EXTERNAL = 'cloud-provider-cherry-kubernetes-external'

/** What `k8s/base` grants, which a test compares. The roles of one process that does all are both of the first; the last two are a worker's at Cherry. */
export const RIGHTS: readonly Right[] = [
  { role: 'forwarder', group: '', resource: 'nodes', verbs: ['get', 'list', 'watch'] },
  { role: 'forwarder', group: '', resource: 'services', verbs: ['get', 'list', 'watch'] },
  { role: 'worker', group: '', resource: 'nodes', verbs: ['get', 'list', 'patch', 'update', 'delete'] },
  { role: 'worker', group: '', resource: 'nodes', subresource: 'status', verbs: ['patch'] },
  { role: 'worker', group: '', resource: 'services', verbs: ['get', 'list'] },
  { role: 'worker', group: '', resource: 'services', subresource: 'status', verbs: ['patch', 'update'] },
  { role: 'worker', group: '', resource: 'events', verbs: ['create', 'patch'] },
  { role: 'worker', group: '', resource: 'namespaces', name: 'kube-system', verbs: ['get'] },
  { role: 'worker', group: 'coordination.k8s.io', resource: 'leases', namespace: 'kube-system', verbs: ['get'] },
  ...['ipaddresspools', 'bgpadvertisements', 'bgppeers'].map(
    (resource): Right => ({
      role: 'metallb',
      group: 'metallb.io',
      resource,
      verbs: ['list', 'create', 'patch', 'delete'],
    }),
  ),
  { role: 'address', group: 'discovery.k8s.io', resource: 'endpointslices', namespace: 'default', verbs: ['list'] },
  { role: 'address', group: '', resource: 'services', namespace: 'kube-system', verbs: ['create'] },
  { role: 'address', group: '', resource: 'services', namespace: 'kube-system', name: EXTERNAL, verbs: ['patch'] },
  {
    role: 'address',
    group: 'discovery.k8s.io',
    resource: 'endpointslices',
    namespace: 'kube-system',
    verbs: ['list', 'create', 'patch', 'delete'],
  },
  {
    role: 'address',
    group: '',
    resource: 'endpoints',
    namespace: 'kube-system',
    name: EXTERNAL,
    verbs: ['get', 'delete'],
  },
]

const REVIEWS: Resource<KubeObject & { status?: { allowed?: boolean } }> = custom(
  'authorization.k8s.io',
  'v1',
  'SelfSubjectAccessReview',
  'selfsubjectaccessreviews',
  false,
)

/** What a worker needs beside its own rights. */
export interface CherryNeeds {
  /** Namespace of MetalLB's objects, where that announces addresses. */
  metallb?: string
  /** Whether the control plane's address is looked after. */
  address?: boolean
}

const SPOKEN: Record<Right['role'], string> = {
  forwarder: 'of the role forwarder',
  worker: 'of the role worker',
  metallb: "for MetalLB's objects",
  address: "for the control plane's address",
}

/** Asks the API server about each right of the account in use. An account of one role only is a good one. */
export async function checkRights(
  api: KubernetesApi,
  { metallb, address }: CherryNeeds,
  call: Call,
): Promise<Finding[]> {
  const roles: Right['role'][] = [
    'forwarder',
    'worker',
    ...(metallb === undefined ? [] : (['metallb'] as const)),
    ...(address ? (['address'] as const) : []),
  ]
  const asked = RIGHTS.filter(({ role }) => roles.includes(role)).flatMap((right) =>
    right.verbs.map((verb) => ({ ...right, ...(right.role === 'metallb' ? { namespace: metallb } : {}), verb })),
  )
  let answers: { role: Right['role']; described: string; allowed: boolean }[]
  try {
    answers = await Promise.all(
      asked.map(async ({ role, group, resource, subresource, namespace, name, verb }) => {
        const resourceAttributes = { group, resource, subresource, namespace, name, verb }
        // It has no name and is not stored.
        const review = await api.create(REVIEWS, { metadata: {}, spec: { resourceAttributes } }, call)
        const path = [resource, ...(subresource ? [subresource] : [])].join('/')
        const described = `${verb} ${path}${group ? `.${group}` : ''}${name ? ` ${name}` : ''}${namespace ? ` in ${namespace}` : ''}`
        return { role, described, allowed: review.status?.allowed === true }
      }),
    )
  } catch (error) {
    return [
      warning('rights', `Rights could not be asked for: ${messageOf(error)}`, 'Compare them with k8s/base yourself'),
    ]
  }
  const lacking = (role: Right['role']) =>
    answers.filter((answer) => answer.role === role && !answer.allowed).map(({ described }) => described)
  const whole = roles.filter((role) => lacking(role).length === 0)
  const serves = whole.includes('forwarder') || whole.includes('worker')
  return roles.map((role) => {
    const missing = lacking(role)
    if (missing.length === 0) return ok('rights', `The account has all rights ${SPOKEN[role]}`)
    const ofCherry = role === 'metallb' || role === 'address'
    const what = `The account lacks rights ${SPOKEN[role]}: ${some(missing, 8)}`
    const toDo = `Apply k8s/base${ofCherry ? '/cherry-rbac.yaml' : ''}, unless this account is not the ${ofCherry ? 'worker' : role}'s`
    // Rights of a worker at Cherry are of no use to an account that is no worker's.
    return serves && (!ofCherry || !whole.includes('worker'))
      ? warning('rights', what, toDo)
      : problem('rights', what, toDo)
  })
}
