import { spawn } from 'node:child_process'

/** Ends process groups that this process started, should it be killed before it could. */
export interface Reaper {
  watch(group: number): void
  forget(group: number): void
}

/** A shell that reads which groups are alive; when its standard input closes, it kills those that are left. */
export function startReaper(): Reaper {
  const child = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  child.unref()
  const { stdin } = child
  stdin.on('error', () => {})
  const pipe = stdin as unknown as { unref?(): void }
  pipe.unref?.()
  return {
    watch: (group) => void stdin.write(`+ ${group}\n`),
    forget: (group) => void stdin.write(`- ${group}\n`),
  }
}

const script = `
live=' '
while read -r sign group; do
  if [ "$sign" = + ]; then
    live="$live$group "
  else
    before=\${live%%" $group "*} after=\${live#*" $group "}
    live="$before $after"
  fi
done
for group in $live; do kill -9 -- "-$group" 2>/dev/null; done
`
