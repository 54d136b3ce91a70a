interface SchemaNode {
  properties?: Record<string, SchemaNode>
  items?: SchemaNode
}

type Keep = (value: unknown) => unknown

/**
 * Makes a function that copies a value which a schema has accepted, without the fields that the schema does not name: those of a newer
 * forwarder. Made once, since the library's own `Clean` walks the schema again for every value and takes a millisecond an event.
 */
export function keepKnownFields(schema: unknown): Keep {
  const { properties, items } = schema as SchemaNode
  if (items) {
    const keep = keepKnownFields(items)
    return (value) => (Array.isArray(value) ? value.map(keep) : value)
  }
  if (!properties) return (value) => value
  const fields = Object.entries(properties).map(([name, field]) => [name, keepKnownFields(field)] as const)
  return (value) => {
    const from = value as Record<string, unknown>
    const kept: Record<string, unknown> = {}
    for (const [name, keep] of fields) if (from[name] !== undefined) kept[name] = keep(from[name])
    return kept
  }
}
