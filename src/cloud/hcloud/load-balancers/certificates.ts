import type { Note } from '../../provider.ts'
import type { Certificate } from '../model.ts'
import type { LoadBalancerChange } from './changes.ts'
import type { WantedCertificates } from './desire.ts'
import { OWNER_LABEL } from './names.ts'

export interface CertificatePlan {
  /** Ids for the listeners. Empty while the managed certificate is still to be made. */
  ids: number[]
  /** Before the listeners: the managed certificate, if it is to be made. */
  before: (LoadBalancerChange & { kind: 'create-certificate' })[]
  /** After the listeners: managed certificates of ours that another one has replaced. */
  after: (LoadBalancerChange & { kind: 'delete-certificate' })[]
  /** The managed certificate is being issued: listeners can't have it yet. */
  pending?: Certificate
  notes: Note[]
  faults: string[]
}

export const NO_CERTIFICATES: CertificatePlan = { ids: [], before: [], after: [], notes: [], faults: [] }

/** Pure. `known` are all certificates of the project. */
export function planCertificates(
  wanted: WantedCertificates,
  uid: string,
  known: readonly Certificate[],
): CertificatePlan {
  if (wanted.kind === 'none') return NO_CERTIFICATES
  if (wanted.kind === 'uploaded') return planUploaded(wanted.references, known)
  return planManaged(wanted, uid, known)
}

export function ownCertificates(uid: string, known: readonly Certificate[]): Certificate[] {
  return known.filter(({ type, labels }) => type === 'managed' && labels[OWNER_LABEL] === uid)
}

export function deleteCertificate({ id, name }: Certificate): LoadBalancerChange & { kind: 'delete-certificate' } {
  return { kind: 'delete-certificate', summary: `delete managed certificate "${name}"`, id, name }
}

/** A number is an id, everything else a name. */
function planUploaded(references: readonly string[], known: readonly Certificate[]): CertificatePlan {
  const found = references.map((reference) =>
    /^\d+$/.test(reference)
      ? known.find(({ id }) => id === Number(reference))
      : known.find(({ name }) => name === reference),
  )
  const faults = references.flatMap((reference, i) =>
    found[i] ? [] : [`certificate "${reference}" does not exist in the project: upload it, or correct its name or id`],
  )
  const ids = [...new Set(found.flatMap((certificate) => (certificate ? [certificate.id] : [])))].sort((a, b) => a - b)
  return { ...NO_CERTIFICATES, ids, faults }
}

function planManaged(
  wanted: WantedCertificates & { kind: 'managed' },
  uid: string,
  known: readonly Certificate[],
): CertificatePlan {
  const { name, domains, staging } = wanted
  const own = ownCertificates(uid, known)
  const mine = own.find((certificate) => certificate.name === name)
  const after = own.filter((certificate) => certificate !== mine).map(deleteCertificate)
  if (!mine) {
    const foreign = known.find((certificate) => certificate.name === name)
    if (foreign)
      return {
        ...NO_CERTIFICATES,
        faults: [
          `the name "${name}" of the managed certificate is taken by certificate ${foreign.id}, which was not made for this Service: choose another in annotation load-balancer.hetzner.cloud/http-managed-certificate-name, or use it with certificate-type "uploaded"`,
        ],
      }
    const labels = { [OWNER_LABEL]: uid, ...(staging ? { 'HC-Use-Staging-CA': 'true' } : {}) }
    const summary = `create managed certificate "${name}" for ${domains.join(', ')}`
    return { ...NO_CERTIFICATES, before: [{ kind: 'create-certificate', summary, name, domains, labels }], after }
  }
  const notes: Note[] = []
  if (!sameSet(mine.domainNames, domains))
    notes.push({
      type: 'Warning',
      reason: 'CertificateDomainsFixed',
      message: `managed certificate "${name}" is for ${mine.domainNames.join(', ')}; domains can't be changed. Give it another name in annotation load-balancer.hetzner.cloud/http-managed-certificate-name to have one made for ${domains.join(', ')}`,
    })
  if (mine.issuance === 'failed')
    notes.push({
      type: 'Warning',
      reason: 'CertificateIssuanceFailed',
      message: `managed certificate "${name}" could not be issued${mine.issuanceError ? `: ${mine.issuanceError}` : ''}. Check that its domains are in Hetzner DNS, then delete it to have it made again`,
    })
  return {
    ...NO_CERTIFICATES,
    ids: [mine.id],
    after,
    notes,
    ...(mine.issuance === 'pending' ? { pending: mine } : {}),
  }
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  const [left, right] = [new Set(a), new Set(b)]
  return left.size === right.size && [...left].every((one) => right.has(one))
}
