/** Label with the owner's uid, on everything that is made for a Service. */
export const OWNER_LABEL = 'hcloud-ccm/service-uid'

/**
 * Label with the attributes that were set because a Service asked for them, as far as nothing else tells: when the Service asks no
 * longer, these go back to their defaults, while those of an adopted load balancer that nobody asked about stay.
 */
export const OWN_SETTINGS_LABEL = 'windlass/own-settings'

/** Label on a load balancer that outlived its Service because it is protected: another Service may adopt it by name. */
export const RELEASED_LABEL = 'windlass/released'

export function defaultName(uid: string): string {
  return `a${uid.replaceAll('-', '')}`.slice(0, 32)
}

export function managedCertificateName(uid: string): string {
  return `ccm-managed-certificate-${uid}`
}
