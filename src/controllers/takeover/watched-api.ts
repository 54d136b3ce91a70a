import type { KubernetesApi } from '../../kubernetes/api.ts'
import type { ObjectMeta } from '../../kubernetes/objects.ts'
import { NODES, type Resource, SERVICES } from '../../kubernetes/resources.ts'

/** Shows every Node and Service that is read anyway, so that looking at them costs no request of its own. */
export function watchedApi(api: KubernetesApi, onObject: (metadata: ObjectMeta) => void): KubernetesApi {
  const show = <T>(resource: Resource<T>, object: T | undefined) => {
    const concerned = (resource as unknown) === NODES || (resource as unknown) === SERVICES
    if (object !== undefined && concerned) onObject((object as { metadata: ObjectMeta }).metadata)
    return object
  }
  return {
    async get(resource, name, call) {
      return show(resource, await api.get(resource, name, call))
    },
    list<T, P = T>(
      resource: Resource<T>,
      options: Parameters<typeof api.list<T, P>>[1],
      call: Parameters<typeof api.get>[2],
    ) {
      const { project = (object: T) => object as unknown as P } = options
      return api.list<T, P>(
        resource,
        {
          ...options,
          project: (object) => {
            show(resource, object)
            return project(object)
          },
        },
        call,
      )
    },
    create: (resource, object, call, options) => api.create(resource, object, call, options),
    patch: (resource, name, patch, call, options) => api.patch(resource, name, patch, call, options),
    patchMetadata: (resource, name, patch, call, options) => api.patchMetadata(resource, name, patch, call, options),
    delete: (resource, name, call, options) => api.delete(resource, name, call, options),
  }
}
