import type { Epoch } from '../../state/epoch.ts'
import type { ServerDeps } from '../deps.ts'

export interface EpochKeeper {
  /** The epoch of Redis now. When it is new, all that depends on it was put in order first. */
  current(): Promise<Epoch>
}

/** Redis may have begun anew: then schedules are asserted again, and what it still says about handled states is not trusted. */
export function createEpochKeeper(
  deps: Pick<ServerDeps, 'clusters' | 'stores' | 'assertSchedules' | 'metrics' | 'log'>,
): EpochKeeper {
  const { stores, log } = deps
  let beginning: Promise<void> | undefined

  async function begin(id: string): Promise<void> {
    for (const cluster of deps.clusters.keys()) await stores.handled.reset(cluster)
    await deps.assertSchedules()
    await stores.epochs.confirm(id)
    deps.metrics.increment('windlass_epochs_total', 1)
    log.info({ epoch: id }, 'redis began anew: schedules are asserted, every forwarder will send all it has')
  }

  return {
    async current() {
      const epoch = await stores.epochs.current()
      if (epoch.isNew) {
        beginning ??= begin(epoch.id).finally(() => {
          beginning = undefined
        })
        await beginning
      }
      return epoch
    },
  }
}
