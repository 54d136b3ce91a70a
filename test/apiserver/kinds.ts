/** Where the kinds that tests handle live in the API. */
export const kinds: Readonly<Record<string, { base: string; plural: string; namespaced: boolean }>> = {
  ...core('Node', 'nodes', false),
  ...core('Namespace', 'namespaces', false),
  ...core('Service', 'services', true),
  ...core('ConfigMap', 'configmaps', true),
  ...core('Secret', 'secrets', true),
  ...core('Pod', 'pods', true),
  ...core('Event', 'events', true),
  ...core('Endpoints', 'endpoints', true),
  ...core('ServiceAccount', 'serviceaccounts', true),
  ...group('discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices', true),
  ...group('coordination.k8s.io/v1', 'Lease', 'leases', true),
  ...group('rbac.authorization.k8s.io/v1', 'ClusterRole', 'clusterroles', false),
  ...group('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', 'clusterrolebindings', false),
  ...group('rbac.authorization.k8s.io/v1', 'Role', 'roles', true),
  ...group('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings', true),
  ...group('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'customresourcedefinitions', false),
  ...group('metallb.io/v1beta1', 'IPAddressPool', 'ipaddresspools', true),
  ...group('metallb.io/v1beta2', 'BGPPeer', 'bgppeers', true),
  ...group('metallb.io/v1beta1', 'BGPAdvertisement', 'bgpadvertisements', true),
  ...group('apps/v1', 'Deployment', 'deployments', true),
  ...group('policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets', true),
  ...group('keda.sh/v1alpha1', 'ScaledObject', 'scaledobjects', true),
  ...group('keda.sh/v1alpha1', 'TriggerAuthentication', 'triggerauthentications', true),
  ...group('monitoring.coreos.com/v1', 'PodMonitor', 'podmonitors', true),
  ...group('monitoring.coreos.com/v1', 'PrometheusRule', 'prometheusrules', true),
  ...group('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy', 'validatingadmissionpolicies', false),
  ...group(
    'admissionregistration.k8s.io/v1',
    'ValidatingAdmissionPolicyBinding',
    'validatingadmissionpolicybindings',
    false,
  ),
}

/** `v1`, `discovery.k8s.io/v1`, … */
export function apiVersionOf(kind: string): string {
  return placeOf(kind).base.replace(/^\/apis?\//, '')
}

/** Path of a collection, an object, or an object's subresource. Throws at a kind that is not in the table. */
export function pathOf(kind: string, namespace?: string, name?: string, subresource?: string): string {
  const { base, plural, namespaced } = placeOf(kind)
  const parts = namespaced && namespace ? ['namespaces', namespace, plural] : [plural]
  if (name) parts.push(name)
  if (name && subresource) parts.push(subresource)
  return [base, ...parts].join('/')
}

export function isNamespaced(kind: string): boolean {
  return placeOf(kind).namespaced
}

function placeOf(kind: string): { base: string; plural: string; namespaced: boolean } {
  const place = kinds[kind]
  if (!place) throw new Error(`kind ${kind} is missing in test/apiserver/kinds.ts`)
  return place
}

function core(kind: string, plural: string, namespaced: boolean) {
  return { [kind]: { base: '/api/v1', plural, namespaced } }
}

function group(groupVersion: string, kind: string, plural: string, namespaced: boolean) {
  return { [kind]: { base: `/apis/${groupVersion}`, plural, namespaced } }
}
