import type { Call } from '../../call.ts'
import type {
  Action,
  Algorithm,
  Certificate,
  LoadBalancer,
  LoadBalancerType,
  Location,
  Network,
  Server,
} from './model.ts'
import {
  listOf,
  objectOf,
  parseAction,
  parseCertificate,
  parseLoadBalancer,
  parseLoadBalancerType,
  parseLocation,
  parseNetwork,
  parseServer,
} from './parse.ts'
import { type ActOptions, createTransport, type TransportOptions } from './transport.ts'

/** A request whose work goes on: what came of it is known when its actions have ended. */
export interface Begun<T = undefined> {
  result: T
  actions: Action[]
}

export type HcloudClient = ReturnType<typeof createHcloudClient>

/** The Hetzner Cloud API, resource by resource. */
export function createHcloudClient(options: TransportOptions) {
  const { account, read, readAll, readOne, write } = createTransport(options)

  const begun = (json: unknown): Begun => ({ result: undefined, actions: actionsOf(json) })

  const act = (path: string, action: string, body: unknown, call: Call, what: string, options?: ActOptions) =>
    write('POST', `${path}/actions/${action}`, body, call, what, begun, options)

  const lb = (id: number) => `/load_balancers/${id}`

  return {
    account,

    checkToken: (call: Call) =>
      read('/locations', call, 'checking the token', (json) => void listOf(json, 'locations', () => undefined)),

    servers: {
      list: (call: Call) => readAll('/servers', 'servers', call, 'listing servers', parseServer),
      get: (id: number, call: Call) =>
        readOne<Server>(`/servers/${id}`, 'server', call, `reading server ${id}`, parseServer),
      named: async (name: string, call: Call) =>
        (
          await readAll(
            `/servers?name=${encodeURIComponent(name)}`,
            'servers',
            call,
            `looking for server "${name}"`,
            parseServer,
          )
        ).find((server) => server.name === name),
    },

    networks: {
      get: (id: number, call: Call) =>
        readOne<Network>(`/networks/${id}`, 'network', call, `reading network ${id}`, parseNetwork),
      named: async (name: string, call: Call) =>
        (
          await readAll(
            `/networks?name=${encodeURIComponent(name)}`,
            'networks',
            call,
            `looking for network "${name}"`,
            parseNetwork,
          )
        ).find((network) => network.name === name),
      addRoute: (id: number, route: { destination: string; gateway: string }, call: Call) =>
        act(`/networks/${id}`, 'add_route', route, call, `adding route ${route.destination} via ${route.gateway}`),
      deleteRoute: (id: number, route: { destination: string; gateway: string }, call: Call) =>
        act(`/networks/${id}`, 'delete_route', route, call, `deleting route ${route.destination} via ${route.gateway}`),
    },

    certificates: {
      list: (call: Call) => readAll('/certificates', 'certificates', call, 'listing certificates', parseCertificate),
      create: (
        certificate: { name: string; domainNames: string[]; labels: Record<string, string> },
        call: Call,
      ): Promise<Begun<Certificate>> =>
        write(
          'POST',
          '/certificates',
          {
            name: certificate.name,
            type: 'managed',
            domain_names: certificate.domainNames,
            labels: certificate.labels,
          },
          call,
          `creating managed certificate "${certificate.name}"`,
          (json) => ({ result: objectOf(json, 'certificate', parseCertificate), actions: actionsOf(json) }),
        ),
      delete: (id: number, call: Call) =>
        write('DELETE', `/certificates/${id}`, undefined, call, `deleting certificate ${id}`, () => undefined),
    },

    locations: {
      list: (call: Call): Promise<Location[]> =>
        readAll('/locations', 'locations', call, 'listing locations', parseLocation),
    },

    loadBalancerTypes: {
      list: (call: Call): Promise<LoadBalancerType[]> =>
        readAll(
          '/load_balancer_types',
          'load_balancer_types',
          call,
          'listing load balancer types',
          parseLoadBalancerType,
        ),
    },

    loadBalancers: {
      list: (call: Call) =>
        readAll('/load_balancers', 'load_balancers', call, 'listing load balancers', parseLoadBalancer),
      labelled: (selector: string, call: Call) =>
        readAll(
          `/load_balancers?label_selector=${encodeURIComponent(selector)}`,
          'load_balancers',
          call,
          `looking for the load balancer with label ${selector}`,
          parseLoadBalancer,
        ),
      named: async (name: string, call: Call) =>
        (
          await readAll(
            `/load_balancers?name=${encodeURIComponent(name)}`,
            'load_balancers',
            call,
            `looking for load balancer "${name}"`,
            parseLoadBalancer,
          )
        ).find((one) => one.name === name),
      get: (id: number, call: Call) =>
        readOne<LoadBalancer>(lb(id), 'load_balancer', call, `reading load balancer ${id}`, parseLoadBalancer),
      /** `body` in the API's own form. */
      create: (body: Record<string, unknown>, call: Call, options?: ActOptions): Promise<Begun<LoadBalancer>> =>
        write(
          'POST',
          '/load_balancers',
          body,
          call,
          `creating load balancer "${String(body.name)}"`,
          (json) => ({
            result: objectOf(json, 'load_balancer', parseLoadBalancer),
            actions: actionsOf(json),
          }),
          options,
        ),
      update: (id: number, body: { name?: string; labels?: Record<string, string> }, call: Call) =>
        write('PUT', lb(id), body, call, `updating name and labels of load balancer ${id}`, () => undefined),
      delete: (id: number, call: Call) =>
        write('DELETE', lb(id), undefined, call, `deleting load balancer ${id}`, () => undefined),
      changeDnsPtr: (id: number, ip: string, dnsPtr: string | null, call: Call) =>
        act(lb(id), 'change_dns_ptr', { ip, dns_ptr: dnsPtr }, call, `setting the reverse DNS of ${ip}`),
      changeAlgorithm: (id: number, type: Algorithm, call: Call) =>
        act(lb(id), 'change_algorithm', { type }, call, `changing the algorithm of load balancer ${id} to ${type}`),
      changeType: (id: number, type: { id: number; name: string }, call: Call) =>
        act(
          lb(id),
          'change_type',
          { load_balancer_type: type.id },
          call,
          `changing load balancer ${id} to ${type.name}`,
        ),
      attach: (id: number, to: { network: number; ip?: string; ip_range?: string }, call: Call) =>
        act(lb(id), 'attach_to_network', to, call, `attaching load balancer ${id} to network ${to.network}`),
      detach: (id: number, network: number, call: Call) =>
        act(lb(id), 'detach_from_network', { network }, call, `detaching load balancer ${id} from network ${network}`),
      setPublicInterface: (id: number, enabled: boolean, call: Call) =>
        act(
          lb(id),
          enabled ? 'enable_public_interface' : 'disable_public_interface',
          undefined,
          call,
          `${enabled ? 'enabling' : 'disabling'} the public interface of load balancer ${id}`,
        ),
      addService: (id: number, service: Record<string, unknown>, call: Call, options?: ActOptions) =>
        act(
          lb(id),
          'add_service',
          service,
          call,
          `adding listener ${String(service.listen_port)} to load balancer ${id}`,
          options,
        ),
      updateService: (id: number, service: Record<string, unknown>, call: Call, options?: ActOptions) =>
        act(
          lb(id),
          'update_service',
          service,
          call,
          `updating listener ${String(service.listen_port)} of load balancer ${id}`,
          options,
        ),
      deleteService: (id: number, listenPort: number, call: Call, options?: ActOptions) =>
        act(
          lb(id),
          'delete_service',
          { listen_port: listenPort },
          call,
          `deleting listener ${listenPort} of load balancer ${id}`,
          options,
        ),
      addTarget: (id: number, target: Record<string, unknown>, call: Call, options?: ActOptions) =>
        act(lb(id), 'add_target', target, call, `adding a target to load balancer ${id}`, options),
      removeTarget: (id: number, target: Record<string, unknown>, call: Call, options?: ActOptions) =>
        act(lb(id), 'remove_target', target, call, `removing a target from load balancer ${id}`, options),
    },

    actions: {
      /** At most 25 ids. */
      get: (ids: readonly number[], call: Call): Promise<Action[]> =>
        read(
          `/actions?${ids.map((id) => `id=${id}`).join('&')}&sort=status&sort=id&page=1`,
          call,
          'reading the state of actions',
          (json) => listOf(json, 'actions', parseAction),
        ),
    },
  }
}

function actionsOf(json: unknown): Action[] {
  const answer = json as { action?: unknown; actions?: unknown; next_actions?: unknown }
  const many = [answer?.actions, answer?.next_actions].flatMap((list) => (Array.isArray(list) ? list : []))
  return [...(answer?.action ? [answer.action] : []), ...many].map(parseAction)
}
