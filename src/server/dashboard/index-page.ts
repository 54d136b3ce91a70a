/**
 * The board's page as a strict policy lets it be: nothing from other hosts, no inline styles. Its script finds the API by the base tag,
 * which follows a proxy that serves us under a path and says so.
 * @param forwardedPrefix the header `x-forwarded-prefix`
 */
export function indexPage(html: string, path: string, forwardedPrefix: string | string[] | undefined): string {
  const before = typeof forwardedPrefix === 'string' && /^(\/[\w.~-]+)+$/.test(forwardedPrefix) ? forwardedPrefix : ''
  return html
    .replace(/<base [^>]*>/, `<base href="${before}${path}/">`)
    .replace(/<link [^>]*href="(https?:)?\/\/[^>]*>/g, '')
    .replace(/<style[\s\S]*?<\/style>/g, '')
    .replace(/(<[^>]*?) style="[^"]*"/g, '$1')
}
