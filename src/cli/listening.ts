import { permanent } from '../errors.ts'

const WHY: Record<string, (host: string, port: number) => string> = {
  EADDRINUSE: (_host, port) => `port ${port} is taken by another process: end that, or choose another port`,
  EACCES: (_host, port) => `this user may not listen on port ${port}: choose one from 1024 on`,
  EADDRNOTAVAIL: (host) => `${host} is no address of this machine: choose one that is, or leave it out`,
}

/** Listens somewhere; an address that can't be had is told with the setting that says which, once what runs already has ended. */
export async function listening<T>(
  setting: string,
  { host, port }: { host: string; port: number },
  listen: () => Promise<T>,
  undo?: () => Promise<void>,
): Promise<T> {
  try {
    return await listen()
  } catch (error) {
    await undo?.()
    const code = (error as NodeJS.ErrnoException).code ?? ''
    const why = WHY[code]
    if (!why) throw error
    throw permanent(`${setting}: ${host}:${port} can't be listened on (${code}): ${why(host, port)}`)
  }
}
