import type { ResourceRef } from '../actions.ts'
import type { Cloud } from '../cloud.ts'
import { ApiError, invalidField, nameTaken, notFound } from '../errors.ts'
import type { Certificate, Labels } from '../model.ts'
import { listPage } from '../query.ts'
import { begin, type Call, type Endpoint } from '../router.ts'
import * as shape from '../shape.ts'
import { certificateView, usersOf } from '../views.ts'
import { actionEndpoints } from './actions.ts'

const { labels, list, name, object, oneOf, optional, required, text } = shape

const domain = text({
  max: 253,
  pattern: /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/,
  says: 'is not a domain name',
})

const pem = (kind: string) =>
  text({ pattern: new RegExp(`^\\s*-----BEGIN ([A-Z]+ )?${kind}-----`), says: `is not a PEM ${kind.toLowerCase()}` })

interface CreateBody {
  name: string
  type?: 'uploaded' | 'managed'
  labels?: Labels
  domain_names?: string[]
  certificate?: string
  private_key?: string
}

export const certificates: Endpoint[] = [
  {
    method: 'GET',
    path: '/certificates',
    query: ['name', 'label_selector', 'sort', 'type', 'page', 'per_page'],
    answer: (cloud, { query }) => {
      const types = query.getAll('type')
      const wanted = cloud.certificates.filter(
        (item) => cloud.isListed(item) && (types.length === 0 || types.includes(item.type)),
      )
      return listPage('certificates', wanted, query, (certificate) => certificateView(cloud, certificate))
    },
  },
  {
    method: 'GET',
    path: '/certificates/{id}',
    answer: (cloud, { params }) => show(cloud, find(cloud, params)),
  },
  {
    method: 'POST',
    path: '/certificates',
    body: object({
      name: required(name),
      type: optional(oneOf('uploaded', 'managed')),
      labels: optional(labels),
      domain_names: optional(list(domain, { min: 1, max: 100 })),
      certificate: optional(pem('CERTIFICATE')),
      private_key: optional(pem('PRIVATE KEY')),
    }),
    answer: (cloud, call) => {
      const body = call.body as CreateBody
      assertComplete(body)
      if (cloud.certificates.some((item) => item.name === body.name)) throw nameTaken('certificate')
      const managed = body.type === 'managed'
      const certificate: Certificate = {
        id: cloud.nextId(),
        name: body.name,
        type: managed ? 'managed' : 'uploaded',
        labels: body.labels ?? {},
        domain_names: body.domain_names ?? ['example.com'],
        created: new Date().toISOString(),
        status: null,
      }
      cloud.certificates.push(certificate)
      cloud.hideFromLists(certificate, call.twist.staleMs ?? cloud.options.stale_ms)
      const action = managed ? issue(cloud, call, certificate, 'create_certificate') : null
      cloud.touch()
      return { status: 201, body: { certificate: certificateView(cloud, certificate), action } }
    },
  },
  {
    method: 'PUT',
    path: '/certificates/{id}',
    body: object({ name: optional(name), labels: optional(labels) }),
    answer: (cloud, { params, body }) => {
      const certificate = find(cloud, params)
      const change = body as { name?: string; labels?: Labels }
      if (cloud.certificates.some((other) => other !== certificate && other.name === change.name)) {
        throw nameTaken('certificate')
      }
      certificate.name = change.name ?? certificate.name
      certificate.labels = change.labels ?? certificate.labels
      cloud.touch()
      return show(cloud, certificate)
    },
  },
  {
    method: 'DELETE',
    path: '/certificates/{id}',
    answer: (cloud, { params }) => {
      const certificate = find(cloud, params)
      if (usersOf(cloud, certificate.id).length > 0) {
        throw new ApiError('resource_in_use', 'certificate is used by a load balancer')
      }
      cloud.certificates = cloud.certificates.filter((other) => other !== certificate)
      cloud.touch()
      return { status: 204 }
    },
  },
  {
    method: 'POST',
    path: '/certificates/{id}/actions/retry',
    answer: (cloud, call) => {
      const certificate = find(cloud, call.params)
      cloud.actions.assertFree(ref(certificate))
      if (certificate.status?.issuance !== 'failed') {
        throw new ApiError('unsupported_error', 'only a failed issuance can be tried again')
      }
      return { status: 201, body: { action: issue(cloud, call, certificate, 'issue_certificate') } }
    },
  },
  ...actionEndpoints('certificates', 'certificate', (cloud, params) => find(cloud, params)),
]

function assertComplete(body: CreateBody): void {
  const managed = body.type === 'managed'
  const needed = managed ? (['domain_names'] as const) : (['certificate', 'private_key'] as const)
  const refused = managed ? (['certificate', 'private_key'] as const) : (['domain_names'] as const)
  for (const field of needed) if (body[field] === undefined) throw invalidField(field, 'missing required field')
  for (const field of refused) if (body[field] !== undefined) throw invalidField(field, 'not possible with this type')
}

function issue(cloud: Cloud, call: Call, certificate: Certificate, command: string) {
  certificate.status = { issuance: 'pending', renewal: 'unavailable', error: null }
  return begin(cloud, call, {
    command,
    resources: [ref(certificate)],
    durationMs: cloud.options.certificate_ms,
    effect: () => {
      certificate.status = { issuance: 'completed', renewal: 'scheduled', error: null }
    },
    undo: () => {
      certificate.status = { issuance: 'failed', renewal: 'unavailable', error: call.twist.fails ?? null }
    },
  })
}

function ref(certificate: Certificate): ResourceRef {
  return { id: certificate.id, type: 'certificate' }
}

function find(cloud: Cloud, params: Record<string, number>): Certificate {
  const certificate = cloud.certificates.find((candidate) => candidate.id === params.id)
  if (!certificate) throw notFound('certificate', params.id ?? 0)
  return certificate
}

function show(cloud: Cloud, certificate: Certificate): { status: number; body: unknown } {
  return { status: 200, body: { certificate: certificateView(cloud, certificate) } }
}
