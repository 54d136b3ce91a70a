import { ANNOTATIONS, type Annotation, PREFIX } from './annotations.ts'

/** The reference of the annotations, in Markdown: `docs/load-balancer-annotations.md` is this text. */
export function annotationsPage(): string {
  const rows = Object.entries<Annotation<unknown>>(ANNOTATIONS).map(([name, annotation]) => {
    const { kind, setting, removal } = annotation
    const fallback = setting ? `\`${setting.name}\`, else ${annotation.default}` : annotation.default
    return `| \`${name}\` | ${kind.values} | ${fallback} | ${annotation.effect} | ${removal ?? 'default'} |`
  })
  return `# Annotations of Services at Hetzner

<!-- Made by infra/docs.ts from src/cloud/hcloud/load-balancers/annotations.ts: change it there. -->

Each name has the prefix \`${PREFIX}\`. An annotation goes before the setting that stands in for it. All are checked before anything
is created or changed. With one that is wrong nothing is made, and of what is there only the targets still follow the nodes; an Event names every
fault at once.

| annotation | values | default | effect | when removed |
| --- | --- | --- | --- | --- |
${rows.join('\n')}

Blanks around the items of lists are dropped. Durations reach the API in whole seconds. A \`health-check-…\` setting that says "only
together" takes effect when \`health-check-protocol\`, \`-port\`, \`-interval\`, \`-timeout\` or \`-retries\` is set too, by annotation or setting.
`
}
