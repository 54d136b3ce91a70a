import type { Action, ResourceRef } from '../actions.ts'
import type { Cloud } from '../cloud.ts'
import { ApiError, invalidField, nameTaken, notFound } from '../errors.ts'
import { type AttachBody, chooseAttachment, isPrivateTarget } from '../load-balancer/attachment.ts'
import { type CreateBody, createLoadBalancer, createShape, findType } from '../load-balancer/create.ts'
import { assertSound, changedServiceShape, merge, newServiceShape, type ServiceBody } from '../load-balancer/service.ts'
import {
  assertPossible,
  isSame,
  newTargetShape,
  notAttached,
  removedTargetShape,
  type TargetBody,
  toTarget,
} from '../load-balancer/target.ts'
import type { Labels, LoadBalancer } from '../model.ts'
import { listPage } from '../query.ts'
import { begin, type Call, type Endpoint } from '../router.ts'
import * as shape from '../shape.ts'
import { loadBalancerView, pointer } from '../views.ts'
import { actionEndpoints } from './actions.ts'

const { boolean, either, hostName, id, labels, name, nullable, object, oneOf, optional, port, required, text } = shape

export const loadBalancers: Endpoint[] = [
  {
    method: 'GET',
    path: '/load_balancers',
    query: ['page', 'per_page', 'name', 'label_selector', 'sort'],
    answer: (cloud, { query }) =>
      listPage(
        'load_balancers',
        cloud.loadBalancers.filter((lb) => cloud.isListed(lb)),
        query,
        (lb) => loadBalancerView(cloud, lb),
      ),
  },
  {
    method: 'GET',
    path: '/load_balancers/{id}',
    answer: (cloud, { params }) => show(cloud, find(cloud, params)),
  },
  {
    method: 'POST',
    path: '/load_balancers',
    body: createShape,
    answer: (cloud, call) => {
      const body = call.body as CreateBody
      const lb = createLoadBalancer(cloud, body)
      const network: ResourceRef[] = body.network === undefined ? [] : [{ id: body.network, type: 'network' }]
      if (cloud.options.create_network_conflict) for (const ref of network) cloud.actions.assertFree(ref)
      cloud.loadBalancers.push(lb)
      cloud.hideFromLists(lb, call.twist.staleMs ?? cloud.options.stale_ms)
      const undo = (): void => {
        cloud.loadBalancers = cloud.loadBalancers.filter((other) => other !== lb)
      }
      const action = begin(cloud, call, { command: 'create_load_balancer', resources: [ref(lb), ...network], undo })
      return { status: 201, body: { load_balancer: loadBalancerView(cloud, lb), action } }
    },
  },
  {
    method: 'PUT',
    path: '/load_balancers/{id}',
    body: object({ name: optional(name), labels: optional(labels) }),
    answer: (cloud, { params, body }) => {
      const lb = find(cloud, params)
      const change = body as { name?: string; labels?: Labels }
      if (cloud.loadBalancers.some((other) => other !== lb && other.name === change.name)) {
        throw nameTaken('load balancer')
      }
      lb.name = change.name ?? lb.name
      lb.labels = change.labels ?? lb.labels
      cloud.touch()
      return show(cloud, lb)
    },
  },
  {
    method: 'DELETE',
    path: '/load_balancers/{id}',
    answer: (cloud, { params }) => {
      const lb = find(cloud, params)
      if (lb.protection.delete) throw new ApiError('protected', 'load balancer deletion is protected')
      cloud.actions.assertFree(ref(lb))
      cloud.loadBalancers = cloud.loadBalancers.filter((other) => other !== lb)
      cloud.touch()
      return { status: 204 }
    },
  },
  action('add_service', newServiceShape, (cloud, lb, body) => {
    const service = merge(undefined, body as ServiceBody)
    assertSound(cloud, lb.load_balancer_type, lb.services, service, body as ServiceBody)
    return { effect: () => lb.services.push(service) }
  }),
  action('update_service', changedServiceShape, (cloud, lb, body) => {
    const before = findService(lb, (body as ServiceBody).listen_port)
    const others = lb.services.filter((service) => service !== before)
    const after = merge(before, body as ServiceBody)
    assertSound(cloud, lb.load_balancer_type, others, after, body as ServiceBody)
    return { effect: () => lb.services.splice(lb.services.indexOf(before), 1, after) }
  }),
  action('delete_service', object({ listen_port: required(port) }), (_, lb, body) => {
    const service = findService(lb, (body as { listen_port: number }).listen_port)
    return { effect: () => lb.services.splice(lb.services.indexOf(service), 1) }
  }),
  action('add_target', newTargetShape, (cloud, lb, body) => {
    const target = toTarget(body as TargetBody)
    assertPossible(cloud, lb, target)
    return {
      effect: () => {
        assertPossible(cloud, lb, target)
        lb.targets.push(target)
      },
    }
  }),
  action('remove_target', removedTargetShape, (_, lb, body) => {
    const target = toTarget(body as TargetBody)
    const known = lb.targets.find((own) => isSame(own, target))
    if (!known) throw new ApiError('not_found', 'the load balancer has no such target')
    return { effect: () => remove(lb.targets, known) }
  }),
  action('change_algorithm', object({ type: required(oneOf('round_robin', 'least_connections')) }), (_, lb, body) => ({
    effect: () => {
      lb.algorithm = { type: (body as { type: string }).type }
    },
  })),
  action('change_type', object({ load_balancer_type: required(either(text({ min: 1 }), id)) }), (cloud, lb, body) => {
    const type = findType(cloud, (body as { load_balancer_type: string | number }).load_balancer_type)
    if (lb.services.length > type.max_services || lb.targets.length > type.max_targets) {
      throw new ApiError('invalid_load_balancer_type', `${type.name} is too small for the services or targets`)
    }
    return {
      effect: () => {
        lb.load_balancer_type = type
      },
    }
  }),
  action('change_protection', object({ delete: optional(boolean) }), (_, lb, body) => ({
    effect: () => {
      lb.protection.delete = (body as { delete?: boolean }).delete ?? lb.protection.delete
    },
  })),
  action(
    'change_dns_ptr',
    object({ ip: required(text({ min: 1 })), dns_ptr: required(nullable(hostName)) }),
    (_, lb, body) => {
      const { ip, dns_ptr } = body as { ip: string; dns_ptr: string | null }
      const { ipv4, ipv6 } = lb.public_net
      const address = [ipv4, ipv6].find((own) => own.ip === ip)
      if (!address) throw invalidField('ip', 'is not an address of the load balancer')
      return {
        effect: () => {
          address.dns_ptr = dns_ptr ?? (address === ipv4 ? pointer(ipv4.ip) : null)
        },
      }
    },
  ),
  action(
    'attach_to_network',
    object({ network: required(id), ip: optional(text({ min: 1 })), ip_range: optional(text({ min: 1 })) }),
    (cloud, lb, body) => {
      const attachment = chooseAttachment(cloud, lb, body as AttachBody)
      return { network: attachment.network, effect: () => lb.private_net.push(attachment) }
    },
  ),
  action('detach_from_network', object({ network: required(id) }), (_, lb, body) => {
    const { network } = body as { network: number }
    if (!lb.private_net.some((net) => net.network === network)) throw notAttached()
    return {
      network,
      effect: () => {
        lb.private_net = lb.private_net.filter((net) => net.network !== network)
        lb.targets = lb.targets.filter((target) => !isPrivateTarget(target))
      },
    }
  }),
  action('enable_public_interface', undefined, (_, lb) => ({
    effect: () => {
      lb.public_net.enabled = true
    },
  })),
  action('disable_public_interface', undefined, (_, lb) => {
    if (lb.private_net.length === 0) throw notAttached()
    if (lb.targets.some((target) => !isPrivateTarget(target))) {
      throw new ApiError('targets_without_use_private_ip', 'load balancer has targets that use the public IP')
    }
    return {
      effect: () => {
        lb.public_net.enabled = false
      },
    }
  }),
  ...actionEndpoints('load_balancers', 'load_balancer', (cloud, params) => find(cloud, params)),
]

interface Planned {
  effect: () => unknown
  /** the network that changes with it, and that must be idle */
  network?: number
}

function action(
  command: string,
  body: shape.Check | undefined,
  plan: (cloud: Cloud, lb: LoadBalancer, body: unknown) => Planned,
): Endpoint {
  return {
    method: 'POST',
    path: `/load_balancers/{id}/actions/${command}`,
    ...(body ? { body } : {}),
    answer: (cloud: Cloud, call: Call) => {
      const lb = find(cloud, call.params)
      cloud.actions.assertFree(ref(lb))
      const { effect, network } = plan(cloud, lb, call.body)
      const resources: ResourceRef[] = [ref(lb)]
      if (network !== undefined) {
        const other: ResourceRef = { id: network, type: 'network' }
        cloud.actions.assertFree(other)
        resources.push(other)
      }
      const started: Action = begin(cloud, call, { command, resources, effect })
      return { status: 201, body: { action: started } }
    },
  }
}

function ref(lb: LoadBalancer): ResourceRef {
  return { id: lb.id, type: 'load_balancer' }
}

function find(cloud: Cloud, params: Record<string, number>): LoadBalancer {
  const lb = cloud.loadBalancers.find((candidate) => candidate.id === params.id)
  if (!lb) throw notFound('load balancer', params.id ?? 0)
  return lb
}

function findService(lb: LoadBalancer, listenPort: number | undefined): LoadBalancer['services'][number] {
  const service = lb.services.find((candidate) => candidate.listen_port === listenPort)
  if (!service) throw new ApiError('not_found', `load balancer has no service on port ${listenPort}`)
  return service
}

function show(cloud: Cloud, lb: LoadBalancer): { status: number; body: unknown } {
  return { status: 200, body: { load_balancer: loadBalancerView(cloud, lb) } }
}

function remove<T>(items: T[], item: T): void {
  const at = items.indexOf(item)
  if (at >= 0) items.splice(at, 1)
}
