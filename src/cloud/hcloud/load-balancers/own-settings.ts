import { OWN_SETTINGS_LABEL } from './names.ts'

/** Attributes that keep their value at the cloud when nobody asks for one any more, unless it was us who set it. */
const OWN_SETTINGS = ['algorithm', 'ipv4-rdns', 'ipv6-rdns', 'public-network'] as const
export type OwnSetting = (typeof OWN_SETTINGS)[number]

export function readOwnSettings(labels: Readonly<Record<string, string>>): Set<OwnSetting> {
  const names = new Set((labels[OWN_SETTINGS_LABEL] ?? '').split('.'))
  return new Set(OWN_SETTINGS.filter((setting) => names.has(setting)))
}

/** Labels with the settings noted; without the label when there are none. */
export function withOwnSettings(
  labels: Readonly<Record<string, string>>,
  settings: ReadonlySet<OwnSetting>,
): Record<string, string> {
  const { [OWN_SETTINGS_LABEL]: _, ...others } = labels
  const value = OWN_SETTINGS.filter((setting) => settings.has(setting)).join('.')
  return value === '' ? others : { ...others, [OWN_SETTINGS_LABEL]: value }
}
