import type { Call } from '../../../call.ts'
import { kindOf, transient } from '../../../errors.ts'
import type { CherryClient } from '../client.ts'
import type { Project, ServerId } from '../model.ts'
import type { Projects } from '../projects.ts'
import type { Servers } from '../servers.ts'
import type { BgpSwitch } from './speakers.ts'

/** Switches that all Services of a cluster ask for at one time, and that are made once. */
export interface BgpSwitches {
  /** BGP of the project. Returns it with its ASN. */
  project(call: Call): Promise<Project>
  server(one: BgpSwitch, call: Call): Promise<void>
  /** It is on its way, or was made just now: `server` sends no other. */
  hasBegun(server: ServerId): boolean
}

/** So long what was switched on here is taken to be on, whatever an older plan says. */
const BELIEVED_MS = 10_000

export function createBgpSwitches(client: CherryClient, known: Servers, projects: Projects): BgpSwitches {
  const servers = new Map<ServerId, Promise<void>>()
  let switching: Promise<Project> | undefined

  async function switchProject(call: Call): Promise<Project> {
    // Another Service, or another worker, may have done it since this was planned.
    const learnt = await projects.get(call)
    const present = learnt.name === '' ? await projects.get(call, { fresh: true }) : learnt
    if (present.bgpEnabled) return present
    if (present.name === '')
      throw transient(
        'BGP can not be switched on for the project: Cherry Servers tells no name of it, and takes none without it. Switch it on in the portal.',
        { code: 'malformed' },
      )
    const answered = await client.project.enableBgp(present.name, call)
    if (!answered?.localAsn) return await projects.get(call, { fresh: true })
    await projects.learn(answered, call)
    return answered
  }

  async function switchServer({ server, node, tags }: BgpSwitch, call: Call): Promise<void> {
    // Since this was planned, others may have had their turn at the API.
    const listed = (await known.list(call).catch(() => [])).find(({ id }) => id === server)
    if (await client.servers.enableBgp(server, listed?.tags ?? tags, call)) return known.switchedOn(server)
    throw transient(`Server ${server} of node ${node} is gone from Cherry Servers.`, { status: 404 })
  }

  /** One that was begun by another run ends with that run, if that is stopped: then it is begun again. */
  async function shared<T>(begin: () => Promise<T>, call: Call): Promise<T> {
    try {
      return await begin()
    } catch (error) {
      if (kindOf(error) !== 'aborted' || call.signal.aborted) throw error
      return await begin()
    }
  }

  function beginProject(call: Call): Promise<Project> {
    switching ??= switchProject(call).finally(() => {
      switching = undefined
    })
    return switching
  }

  function beginServer(one: BgpSwitch, call: Call): Promise<void> {
    const begun = servers.get(one.server)
    if (begun) return begun
    const made = switchServer(one, call)
    servers.set(one.server, made)
    const forget = () => servers.delete(one.server)
    made.then(() => setTimeout(forget, BELIEVED_MS).unref(), forget)
    return made
  }

  return {
    project: (call) => shared(() => beginProject(call), call),
    server: (one, call) => shared(() => beginServer(one, call), call),
    hasBegun: (server) => servers.has(server),
  }
}
