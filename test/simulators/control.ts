type Json = Record<string, unknown>

/** Answers a request to the control side of a simulator: GET reads by name, POST writes. Status and JSON body. */
export async function answerByName(
  reads: Record<string, () => unknown>,
  writes: Record<string, (body: Json) => void | Promise<void>>,
  method: string,
  name: string,
  text: string,
): Promise<[number, unknown]> {
  try {
    if (method === 'GET' && reads[name]) return [200, reads[name]()]
    if (method === 'POST' && writes[name]) {
      await writes[name](text === '' ? {} : JSON.parse(text))
      return [200, {}]
    }
    return [404, { error: `no ${method} ${name} in the control API` }]
  } catch (error) {
    return [400, { error: String(error) }]
  }
}
